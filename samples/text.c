// SPDX-License-Identifier: Apache-2.0
// A text model without recurrence: a GPT of the characters of a text, trained by the trainer. text cpu
#include "common.h"

#include <string.h>

enum { CONTEXT = 16 };

int main(int argc, char **argv) {
    static char text[6000];
    clv_runtime *runtime = NULL;
    clv_vocabulary *vocabulary = NULL;
    clv_dataset *train = NULL, *test = NULL;
    clv_trainer *trainer = NULL;
    for (size_t n = 0; n + 60 < sizeof text;)
        n += (size_t)snprintf(text + n, sizeof text - n, "peter piper picked a peck of pickled peppers. ");
    TRY(runtime, clv_runtime_create(NULL, &runtime));

    // A token for each character that the text has; the last tenth of it is not trained on.
    const size_t bytes = strlen(text);
    TRY(runtime, clv_vocabulary_create(runtime, CLV_VOCABULARY_CHARACTERS, text, bytes, &vocabulary));
    clv_text_config part = {.vocabulary = vocabulary, .context = CONTEXT, .stride = 4, .end = 0.9};
    TRY(runtime, clv_dataset_text(runtime, text, bytes, &part, &train));
    part.begin = part.end;
    part.end = 1;
    TRY(runtime, clv_dataset_text(runtime, text, bytes, &part, &test));

    const clv_gpt_config sizes = {.vocabulary = clv_vocabulary_count(vocabulary),
                                  .context = CONTEXT,
                                  .width = 32,
                                  .heads = 4,
                                  .layers = 2};
    const clv_model gpt = clv_gpt_model(&sizes);
    clv_train_config config = {.model = &gpt,
                               .train = train,
                               .test = test,
                               .batch = 32,
                               .epochs = 4,
                               .lr = 0.005,
                               .optimizer = {.kind = CLV_ADAMW}};
    TRY(runtime, clv_device_find(runtime, argc > 1 ? argv[1] : NULL, &config.device));
    TRY(runtime, clv_trainer_create(runtime, &config, &trainer));
    TRY(runtime, clv_trainer_run(trainer));
    const clv_metrics told = clv_trainer_result(trainer).test;
    printf("%d characters; of the next ones %.0f %% are right, loss %.2f\n", clv_vocabulary_count(vocabulary),
           100 * told.accuracy, told.loss);
    CHECK(told.accuracy > 0.85); // by chance: one in fifteen
    TRY(runtime,
        clv_gpt_weights_save(clv_trainer_info_get(trainer).session, &sizes, vocabulary, "text.safetensors"));

    clv_trainer_destroy(trainer);
    clv_dataset_destroy(train);
    clv_dataset_destroy(test);
    clv_vocabulary_destroy(vocabulary);
    clv_runtime_destroy(runtime);
    remove("text.safetensors");
    return 0;
}
