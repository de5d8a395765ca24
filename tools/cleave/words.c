// SPDX-License-Identifier: Apache-2.0
// The library's sentences name fields and functions of its interface; who types commands knows options.
#include "cli.h"

#include <string.h>

static const struct {
    const char *field, *option;
} words[] = {
    {"(clv_train_config.lr)", "(--lr)"},
    {"clv_optimizer_config.clip_norm", "--clip-norm"},
    {"clv_train_config.on_nan = CLV_NAN_CONTINUE", "--on-nan continue"},
    {"clv_train_config.weights)", "--weights)"},
    {"clv_train_config.resume ", "--resume "},
    {"(clv_train_config.checkpoint)", "(--checkpoint FILE)"},
    {"(clv_train_config.epochs, clv_train_config.steps)", "(--epochs, --steps)"},
    {"(clv_train_config.weights_except '", "(--except '"},
    {"(clv_model.classes ", "(--classes "},
    {" .batch = ", " --batch "},
    {" .recompute = ", " --recompute "},
    {" .device = ", " --device "},
    {" .place = ", " --place "},
    {"clv_gpt_weights_save writes such", "`cleave train text FILE --save` writes such"},
    {"(clv_vocabulary_bytes)", "(--vocabulary bytes)"},
    {"(clv_text_config.context)", "(--context)"},
    {"`folder` of clv_dataset_fashion_mnist", "--data DIR"},
    {"(`ignore` of clv_table_rows)", "(--ignore)"},
    {"(clv_table_config.ignore)", "(--ignore)"},
    {"(clv_table_config.targets)", "(--target)"},
    {"(clv_table_config.words)", "(--words)"},
    {"(clv_table_config.classes)", "(--classes N)"},
    {"clv_table_config.decimal_comma", "--decimal-comma"},
    {"clv_table_config.missing = CLV_MISSING_MEAN", "--missing mean"},
    {"clv_table_config.missing = CLV_MISSING_DROP", "--missing drop"},
    {"`targets` names them", "--target names them"},
    {"(clv_runtime_config.device_timeout)", "(--device-timeout)"},
    {"(clv_device_set_budget: ", "(--budget "},
};

/** The field that begins here; NULL: none does. */
static const char *option_at(const char *at, size_t *length) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *length = strlen(words[i].field);
        if (!strncmp(at, words[i].field, *length)) return words[i].option;
    }
    return NULL;
}

const char *cli_option_words(const char *sentence) {
    static _Thread_local char text[4096];
    size_t n = 0;
    if (strlen(sentence) > sizeof text / 2) return sentence; // a log of a compiler, or a kernel: no sentence
    while (*sentence && n + 1 < sizeof text) {
        size_t length = 0;
        const char *option = option_at(sentence, &length);
        if (!option || n + strlen(option) >= sizeof text) {
            text[n++] = *sentence++;
            continue;
        }
        memcpy(text + n, option, strlen(option));
        n += strlen(option);
        sentence += length;
    }
    text[n] = 0;
    return text;
}

const char *cli_sentence(const clv_runtime *runtime) {
    return cli_option_words(clv_runtime_error(runtime));
}
