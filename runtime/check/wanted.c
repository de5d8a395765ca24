// SPDX-License-Identifier: Apache-2.0
// Names and shards; see wanted.h.
#include "check/wanted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/dtype.h"

static size_t count(const char *const *names) {
    size_t n = 0;
    while (names && names[n]) n++;
    return n;
}

clv_status clv__wanted_init(clv__wanted *wanted, const clv_check_config *config, clv__error *error) {
    *wanted = (clv__wanted){.config = config, .whole = -1};
    clv_dtype only = config->dtype;
    if (only != CLV_DTYPE_NONE && only != CLV_DTYPE_F32 && !clv__is_half(only))
        CLV_FAIL(error, CLV_E_VALUE, "check: floats are stored in f32, f16 or bf16, not in %s",
                 clv_dtype_name(only));
    int shard = config->shard, shards = config->n_shards;
    if ((shard || shards) && !(shard >= 1 && shard <= shards))
        CLV_FAIL(error, CLV_E_VALUE, "check: there is no shard %d of %d; they count from 1", shard, shards);
    wanted->matched = clv__alloc(count(config->cases) + 1, sizeof *wanted->matched);
    if (!wanted->matched) CLV_FAIL(error, CLV_E_HOST_MEMORY, "no memory for the names of cases");
    return CLV_OK;
}

void clv__wanted_reset(clv__wanted *wanted) {
    free(wanted->matched);
    *wanted = (clv__wanted){0};
}

/** A pattern for whole names, up to its first slash; one with a `*` before that may go beyond it. */
static bool may_be_of(const char *pattern, const char *op) {
    size_t n = strcspn(pattern, "*/");
    char head[CLV__CASE_BYTES];
    if (pattern[n] == '*' || n >= sizeof head) return true;
    memcpy(head, pattern, n);
    head[n] = 0;
    return clv__name_matches(head, op);
}

bool clv__wanted_op(const clv__wanted *wanted, const char *op) {
    const clv_check_config *config = wanted->config;
    if (count(config->ops) && !clv__names_hold(config->ops, op)) return false;
    bool found = !count(config->cases);
    for (size_t i = 0; !found && config->cases[i]; i++) found = may_be_of(config->cases[i], op);
    return found;
}

bool clv__wanted_case(clv__wanted *wanted, const char *op, const char *variant, const char *sample) {
    const char *const *cases = wanted->config->cases;
    char name[CLV__CASE_BYTES];
    clv__case_name(name, op, variant, sample);
    bool found = !count(cases);
    for (size_t i = 0; cases && cases[i]; i++) {
        if (strcmp(cases[i], name) != 0 && !clv__name_matches(cases[i], name)) continue;
        wanted->matched[i] = found = true;
    }
    bool excluded = found && clv__names_hold(wanted->config->exclude, name);
    wanted->excluded += excluded;
    return found && !excluded;
}

void clv__wanted_begin(clv__wanted *wanted, int samples, int all) {
    int shards = wanted->config->n_shards, least = 0;
    wanted->whole = -1;
    if (shards < 2 || shards > CLV__WHOLE_SHARDS || samples > all / shards) return;
    for (int i = 1; i < shards; i++)
        if (wanted->dealt[i] < wanted->dealt[least]) least = i;
    wanted->whole = least;
}

bool clv__wanted_here(clv__wanted *wanted) {
    int shards = wanted->config->n_shards;
    int number = wanted->samples++;
    if (shards == 0) return true;
    int shard = wanted->whole >= 0 ? wanted->whole : number % shards;
    if (shard < CLV__WHOLE_SHARDS) wanted->dealt[shard]++;
    return shard == wanted->config->shard - 1;
}

bool clv__wanted_whole(const clv__wanted *wanted) {
    const clv_check_config *config = wanted->config;
    return !config->quick && config->dtype == CLV_DTYPE_NONE && config->n_shards <= 1 &&
           !count(config->cases) && !count(config->exclude);
}

const char *clv__wanted_missing(const clv__wanted *wanted) {
    const char *const *cases = wanted->config->cases;
    for (size_t i = 0; cases && cases[i]; i++)
        if (!wanted->matched[i]) return cases[i];
    return NULL;
}
