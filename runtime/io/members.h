// SPDX-License-Identifier: Apache-2.0
// The members of a JSON object in a file, one after the other, through a window: so that a header of a hundred megabytes takes no
// hundred megabytes, and no tree of it. Names and values are parsed as strictly as jansson does; by it where they are not plain.
#ifndef CLV_IO_MEMBERS_H
#define CLV_IO_MEMBERS_H

#include <jansson.h>

#include "io/file.h"

typedef struct clv__members {
    const clv__input *input;
    uint64_t next, end; // of the file: what is not in the window yet
    char *text;         // the window
    size_t n, room;
    size_t at, keep; // the next byte; what may not go yet
    clv_status status;
} clv__members;

/** Bytes begin to end of the file. Reset it in any case. */
void clv__members_init(clv__members *m, const clv__input *input, uint64_t begin, uint64_t end);
void clv__members_reset(clv__members *m);

/** Go into the object that comes next; false: the value that comes is none, and nothing is read. */
clv_status clv__members_enter(clv__members *m, bool *is_object);
/** The name of the next member of the innermost object, to be freed; NULL: the object is over. `begun` is false before its first. Errors
 *  CLV_E_FORMAT it is not JSON; CLV_E_IO, CLV_E_HOST_MEMORY */
clv_status clv__members_next(clv__members *m, bool *begun, char **name);
/** The value's text, good until the next call. *text NULL: it is longer than `most`. It is not parsed, but ends where a value ends. */
clv_status clv__members_value(clv__members *m, size_t most, const char **text, size_t *n);
/** The value, if it is a text, to be freed; else *out is NULL, and the value is passed over. */
clv_status clv__members_text(clv__members *m, char **out);
/** What comes after the object: blanks alone. */
clv_status clv__members_end(clv__members *m);
/** Parse a value that clv__members_value gave, strictly. */
clv_status clv__members_parse(clv__members *m, const char *text, size_t n, json_t **out);
/** Fail: this is not JSON, and why. */
clv_status clv__members_bad(const clv__members *m, const char *why);

/** Names that were there, by number: to find one that comes twice. */
typedef struct clv__name_set {
    const char *(*name_of)(const void *owner, size_t i);
    const void *owner;
    uint32_t *slots; // numbers from 1; 0: empty
    size_t n, room;  // room: a power of two
    uint64_t seed;
} clv__name_set;
/** This name may be added soon: bring its slot into the cache. In a large set a slot is a miss, and a description can be parsed meanwhile. */
void clv__name_set_expect(const clv__name_set *names, const char *name);
/** Add the n-th name, which name_of gives already; *twice: it was there. false: no memory. */
bool clv__name_set_add(clv__name_set *names, bool *twice);
/** Forget them; owner and name_of stay. */
void clv__name_set_reset(clv__name_set *names);

#endif
