// SPDX-License-Identifier: Apache-2.0
// A driver may end the whole process while it is being probed (FACTS: PoCL without sysfs aborts). So a child process
// probes first; if it dies, OpenCL is left out of this run, with the reason on the device list.
#include "cli.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void cli_probe(char *left_out, size_t bytes) {
    *left_out = 0;
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
        // What a dying driver prints is no business of the user's terminal: the parent says what happened.
        clv_runtime *runtime = NULL;
        clv_status status = clv_runtime_create(&(clv_runtime_config){.visible_devices = "", .partition = ""}, &runtime);
        (void)status; // the parent meets the same failure and reports it
        _exit(0);
    }
    int how;
    while (waitpid(child, &how, 0) < 0)
        ;
    if (WIFSIGNALED(how))
        snprintf(left_out, bytes, "*=a driver ended the process while it was probed (%s)", strsignal(WTERMSIG(how)));
}
