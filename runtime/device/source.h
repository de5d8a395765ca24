// SPDX-License-Identifier: Apache-2.0
// The text of a program: instances of the library's kernel sources, each with the kernels that are asked for.
//
// An instance is a source file with a set of defines and a set of kernels. In a program it is pasted as
//     #define KERNEL(name) name##_<hash of source and defines>
//     #define <each define>
//     #line 1 "<stem>.cl"
//     <text of the file: lines of kernels that nobody asks for are empty, and so are #defines of macros that
//      the instance defines>
//     #undef of all of these, and of every macro that the file itself defines
// so that one program can hold the same file many times. A macro's default is a #define of one line in the
// file. A file names every function and type of its own with KERNEL(...), not only its entry points. The
// files of kernels_cl/common/ stand once at the start of each program; what they define is there for all.
//
// A kernel can be left out if it stands at the start of a line: from a line that begins with `__kernel` or
// `kernel` to the next one that begins with `}`, with every #if of it closed. What a macro makes is always
// there. Compilers pay by the line: a plan wants two or three kernels of a file of ten, and the file once for
// each set of defines.
#ifndef CLV_DEVICE_SOURCE_H
#define CLV_DEVICE_SOURCE_H

#include "base/text.h"
#include "device/kernel_sources.h"

typedef struct clv__instance {
    uint64_t hash; // of source and defines
    const clv__kernel_source *source;
    const char *defines; // lines "NAME value\n"; borrowed
    uint64_t kernels;    // which of the file's are asked for, bits of clv__source_kernel
} clv__instance;

/** The source of that stem, the library's or one that was brought; NULL if there is none. */
const clv__kernel_source *clv__source_find(const char *stem);

/** Add a text that an op of a program's own brings, for the rest of the process. Its stem is of no other
 *  source; both texts stay where they are. False: no host memory. */
bool clv__source_bring(const char *stem, const char *text);

/** Names an instance of a text with that hash: the suffix of its kernels. */
uint64_t clv__source_hash(uint64_t text_hash, const char *defines);

/**
 * The bit of an entry among a file's kernels, in the order of the text; more than one if the file writes it
 * more than once, under #if. 0: it is in every instance (a macro makes it, or it stands behind the 64th), or
 * there is no such kernel.
 */
uint64_t clv__source_kernel(const clv__kernel_source *source, const char *entry);

/** The bits of the kernel that the lowest of these bits belongs to: all of its name, as clv__source_kernel
 *  has them. */
uint64_t clv__source_same_kernel(const clv__kernel_source *source, uint64_t kernels);

/** What there is to know of a kernel that a launch names, whatever its defines. */
typedef struct clv__source_entry {
    const char *stem, *entry; // as the launch has them, which outlive the index
    const clv__kernel_source *source;
    uint64_t text_hash, kernel; // of the whole file; its bit there, see clv__source_kernel
} clv__source_entry;

/** Kernels that were looked for. A plan has hundreds of launches of some forty kernels, and finding one means
 *  to read its file. Zeroed: empty. Whoever has it, locks it. */
typedef struct clv__source_index {
    clv__source_entry *items;
    size_t n, room;
} clv__source_index;

/** Find a kernel's file, and its place there; false if the library has no such file. */
bool clv__source_look_up(clv__source_index *index, const char *stem, const char *entry,
                         clv__source_entry *out);
void clv__source_index_reset(clv__source_index *index);

/** How much text an instance gives a compiler to read. */
size_t clv__source_bytes(const clv__instance *instance);

/** What a device adds to what programs are made of. */
typedef struct clv__source_device {
    int f16_way;     // by what it converts f16, a clv__f16_way: f16.h
    bool sub_groups; // trees use its sub-groups: sub_groups.h
    int matrix_unit; // which matrix unit of kernels_cl/common/matrix.cl it has, 0: none: matrix.h
    bool no_int64;   // it has no 64-bit integers
} clv__source_device;
/** The start of a program: what is common to all instances; NULL: as any device compiles it. */
void clv__source_begin(clv__text *out, const clv__source_device *device);
/** Append an instance. */
void clv__source_add(clv__text *out, const clv__instance *instance);

#endif
