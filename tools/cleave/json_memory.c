// SPDX-License-Identifier: Apache-2.0
// Memory for jansson. Its parser does not check whether a long number got memory, and aborts the process soon
// after. So memory that the system refuses while JSON is read comes from a reserve, which is larger than a
// line of a log needs.
#include "cli.h"

#include <jansson.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

static _Alignas(max_align_t) char reserve[256 << 10];
static _Thread_local bool reading; // else what jansson returns may be given to free()
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t n_used, n_blocks; // bytes; blocks not free yet: after the last the reserve is empty

static void *take(size_t bytes) {
    void *block = malloc(bytes);
    if (block || !reading || bytes > sizeof reserve) return block;
    const size_t step = sizeof(max_align_t), rounded = (bytes + step - 1) / step * step;
    pthread_mutex_lock(&lock);
    if (rounded <= sizeof reserve - n_used) {
        block = reserve + n_used;
        n_used += rounded;
        n_blocks++;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

static void give_back(void *block) {
    const char *at = block;
    if (at < reserve || at >= reserve + sizeof reserve) {
        free(block);
        return;
    }
    pthread_mutex_lock(&lock);
    if (--n_blocks == 0) n_used = 0;
    pthread_mutex_unlock(&lock);
}

void cli_json_memory(void) {
    json_set_alloc_funcs(take, give_back);
}

json_t *cli_json_read(const char *text, size_t bytes) {
    reading = true;
    json_t *read = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL);
    reading = false;
    return read;
}

json_t *cli_json_read_file(FILE *file) {
    reading = true;
    json_t *read = json_loadf(file, JSON_REJECT_DUPLICATES, NULL);
    reading = false;
    return read;
}
