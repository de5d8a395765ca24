// SPDX-License-Identifier: Apache-2.0
// What the files of models share: build functions of models.def, and the ways of torchvision to begin.
#ifndef CLV_NN_MODELS_H
#define CLV_NN_MODELS_H

#include "cleave/nn.h"

#define X(name, build, ...) clv_tensor *clv__##build(clv_tensor *x, const clv_model *model);
#define A X
#define P X
#define T(...)
#define M(id, build, ...)                                                                                    \
    void clv__##build(clv_tensor *const *inputs, clv_tensor **outputs, const clv_model *model);
#include "nn/models.def"
#undef M
#undef T
#undef P
#undef A
#undef X

clv_tensor *clv__build_decoder(clv_tensor *tokens, const clv_model *model);

/**
 * A convolution as torchvision begins it: weights normal with variance 2 / (out_channels * kernel height * kernel width)
 * (He et al. 2015, arXiv:1502.01852, section 2.2, for the backward pass), bias 0. Square kernel, stride and padding alike
 * in both directions; groups 0 means 1.
 */
clv_tensor *clv__conv_fan_out(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                              int padding, int groups, bool bias);

/** The same with a dilation, alike in both directions. */
clv_tensor *clv__conv_dilated(clv_tensor *x, const char *name, int64_t out_channels, int kernel, int stride,
                              int padding, int dilation, int groups, bool bias);

/** Zeros before and behind an axis; x itself where both are 0. */
clv_tensor *clv__pad_zeros(clv_tensor *x, int axis, int64_t before, int64_t after);

/** MobileNetV3-large without its classifier, [N, 960, h, w], under a name; `dilated`: its last blocks keep the size. */
clv_tensor *clv__mobilenet_v3_large_features(clv_tensor *x, const char *name, bool dilated);

/** A linear layer that begins with small normal weights (standard deviation 0.01) and bias 0. */
clv_tensor *clv__linear_small(clv_tensor *x, const char *name, int64_t out_features);

/** Each channel times what a convolution of the means of all says: excite(fc2(squeeze(fc1(mean)))), with `squeezed` channels between.
 *  Source: Hu et al. 2017, arXiv:1709.01507. */
clv_tensor *clv__squeeze_excitation(clv_tensor *x, const char *name, int64_t squeezed,
                                    clv_tensor *(*squeeze)(clv_tensor *x),
                                    clv_tensor *(*excite)(clv_tensor *x));

/** In a training graph: samples of x, [N, ...], are zeros with probability p, and the others scaled by 1 / (1 - p).
 *  Source: Huang et al. 2016, arXiv:1603.09382; torchvision.ops.stochastic_depth, mode row. */
clv_tensor *clv__stochastic_depth(clv_tensor *x, float p);

/** Numbers that a model gives for each sample: scores of its classes, or what its targets are. */
int64_t clv__model_outputs(const clv_model *model);

/** Sizes instead of zeros. */
void clv__gpt_defaults(clv_gpt_config *config);

/**
 * A GPT's logits, [1,vocabulary], behind one token: clv_gpt's of a whole sequence, at its last position. Keys and values of the tokens
 * before it are what earlier steps left in `keys` and `values` of each layer's attention, where the token's own are added.
 *
 * token, position  [1] i32
 * config           without zeros
 */
clv_tensor *clv__gpt_next(clv_tensor *token, clv_tensor *position, const clv_gpt_config *config);

/** clv_scope_push with a number. */
void clv__scope_push_index(clv_graph *graph, int index);

/** The shape of a batch of n samples: [n, input...]. This and what follows asks for a model's first input and first target. */
clv_shape clv__model_input_shape(const clv_model *model, int64_t n);
/** The shape of the targets of n samples: [n, target...]. */
clv_shape clv__model_target_shape(const clv_model *model, int64_t n);
/**
 * Are samples of the model's shape? For [1, height, width] they may be [height, width], for a row of any rank the numbers alone.
 *
 * what    names them in the sentence, `images 'x.npy'`; NULL: `samples`
 *
 * Errors  CLV_E_SHAPE  not; the sentence says what they seem to be, channels last for example, and how numpy mends it
 */
CLV_MUST_CHECK clv_status clv__model_check_samples(clv_runtime *runtime, const clv_model *model,
                                                   const char *what, const clv_shape *sample);

#endif
