// SPDX-License-Identifier: Apache-2.0
// Layers: ops with parameters, under PyTorch's names, layouts and first values. And a few whole models.
// A layer makes its parameters under its name: clv_nn_linear(x, "fc1", ...) makes `fc1.weight` [out,in] and `fc1.bias`.
// A name (scope included) is for one layer of a graph, a second one is a mistake (CLV_E_VALUE), but in what
// clv_data_parallel and clv_micro_batches build for each part of a batch.
// To share weights on purpose, call clv_parameter twice with their name and give it to clv_linear, clv_conv2d and the like.
// Every call takes NULL and gives NULL after a mistake; the graph keeps the sentence (graph.h).
#ifndef CLEAVE_NN_H
#define CLEAVE_NN_H

#include "graph.h"
#include "ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_nn_linear_config {
    bool no_bias;
    const clv_init *weight_init, *bias_init; /**< first values; NULL: PyTorch's */
    CLV_RESERVED(4);
} clv_nn_linear_config;

/**
 * Multiply the last dimension with a weight and add a bias.
 *
 *     y = x weight^T + bias
 *
 * x             [..., in]
 * name          of the layer; makes `name.weight` [out_features, in] and `name.bias` [out_features]
 * out_features  >= 1
 * config        NULL means all defaults
 * result        [..., out_features]
 *
 * Numerics   first values: uniform within 1/sqrt(in), weight and bias
 * Source     torch.nn.Linear
 */
CLV_API clv_tensor *clv_nn_linear(clv_tensor *x, const char *name, int64_t out_features,
                                  CLV_OR_NULL const clv_nn_linear_config *config);

/** Pairs as in ops.h: [0] is H, [1] is W, zero means the same as [0]. */
typedef struct clv_nn_conv2d_config {
    int kernel[2];              /**< must be given */
    int stride[2], dilation[2]; /**< both zero: 1 */
    int padding[2];             /**< {p, -1}: along H alone */
    int groups;                 /**< 0 means 1 */
    bool no_bias;
    const clv_init *weight_init, *bias_init; /**< first values; NULL: PyTorch's */
    CLV_RESERVED(8);
} clv_nn_conv2d_config;

/**
 * Convolve images.
 *
 * x             [N, C, H, W]
 * name          of the layer; makes `name.weight` [out_channels, C/groups, kernel] and `name.bias` [out_channels]
 * out_channels  >= 1, a multiple of groups
 * result        [N, out_channels, H', W']
 *
 * Errors     CLV_E_VALUE  no kernel size;  as clv_conv2d
 * Numerics   first values: uniform within 1/sqrt(C/groups * kernel height * kernel width), weight and bias
 * Source     torch.nn.Conv2d
 */
CLV_API clv_tensor *clv_nn_conv2d(clv_tensor *x, const char *name, int64_t out_channels,
                                  const clv_nn_conv2d_config *config);

/** Pairs as in ops.h. */
typedef struct clv_nn_conv_transpose2d_config {
    int kernel[2];              /**< must be given */
    int stride[2], dilation[2]; /**< both zero: 1 */
    int padding[2];             /**< {p, -1}: along H alone */
    int output_padding[2];      /**< likewise */
    int groups;                 /**< 0 means 1 */
    bool no_bias;
    const clv_init *weight_init, *bias_init; /**< first values; NULL: PyTorch's */
    CLV_RESERVED(8);
} clv_nn_conv_transpose2d_config;

/**
 * Convolve images, transposed.
 *
 * x             [N, C, H, W]
 * name          of the layer; makes `name.weight` [C, out_channels/groups, kernel] and `name.bias` [out_channels]
 * out_channels  >= 1, a multiple of groups
 * result        [N, out_channels, H', W']
 *
 * Errors     CLV_E_VALUE  no kernel size, or groups does not divide out_channels;  as clv_conv_transpose2d
 * Numerics   first values: uniform within 1/sqrt(out_channels/groups * kernel height * kernel width), weight and bias
 * Source     torch.nn.ConvTranspose2d
 */
CLV_API clv_tensor *clv_nn_conv_transpose2d(clv_tensor *x, const char *name, int64_t out_channels,
                                            const clv_nn_conv_transpose2d_config *config);

/** Zero means the default: momentum 0.1, eps 1e-5. */
typedef struct clv_nn_batch_norm_config {
    float momentum, eps;
    bool no_affine; /**< no weight and bias */
    CLV_RESERVED(4);
} clv_nn_batch_norm_config;

/**
 * Normalise each channel over the batch in training, with running statistics otherwise (clv_graph_set_training).
 *
 * x       [N, C] or [N, C, ...]
 * name    makes `name.weight` (ones), `name.bias` (zeros) and the buffers `name.running_mean`, `name.running_var`
 * result  as x
 *
 * Source  Ioffe, Szegedy 2015, arXiv:1502.03167; torch.nn.BatchNorm1d, BatchNorm2d
 */
CLV_API clv_tensor *clv_nn_batch_norm(clv_tensor *x, const char *name,
                                      CLV_OR_NULL const clv_nn_batch_norm_config *config);

/**
 * Normalise over the last dimension.
 *
 * x       [..., D]
 * name    makes `name.weight` [D] (ones) and `name.bias` [D] (zeros)
 * eps     0 means 1e-5
 * result  as x
 *
 * Source  torch.nn.LayerNorm
 */
CLV_API clv_tensor *clv_nn_layer_norm(clv_tensor *x, const char *name, float eps);

/**
 * Divide by the root of the mean square over the last dimension.
 *
 * x       [..., D]
 * name    makes `name.weight` [D] (ones)
 * eps     0 means 2^-23, as None does there
 * result  as x
 *
 * Source  torch.nn.RMSNorm
 */
CLV_API clv_tensor *clv_nn_rms_norm(clv_tensor *x, const char *name, float eps);

/**
 * A trained row for each index.
 *
 * indices   [...]  i32 or another integer
 * name      makes `name.weight` [rows, features]
 * init      first values; NULL: normal with deviation 1
 * result    [..., features]
 *
 * Source    torch.nn.Embedding
 */
CLV_API clv_tensor *clv_nn_embedding(clv_tensor *indices, const char *name, int64_t rows, int64_t features,
                                     CLV_OR_NULL const clv_init *init);

/**
 * Bytes of pictures as numbers, normalised: the first layer of a model that is fed bytes.
 *
 *     result[n,c,...] = (x[n,c,...] / 255 - mean[c]) / std[c]
 *
 * x         [N, C, ...]  u8; any shape where channels is 1
 * mean      of `channels` channels; NULL: 0
 * std       the same, above 0; NULL: 1
 * channels  C; 1: the same for all
 * result    shape of x, f32     no gradient
 *
 * Errors    CLV_E_DTYPE  x is not u8;  CLV_E_SHAPE  it has other channels;  CLV_E_VALUE  a std that is not above 0, a number that is
 *           not finite, or channels outside of 1 to 4096
 * Numerics  in f32 and in this order, to the same bits on every device.
 * Source    torchvision.transforms.functional: to_tensor, then normalize
 */
CLV_API clv_tensor *clv_nn_normalize(clv_tensor *x, CLV_OR_NULL CLV_COUNT(channels) const float *mean,
                                     CLV_OR_NULL CLV_COUNT(channels) const float *std, int channels);

/**
 * LSTM, or GRU, or RNN, of one or more layers.
 *
 * x        [T, N, F], or with batch_first [N, T, F]
 * lengths  [N]  int: steps of each row; NULL: all
 * name     makes for each layer k `name.weight_ih_lk` [4*hidden, F], `.weight_hh_lk` [4*hidden, hidden], `.bias_ih_lk`, `.bias_hh_lk`
 *          [4*hidden], of the other direction `.weight_ih_lk_reverse` and so on; 3 of a GRU and 1 of an RNN in place of 4
 * hidden   >= 1
 * config   NULL means all defaults
 * state    as clv_lstm's; NULL: from zeros, and the last one is not asked for
 * result   [T, N, hidden], or of both directions [T, N, 2*hidden]; with batch_first [N, T, ...]
 *
 * Numerics   first values: uniform within 1/sqrt(hidden)
 * Errors     CLV_E_VALUE  hidden or layers below 1, or too many layers;  as clv_lstm
 * Source     torch.nn.LSTM, GRU, RNN
 */
CLV_API clv_tensor *clv_nn_lstm(clv_tensor *x, CLV_OR_NULL clv_tensor *lengths, const char *name,
                                int64_t hidden, CLV_OR_NULL const clv_recurrent_config *config,
                                CLV_OR_NULL CLV_INOUT clv_recurrent_state *state);
CLV_API clv_tensor *clv_nn_gru(clv_tensor *x, CLV_OR_NULL clv_tensor *lengths, const char *name,
                               int64_t hidden, CLV_OR_NULL const clv_recurrent_config *config,
                               CLV_OR_NULL CLV_INOUT clv_recurrent_state *state);
CLV_API clv_tensor *clv_nn_rnn(clv_tensor *x, CLV_OR_NULL clv_tensor *lengths, const char *name,
                               int64_t hidden, CLV_OR_NULL const clv_recurrent_config *config,
                               CLV_OR_NULL CLV_INOUT clv_recurrent_state *state);

/** In training, zero elements with probability p and scale the others by 1/(1-p); otherwise x itself. */
CLV_API clv_tensor *clv_nn_dropout(clv_tensor *x, float p);

/**
 * What each label counts, for clv_cross_entropy_weighted: with it the loss is that of torch's CrossEntropyLoss(weight, ignore_index).
 *
 *     w[r]   = labels[r] == ignore_index ? 0 : class_weights[labels[r]]
 *     result = w[r] * rows / sum(w)          where that sum is not 0; else 0
 *
 * labels         any shape  integers   of a whole batch; a part of the result goes with a part of the batch
 * class_weights  classes of them; NULL: all 1
 * ignore_index   labels of this value are ignored; -100 in PyTorch
 * result         the shape of labels  f32     no gradient
 *
 * Errors   CLV_E_DTYPE  labels are floats;  CLV_E_VALUE  a weight is below 0 or not finite
 * Notes    of labels that are all ignored the loss is 0, not NaN as in PyTorch
 */
CLV_API clv_tensor *clv_nn_label_weights(clv_tensor *labels,
                                         CLV_OR_NULL CLV_COUNT(classes) const float *class_weights,
                                         int64_t classes, int32_t ignore_index);

// ---- models ---------------------------------------------------------------------------------------------------------

/**
 * A model is a function that can be called again, for another batch size or for training and evaluation. It looks at the
 * shape of x and at its own fields, so it builds for any input that its layers leave something of. To train one of ours on
 * other images, copy it and say which:
 *
 *     clv_model model = clv_model_for(clv_model_find("resnet18"), 3, 64, 64, 10);
 *
 * One of your own is a struct with its function. Zero means the default everywhere but in `build` and `input`.
 *
 * A model of several inputs or several outputs gives `build_all` instead, and names them: its data are matched by these names.
 *
 *     static const clv_port inputs[] = {{.name = "image", .dims = {1, 28, 28}}, {.name = "age"}};
 *     static const clv_port targets[] = {{.name = "kind", .classes = 10}, {.name = "price"}};
 *     clv_model model = {.name = "two heads", .build_all = build, .inputs = inputs, .n_inputs = 2, .targets = targets, .n_targets = 2};
 */
typedef struct clv_model {
    const char *name;
    const char *text; /**< one line: what it is made of */
    /** Append the layers to the graph of x, [N, input...]. Returns the result, [N, ...]: of a model for classes logits, [N, classes],
     *  or [N, target..., classes] where a sample has several. NULL, after a mistake, is fine. */
    clv_tensor *(*build)(clv_tensor *x, const struct clv_model *model);
    /** dimensions of a sample, up to the first 0: {3, 224, 224} are channels, height and width, {128} is a row of 128 */
    int64_t input[CLV_MAX_RANK - 1];
    int64_t classes; /**< 0: it does not tell classes apart, but gives numbers */
    clv_dtype dtype; /**< of samples: f32, or i32 for tokens; NONE: f32 */
    /** dimensions of a sample's target, up to the first 0; none at all: one class, or one number, for each sample */
    int64_t target[CLV_MAX_RANK - 1];
    const void *user; /**< for `build`: sizes and the like */
    /** `build` for any number of inputs: write a result for each target, in their order. All fields but name, text and user then
     *  come from these; up to CLV_MAX_PORTS of each, no two of one name */
    void (*build_all)(clv_tensor *const *inputs, clv_tensor **outputs, const struct clv_model *model);
    CLV_COUNT(n_inputs) const clv_port *inputs;
    int n_inputs;
    CLV_COUNT(n_targets) const clv_port *targets;
    int n_targets;
    /** of a model with `build` that gives numbers: a name for each, so that metrics can be of one of them (clv_metric.target);
     *  NULL: none. clv_dataset_info.number_names has those of a table */
    CLV_ARRAY const char *const *number_names;
    bool
        any_shape; /**< samples of any shape will do: who brings data may size `input`, or the ports, by them */
    bool takes_sizes; /**< `user` is NULL or a clv_gpt_config */
    CLV_RESERVED(2);
} clv_model;

/** What any model takes, and what its results are compared with: a model with `build` has the input `x` and the target `labels`. The
 *  i-th, with its dtype; all zero past the end. Names are the model's. */
CLV_API clv_port clv_model_port_get(const clv_model *model, clv_port_role role, int index);
/** How many there are: CLV_MAX_PORTS at most. */
static inline int clv_model_port_count(const clv_model *model, clv_port_role role) {
    const bool input = role == CLV_PORT_INPUT;
    const int n = input ? model->n_inputs : model->n_targets;
    if (!model->build_all) return 1;
    return !(input ? model->inputs : model->targets) || n < 0 ? 0 : n < CLV_MAX_PORTS ? n : CLV_MAX_PORTS;
}

/** Inputs of a graph for all of a model's inputs, or all of its targets, under their names, for a batch of n samples: i32 for classes, f32
 *  for numbers. out has room for each (CLV_MAX_PORTS at most). */
static inline void clv_model_tensors(clv_graph *graph, const clv_model *model, clv_port_role role, int64_t n,
                                     CLV_BORROWED CLV_ARRAY clv_tensor **out) {
    for (int i = 0; i < clv_model_port_count(model, role); i++) {
        const clv_port port = clv_model_port_get(model, role, i);
        out[i] = clv_input(graph, port.name, port.dtype, clv_port_shape(&port, n));
    }
}
/** The first of a model's inputs. */
static inline clv_tensor *clv_model_input(clv_graph *graph, const clv_model *model, int64_t n) {
    clv_tensor *all[CLV_MAX_PORTS] = {NULL};
    clv_model_tensors(graph, model, CLV_PORT_INPUT, n, all);
    return all[0];
}
/** The first of its targets. */
static inline clv_tensor *clv_model_target(clv_graph *graph, const clv_model *model, int64_t n) {
    clv_tensor *all[CLV_MAX_PORTS] = {NULL};
    clv_model_tensors(graph, model, CLV_PORT_TARGET, n, all);
    return all[0];
}

/**
 * Append a model's layers to a graph: from a tensor for each of its inputs to one for each of its targets. All NULL after a mistake, and
 * where an input is NULL.
 *
 * Errors  (sticky) CLV_E_VALUE  the model has other numbers of them;  CLV_E_SHAPE  what it built does not fit its targets
 */
CLV_API void clv_model_build_all(const clv_model *model, CLV_COUNT(n_inputs) clv_tensor *const *inputs,
                                 int n_inputs, CLV_BORROWED CLV_COUNT(n_outputs) clv_tensor **outputs,
                                 int n_outputs);
/** The same of a model with one input and one output. */
static inline clv_tensor *clv_model_build(const clv_model *model, clv_tensor *x) {
    clv_tensor *output = NULL;
    clv_model_build_all(model, &x, 1, &output, 1);
    return output;
}

/** The models that Cleave brings (runtime/nn/models.def): `linear`, `mlp`, `cnn`, and with torchvision's names, shapes
 *  and first values `alexnet`, `vgg16`, `resnet18`, `mobilenet_v2` and others; of texts `gpt` and those of clv_gpt_config, `bert_base`. */
/** The i-th model, NULL past the end. Static. */
CLV_API CLV_OR_NULL const clv_model *clv_model_get(int index);
/** The model of that name, one that was registered too; NULL if there is none. Static. */
CLV_API CLV_OR_NULL const clv_model *clv_model_find(const char *name);
/**
 * Register a model of your own for the whole process, under its name: for clv_model_find, and so `cleave train --ops FILE --model NAME`.
 * The same one again is fine. It must outlive its uses.
 *
 * Errors  CLV_E_VALUE, CLV_E_DTYPE, CLV_E_SHAPE  it is no model; the sentence says why;  CLV_E_STATE  the name is taken, or 64 are
 *         registered
 */
CLV_API CLV_MUST_CHECK clv_status clv_model_register(clv_runtime *runtime, CLV_KEPT const clv_model *model);
/** A copy of a model of images for samples [channels, height, width] and `classes` classes; 0 of any keeps the model's. */
static inline clv_model clv_model_for(const clv_model *model, int64_t channels, int64_t height, int64_t width,
                                      int64_t classes) {
    clv_model copy = *model;
    if (channels) copy.input[0] = channels;
    const bool pixels = copy.target[1] && copy.target[0] == copy.input[1] && copy.target[1] == copy.input[2];
    if (height) copy.input[1] = height;
    if (width) copy.input[2] = width;
    if (pixels) copy.target[0] = copy.input[1], copy.target[1] = copy.input[2];
    if (classes) copy.classes = classes;
    return copy;
}

/**
 * A copy of a model of images, made for samples [channels, height, width] or, in grey, [height, width]; the model itself where
 * they fit it already.
 *
 * what    names the samples in the sentence, `images 'x.npy'`; NULL: `samples`
 * out           on failure all zero
 *
 * Errors  CLV_E_SHAPE  no such samples: channels last, none of the model's rank, a dimension of 0 or too large; or as many numbers
 *                      as the model wants in another order
 */
CLV_API CLV_MUST_CHECK clv_status clv_model_for_samples(clv_runtime *runtime, const clv_model *model,
                                                        CLV_OR_NULL const char *what, const clv_shape *sample,
                                                        CLV_OUT clv_model *out);

/** Zero means the default, of `gpt` what stands here, of others that of their sources. */
typedef struct clv_gpt_config {
    int64_t vocabulary; /**< 65 */
    int64_t context;    /**< most tokens of a text: 128 */
    int64_t width;      /**< 192, a multiple of heads */
    int64_t heads;      /**< 6 */
    int64_t layers;     /**< 4 */
    float dropout;      /**< 0 */
    float eps;          /**< of the norms: 1e-5, of llama 1e-6 */
    const char *
        model; /**< NULL: `gpt`; or another of models.def for texts: `gpt2`, `llama`, `lstm_lm`; `bert_base` */
    /** features between the two layers of a perceptron: 4 * width; of llama 8/3 of it; of lstm_lm, of the LSTM: width */
    int64_t hidden;
    /** of llama, heads of keys and values, a divisor of heads; half of them, or all if they are odd */
    int64_t kv_heads;
    double rope_theta; /**< of llama: 10000 */
    /** 1: the last layer's weight is that of the embedding; -1: its own; 0: as usual, tied in gpt2 alone */
    int tied;
    /** of llama, rotary positions stretched as those of Llama 3.1 (transformers' rope_type "llama3"): factor, low_freq_factor,
     *  high_freq_factor, original_max_position_embeddings; a factor of 0: they are not */
    float rope_scaling[4];
    int64_t head_dim; /**< of llama, features of a head: width / heads */
    int32_t classes;  /**< of bert_base, as its weights have them; its model says how many it is built for */
    int32_t qkv_bias; /**< of llama: 1: queries, keys and values have biases, as Qwen2's */
} clv_gpt_config;

/**
 * A model that predicts the next token, for a trainer: samples and targets are `context` tokens.
 *
 * config  must outlive it; NULL means all defaults: a small GPT of 1.8 million parameters
 *
 *     gpt      minGPT's parameters: `transformer.wte`, `.wpe`, `.h.0.ln_1`, `.h.0.attn.c_attn`, ..., `.ln_f`, `lm_head`; weights [out, in]
 *     gpt2     the same by the names of Hugging Face's GPT2LMHeadModel: weights of attention and perceptrons [in, out], no `lm_head`
 *     llama    LlamaForCausalLM's: `model.embed_tokens`, `.layers.0.self_attn.q_proj`, ..., `.norm`, `lm_head`
 *     lstm_lm  those of PyTorch's example word_language_model: `encoder`, `rnn`, `decoder`
 *
 * Errors  (of what it builds) CLV_E_SHAPE  tokens are not [N,T], or T is above the context;  CLV_E_VALUE  heads do not divide the width,
 *         or there is no such model
 * Source  Radford et al. 2019, "Language Models are Unsupervised Multitask Learners"; karpathy/minGPT; Touvron et al. 2023,
 *         arXiv:2302.13971; Zaremba et al. 2014, arXiv:1409.2329
 */
CLV_API clv_model clv_gpt_model(CLV_OR_NULL CLV_KEPT const clv_gpt_config *config);
/**
 * Its layers alone: of a config that names no other model, a GPT's.
 *
 * tokens  [N, T]  i32     below the vocabulary, T up to the context
 * result  [N, T, vocabulary]  logits of the token that follows each; train on clv_cross_entropy of them as
 *         [N*T, vocabulary] with the following tokens [N*T]
 */
static inline clv_tensor *clv_gpt(clv_tensor *tokens, const clv_gpt_config *config) {
    const clv_model model = clv_gpt_model(config);
    return clv_model_build(&model, tokens);
}

/** A model and its loss as a function: from tensors of a row for each sample (inputs, labels) to one f32 element, the mean over their
 *  rows. */
typedef clv_tensor *(*clv_loss_layers)(clv_tensor *const *tensors, void *user);

/**
 * The mean loss of a batch, computed in parts: gradient accumulation on one device, a pipeline with layers on several
 * (clv_plan_config.place). Call clv_backward on the result; parameters are updated once, from the gradients of the whole.
 *
 *     result = sum over parts (rows of the part / N * its loss)
 *
 * tensors  n_tensors of them, 3 * CLV_MAX_PORTS at most, [N, ...] each: x and labels, say
 * n        parts, 1 to N; of N / n rows each, rounded up in the first ones
 * body     called once for each part, with the same names, so the parameters are the same
 * result   [] f32
 *
 * The plan puts the parts in an order: on one device each goes forward and back before the next begins, so activations of one
 * are held at a time; with layers on S devices they work at the same time, one backward and one forward by turns (1F1B),
 * and the s-th of them, counted from 0, holds activations of at most S - s parts.
 *
 * Gradient  as of the whole batch, up to rounding; added part by part in a fixed order, in place.
 * Notes     batch_norm normalises each part by itself and moves its running statistics part by part, as PyTorch does
 *           when gradients are accumulated. Dropout drops what it would drop in the whole batch. Weights that layers on
 *           two devices share make these wait for each other.
 * Errors    CLV_E_VALUE  n below 1 or above N;  CLV_E_SHAPE  no batch dimension, or the tensors differ in it
 * Source    Huang et al. 2019, arXiv:1811.06965 (GPipe); Narayanan et al. 2021, arXiv:2104.04473, section 2.2 (1F1B)
 */
CLV_TRAIN_API clv_tensor *clv_micro_batches(CLV_COUNT(n_tensors) clv_tensor *const *tensors, int n_tensors,
                                            int64_t n, clv_loss_layers body, void *user);

/** Some layers as a function: from inputs to results, which it writes. */
typedef void (*clv_layers)(clv_tensor *const *inputs, clv_tensor **results, void *user);

/**
 * Compute layers on several devices, each with its rows of the batch, as torch.nn.DataParallel; of any vendors, of any speed.
 *
 * inputs   n_inputs of them, CLV_MAX_PORTS at most, [N, ...] each
 * devices  n device specs, each once; the first keeps the parameters and their optimizer state, and gets the results
 * shares   n parts of the batch that sum to 1; NULL: equal. Rounded to whole rows; the first device has at least one.
 * body     builds the layers; called once for each device, with the same names, so the parameters are the same
 * results  n_results of them, CLV_MAX_PORTS at most, [N, ...] on devices[0]: the rows' results joined in their order. All NULL after a
 *          mistake
 *
 * Gradient  inputs and parameters; those of the replicas are added in a fixed order, so the same run gives the same bits.
 * Notes     batch_norm uses each replica's own rows, its running statistics are those of the first; dropout drops what it
 *           would drop in the whole batch. A batch too small for a device's share leaves it idle. Of two devices of one kind
 *           that compute in the host's memory the second does part of a large model's updates.
 * Errors    CLV_E_VALUE no device or more than 16, one twice (under whatever names), a share <= 0, shares that do not sum
 *           to 1;  CLV_E_SHAPE  the inputs differ in their first dimension
 */
CLV_API void clv_data_parallel(CLV_COUNT(n_inputs) clv_tensor *const *inputs, int n_inputs,
                               CLV_COUNT(n) const char *const *devices,
                               CLV_OR_NULL CLV_COUNT(n) const double *shares, int n, clv_layers body,
                               void *user, CLV_BORROWED CLV_COUNT(n_results) clv_tensor **results,
                               int n_results);

/**
 * The mean loss of a batch whose rows are computed on several devices, each with its own labels and loss: clv_data_parallel
 * of a whole model. Faster than the loss of joined results, because no device waits for another before the gradients are there.
 * Call clv_backward on the result.
 *
 *     result = sum over devices (rows of the device / N * its loss)
 *
 * tensors  as for clv_micro_batches
 * devices, shares, n  as for clv_data_parallel
 * body     called once for each device, with the same names, so the parameters are the same; a mean over its rows
 * result   [] f32 on devices[0]
 *
 * Gradient  as of the whole batch, up to rounding; added in a fixed order.
 * Errors    as clv_data_parallel
 */
CLV_API clv_tensor *clv_data_parallel_loss(CLV_COUNT(n_tensors) clv_tensor *const *tensors, int n_tensors,
                                           CLV_COUNT(n) const char *const *devices,
                                           CLV_OR_NULL CLV_COUNT(n) const double *shares, int n,
                                           clv_loss_layers body, void *user);

#ifdef __cplusplus
}
#endif
#endif
