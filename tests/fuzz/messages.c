// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message of another rank: values are taken if they are of this plan, step and bucket, and as long as
// they say; what ranks say first, every second, and before the first step, if it is whole and of that rank. Else there
// is a word for what is wrong. Texts that are taken can be shown.
#include "fuzz/fuzz.h"

#include "exec/exchange.h"
#include "exec/ranks.h"

enum { BEHIND = 8, RANK = 2 };

static void see_values(const uint8_t *data, size_t size) {
    const clv__exchange_head wanted = {.magic = CLV__EXCHANGE_MAGIC,
                                       .phase = 1,
                                       .rank = RANK,
                                       .bucket = 3,
                                       .ticket = 5,
                                       .digest = UINT64_C(0x0123456789abcdef),
                                       .bytes = BEHIND};
    const char *fault = clv__exchange_fault(&wanted, data, size);
    const bool right =
        size == sizeof wanted + BEHIND && memcmp(data, &wanted, offsetof(clv__exchange_head, stop)) == 0;
    REQUIRE(right == !fault);
}

/** A text has an end, and nothing in it moves a cursor. */
static void require_text(const char *text, size_t room) {
    REQUIRE(memchr(text, 0, room) != NULL);
    for (; *text; text++) REQUIRE((unsigned char)*text >= 0x20 || *text == '\n' || *text == '\t');
}

/** A receiver has memory for a message that is right; a longer one fails before. */
static size_t put(void *message, size_t room, const uint8_t *data, size_t size) {
    memset(message, 0x5a, room);
    memcpy(message, data, size < room ? size : room);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    clv__hello hello;
    clv__beat beat;
    clv__readiness ready;
    clv__left left;
    see_values(data, size);
    if (!clv__hello_fault(&hello, put(&hello, sizeof hello, data, size), RANK))
        REQUIRE(size == sizeof hello && hello.rank == RANK && strcmp(hello.version, clv_version()) == 0);
    if (!clv__beat_fault(&beat, put(&beat, sizeof beat, data, size), RANK)) {
        REQUIRE(size == sizeof beat && beat.rank == RANK && beat.said >= CLV__HERE && beat.said <= CLV__DONE);
        require_text(beat.sentence, sizeof beat.sentence);
    }
    if (!clv__left_fault(&left, put(&left, sizeof left, data, size), RANK)) REQUIRE(left.rank == RANK);
    if (!clv__ready_fault(&ready, put(&ready, sizeof ready, data, size))) {
        REQUIRE(size == sizeof ready && ready.failed <= 1);
        require_text(ready.sentence, sizeof ready.sentence);
    }
    return 0;
}
