// SPDX-License-Identifier: Apache-2.0
// Any bytes as the log of a training: refused, or read to a moment whose texts can be shown and whose JSON can be read again. The last
// is asked of one input of four: it takes longer than the reader.
#define _GNU_SOURCE
#include "fuzz/fuzz.h"

#include "fuzz/memory_file.h"
#include "fuzz/quiet.h"
#include "watching/watch.h"

static void require_shown(const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        REQUIRE(*at >= 0x20 && *at != 0x7f);
}

static void on_moment(void *user, const watch_moment *now) {
    *(int *)user += 1;
    REQUIRE(now->n_devices >= 0 && now->n_devices <= WATCH_DEVICES);
    require_shown(now->model);
    require_shown(now->sentence);
    for (int i = 0; i < now->n_devices; i++) {
        require_shown(now->devices[i].name);
        require_shown(now->devices[i].label);
    }
}

static void require_printed(const watch_reader *reader) {
    watch_print(quiet_begin(), &reader->now);
    json_t *moment = watch_moment_json(reader, 1);
    REQUIRE(moment != NULL);
    char *text = json_dumps(moment, JSON_COMPACT);
    REQUIRE(text != NULL);
    json_t *again = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    REQUIRE(again != NULL);
    json_decref(again);
    json_decref(moment);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    quiet_begin();
    const char *path = "x";
    memory_file_set(path, data, size);
    int moments = 0;
    watch_reader reader = {.on_step = on_moment, .on_epoch = on_moment, .user = &moments};
    if (watch_reader_open(&reader, path) == EXIT_DONE && watch_reader_poll(&reader) == EXIT_DONE) {
        REQUIRE(reader.damaged <= reader.lines && moments <= reader.lines);
        on_moment(&moments, &reader.now);
        unsigned sum = 0;
        for (size_t i = 0; i < size; i++) sum += data[i];
        if (sum % 4 == 0) require_printed(&reader);
    }
    watch_reader_close(&reader);
    return 0;
}
