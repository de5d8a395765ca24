// SPDX-License-Identifier: Apache-2.0
// Texts of a file, each with a number: 0 for the first that is put in. Hashed with a seed that no file
// knows, so that none can choose names which collide.
#ifndef CLV_ONNX_NAMES_H
#define CLV_ONNX_NAMES_H

#include "onnx/file.h"

/** Zero-initialised is empty. Texts are borrowed. */
typedef struct clv__onnx_names {
    uint32_t *slots; // a number and one; 0: free. A power of two of them, at least half of them free
    size_t room;
    clv__onnx_text *texts;
    size_t texts_room;
    uint32_t n;
    uint64_t seed;
} clv__onnx_names;

/** false: it is not there. */
bool clv__onnx_names_find(const clv__onnx_names *names, clv__onnx_text text, uint32_t *number);
/** Put it in unless it is there. false: host memory is out, or there are 2^32 - 2 of them. */
bool clv__onnx_names_put(clv__onnx_names *names, clv__onnx_text text, uint32_t *number, bool *is_new);
void clv__onnx_names_reset(clv__onnx_names *names);

#endif
