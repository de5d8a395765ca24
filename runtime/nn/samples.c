// SPDX-License-Identifier: Apache-2.0
// Are samples of a model's shape? And what they seem to be instead.
#include <inttypes.h>

#include "base/error.h"
#include "cleave/nn.h"
#include "device/device.h"

enum { MOST_CHANNELS = 4 }; // of an image file: one for grey, three for colours, four with alpha

bool clv_model_channels_last(const clv_model *model, const clv_shape *sample) {
    const int64_t *dims = sample->dims, channels = model->input[0];
    if (sample->rank != 3) return false;
    bool own = dims[0] == channels && dims[1] == model->input[1] && dims[2] == model->input[2];
    bool like_models = dims[2] == channels && dims[0] != channels && dims[1] != channels;
    bool like_images = (dims[2] == 1 || dims[2] == 3 || dims[2] == MOST_CHANNELS) &&
                       dims[0] > MOST_CHANNELS && dims[1] > MOST_CHANNELS;
    return !own && (like_models || like_images);
}

/** [channels, height, width]; [height, width] of one channel; [features] of a model that takes features in a row. */
static bool fits(const clv_model *model, const clv_shape *sample) {
    const int64_t *dims = sample->dims, *want = model->input;
    bool row = (want[0] == 1) + (want[1] == 1) + (want[2] == 1) >= 2;
    if (sample->rank == 3) return dims[0] == want[0] && dims[1] == want[1] && dims[2] == want[2];
    if (sample->rank == 2) return want[0] == 1 && dims[0] == want[1] && dims[1] == want[2];
    return sample->rank == 1 && row && dims[0] == want[0] * want[1] * want[2];
}

clv_status clv_model_check_samples(clv_runtime *runtime, const clv_model *model, const char *what,
                                   const clv_shape *sample) {
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, model));
    CLV_TRY(CLV__GIVEN(error, sample));
    const int64_t *want = model->input;
    char text[128];
    clv_shape_text(sample, text, sizeof text);
    if (!what) what = "samples";
    if (fits(model, sample)) return CLV_OK;
    if (clv_model_channels_last(model, sample))
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s of shape %s do not fit model '%s', which wants [%" PRId64 ",%" PRId64 ",%" PRId64
                 "]: their channels are last (NHWC) and must be first (NCHW); numpy mends it with "
                 "x.transpose(0, 3, 1, 2)",
                 what, text, model->name, want[0], want[1], want[2]);
    if (clv_shape_numel(sample) == want[0] * want[1] * want[2])
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s of shape %s do not fit model '%s', which wants [%" PRId64 ",%" PRId64 ",%" PRId64
                 "]; if the numbers are in that order, numpy mends it with x.reshape(-1, %" PRId64
                 ", %" PRId64 ", %" PRId64 ")",
                 what, text, model->name, want[0], want[1], want[2], want[0], want[1], want[2]);
    CLV_FAIL(error, CLV_E_SHAPE,
             "%s of shape %s do not fit model '%s', which wants [%" PRId64 ",%" PRId64 ",%" PRId64 "]", what,
             text, model->name, want[0], want[1], want[2]);
}
