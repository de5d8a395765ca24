// SPDX-License-Identifier: Apache-2.0
// --place, --transfers, --replicas, --shares, --micro-batches: what a person wrote, as the library wants it.
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_shares(const cli_args *args, const cli_placement *out, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(out->shares[i] > 0))
            return cli_fail(EXIT_USAGE, "--shares '%s': the share of %s is %g, it must be above 0",
                            args->shares, out->replicas[i], out->shares[i]);
        sum += out->shares[i];
    }
    if (!(fabs(sum - 1) <= 1e-6))
        return cli_fail(EXIT_USAGE, "--shares '%s' sum to %g, they must sum to 1", args->shares, sum);
    return EXIT_DONE;
}

static int read_shares(const cli_args *args, cli_placement *out) {
    clv_placement *placement = &out->placement;
    if (!args->shares || !strcmp(args->shares, "auto")) {
        placement->measure_shares = true;
        return EXIT_DONE;
    }
    if (!strcmp(args->shares, "equal")) return EXIT_DONE;
    const char *at = args->shares;
    int n = 0;
    for (; n < CLI_MAX_REPLICAS; n++) {
        char *end;
        out->shares[n] = strtod(at, &end);
        if (end == at || (*end && *end != ',')) break;
        at = end + 1;
        if (!*end) {
            n++;
            if (n != placement->n_replicas)
                return cli_fail(EXIT_USAGE, "--shares '%s' has %d parts for %d replicas", args->shares, n,
                                placement->n_replicas);
            placement->shares = out->shares;
            return check_shares(args, out, n);
        }
    }
    return cli_fail(EXIT_USAGE,
                    "--shares wants auto, equal, or one number for each replica (0.7,0.3), not '%s'",
                    args->shares);
}

int cli_check_micro_batches(const cli_args *args) {
    int64_t batch = args->batch ? args->batch : 64;
    if (args->micro_batches > batch)
        return cli_fail(EXIT_USAGE, "--micro-batches %lld is more than the %lld images of a batch",
                        (long long)args->micro_batches, (long long)batch);
    if (args->micro_batches && args->command == CLI_PLAN && !args->train)
        return cli_fail(EXIT_USAGE, "--micro-batches is for --train");
    if (args->micro_batches > 1 && args->replicas)
        return cli_fail(EXIT_USAGE, "--micro-batches and --replicas both cut the batch; give one of them");
    return EXIT_DONE;
}

int cli_read_placement(const cli_args *args, cli_placement *out) {
    *out = (cli_placement){0};
    clv_placement *placement = &out->placement;
    int code = cli_check_micro_batches(args);
    if (code != EXIT_DONE) return code;
    if (args->place && args->replicas)
        return cli_fail(EXIT_USAGE, "--place and --replicas both say where to compute; give one of them");
    if (args->shares && !args->replicas) return cli_fail(EXIT_USAGE, "--shares is for --replicas");
    if (args->on_device_loss && !args->replicas)
        return cli_fail(EXIT_USAGE, "--on-device-loss is for --replicas");
    if (args->device && (args->place || args->replicas))
        return cli_fail(EXIT_USAGE, "--device and --%s both say where to compute; give one of them",
                        args->place ? "place" : "replicas");
    placement->place = args->place;
    placement->explicit_transfers = args->transfers && !strcmp(args->transfers, "explicit");
    if (!args->replicas) return EXIT_DONE;
    if (strlen(args->replicas) >= sizeof out->text) return cli_fail(EXIT_USAGE, "--replicas is too long");
    strcpy(out->text, args->replicas);
    char *rest = out->text;
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        if (!*name || placement->n_replicas == CLI_MAX_REPLICAS)
            return cli_fail(EXIT_USAGE, "--replicas wants 1 to %d devices, cpu:0,cpu:1, not '%s'",
                            CLI_MAX_REPLICAS, args->replicas);
        out->replicas[placement->n_replicas++] = name;
    }
    placement->replicas = out->replicas;
    return read_shares(args, out);
}
