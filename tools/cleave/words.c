// SPDX-License-Identifier: Apache-2.0
// The library's sentences name fields and functions of its interface; who types commands knows options.
#include "options/options.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *field, *option;
} words[] = {
    {"clv_train_config.on_nan = CLV_NAN_CONTINUE", "--on-nan continue"},
    {"(clv_train_config.checkpoint)", "(--checkpoint FILE)"},
    {"(clv_train_config.model)", "(--model)"},
    {"(clv_train_config.ranks)", "(mpirun -n 4 cleave ... --ranks)"},
    {"(clv_onnx_config.dims)", "(--dims)"},
    {"(clv_onnx_config.dims = ", "(--dims "},
    {"(clv_onnx_config.targets)", "(--target)"},
    {"(clv_onnx_write_config.batch)", "(--batch N)"},
    {"(clv_model.classes ", "(--classes "},
    {" .batch = ", " --batch "},
    {" .recompute = ", " --recompute "},
    {" .device = ", " --device "},
    {" .place = ", " --place "},
    {"clv_gpt_weights_save writes", "`cleave train text FILE --save` writes"},
    {"(CLV_VOCABULARY_BYTES)", "(--vocabulary bytes)"},
    {"(clv_text_config.context)", "(--context)"},
    {"(clv_text_config.begin)", "(--validation)"},
    {"`folder` of clv_dataset_fashion_mnist", "--data DIR"},
    {"(`ignore` of clv_table_rows_read)", "(--ignore)"},
    {"(clv_table_config.ignore)", "(--ignore)"},
    {"(clv_table_config.begin)", "(--validation)"},
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

/** What a checkpoint was written with, where that is no field which one option sets; `WORDS (OPTIONS)` where
 *  no option says just that. */
static const struct {
    const char *field, *option;
} settings[] = {
    {"samples", "samples (other data, --limit, --validation or --context)"},
    {"shuffle", "shuffling (--no-shuffle)"},
    {"optimizer.kind", "--optimizer"},
    {"optimizer.custom", "--optimizer"},
    {"schedule.per_step", "a rate by steps (--schedule)"},
    {"schedule.period", "a period (--schedule, --step-size or --plateau-patience) of"},
    {"schedule.warmup", "--warmup"},
    {"schedule.warmup_epochs", "a warm-up in epochs (--warmup)"},
    {"schedule.turn", "--pct-start or --plateau-threshold"},
    {"optimizer.dampening", "dampening (--optimizer)"},
    {"optimizer.beta1", "beta1 (--optimizer)"},
    {"optimizer.beta2", "beta2 (--optimizer)"},
    {"optimizer.eps", "eps (--optimizer)"},
    {"optimizer.groups", "groups (--param-group, --weight-decay-skip)"},
    {"loss", "a loss (--target, --labels)"},
    {"losses", "losses (--target)"},
    {"class_weights", "--class-weights and --ignore-index"},
};

static const char written_with[] = "was written with ";

enum { OPTION_BYTES = 48 }; // of `--NAME`

/** The option that sets a field of a training whose name begins here; NULL: none does. `within`: what it is a
 *  field of, such as `optimizer.`. */
static const char *option_of(const char *within, const char *at, char option[OPTION_BYTES], size_t *length) {
    const size_t before = strlen(within);
    for (int i = 0; i < OPTIONS; i++) {
        const char *path = option_rows[i].path;
        if (!path || strncmp(path, within, before)) continue;
        *length = strlen(path + before);
        if (strncmp(at, path + before, *length) || isalnum((unsigned char)at[*length]) || at[*length] == '_')
            continue;
        snprintf(option, OPTION_BYTES, "--%s", option_rows[i].name);
        return option;
    }
    return NULL;
}

/** The setting that stands here, behind these words; NULL: none. */
static const char *setting_at(const char *sentence, const char *at, char option[OPTION_BYTES],
                              size_t *length) {
    const size_t n = sizeof written_with - 1;
    if ((size_t)(at - sentence) < n || strncmp(at - n, written_with, n)) return NULL;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        *length = strlen(settings[i].field);
        if (!strncmp(at, settings[i].field, *length) && at[*length] == ' ') return settings[i].option;
    }
    return option_of("", at, option, length);
}

/** The field that begins here; NULL: none does. */
static const char *option_at(const char *at, char option[OPTION_BYTES], size_t *length) {
    static const struct {
        const char *type, *within;
    } types[] = {
        {"clv_train_config.", ""}, {"clv_optimizer_config.", "optimizer."}, {"clv_schedule.", "schedule."}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *length = strlen(words[i].field);
        if (!strncmp(at, words[i].field, *length)) return words[i].option;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t n = strlen(types[i].type);
        if (strncmp(at, types[i].type, n) || !option_of(types[i].within, at + n, option, length)) continue;
        *length += n;
        return option;
    }
    return NULL;
}

const char *cli_option_words(const char *sentence) {
    static _Thread_local char text[4096];
    const char *whole = sentence;
    size_t n = 0;
    if (strlen(sentence) > sizeof text / 2) return sentence; // a log of a compiler, or a kernel: no sentence
    while (*sentence && n + 1 < sizeof text) {
        size_t length = 0;
        char room[OPTION_BYTES];
        const char *option = setting_at(whole, sentence, room, &length);
        if (!option) option = option_at(sentence, room, &length);
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
