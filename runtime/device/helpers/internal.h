// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share; nobody else includes it. A helper's standard input is a socket, on
// which it gets a handshake first, then what it is to compile. It ends when its work is done, or when the
// other end of the socket is shut.
#ifndef CLV_DEVICE_HELPERS_INTERNAL_H
#define CLV_DEVICE_HELPERS_INTERNAL_H

#include <sys/types.h>

#include "device/helpers/helpers.h"

/** A launch as it is sent: with its texts, as addresses mean nothing elsewhere. */
typedef struct clv__sent_launch {
    char source[64], entry[64];
    clv__launch launch;
} clv__sent_launch;

/** Does the driver compile the kernel once more for so large a grid? PoCL does from 65,535 work-items in a
 *  dimension on. Helpers leave these grids out. */
static inline bool clv__grid_is_large(const clv__grid *grid) {
    return grid->global[0] >= 65535 || grid->global[1] >= 65535 || grid->global[2] >= 65535;
}

// ---- process.c --------------------------------------------------------------------------------------------

typedef struct clv__helper {
    pid_t process;
    int socket;
} clv__helper;

enum { CLV__HANDSHAKE_TEXTS = 4 };

/** What a helper is told first. visible_devices, partition, left_out and cache_dir follow, each with its zero
 *  byte. */
typedef struct clv__handshake {
    char magic[8], version[24], device[24];
    enum { CLV__HELP_AHEAD, CLV__HELP_ISOLATED } kind;
    size_t launch_bytes; // of clv__sent_launch: another build's may differ
    size_t n, n_first;   // ahead: launches, and how many of them are compiled first
    int number, n_helpers;
    bool no_cache;
    size_t text_bytes[CLV__HANDSHAKE_TEXTS];
} clv__handshake;

extern const char clv__handshake_magic[8];

/** Is there a program to be helpers (clv_runtime_config.compile_helper), and is this process none itself? */
bool clv__helper_wanted(const clv_device *device);
/** Start one; 0 or an errno. It is in our process group: an interrupt from the terminal ends it too. */
int clv__helper_start(const clv_device *device, clv__helper *out);
/** Send the handshake: what `own` leaves zero of device, version and settings is filled in. false: the helper
 *  is gone. */
bool clv__helper_handshake(const clv_device *device, int socket, clv__handshake own);
/** false: the other end is shut, or gone. */
bool clv__helper_send(int socket, const void *data, size_t bytes);
/** The same; or it took longer than until `until` on clv__seconds (0: for as long as it takes). */
bool clv__helper_receive(int socket, void *data, size_t bytes, double until);
/** Wait for a process that knows by its socket that it should end; at `until`, kill it. How it ended, as
 *  waitpid says it; -1: not known. Its socket is the caller's to close. */
int clv__helper_wait(const clv__helper *gone, double until);

// ---- ahead.c, isolated.c ----------------------------------------------------------------------------------

/** End those that compile ahead. */
void clv__ahead_end(clv_device *device);

/** What is sent to a helper that builds first, with the text behind it. */
typedef struct clv__build_request {
    size_t source_bytes; // with its zero byte
    bool want_binary;
} clv__build_request;

/** What comes back, with the error's text and the binary behind it. */
typedef struct clv__build_reply {
    clv_status status;
    size_t text_bytes, binary_bytes;
} clv__build_reply;

#endif
