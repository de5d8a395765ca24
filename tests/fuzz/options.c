// SPDX-License-Identifier: Apache-2.0
// Any bytes as the words of a command line: the first byte says which command, then one word a line. Parsed, or told as wrong
// usage; numbers, sizes and budgets that were taken are within their ranges.
#define _GNU_SOURCE
#include "fuzz/fuzz.h"

#include "fuzz/quiet.h"
#include "cli.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    quiet_begin();
    if (size < 1) return 0;
    char *text = malloc(size), *words[64];
    REQUIRE(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    int n = 0;
    for (char *at = text, *end; n < 64; at = end + 1) {
        end = strchr(at, '\n');
        words[n++] = at;
        if (!end) break;
        *end = 0;
    }
    cli_args args;
    int code = cli_parse(n, words, (cli_command)(data[0] % CLI_COMMANDS), &args);
    REQUIRE(code == EXIT_DONE || code == EXIT_USAGE);
    if (code == EXIT_DONE && !args.help) {
        REQUIRE(args.epochs >= 0 && args.steps >= 0 && args.batch >= 0 && args.micro_batches >= 0);
        REQUIRE(!(args.lr < 0) && !(args.momentum < 0) && !(args.weight_decay < 0) && !(args.clip_norm < 0));
    }
    for (int i = 0; i < n; i++) {
        uint64_t bytes;
        int64_t dims[3];
        cli_parse_bytes(words[i], &bytes);
        if (cli_parse_size(words[i], dims)) REQUIRE(dims[0] > 0 && dims[1] > 0 && dims[2] > 0);
    }
    free(args.more);
    free(text);
    return 0;
}
