// SPDX-License-Identifier: Apache-2.0
// Pictures a second that a loader decodes, augments and puts into batches: pictures.c FOLDER THREADS BATCH. For pictures.sh.
#include <cleave/cleave.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    clv_runtime *runtime = NULL;
    clv_dataset *dataset = NULL;
    clv_loader *loader = NULL;
    const clv_image_folder_config config = {.workers = atoi(argv[2]), .augment = {.crop = true, .flip = 0.5}};
    int failed = clv_runtime_create(&(clv_runtime_config){.no_opencl = true}, &runtime) ||
                 clv_dataset_image_folder(runtime, argv[1], &config, &dataset);
    const double begin = seconds();
    failed = failed || clv_loader_create(
                           runtime, dataset,
                           &(clv_loader_config){.batch = atoi(argv[3]), .shuffle = true, .seed = 1}, &loader);
    double sum = 0;
    for (clv_batch batch = {0}; !failed && !batch.last;) {
        failed = clv_loader_next(loader, &batch);
        if (!failed) sum += (double)((const float *)batch.samples)[0];
        clv_loader_release(loader, &batch);
    }
    if (failed)
        fprintf(stderr, "%s\n", clv_runtime_error(runtime));
    else
        printf("%.1f\n", (double)clv_dataset_info_get(dataset).count / (seconds() - begin));
    clv_loader_destroy(loader), clv_dataset_destroy(dataset), clv_runtime_destroy(runtime);
    return failed || sum == 0.5;
}
