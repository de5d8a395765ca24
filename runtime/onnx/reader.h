// SPDX-License-Identifier: Apache-2.0
// What the parts of the reader share: the model that is being made, its memory, and how messages become
// structures. Sentences begin behind the file's name, which clv__onnx_open puts before them.
#ifndef CLV_ONNX_READER_H
#define CLV_ONNX_READER_H

#include "base/memory.h"
#include "onnx/file.h"

/** Of a file's bytes, this much memory at most; and this much more, for functions that are called often. */
enum { CLV__ONNX_FACTOR = 64, CLV__ONNX_MORE_BYTES = 16 * 1024 * 1024 };

/** A file with external data, mapped. */
typedef struct clv__onnx_mapping {
    clv__onnx_text location; // as the model has it
    const uint8_t *bytes;
    size_t n;
} clv__onnx_mapping;

struct clv__onnx_memory {
    clv__arena arena;
    clv__onnx_mapping file; // no bytes: they are the caller's
    clv__onnx_mapping *beside;
    size_t n_beside, beside_room;
};

typedef struct clv__onnx_reader {
    clv__error *error;
    clv__onnx_model *model;
    const uint8_t *bytes; // of the file
    size_t n;
    bool has_folder;   // of the model, for external data
    char *folder;      // its real path, once it was asked for
    size_t depth;      // of graphs in graphs
    bool node_told;    // by the sentence that is being made
    clv_status status; // of clv__onnx_take that gave nothing
} clv__onnx_reader;

/** Zeroed memory of the model; NULL: there is none, or the file is not worth it: r->status. */
void *clv__onnx_take(clv__onnx_reader *r, size_t count, size_t size);
/** Bytes that a model may hold, beside mappings: so many more than its file has as functions are worth. */
size_t clv__onnx_limit(const clv__onnx_reader *r);
/** CLV_E_FORMAT: the limit is passed. */
clv_status clv__onnx_too_much(clv__onnx_reader *r);
/** CLV_E_HOST_MEMORY with its sentence. */
clv_status clv__onnx_no_memory(clv__onnx_reader *r);
/** Map a file whole. Errors  CLV_E_IO */
clv_status clv__onnx_map(clv__error *error, const char *path, clv__onnx_mapping *mapping);
/** The file with a tensor's data, at that place in the model's folder, mapped once. CLV_E_FORMAT, CLV_E_IO */
clv_status clv__onnx_map_beside(clv__onnx_reader *r, const clv__onnx_tensor *t, clv__onnx_text location,
                                const clv__onnx_mapping **out);
/** CLV_E_FORMAT with the sentence `tensor 'NAME' WHY`. */
clv_status clv__onnx_bad_tensor(clv__onnx_reader *r, const clv__onnx_tensor *t, const char *why);

/** What a field of a message becomes. */
typedef enum clv__onnx_field_kind {
    CLV__ONNX_FIELD_TEXT,
    CLV__ONNX_FIELD_INT64,
    CLV__ONNX_FIELD_INT32, // an enum too
    CLV__ONNX_FIELD_FLOAT,
    CLV__ONNX_FIELD_MESSAGE, // a structure in the structure
    CLV__ONNX_FIELD_POINTER, // a structure by its address; NULL without the field
    CLV__ONNX_FIELD_INLINE,  // a message of its own in the file, its fields in the same structure
    CLV__ONNX_FIELD_MARK     // an enum becomes `mark` if the field is there
} clv__onnx_field_kind;

/** A field: its number, what it becomes, and where. A list's count is at n_at. */
typedef struct clv__onnx_field {
    uint32_t number;
    clv__onnx_field_kind kind;
    bool list;
    size_t at, n_at;
    int mark;
    const struct clv__onnx_message *of; // MESSAGE, POINTER and INLINE
} clv__onnx_field;

/** A message, and the structure that it becomes. */
typedef struct clv__onnx_message {
    const char *what;   // with its article
    size_t bytes;       // of the structure
    size_t least_bytes; // in the file, so that many claimed take a file to match
    size_t n_fields;    // at most CLV__ONNX_FIELDS
    const clv__onnx_field *fields;
    bool is_graph;
    // Is what came right? `bytes` are the message. NULL: anything is.
    clv_status (*finish)(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure);
    // Puts what the structure is before the sentence of a failure in it. NULL: nothing.
    void (*label)(clv__onnx_reader *r, const void *structure);
} clv__onnx_message;

enum { CLV__ONNX_FIELDS = 16 };

/** Decode a message into its structure. */
clv_status clv__onnx_decode(clv__onnx_reader *r, const clv__onnx_message *message, const uint8_t *bytes,
                            size_t n, void *structure);
/** Which fields below 32 a message has, as bits. The message was decoded without a fault. */
uint32_t clv__onnx_fields(const uint8_t *bytes, size_t n);

/** All of a file but what the functions below do. */
clv_status clv__onnx_decode_model(clv__onnx_reader *r);
/** A tensor whose dims, dtype, name and texts are decoded: find its data. */
clv_status clv__onnx_finish_tensor(clv__onnx_reader *r, const uint8_t *bytes, size_t n, void *structure);
/** Give nodes their opsets, and put the nodes of functions in the place of their calls. */
clv_status clv__onnx_expand(clv__onnx_reader *r);
/** Number the values, find who reads which, put nodes in order. */
clv_status clv__onnx_resolve(clv__onnx_reader *r);

#endif
