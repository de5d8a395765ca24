// SPDX-License-Identifier: Apache-2.0
// Texts: the data set `text FILE`, its vocabulary, and the model of the right size for it.
#include "datasets/datasets.h"
#include "models/models.h"

#include <string.h>

int cli_check_text(const cli_args *args, const clv_model *model) {
    const bool of_arrays = cli_data_is(args, "arrays") && cli_is_onnx(model->name),
               text = cli_data_is(args, "text"), of_texts = model->dtype == CLV_DTYPE_I32 && !of_arrays;
    if (text && !of_texts)
        return cli_fail(EXIT_USAGE,
                        "%s is a model of images; of texts there are gpt, gpt2, llama and lstm_lm",
                        model->name);
    if (!text && of_texts)
        return cli_fail(EXIT_USAGE, "%s is a model of texts: give it one, `text FILE`", model->name);
    if (!text) return EXIT_DONE;
    if (args->n_words < 2) return cli_fail(EXIT_USAGE, "which text? `text FILE` wants the name of a file");
    if (args->tokenizer && args->vocabulary)
        return cli_fail(EXIT_USAGE, "--tokenizer and --vocabulary both say what a token is: give one");
    if (args->tokenizer && args->weights)
        return cli_fail(EXIT_USAGE, "--tokenizer: the weights say what a token is");
    if (args->classes)
        return cli_fail(EXIT_USAGE,
                        "--classes is not for texts: their classes are the tokens of the vocabulary");
    return EXIT_DONE;
}

static clv_status read_tokenizer(cli_source *source) {
    clv_array json = {0};
    clv_status status = clv_text_read(source->runtime, source->args->tokenizer, &json);
    if (status == CLV_OK)
        status = clv_vocabulary_create(source->runtime, CLV_VOCABULARY_TOKENIZER, json.data,
                                       clv_array_bytes(&json), &source->vocabulary);
    clv_array_reset(&json);
    return status;
}

/** The vocabulary: that of weights to begin with, else the bytes, or the characters of the text. */
static clv_status make_vocabulary(cli_source *source) {
    const cli_args *args = source->args;
    const clv_array *text = &source->text;
    if (args->weights)
        return clv_gpt_weights_read(source->runtime, args->weights, &source->gpt, &source->vocabulary);
    source->gpt = (clv_gpt_config){.model = source->model->name,
                                   .context = args->context ? args->context : source->model->input[0],
                                   .width = args->width,
                                   .heads = args->heads,
                                   .layers = args->layers,
                                   .dropout = (float)args->dropout};
    if (args->tokenizer) return read_tokenizer(source);
    if (args->vocabulary && !strcmp(args->vocabulary, "bytes"))
        return clv_vocabulary_create(source->runtime, CLV_VOCABULARY_BYTES, NULL, 0, &source->vocabulary);
    return clv_vocabulary_create(source->runtime, CLV_VOCABULARY_CHARACTERS, text->data,
                                 clv_array_bytes(text), &source->vocabulary);
}

int cli_fail_text(const cli_source *source) {
    const char *sentence = cli_sentence(source->runtime),
               *context = strstr(sentence, ", or a shorter context");
    if (source->status != CLV_E_VALUE || !source->args->weights || !context)
        return cli_fail_status(source->runtime, source->status);
    return cli_fail(EXIT_FAILED, "%.*s; the weights have a context of %lld", (int)(context - sentence),
                    sentence, (long long)source->gpt.context);
}

enum {
    MOST_LOGITS = 1 << 28, // of an evaluation after an epoch: a second or two on a processor
    FEWEST_TESTED = 16,    // samples, whatever they cost
    SHORT_TEXT = 1000000,  // tokens
    FEW_OF_EACH = 10       // tokens to learn from for each one that there is
};

/** How many strides lie between two samples that are tested on after each epoch: where a large vocabulary
 *  would make evaluation longer than the training, fewer samples, spread over all of the part. */
static int64_t strides_between(const cli_source *source) {
    const int64_t count = clv_dataset_info_get(source->test).count,
                  context = clv_dataset_info_get(source->test).sample.dims[0];
    int64_t most = MOST_LOGITS / context / source->gpt.vocabulary;
    if (most < FEWEST_TESTED) most = FEWEST_TESTED;
    return !source->with_train || source->args->limit || count <= most ? 1 : (count + most - 1) / most;
}

void cli_tell_text(const cli_source *source) {
    const int64_t vocabulary = source->gpt.vocabulary;
    const cli_args *args = source->args;
    if (args->quiet || !source->train || !source->vocabulary) return;
    const int64_t context = clv_dataset_info_get(source->train).sample.dims[0];
    const int64_t stride = args->stride ? args->stride : context;
    const bool sized = args->weights || args->resume || args->width || args->layers || args->heads;
    const int64_t learnt = (clv_dataset_info_get(source->train).count - 1) * stride + context;
    if (vocabulary > 256 && learnt < FEW_OF_EACH * vocabulary)
        fprintf(
            stderr,
            "%lld different tokens, and %lld to learn from: too few of each, and every step computes all of "
            "them; --vocabulary bytes has 256\n",
            (long long)vocabulary, (long long)learnt);
    if (learnt < SHORT_TEXT && !sized && source->model->input[0] > 48)
        fprintf(stderr,
                "%lld tokens to learn from are few for %s as large as it is by default: --width 48 --heads 4 "
                "--layers 2 --context 48 is many times as fast, and may learn as much\n",
                (long long)learnt, source->model->name);
    if (source->left_out)
        fprintf(
            stderr,
            "tested after each epoch on %lld of %lld samples, since there are %lld tokens; eval takes all\n",
            (long long)clv_dataset_info_get(source->test).count,
            (long long)(clv_dataset_info_get(source->test).count + source->left_out), (long long)vocabulary);
}

static clv_status read_test(cli_source *source, clv_text_config config) {
    const char *text = source->text.data;
    const size_t bytes = clv_array_bytes(&source->text);
    clv_status status = clv_dataset_text(source->runtime, text, bytes, &config, &source->test);
    const int64_t strides = status == CLV_OK ? strides_between(source) : 1;
    if (status != CLV_OK || strides == 1) return status;
    const int64_t all = clv_dataset_info_get(source->test).count;
    if (!config.stride) config.stride = clv_dataset_info_get(source->test).sample.dims[0];
    config.stride *= strides;
    clv_dataset_destroy(source->test);
    source->test = NULL;
    status = clv_dataset_text(source->runtime, text, bytes, &config, &source->test);
    if (status == CLV_OK) source->left_out = all - clv_dataset_info_get(source->test).count;
    return status;
}

clv_status cli_read_text(cli_source *source) {
    const cli_args *args = source->args;
    clv_status status = clv_text_read(source->runtime, args->words[1], &source->text);
    if (status == CLV_OK) status = make_vocabulary(source);
    if (status != CLV_OK) return status;
    if (!args->weights) source->gpt.vocabulary = clv_vocabulary_count(source->vocabulary);
    const double kept = 1 - (args->given.validation ? args->validation : 0.1);
    clv_text_config config = {.vocabulary = source->vocabulary,
                              .context = source->gpt.context,
                              .stride = args->stride,
                              .begin = kept,
                              .end = 1,
                              .limit = args->limit};
    if (kept < 1) status = read_test(source, config);
    config.begin = 0;
    config.end = kept;
    if (status == CLV_OK && source->with_train)
        status = clv_dataset_text(source->runtime, source->text.data, clv_array_bytes(&source->text), &config,
                                  &source->train);
    clv_array_reset(&source->text); // the tokens are kept
    return status;
}
