// SPDX-License-Identifier: Apache-2.0
// Does a model take a dataset's samples, and do the targets fit its results?
#include <inttypes.h>

#include "train/trainer.h"

/** Targets are what the model's results are compared with. */
static clv_status check_targets(clv__error *error, const clv_model *model, const clv_dataset *dataset) {
    const int classes = clv_dataset_classes(dataset);
    char a[128], b[128];
    if (!classes && model->classes)
        CLV_FAIL(
            error, CLV_E_VALUE,
            "targets that are numbers do not fit model '%s', which tells classes apart: labels are whole "
            "numbers; numpy mends it with y.astype('int64')",
            model->name);
    if (classes && !model->classes)
        CLV_FAIL(error, CLV_E_VALUE,
                 "labels of %d classes do not fit model '%s', which gives numbers: numpy mends it with "
                 "y.astype('float32')",
                 classes, model->name);
    if (classes > model->classes)
        CLV_FAIL(error, CLV_E_VALUE, "labels of %d classes do not fit model '%s', which has %" PRId64,
                 classes, model->name, model->classes);
    const clv_shape target = clv_dataset_target_shape(dataset), batch = clv_model_target_shape(model, 1);
    const clv_shape want = clv_shape_make(batch.rank - 1, batch.dims + 1);
    if (!clv_shape_equal(&target, &want))
        CLV_FAIL(error, CLV_E_SHAPE, "targets of shape %s do not fit model '%s', which wants %s",
                 clv_shape_text(&target, a, sizeof a), model->name, clv_shape_text(&want, b, sizeof b));
    return CLV_OK;
}

clv_status clv__check_data(clv_runtime *runtime, const clv_model *model, const clv_dataset *dataset) {
    clv__error *error = clv__runtime_error_of(runtime);
    const clv_dtype dtype = model->dtype ? model->dtype : CLV_DTYPE_F32;
    const clv_shape sample = clv_dataset_sample_shape(dataset);
    if (clv_dataset_sample_dtype(dataset) != dtype)
        CLV_FAIL(error, CLV_E_DTYPE, "samples of %s do not fit model '%s', which wants %s",
                 clv_dtype_name(clv_dataset_sample_dtype(dataset)), model->name, clv_dtype_name(dtype));
    CLV_TRY(clv_model_check_samples(runtime, model, NULL, &sample));
    return check_targets(error, model, dataset);
}
