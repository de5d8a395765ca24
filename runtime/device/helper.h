// SPDX-License-Identifier: Apache-2.0
// A helper: this library in another process (clv_compile_helper), which compiles for us. Its standard input is a socket on which it
// gets a welcome first. It ends when it has done its work, or when the other end of the socket is shut. Some compile ahead (ahead.h),
// some try whether a compiler outlives a program (trial.h).
#ifndef CLV_DEVICE_HELPER_H
#define CLV_DEVICE_HELPER_H

#include <sys/types.h>

#include "device/device.h"

typedef struct clv__helper {
    pid_t process;
    int socket;
} clv__helper;

enum { CLV__WELCOME_TEXTS = 4 };

/** What a helper is told first. visible_devices, partition, left_out and cache_dir follow, each with its zero byte. */
typedef struct clv__welcome {
    char magic[8], version[24], device[24];
    enum { CLV__HELP_AHEAD, CLV__HELP_TRIAL } kind;
    size_t letter_bytes; // another build's may look different
    size_t n, n_first;   // ahead: letters, and how many of them are wanted first
    int number, n_helpers;
    bool no_cache;
    size_t text_bytes[CLV__WELCOME_TEXTS];
} clv__welcome;

extern const char clv__welcome_magic[8];

/** Is there a program to be helpers (clv_runtime_config.compile_helper), and is this process none itself? */
bool clv__helper_wanted(const clv_device *device);
/** Start one; 0 or an errno. It is in our process group: an interrupt from the terminal ends it too. */
int clv__helper_start(const clv_device *device, clv__helper *out);
/** Welcome it: what `own` leaves zero of device, version and settings is filled in. false: it is gone. */
bool clv__helper_welcome(const clv_device *device, int socket, clv__welcome own);
/** false: the other end is shut, or gone. */
bool clv__helper_send(int socket, const void *data, size_t bytes);
/** The same; or it took longer than until `until` on clv__seconds (0: for as long as it takes). */
bool clv__helper_receive(int socket, void *data, size_t bytes, double until);
/** Wait for a process that knows by its socket that it should end; at `until`, make it. How it ended, as waitpid says it; -1: nobody
 *  knows. Its socket is the caller's to close. */
int clv__helper_see_off(const clv__helper *gone, double until);

#endif
