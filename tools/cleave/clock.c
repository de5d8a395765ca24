// SPDX-License-Identifier: Apache-2.0
// Seconds since the process started.
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double clock_seconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Source: proc(5), stat, fields 3 and 22.
double cli_process_started(int64_t process) {
    char text[1024] = "", path[48];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)process);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = 0;
    char *at = strrchr(text, ')'); // the name before it may hold anything
    if (at && at[1] && (at[2] == 'Z' || at[2] == 'X')) return -1;
    for (int field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    long ticks = sysconf(_SC_CLK_TCK);
    return at && ticks > 0 ? strtod(at, NULL) / (double)ticks : 0;
}

double cli_seconds(void) {
    static double start; // of the process, on CLOCK_MONOTONIC
    double now = clock_seconds(CLOCK_MONOTONIC);
    if (start == 0) {
        double age = clock_seconds(CLOCK_BOOTTIME) - cli_process_started(getpid());
        start =
            now - (age >= 0 && age < 10 ? age : 0); // a container's clock may disagree: then count from here
    }
    return now - start;
}
