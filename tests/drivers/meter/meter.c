// SPDX-License-Identifier: Apache-2.0
// Runs kernels on the host as a GPU would, item by item, and counts what their accesses to memory ask of it. The kernels are compiled
// with the thread sanitizer's callbacks, which are these: each load and store of an item is noted with its instruction. Items are
// fibers, which switch at a barrier. Then the n-th access at an instruction of 32 neighbouring items is one request: how many
// sectors of 32 bytes does it touch, in how many banks of local memory do its words lie?
//
// usage: meter DATA PART/PARTS  a line for each kernel of each part of the models' nodes: see run.py, which adds them up
//        meter DATA --samples   whole launches of all samples: are the results those of the reference?
#define _GNU_SOURCE
#include "meter.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum {
    MOST_ITEMS = 1024,
    STACK = 128 << 10,
    MOST_NOTES = 8192, // of an item between two barriers; what follows is like what was seen
    LAST_NOTES = 64,   // and stores that come after so many loads
    LOCAL = 256 << 10,
    METERED_GROUPS = 12,      // of a launch: each stands for as many neighbours
    ALONE_GROUPS = 4,         // of a launch that no step has, or fewer:
    ALONE_ACCESSES = 4 << 20, // after so many no further group is begun
    SECTOR = 32,
    BANKS = 32
};
static const size_t ARENA = (size_t)24 << 30; // address space, taken as it is touched

// ---- what kernels call: PoCL's builtins read these -----------------------------------------------------------------------

size_t _local_id_x, _local_id_y, _local_id_z, _local_size_x, _local_size_y, _local_size_z;
size_t _group_id_x, _group_id_y, _group_id_z, _num_groups_x, _num_groups_y, _num_groups_z;
size_t _global_offset_x, _global_offset_y, _global_offset_z;
unsigned _work_dim = 3;

typedef struct note {
    uintptr_t instruction, address;
    uint32_t bytes;
    bool write;
} note;

static note *notes[MOST_ITEMS];
static int n_notes[MOST_ITEMS];
static double n_taken, n_noted; // accesses since the last barrier, of all items; those that were noted
static double n_all;            // accesses since the launch began
static bool metering, done[MOST_ITEMS];
static int item;
static ucontext_t outside, inside[MOST_ITEMS];
static char *arena, *stacks;
static _Alignas(256) char local_memory[LOCAL];
extern char __data_start, _end;

static bool is_global(uintptr_t at) {
    return at - (uintptr_t)arena < ARENA;
}
static bool is_local(uintptr_t at) { // __local arrays in kernels are static data of this program
    return at >= (uintptr_t)&__data_start && at < (uintptr_t)&_end;
}
static void take(const void *address, size_t bytes, bool write, void *instruction) {
    const uintptr_t at = (uintptr_t)address;
    if (!metering || !(is_global(at) || is_local(at))) return;
    n_taken++;
    if (n_notes[item] >= MOST_NOTES + (write ? LAST_NOTES : 0)) return;
    n_noted++;
    notes[item][n_notes[item]++] = (note){(uintptr_t)instruction, at, (uint32_t)bytes, write};
}
#define ACCESS(n)                                                                                            \
    void __tsan_read##n(void *p) { take(p, n, false, __builtin_return_address(0)); }                         \
    void __tsan_write##n(void *p) { take(p, n, true, __builtin_return_address(0)); }                         \
    void __tsan_unaligned_read##n(void *p) { take(p, n, false, __builtin_return_address(0)); }               \
    void __tsan_unaligned_write##n(void *p) { take(p, n, true, __builtin_return_address(0)); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
void __tsan_read_range(void *p, size_t n) { take(p, n, false, __builtin_return_address(0)); }
void __tsan_write_range(void *p, size_t n) { take(p, n, true, __builtin_return_address(0)); }
void meter_wide(void *p, size_t n, int write) { take(p, n, write, __builtin_return_address(0)); } // host.cl
void __tsan_init(void) {}
void __tsan_func_entry(void *p) { (void)p; }
void __tsan_func_exit(void) {}
void *__tsan_memset(void *p, int v, size_t n) { return memset(p, v, n); }
void *__tsan_memcpy(void *to, const void *from, size_t n) { return memcpy(to, from, n); }
void meter_barrier(void) __asm__("pocl.barrier");
void meter_barrier(void) { swapcontext(&inside[item], &outside); }

// ---- requests ------------------------------------------------------------------------------------------------------------

enum { WIDTHS = 3, MOST_WIDTH = 64 };
static const int widths[WIDTHS] = {32, 64, 16};

typedef struct side { // loads or stores of global memory, of one width of a wave
    double requests, sectors, ideal;
} side;
static side sides[2][WIDTHS];
static double local_requests, local_ways, weight; // of a request: how many more were not noted
static int worst_ways;

/** One access of neighbouring items at one instruction. */
static void count_global(const note *const *lanes, int n, side *to) {
    uintptr_t sectors[MOST_WIDTH * 5], bytes = 0;
    int n_sectors = 0;
    uintptr_t seen[MOST_WIDTH];
    int n_seen = 0;
    for (int i = 0; i < n; i++) {
        const uintptr_t first = lanes[i]->address, last = first + lanes[i]->bytes - 1;
        bool same = false;
        for (int k = n_seen - 1; k >= 0 && !same; k--) same = seen[k] == first;
        if (same) continue;
        seen[n_seen++] = first;
        bytes += lanes[i]->bytes;
        for (uintptr_t s = first / SECTOR; s <= last / SECTOR; s++) {
            bool there = false;
            for (int k = n_sectors - 1; k >= 0 && !there; k--) there = sectors[k] == s;
            if (!there) sectors[n_sectors++] = s;
        }
    }
    to->requests += weight;
    to->sectors += weight * n_sectors;
    to->ideal += weight * (double)((bytes + SECTOR - 1) / SECTOR);
}

/** Of a width of 32 alone. Wide accesses are done by a part of the items at a time. */
static void count_local(const note *const *lanes, int n) {
    const int at_once = lanes[0]->bytes <= 4 ? 32 : lanes[0]->bytes <= 8 ? 16 : 8;
    for (int from = 0; from < n; from += at_once) {
        uintptr_t words[32 * 16];
        int n_words = 0, in_bank[BANKS] = {0}, ways = 1;
        for (int i = from; i < n && i < from + at_once; i++) {
            for (uintptr_t w = lanes[i]->address / 4; w <= (lanes[i]->address + lanes[i]->bytes - 1) / 4; w++) {
                bool there = n_words == 32 * 16;
                for (int k = 0; k < n_words && !there; k++) there = words[k] == w;
                if (there) continue;
                words[n_words++] = w;
                if (++in_bank[w % BANKS] > ways) ways = in_bank[w % BANKS];
            }
        }
        local_requests += weight;
        local_ways += weight * ways;
        if (ways > worst_ways) worst_ways = ways;
    }
}

static void count_request(const note *const *lanes, int n, int width) {
    if (is_global(lanes[0]->address))
        count_global(lanes, n, &sides[lanes[0]->write][width]);
    else if (width == 0)
        count_local(lanes, n);
}

static int by_instruction(const void *a, const void *b) {
    const note *x = *(const note *const *)a, *y = *(const note *const *)b;
    if (x->instruction != y->instruction) return x->instruction < y->instruction ? -1 : 1;
    return x < y ? -1 : x > y; // in the order in which they came
}

/** Items that do not go the same way: the k-th access at each instruction belongs together. */
static void count_apart(int first, int n, int width) {
    static const note *sorted[MOST_WIDTH][MOST_NOTES + LAST_NOTES];
    int at[MOST_WIDTH] = {0};
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n_notes[first + i]; k++) sorted[i][k] = &notes[first + i][k];
        qsort(sorted[i], (size_t)n_notes[first + i], sizeof **sorted, by_instruction);
    }
    for (;;) {
        const note *lanes[MOST_WIDTH];
        uintptr_t next = UINTPTR_MAX;
        int n_lanes = 0;
        for (int i = 0; i < n; i++)
            if (at[i] < n_notes[first + i] && sorted[i][at[i]]->instruction < next)
                next = sorted[i][at[i]]->instruction;
        if (next == UINTPTR_MAX) return;
        for (int i = 0; i < n; i++)
            if (at[i] < n_notes[first + i] && sorted[i][at[i]]->instruction == next)
                lanes[n_lanes++] = sorted[i][at[i]++];
        count_request(lanes, n_lanes, width);
    }
}

static void count_wave(int first, int n, int width) {
    bool together = true;
    for (int i = 1; i < n && together; i++) {
        together = n_notes[first + i] == n_notes[first];
        for (int k = 0; k < n_notes[first] && together; k++)
            together = notes[first + i][k].instruction == notes[first][k].instruction;
    }
    if (!together) {
        count_apart(first, n, width);
        return;
    }
    for (int k = 0; k < n_notes[first]; k++) {
        const note *lanes[MOST_WIDTH];
        for (int i = 0; i < n; i++) lanes[i] = &notes[first + i][k];
        count_request(lanes, n, width);
    }
}

static void count_all(int n_items) {
    weight = n_noted > 0 ? n_taken / n_noted : 0;
    n_all += n_taken;
    n_taken = n_noted = 0;
    for (int w = 0; w < WIDTHS; w++)
        for (int first = 0; first < n_items; first += widths[w])
            count_wave(first, n_items - first < widths[w] ? n_items - first : widths[w], w);
    memset(n_notes, 0, sizeof n_notes);
}

// ---- groups --------------------------------------------------------------------------------------------------------------

static const meter_launch *running;
static char *pointers[METER_MOST_BUFFERS];

static void begin_item(void) {
    running->call(pointers, local_memory);
    done[item] = true;
    swapcontext(&inside[item], &outside);
}

static void set_item(int i) {
    item = i;
    _local_id_x = (size_t)i % _local_size_x;
    _local_id_y = (size_t)i / _local_size_x % _local_size_y;
    _local_id_z = (size_t)i / _local_size_x / _local_size_y;
}

static void run_group(const meter_launch *launch, int n_items) {
    running = launch;
    for (int i = 0; i < n_items; i++) {
        done[i] = false;
        getcontext(&inside[i]);
        inside[i].uc_stack.ss_sp = stacks + (size_t)i * STACK;
        inside[i].uc_stack.ss_size = STACK;
        makecontext(&inside[i], begin_item, 0);
    }
    for (bool left = true; left;) { // from barrier to barrier
        left = false;
        for (int i = 0; i < n_items; i++) {
            if (done[i]) continue;
            set_item(i);
            swapcontext(&outside, &inside[i]);
            left |= !done[i];
        }
        if (metering) count_all(n_items);
    }
}

/** Groups of a launch, `most` or all, the middle one first; after `enough` accesses none is begun. Returns by how many times more there
 *  are. */
static double run_launch(const meter_launch *launch, size_t most, double enough) {
    size_t local[3], groups[3];
    for (int d = 0; d < 3; d++) {
        local[d] = launch->local[d] ? launch->local[d] : d == 0 && launch->global[0] >= 64 ? 64 : 1;
        groups[d] = (launch->global[d] + local[d] - 1) / local[d];
    }
    _local_size_x = local[0], _local_size_y = local[1], _local_size_z = local[2];
    _num_groups_x = groups[0], _num_groups_y = groups[1], _num_groups_z = groups[2];
    const size_t n = groups[0] * groups[1] * groups[2], n_items = local[0] * local[1] * local[2];
    if (n_items > MOST_ITEMS) {
        fprintf(stderr, "meter: a group of %zu items\n", n_items);
        exit(1);
    }
    const size_t n_run = n > most ? most : n;
    size_t n_done = 0;
    for (n_all = 0; n_done < n_run && n_all < enough; n_done++) {
        const size_t i = (n_run / 2 + n_done) % n_run, g = (2 * i + 1) * n / (2 * n_run);
        _group_id_x = g % groups[0], _group_id_y = g / groups[0] % groups[1], _group_id_z = g / groups[0] / groups[1];
        run_group(launch, (int)n_items);
    }
    return (double)n / (double)n_done;
}

// ---- nodes ---------------------------------------------------------------------------------------------------------------

static const char *data;

static void place_buffers(const meter_node *node) {
    size_t at = 0;
    madvise(arena, ARENA, MADV_DONTNEED);
    for (int i = 0; i < node->n_buffers; i++) {
        const meter_buffer *b = &node->buffers[i];
        pointers[i] = b->bytes ? arena + at : NULL;
        at += (b->bytes + 4095) / 4096 * 4096 + 4096;
        if (at > ARENA) {
            fprintf(stderr, "meter: '%s' of '%s' is too large\n", node->use, node->model);
            exit(1);
        }
        if (b->given >= 0) memcpy(pointers[i], data + b->given, b->bytes);
        for (size_t k = 0; b->given < 0 && b->indices && k < b->bytes / 4; k++)
            ((int32_t *)pointers[i])[k] = (int32_t)(k * 7 % 10);
    }
}

static void do_other(const meter_launch *l) {
    if (l->kind == METER_COPY) {
        memmove(pointers[l->to] + l->to_at, pointers[l->from] + l->from_at, l->bytes);
    } else {
        for (size_t i = 0; i + 4 <= l->bytes; i += 4) memcpy(pointers[l->to] + l->to_at + i, &l->pattern, 4);
        memcpy(pointers[l->to] + l->to_at + l->bytes / 4 * 4, &l->pattern, l->bytes % 4);
    }
}

static void meter_models(int part, int parts) {
    metering = true;
    for (int i = part; i < meter_n_nodes; i += parts) {
        const meter_node *node = &meter_nodes[i];
        if (!*node->model) continue;
        place_buffers(node);
        bool is_first = true; // kernel: its row says how many times the node's bytes are moved
        bool indices = false; // what items do depends on them: groups are not alike
        for (int k = 0; k < node->n_buffers; k++) indices |= node->buffers[k].indices && node->buffers[k].bytes;
        for (int k = 0; k < node->n_launches; k++) {
            const meter_launch *l = &node->launches[k];
            if (l->kind != METER_KERNEL) continue;
            memset(sides, 0, sizeof sides);
            local_requests = local_ways = worst_ways = 0;
            const size_t most = indices ? SIZE_MAX : node->alone ? ALONE_GROUPS : METERED_GROUPS;
            const double scale = run_launch(l, most, node->alone ? ALONE_ACCESSES : INFINITY) * node->count;
            printf("%d\t%s\t%s\t%s\t%s\t%s\t%d", i, node->alone ? "node" : "step", node->model, node->use, l->entry,
                   l->key, node->count);
            for (int s = 0; s < 2; s++)
                for (int w = 0; w < WIDTHS; w++)
                    printf("\t%.17g\t%.17g\t%.17g", scale * sides[s][w].requests, scale * sides[s][w].sectors,
                           scale * sides[s][w].ideal);
            printf("\t%.17g\t%.17g\t%d\t%.17g\n", scale * local_requests, scale * local_ways, worst_ways,
                   is_first ? (double)node->must * node->count : 0.0);
            is_first = false;
        }
    }
}

static double float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
enum { ELEMENT_F32, ELEMENT_I32 };

/** The largest difference from what is wanted, as a part of the largest value. */
static double compare(const meter_buffer *b, const char *got) {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < b->n; i++) {
        double want;
        memcpy(&want, data + b->wanted + i * sizeof want, sizeof want);
        const uint32_t bits = ((const uint32_t *)got)[i];
        const double have = b->element == ELEMENT_I32 ? (double)(int32_t)bits : float_of(bits);
        if (isfinite(want) && fabs(want) > largest) largest = fabs(want);
        if (have == want || (isnan(have) && isnan(want))) continue;
        const double off = fabs(have - want);
        if (!(off <= worst)) worst = off;
    }
    return worst == 0 ? 0 : largest > 0 ? worst / largest : INFINITY;
}

static int check_samples(void) {
    int n = 0, failures = 0;
    for (int i = 0; i < meter_n_nodes; i++) {
        const meter_node *node = &meter_nodes[i];
        if (*node->model) continue;
        place_buffers(node);
        for (int k = 0; k < node->n_launches; k++)
            if (node->launches[k].kind == METER_KERNEL)
                run_launch(&node->launches[k], SIZE_MAX, INFINITY);
            else
                do_other(&node->launches[k]);
        n++;
        for (int k = 0; k < node->n_buffers; k++) {
            const meter_buffer *b = &node->buffers[k];
            if (b->wanted < 0) continue;
            const double off = compare(b, pointers[k]);
            if (off <= b->within) continue;
            printf("FAILED %s: a result is off by %.2g of its largest value\n", node->use, off);
            failures++;
            break;
        }
    }
    printf("%d uses of ops run whole, %d with another result than the reference\n", n, failures);
    return failures || !n;
}

int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!file) return 2;
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    char *values = malloc((size_t)bytes + 1);
    rewind(file);
    if (!values || fread(values, 1, (size_t)bytes, file) != (size_t)bytes) return 2;
    data = values;
    arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stacks = mmap(NULL, (size_t)MOST_ITEMS * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED || stacks == MAP_FAILED) return 2;
    for (int i = 0; i < MOST_ITEMS; i++)
        if (!(notes[i] = malloc((MOST_NOTES + LAST_NOTES) * sizeof(note)))) return 2;
    if (argc > 2 && !strcmp(argv[2], "--samples")) return check_samples();
    int part, parts;
    if (argc < 3 || sscanf(argv[2], "%d/%d", &part, &parts) != 2 || parts < 1) return 2;
    meter_models(part, parts);
    return 0;
}
