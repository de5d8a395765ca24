// SPDX-License-Identifier: Apache-2.0
// Folders of pictures: the data set `images DIR`, how its pictures are changed for training, and what is said
// of broken ones.
#include "cli.h"

#include <string.h>

bool cli_is_folder(const cli_args *args) {
    return args->n_words > 0 && !strcmp(args->words[0], "images");
}

int cli_check_folder(const cli_args *args, const clv_model *model) {
    const char *option = args->image_size         ? "image-size"
                         : args->workers          ? "workers"
                         : args->strict           ? "strict"
                         : args->val              ? "val"
                         : args->augment          ? "augment"
                         : args->color_jitter > 0 ? "color-jitter"
                                                  : NULL;
    if (!cli_is_folder(args))
        return option ? cli_fail(EXIT_USAGE, "--%s is of folders of pictures: `images DIR`", option)
                      : EXIT_DONE;
    if (args->n_words < 2)
        return cli_fail(EXIT_USAGE,
                        "which folder? `images DIR` wants one with a folder of pictures for each class");
    if (args->data)
        return cli_fail(EXIT_USAGE, "--data is the folder of a dataset; `images DIR` names its own");
    if (args->workers > 64)
        return cli_fail(EXIT_USAGE, "--workers is 1 to 64, not %lld", (long long)args->workers);
    if (args->image_size > 4096)
        return cli_fail(EXIT_USAGE, "--image-size is 1 to 4096, not %lld", (long long)args->image_size);
    if (model->dtype == CLV_DTYPE_I32)
        return cli_fail(EXIT_USAGE, "%s is a model of texts: give it one, `text FILE`", model->name);
    return EXIT_DONE;
}

clv_status cli_read_folder(cli_source *source) {
    const cli_args *args = source->args;
    const char *augment = args->augment ? args->augment : "crop";
    clv_image_folder_config plain = {.size = args->image_size ? args->image_size : 224,
                                     .limit = args->limit,
                                     .workers = (int)args->workers,
                                     .strict = args->strict};
    clv_image_folder_config drawn = plain;
    drawn.augment = (clv_image_augment){.crop = !strcmp(augment, "crop"),
                                        .flip = strcmp(augment, "none") ? 0.5 : 0,
                                        .brightness = args->color_jitter,
                                        .contrast = args->color_jitter,
                                        .saturation = args->color_jitter};
    if (!source->with_train)
        return clv_dataset_image_folder(source->runtime, args->words[1], &plain, &source->test);
    clv_status status = clv_dataset_image_folder(source->runtime, args->words[1], &drawn, &source->train);
    plain.like = source->train;
    if (status == CLV_OK && args->val)
        status = clv_dataset_image_folder(source->runtime, args->val, &plain, &source->test);
    return status;
}

void cli_model_of_folder(const cli_args *args, const clv_model *model, const clv_dataset *dataset,
                         clv_model *out) {
    const clv_shape sample = clv_dataset_sample_shape(dataset);
    const int64_t classes = args->classes ? args->classes : clv_dataset_classes(dataset);
    *out = clv_model_for(model, 3, sample.dims[1], sample.dims[2], classes);
}

int64_t cli_broken(const cli_source *source, const char **first) {
    const char *tested = NULL;
    int64_t n = source->train ? clv_image_folder_broken(source->train, first) : 0;
    if (source->test) n += clv_image_folder_broken(source->test, &tested);
    if (!*first) *first = tested;
    return n;
}

void cli_tell_broken(cli_source *source) {
    const char *first = NULL;
    if (source->args->quiet || !cli_is_folder(source->args)) return;
    const int64_t n = cli_broken(source, &first);
    if (n > source->told_broken)
        fprintf(stderr, "%lld picture%s broken and passed over; the first: %s (--strict refuses such)\n",
                (long long)n, n == 1 ? " is" : "s are", first ? first : "unknown");
    source->told_broken = n;
}
