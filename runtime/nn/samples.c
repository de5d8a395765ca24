// SPDX-License-Identifier: Apache-2.0
// Are samples of a model's shape? And what they seem to be instead.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "nn/models.h"
#include "nn/ports.h"

enum { MOST_CHANNELS = 4 }; // of an image file: one for grey, three for colours, four with alpha

static bool channels_last(const clv_port *port, const clv_shape *sample) {
    const int64_t *dims = sample->dims, channels = port->dims[0];
    if (sample->rank != 3 || clv_port_shape(port, 1).rank != 4) return false;
    bool own = dims[0] == channels && dims[1] == port->dims[1] && dims[2] == port->dims[2];
    bool like_models = dims[2] == channels && dims[0] != channels && dims[1] != channels;
    bool like_images = (dims[2] == 1 || dims[2] == 3 || dims[2] == MOST_CHANNELS) &&
                       dims[0] > MOST_CHANNELS && dims[1] > MOST_CHANNELS;
    return !own && (like_models || like_images);
}

/** The shape as it is; without dimensions of 1 that lead it; or, of a model that takes a row, as many numbers in a row. */
static bool fits(const clv_shape *sample, const clv_shape *want) {
    int ones = 0, long_ones = 0;
    for (int d = 0; d < want->rank; d++) long_ones += want->dims[d] != 1;
    if (sample->rank == 1 && long_ones <= 1) return sample->dims[0] == clv_shape_numel(want);
    while (ones < want->rank && want->dims[ones] == 1 && want->rank - ones > sample->rank) ones++;
    const clv_shape rest = clv_shape_make(want->rank - ones, want->dims + ones);
    return clv_shape_equal(sample, &rest);
}

/** How numpy gives samples this shape: `x.reshape(-1, 3, 32, 32)`. */
static const char *reshape_text(const clv_shape *want, char *text, size_t bytes) {
    size_t n = (size_t)snprintf(text, bytes, "x.reshape(-1");
    for (int d = 0; d < want->rank && n < bytes; d++)
        n += (size_t)snprintf(text + n, bytes - n, ", %" PRId64, want->dims[d]);
    if (n < bytes) snprintf(text + n, bytes - n, ")");
    return text;
}

clv_status clv__port_check_samples(clv__error *error, const clv_model *model, const clv_port *port,
                                   const char *what, const clv_shape *sample) {
    const clv_shape batch = clv_port_shape(port, 1), want = clv_shape_make(batch.rank - 1, batch.dims + 1);
    char text[128], wanted[128], reshape[200];
    clv_shape_text(sample, text, sizeof text);
    clv_shape_text(&want, wanted, sizeof wanted);
    if (!what) what = "samples";
    if (fits(sample, &want)) return CLV_OK;
    if (channels_last(port, sample))
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s of shape %s do not fit model '%s', which wants %s: their channels are last (NHWC) and "
                 "must be first (NCHW); numpy mends it with x.transpose(0, 3, 1, 2)",
                 what, text, model->name, wanted);
    if (clv_shape_numel(sample) == clv_shape_numel(&want))
        CLV_FAIL(error, CLV_E_SHAPE,
                 "%s of shape %s do not fit model '%s', which wants %s; if the numbers are in that order, "
                 "numpy mends it with %s",
                 what, text, model->name, wanted, reshape_text(&want, reshape, sizeof reshape));
    CLV_FAIL(error, CLV_E_SHAPE, "%s of shape %s do not fit model '%s', which wants %s", what, text,
             model->name, wanted);
}

clv_status clv__model_check_samples(clv_runtime *runtime, const clv_model *model, const char *what,
                                    const clv_shape *sample) {
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__GIVEN(error, model));
    CLV_TRY(CLV__GIVEN(error, sample));
    const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, 0);
    return clv__port_check_samples(error, model, &port, what, sample);
}

/** Are the samples images of another size, of a model of images or of any size? What the model's builder then says of the size, it
 *  says. */
static bool is_image(const clv_model *model, const clv_port *port, const clv_shape *sample) {
    const clv_shape want = clv_port_shape(port, 1);
    return !model->build_all && port->dtype == CLV_DTYPE_F32 && (want.rank == 4 || want.rank == 1) &&
           sample->rank >= 2 && sample->rank <= 3 && clv_shape_numel(sample) > 0;
}

clv_status clv_model_for_samples(clv_runtime *runtime, const clv_model *model, const char *what,
                                 const clv_shape *sample, clv_model *out) {
    clv__error *error = clv__runtime_error_of(runtime);
    CLV_TRY(CLV__USABLE(error, out));
    *out = (clv_model){0};
    CLV_TRY(CLV__GIVEN(error, model));
    CLV_TRY(CLV__GIVEN(error, sample));
    const clv_port port = clv_model_port_get(model, CLV_PORT_INPUT, 0);
    clv_model made = *model;
    clv_status status = clv__port_check_samples(error, model, &port, what, sample);
    const clv_shape batch = clv_port_shape(&port, 1);
    if (status != CLV_OK && is_image(model, &port, sample) && !channels_last(&port, sample) &&
        clv_shape_numel(sample) != clv_shape_numel(&batch)) {
        const int64_t *dims = sample->dims, grey[] = {1, dims[0], dims[1]};
        if (sample->rank == 2) dims = grey;
        made = clv_model_for(model, dims[0], dims[1], dims[2], 0);
        status = clv__model_check_samples(runtime, &made, what, sample);
    }
    if (status == CLV_OK) *out = made;
    return status;
}
