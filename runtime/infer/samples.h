// SPDX-License-Identifier: Apache-2.0
// Samples that are bytes, fed to a model as they are.
#ifndef CLV_INFER_SAMPLES_H
#define CLV_INFER_SAMPLES_H

#include "data/dataset.h"
#include "infer/step.h"

/** How each of a model's inputs is normalised by the graph; channels 0: it is fed as the model takes it. */
typedef struct clv__bytes {
    const clv_model *model;
    clv__norm scale[CLV_MAX_PORTS];
} clv__bytes;

/** What is fed as bytes: what is such in `train`, or as `bytes` says; nothing where samples are mixed. As
 *  clv__match_data. */
clv_status clv__bytes_find(clv_runtime *runtime, const clv_train_config *config, clv__bytes *out);
bool clv__bytes_any(const clv__bytes *bytes);
/** clv_model_inputs, some of which may be u8. */
void clv__bytes_inputs(clv_graph *graph, const clv__bytes *bytes, int64_t batch, clv_tensor **out);
/** From what is fed, or a part of the batch, to the model's inputs. */
void clv__bytes_normalize(const clv__bytes *bytes, clv_tensor *const *fed, clv_tensor **out);
/** Does a dataset normalise as was planned? CLV_E_VALUE */
clv_status clv__bytes_check(clv__error *error, const clv__bytes *bytes, const clv_dataset *dataset,
                            const clv__match *match);

#endif
