// SPDX-License-Identifier: Apache-2.0
// Measured choices: which variant of an op was the fastest on a device, for given attributes and shapes. `cleave tune` writes
// them, a plan reads them. A tuning file is text, made to be read, compared, shipped and changed by hand:
//
//     cleave-tuning 1
//     version 0.2.0
//     device pthread-skylake-avx512
//     platform Portable Computing Language
//     driver 3.1+debian
//     compute-units 2
//     kernels 5b1f0c7e9d20a4c3
//
//     # op, key, variant, median in microseconds
//     matmul f32[256,256];f32[256,256];(0,0) tile 131.6 # plain 9210.4, local 5140.9
//     avoid softmax vector # why
//     end
//
// The head says for what the choices hold: a device, its driver, and the hash of the kernels that were measured. A key is
// the inputs' dtypes and shapes (`-` where an optional one is missing) and the attributes as words. `avoid` puts a variant
// into quarantine that did not build or was wrong. `#` begins a comment. Every choice was held against the reference
// before it was written, and is asked again whether it supports the device and the shapes: a wrong line can make a plan
// slow, and cannot make it wrong.
#ifndef CLV_TUNING_TUNING_H
#define CLV_TUNING_TUNING_H

#include "base/text.h"
#include "device/device.h"
#include "graph/op.h"

enum { CLV__TUNING_KEY_BYTES = 16384 };

/** One line: the fastest variant for a key; or, with a NULL key, one to avoid. */
typedef struct clv__tuned {
    const clv__op *op;
    char *key; // owned; NULL: avoid the variant
    const clv__variant *variant;
    double median_us; // 0 for `avoid`
    char *note;       // owned; what stands behind `#`; NULL: nothing
} clv__tuned;

typedef struct clv__tuning {
    clv__tuned *rows; // by op's name, key (avoided first), variant
    size_t n, room;
    int passed_over;      // lines that name an op or a variant that is not there
    char first_such[160]; // what the first of them names, and where
} clv__tuning;

/** The key of a use of an op. */
void clv__tuning_key(const clv__op_io *io, char key[CLV__TUNING_KEY_BYTES]);

/**
 * Read a file's bytes; `path` is for sentences. On failure *out is empty.
 * Errors  CLV_E_FORMAT damaged; CLV_E_UNSUPPORTED of another device or driver, or measured with other kernels;
 *         CLV_E_HOST_MEMORY
 */
clv_status clv__tuning_parse(const clv_device *device, const char *path, const char *bytes, size_t size,
                             clv__error *error, clv__tuning *out);
/** The text of a file for the device. text->failed if memory is out. */
void clv__tuning_write(const clv_device *device, const clv__tuning *tuning, clv__text *text);
void clv__tuning_reset(clv__tuning *tuning);

/** Put a copy of a row in its place; it replaces one of the same op and key (`avoid`: and variant). */
bool clv__tuning_put(clv__tuning *tuning, const clv__tuned *row);
/** Take the row out that says to avoid this variant, if there is one. */
void clv__tuning_remove_avoided(clv__tuning *tuning, const clv__op *op, const clv__variant *variant);
/** The row of this op and key, NULL if there is none. */
const clv__tuned *clv__tuning_find(const clv__tuning *tuning, const clv__op *op, const char *key);

/** Where plans look for the device's choices, malloc'd; NULL if memory is out. *named: the user named the file itself. */
char *clv__tuning_file(const clv_device *device, bool *named);
/** Are choices switched off? */
bool clv__tuning_is_none(const clv_device *device);
/** The device's own file in a folder, malloc'd; NULL if memory is out. */
char *clv__tuning_path(const clv_device *device, const char *folder);
/** Read a file of the device. Errors  as clv__tuning_parse; CLV_E_NOT_FOUND there is none; CLV_E_IO it cannot be read */
clv_status clv__tuning_load(const clv_device *device, const char *path, clv__error *error, clv__tuning *out);

/**
 * What was measured on the device, as the runtime's configuration says where it stands: read when first asked for. NULL:
 * nothing. A file that cannot be used is told once through the log, and otherwise as if it were not there. Any thread.
 */
const clv__tuning *clv__tuning_of(clv_device *device);
/** Forget it, so that the file is read again. No plan is being made. */
void clv__tuning_forget(clv_device *device);

#endif
