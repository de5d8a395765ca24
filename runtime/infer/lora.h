// SPDX-License-Identifier: Apache-2.0
// Adapters of a session's weights (ops/product/lora.h) in files: lora.c, lora_read.c.
#ifndef CLV_INFER_LORA_H
#define CLV_INFER_LORA_H

#include "base/error.h"
#include "cleave/train.h"

#define CLV__LORA_PREFIX "base_model.model."
#define CLV__LORA_TENSORS "adapter_model.safetensors"
#define CLV__LORA_CONFIG "adapter_config.json"
#define CLV__LORA_IN_OUT "cleave.in_out" // a list of weights that are [in, out]

/** What a file of adapters holds. All zero: nothing. */
typedef struct clv__lora {
    clv_archive *archive;
    const char *path; // of the tensors; for sentences
    double alpha;
    bool root;   // of the rank: the scale is alpha / sqrt(rank)
    bool in_out; // square weights are [in, out], as all of one that PEFT wrote may be
} clv__lora;

/** Read one; nothing of a session is changed. `path` as of clv_weights_load_lora. */
clv_status clv__lora_open(clv_runtime *runtime, const char *path, clv__lora *out);
void clv__lora_close(clv__lora *lora);
/** Does it hold the whole tensor? NULL holds none. */
bool clv__lora_has(const clv__lora *lora, const char *name);
/** Do its tensors fit the session's? Else the sentence. */
clv_status clv__lora_fits(clv_session *session, const clv__lora *lora);
/** Into the session's adapters and whole tensors, or merged. It fits. */
clv_status clv__lora_take(clv_session *session, const clv__lora *lora);

/** A weight, [in, out] or [out, in], and its adapter. */
typedef struct clv__adapted {
    int64_t in, out, rank;
    bool in_out;
    double scale;
    const float *a, *b;
} clv__adapted;
/** values += scale * B A; false: no memory. */
bool clv__lora_add_product(const clv__adapted *w, float *values);
/** Of a session with adapters: add those of its i-th tensor to that one's values. Nothing where it has none. */
clv_status clv__lora_merge(clv_session *session, int i, float *values);
/** What a graph of the session is built with. */
clv_lora clv__lora_of(const clv_session *session);

#endif
