// SPDX-License-Identifier: Apache-2.0
// Einsum: the operands one after the other into a product of matrices, whose batch is the letters that stay,
// and whose sum those that
// go. Source: Einsum of ONNX 1.23; numpy.einsum.
#include <string.h>

#include "onnx/import.h"

enum { MOST = 16 }; // operands; axes that `...` stands for, whose letters are numbers from 1 on

/** An operand, or the result: a letter for each axis. */
typedef struct term {
    char letters[2 * CLV_MAX_RANK];
    int n;
    clv_tensor *x;
} term;

static bool has(const term *t, char letter) {
    return memchr(t->letters, letter, (size_t)t->n) != NULL;
}

static int place_of(const term *t, char letter) {
    return (int)((const char *)memchr(t->letters, letter, (size_t)t->n) - t->letters);
}

static void append(term *t, char letter) {
    if (t->n < (int)sizeof t->letters) t->letters[t->n++] = letter;
}

/** Letters of a text; `...` are `more` axes, counted from the last one so that operands agree. */
static bool read_term(const char *text, size_t n, int more, term *out) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == ' ') continue;
        const bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
        if (letter) {
            append(out, text[i]);
        } else if (i + 2 < n && !memcmp(text + i, "...", 3)) {
            for (int k = more; k > 0; k--) append(out, (char)k);
            i += 2;
        } else {
            return false;
        }
    }
    return out->n <= CLV_MAX_RANK;
}

static int letters_in(const char *text, size_t n) {
    int count = 0;
    for (size_t i = 0; i < n; i++) count += text[i] != ' ' && text[i] != '.';
    return count;
}

/** A letter twice in an operand: what lies on the diagonal of both axes. */
static void take_diagonals(clv__onnx_use *use, term *t) {
    for (int i = 0; i < t->n && t->x; i++)
        for (int j = t->n - 1; j > i; j--) {
            if (t->letters[i] != t->letters[j]) continue;
            const clv_shape s = clv_tensor_shape(t->x);
            clv_tensor *one =
                clv_eq(clv__onnx_places(use, s.dims[i], i, t->n), clv__onnx_places(use, s.dims[j], j, t->n));
            t->x = clv_sum(clv_where(one, t->x, clv__onnx_scalar(use, 0, true)), &j, 1, false);
            memmove(t->letters + j, t->letters + j + 1, (size_t)(t->n - j - 1));
            t->n--;
        }
}

/** Sums over what no later term has. */
static void sum_away(term *t, const bool needed[128]) {
    int axes[CLV_MAX_RANK], n = 0, kept = 0;
    for (int i = 0; i < t->n; i++) {
        if (needed[(int)t->letters[i]])
            t->letters[kept++] = t->letters[i];
        else
            axes[n++] = i;
    }
    t->n = kept;
    if (n) t->x = clv_sum(t->x, axes, n, false);
}

/** The axes of t in the order of groups of letters, each group as one: [of each group its numbers
 *  multiplied]. */
static clv_tensor *grouped(const term *t, const term *groups, int n_groups) {
    const clv_shape s = clv_tensor_shape(t->x);
    int axes[CLV_MAX_RANK], n = 0;
    int64_t dims[3] = {1, 1, 1};
    for (int g = 0; g < n_groups; g++)
        for (int i = 0; i < groups[g].n; i++) {
            axes[n] = place_of(t, groups[g].letters[i]);
            dims[g] *= s.dims[axes[n++]];
        }
    return clv__onnx_reshape(clv__onnx_permute(t->x, axes, n), dims, n_groups);
}

/** Two terms as one. `needed` are the letters of the result and of terms to come. */
static bool join(term *a, term *b, const bool needed[128]) {
    term batch = {0}, sum = {0}, left = {0}, right = {0};
    const clv_shape p = clv_tensor_shape(a->x), q = clv_tensor_shape(b->x);
    int64_t size[128] = {0};
    for (int i = 0; i < a->n; i++) {
        const char c = a->letters[i];
        size[(int)c] = p.dims[i];
        append(!has(b, c) ? &left : needed[(int)c] ? &batch : &sum, c);
    }
    for (int i = 0; i < b->n; i++) {
        const char c = b->letters[i];
        if (has(a, c) && size[(int)c] != q.dims[i]) return false;
        size[(int)c] = q.dims[i];
        if (!has(a, c)) append(&right, c);
    }
    clv_tensor *x =
        clv_matmul(grouped(a, (term[]){batch, left, sum}, 3), grouped(b, (term[]){batch, sum, right}, 3));
    term out = batch;
    for (int i = 0; i < left.n; i++) append(&out, left.letters[i]);
    for (int i = 0; i < right.n; i++) append(&out, right.letters[i]);
    int64_t dims[CLV_MAX_RANK];
    if (out.n > CLV_MAX_RANK) return false;
    for (int i = 0; i < out.n; i++) dims[i] = size[(int)out.letters[i]];
    out.x = clv__onnx_reshape(x, dims, out.n);
    *a = out;
    return true;
}

/** The letters of the result where the text does not say them: `...`, then those that stand once, in the
 *  alphabet's order. */
static void implied(const char *text, size_t n, int more, term *out) {
    int count[128] = {0};
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 128) count[(int)text[i]]++;
    for (int k = count['.'] ? more : 0; k > 0; k--) append(out, (char)k);
    for (int c = 'A'; c <= 'z'; c++)
        if (count[c] == 1) append(out, (char)c);
}

/** The texts of the operands and of the result. */
static bool read_terms(clv__onnx_use *use, const clv__onnx_text *text, term *terms, term *result) {
    const char *arrow = NULL, *end = text->data + text->n;
    for (size_t i = 0; i + 1 < text->n && !arrow; i++)
        if (text->data[i] == '-' && text->data[i + 1] == '>') arrow = text->data + i;
    const char *at = text->data, *stop = arrow ? arrow : end;
    int more = 0;
    for (int i = 0; i < use->n_in; i++) {
        const char *comma = memchr(at, ',', (size_t)(stop - at));
        if (!comma != (i + 1 == use->n_in)) return false;
        const size_t n = (size_t)((comma ? comma : stop) - at);
        const int own = clv__onnx_shape(use, i).rank - letters_in(at, n);
        if (memchr(at, '.', n) && own > more) more = own;
        terms[i] = (term){.x = clv__onnx_float(use, i)};
        if (own < 0 || own >= MOST || !read_term(at, n, own, &terms[i])) return false;
        if (terms[i].n != clv__onnx_shape(use, i).rank) return false;
        at = comma ? comma + 1 : stop;
    }
    *result = (term){0};
    if (arrow) return read_term(arrow + 2, (size_t)(end - arrow - 2), more, result);
    implied(text->data, text->n, more, result);
    return true;
}

static void mark(const term *t, bool needed[128]) {
    for (int i = 0; i < t->n; i++) needed[(int)t->letters[i]] = true;
}

static void build_einsum(clv__onnx_use *use) {
    const clv__onnx_attribute *text = clv__onnx_attribute_find(use->node, "equation");
    term terms[MOST], result;
    const int n = use->n_in;
    if (!text || n < 1 || n > MOST || !read_terms(use, &text->s, terms, &result)) {
        clv__onnx_fail(use, CLV_E_VALUE, "its equation does not fit the operands");
        return;
    }
    for (int i = 0; i < n; i++) take_diagonals(use, &terms[i]);
    for (int i = 0; i < n && !clv__onnx_failed(use); i++) {
        bool needed[128] = {0};
        mark(&result, needed);
        for (int k = i + 1; k < n; k++) mark(&terms[k], needed);
        if (i && !join(&terms[0], &terms[i], needed)) {
            clv__onnx_fail(use, CLV_E_SHAPE, "a letter of the equation has two sizes");
            return;
        }
        sum_away(&terms[0], needed);
    }
    int axes[CLV_MAX_RANK];
    for (int i = 0; i < result.n; i++) {
        if (!has(&terms[0], result.letters[i]) || result.n != terms[0].n) {
            clv__onnx_fail(use, CLV_E_VALUE, "its result has a letter that no operand has");
            return;
        }
        axes[i] = place_of(&terms[0], result.letters[i]);
    }
    clv__onnx_give(use, 0, clv__onnx_as_given(use, clv__onnx_permute(terms[0].x, axes, result.n)));
}

const clv__onnx_row clv__onnx_einsum[] = {
    {"Einsum", .build = build_einsum},
    {0},
};
