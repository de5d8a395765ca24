// SPDX-License-Identifier: Apache-2.0
// Reads an event file of TensorBoard, with no code of Cleave: each record's length and checksums, each message's fields. Prints a line
// for what each event holds; exit 1 and a sentence if a byte is not as it should be. The checksum is by a table and its test vector
// (RFC 3720, B.4: 32 zero bytes give 8a9136aa).
//   version TEXT | step N start | step N scalar TAG VALUE | step N histogram TAG NUM MIN MAX COUNTED BUCKETS
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t table[256];

static void fill_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int k = 0; k < 8; k++) rest = rest & 1 ? rest >> 1 ^ 0x82f63b78u : rest >> 1;
        table[i] = rest;
    }
}

static uint32_t crc32c(const uint8_t *bytes, size_t n) {
    uint32_t crc = 0xffffffffu;
    while (n--) crc = table[(crc ^ *bytes++) & 255] ^ crc >> 8;
    return crc ^ 0xffffffffu;
}

static uint32_t unmask(uint32_t masked) {
    uint32_t turned = masked - 0xa282ead8u;
    return turned >> 17 | turned << 15;
}

static void die(const char *why) {
    fprintf(stderr, "events: %s\n", why);
    exit(1);
}

/** Bytes of a message that are left. */
typedef struct span {
    const uint8_t *at, *end;
} span;

static uint64_t little(const uint8_t *at, int n) {
    uint64_t value = 0;
    while (n--) value = value << 8 | at[n];
    return value;
}

static uint64_t varint(span *s) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (s->at == s->end) die("a number is cut short");
        uint8_t byte = *s->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (!(byte & 128)) return value;
    }
    die("a number is too long");
    return 0;
}

typedef struct field {
    unsigned number, wire;
    uint64_t bits; // of numbers
    span inner;    // of wire type 2
} field;

static int next(span *s, field *f) {
    if (s->at == s->end) return 0;
    uint64_t key = varint(s);
    *f = (field){.number = (unsigned)(key >> 3), .wire = key & 7};
    if (f->wire == 0) {
        f->bits = varint(s);
        return 1;
    }
    uint64_t n = f->wire == 1 ? 8 : f->wire == 5 ? 4 : f->wire == 2 ? varint(s) : UINT64_MAX;
    if (n > (uint64_t)(s->end - s->at)) die("a field is of no known kind, or longer than its message");
    if (f->wire != 2) f->bits = little(s->at, (int)n);
    f->inner = (span){s->at, s->at + n};
    s->at += n;
    return 1;
}

static double as_double(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void want(int holds, const char *why) {
    if (!holds) die(why);
}

static void histogram(long step, const char *tag, span s) {
    double min = 0, max = 0, num = 0, counted = 0, last = 0;
    long limits = 0, buckets = 0;
    for (field f; next(&s, &f);) {
        if (f.number <= 5) want(f.wire == 1, "a histogram's number is no double");
        if (f.number == 1) min = as_double(f.bits);
        if (f.number == 2) max = as_double(f.bits);
        if (f.number == 3) num = as_double(f.bits);
        for (const uint8_t *at = f.inner.at; (f.number == 6 || f.number == 7) && at < f.inner.end; at += 8) {
            double value = as_double(little(at, 8));
            if (f.number == 6) {
                want(!limits || value > last, "a histogram's limits do not rise");
                last = value;
                limits++;
            } else {
                counted += value;
                buckets++;
            }
        }
    }
    want(limits == buckets && limits > 0, "a histogram has other limits than buckets");
    want(last == max, "a histogram's last limit is not its largest value");
    printf("step %ld histogram %s %.0f %.9g %.9g %.0f %ld\n", step, tag, num, min, max, counted, buckets);
}

static void summary(long step, span s) {
    for (field f; next(&s, &f);) {
        want(f.number == 1 && f.wire == 2, "a summary holds something else than values");
        char tag[512] = "";
        for (field v; next(&f.inner, &v);) {
            if (v.number == 1) snprintf(tag, sizeof tag, "%.*s", (int)(v.inner.end - v.inner.at), v.inner.at);
            if (v.number == 2) {
                uint32_t bits = (uint32_t)v.bits;
                float value;
                want(v.wire == 5 && *tag, "a scalar is no float, or has no tag before it");
                memcpy(&value, &bits, sizeof value);
                printf("step %ld scalar %s %.9g\n", step, tag, (double)value);
            }
            if (v.number == 5) histogram(step, tag, v.inner);
        }
    }
}

static void event(span s) {
    long step = 0;
    double time = 0;
    for (field f; next(&s, &f);) {
        if (f.number == 1) time = as_double(f.bits);
        if (f.number == 2) step = (long)f.bits;
        if (f.number == 3) printf("version %.*s\n", (int)(f.inner.end - f.inner.at), f.inner.at);
        if (f.number == 5) summary(step, f.inner);
        if (f.number == 7) {
            field status;
            want(next(&f.inner, &status) && status.number == 1 && status.bits == 1, "no SessionLog.START");
            printf("step %ld start\n", step);
        }
    }
    want(time > 1e9, "an event has no time");
}

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!file) die("wants the name of an event file");
    fill_table();
    want(crc32c((const uint8_t[32]){0}, 32) == 0x8a9136aau, "this reader's checksum is wrong");
    uint8_t head[12], tail[4], *bytes = NULL;
    size_t n;
    while ((n = fread(head, 1, sizeof head, file)) == sizeof head) {
        uint64_t length = little(head, 8);
        want(unmask((uint32_t)little(head + 8, 4)) == crc32c(head, 8), "a length has another checksum");
        want(length < 1 << 26, "a record is too long");
        bytes = realloc(bytes, length + 1);
        want(bytes && fread(bytes, 1, length, file) == length && fread(tail, 1, 4, file) == 4,
             "a record is cut short");
        want(unmask((uint32_t)little(tail, 4)) == crc32c(bytes, length), "a record has another checksum");
        event((span){bytes, bytes + length});
    }
    want(n == 0, "the file ends within a record");
    free(bytes);
    fclose(file);
    return 0;
}
