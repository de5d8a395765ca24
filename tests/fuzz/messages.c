// SPDX-License-Identifier: Apache-2.0
// Any bytes as a message of another rank: it is taken if it is of this plan, step and bucket, and as long as it says,
// and else there is a word for what is wrong with it.
#include "fuzz/fuzz.h"

#include "exec/exchange.h"

enum { BEHIND = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const clv__exchange_head wanted = {.magic = CLV__EXCHANGE_MAGIC,
                                       .phase = 1,
                                       .rank = 2,
                                       .bucket = 3,
                                       .ticket = 5,
                                       .digest = UINT64_C(0x0123456789abcdef),
                                       .bytes = BEHIND};
    const char *fault = clv__exchange_fault(&wanted, data, size);
    const bool right =
        size == sizeof wanted + BEHIND && memcmp(data, &wanted, offsetof(clv__exchange_head, stop)) == 0;
    REQUIRE(right == !fault);
    return 0;
}
