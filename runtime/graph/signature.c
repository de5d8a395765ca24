// SPDX-License-Identifier: Apache-2.0
#include "graph/signature.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

// ---- types --------------------------------------------------------------------------------------------------

/** A type's parts: `f32|i32[N,*,D]?`. */
typedef struct type {
    const char *like; // "like NAME": the name; else NULL
    const char *dtypes;
    size_t n_dtypes;   // characters
    const char *shape; // behind the bracket; NULL: any shape
    bool optional, list;
} type;

static type type_of(const char *text) {
    type t = {.dtypes = text, .n_dtypes = strcspn(text, "[?.")};
    const size_t n = strlen(text);
    t.optional = n && text[n - 1] == '?';
    t.list = n > 3 && !strcmp(text + n - 3, "...");
    if (!strncmp(text, "like ", 5)) t.like = text + 5;
    if (text[t.n_dtypes] == '[') t.shape = text + t.n_dtypes + 1;
    return t;
}

int clv__inputs_count(const clv_op_value *inputs, int *least, bool *list) {
    int n = 0;
    *least = 0, *list = false;
    for (; inputs && inputs[n].name; n++) {
        const type t = type_of(inputs[n].type);
        *least += !t.optional;
        *list |= t.list;
    }
    return n;
}

uint64_t clv__inputs_optional(const clv_op_value *inputs) {
    uint64_t mask = 0;
    for (int i = 0; inputs && inputs[i].name; i++)
        if (type_of(inputs[i].type).optional) mask |= UINT64_C(1) << i;
    return mask;
}

/** What letters of a use's types stand for. */
enum { MOST_SYMBOLS = 16 };
typedef struct binding {
    struct {
        const char *name;
        size_t n;
        int64_t dim;
        int from; // the input that says so
    } symbols[MOST_SYMBOLS];
    int n_symbols;
    clv_shape star; // the dimensions of `*`
    int star_from;
    bool has_star;
} binding;

/** Its place among the symbols; -1: it stands for nothing yet. */
static int find(const binding *b, const char *name, size_t n) {
    for (int i = 0; i < b->n_symbols; i++)
        if (b->symbols[i].n == n && !memcmp(b->symbols[i].name, name, n)) return i;
    return -1;
}

/** One item between commas; false at the bracket's end. */
static bool next_item(const char **at, const char **item, size_t *n) {
    if (**at == ',') ++*at;
    *item = *at;
    *n = strcspn(*at, ",]");
    *at += *n;
    return *n > 0;
}

static bool is_number(const char *item) {
    return *item >= '0' && *item <= '9';
}

static int64_t number_of(const char *item) {
    int64_t number = 0;
    for (; is_number(item); item++) number = number * 10 + (*item - '0');
    return number;
}

/** How many dimensions the items want; *star: or more. */
static int items_of(const char *shape, bool *star) {
    const char *item;
    size_t n;
    int count = 0;
    *star = false;
    while (next_item(&shape, &item, &n))
        if (*item == '*')
            *star = true;
        else
            count++;
    return count;
}

/** The shape with what is known so far; -1: not known. With `letters`, in which item each dimension is. */
static clv_shape known(const binding *b, const char *shape, int rank, const char **letters) {
    bool star;
    const int items = items_of(shape, &star), run = rank - items;
    clv_shape out = {0};
    const char *item;
    size_t n;
    while (next_item(&shape, &item, &n)) {
        const int at = find(b, item, n);
        for (int d = 0; d < (*item == '*' ? run : 1); d++) {
            if (letters) letters[out.rank] = item;
            if (*item == '*')
                out.dims[out.rank++] = b->has_star && b->star.rank == run ? b->star.dims[d] : -1;
            else
                out.dims[out.rank++] = is_number(item) ? number_of(item) : at >= 0 ? b->symbols[at].dim : -1;
        }
    }
    return out;
}

/** As clv_shape_text, with the letters of what is not known. */
static const char *wanted_text(const clv_shape *shape, const char *const *letters, char *text, size_t bytes) {
    size_t used = (size_t)snprintf(text, bytes, "[");
    for (int d = 0; d < shape->rank && used < bytes; d++) {
        const char *comma = d ? "," : "";
        const int n = (int)strcspn(letters[d], ",]");
        if (shape->dims[d] < 0)
            used += (size_t)snprintf(text + used, bytes - used, "%s%.*s", comma, n, letters[d]);
        else
            used += (size_t)snprintf(text + used, bytes - used, "%s%lld", comma, (long long)shape->dims[d]);
    }
    if (used < bytes) snprintf(text + used, bytes - used, "]");
    return text;
}

/** The row of the signature that an input of a use has: those from `groups.first` on are of each group. */
static int row_of(const clv__op *op, int i) {
    const clv__groups *groups = &op->groups;
    return groups->size && i >= groups->first ? groups->first + (i - groups->first) % groups->size : i;
}

/** Input i is not what its letters say; `from`: the input that says so, or -1. */
static clv_status differs(const clv__op_io *io, int i, const char *name, const char *wanted, int from,
                          clv__error *error) {
    char is[160], other[160];
    clv_shape_text(&io->in[i].shape, is, sizeof is);
    if (from < 0 || from == i) CLV_FAIL(error, CLV_E_SHAPE, "%s is %s, it must be %s", name, is, wanted);
    CLV_FAIL(error, CLV_E_SHAPE, "%s is %s, it must be %s as %s is %s", name, is, wanted,
             io->op->inputs[row_of(io->op, from)].name,
             clv_shape_text(&io->in[from].shape, other, sizeof other));
}

/** Hold a shape against a type's, and keep what its letters stand for. */
static clv_status match(const clv__op_io *io, int i, binding *b, const char *name, const char *shape,
                        clv__error *error) {
    const clv_shape *is = &io->in[i].shape;
    const char *letters[CLV_MAX_RANK], *item;
    char text[160];
    bool star;
    size_t n;
    const int items = items_of(shape, &star), run = is->rank - items;
    if (run < 0 || (run > 0 && !star))
        CLV_FAIL(error, CLV_E_SHAPE, "%s has %d dimension%s, it must have %s%d", name, is->rank,
                 is->rank == 1 ? "" : "s", star ? "at least " : "", items);
    const bool other_star =
        star && b->has_star && b->star.rank != run && items + b->star.rank <= CLV_MAX_RANK;
    const clv_shape wanted = known(b, shape, other_star ? items + b->star.rank : is->rank, letters);
    if (other_star)
        return differs(io, i, name, wanted_text(&wanted, letters, text, sizeof text), b->star_from, error);
    for (int d = 0; d < is->rank; d++) {
        if (wanted.dims[d] < 0 || wanted.dims[d] == is->dims[d]) continue;
        const int at = find(b, letters[d], strcspn(letters[d], ",]"));
        return differs(io, i, name, wanted_text(&wanted, letters, text, sizeof text),
                       *letters[d] == '*' ? b->star_from
                       : at >= 0          ? b->symbols[at].from
                                          : -1,
                       error);
    }
    for (int d = 0; next_item(&shape, &item, &n);) {
        if (*item == '*') {
            if (!b->has_star) b->star_from = i;
            b->has_star = true;
            b->star.rank = run;
            for (int k = 0; k < run; k++) b->star.dims[k] = is->dims[d++];
            continue;
        }
        if (!is_number(item) && *item != '_' && find(b, item, n) < 0 && b->n_symbols < MOST_SYMBOLS) {
            b->symbols[b->n_symbols].name = item;
            b->symbols[b->n_symbols].n = n;
            b->symbols[b->n_symbols].from = i;
            b->symbols[b->n_symbols++].dim = is->dims[d];
        }
        d++;
    }
    return CLV_OK;
}

/** Is the word one of a type's dtypes? */
static bool names(const type *t, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = t->dtypes, *end = at + t->n_dtypes; at < end;) {
        const size_t length = strcspn(at, "|[?.");
        if (length == n && !memcmp(at, word, n)) return true;
        at += length + 1;
    }
    return false;
}

static bool has_dtype(const type *t, clv_dtype dtype) {
    return names(t, "any") || names(t, clv_dtype_name(dtype)) || (dtype == CLV_DTYPE_I32 && names(t, "int"));
}

bool clv__type_casts(const char *text, clv_dtype dtype) {
    const type t = type_of(text);
    const bool integer = !clv__is_float(dtype) && dtype != CLV_DTYPE_BOOL;
    return integer && !has_dtype(&t, dtype) && names(&t, "int");
}

/** The one whose name begins there; NONE: it is of none, as `any`. */
static clv_dtype dtype_at(const char *name) {
    const size_t n = strcspn(name, "|[?.");
    for (clv_dtype dtype = CLV_DTYPE_F32; clv_dtype_bytes(dtype); dtype++)
        if (strlen(clv_dtype_name(dtype)) == n && !memcmp(clv_dtype_name(dtype), name, n)) return dtype;
    return CLV_DTYPE_NONE;
}

/** The input that a type is like; -1: there is none. */
static int input_of(const clv_op_value *inputs, const char *like) {
    const size_t n = strcspn(like, "?.");
    for (int i = 0; inputs[i].name; i++)
        if (strlen(inputs[i].name) == n && !memcmp(inputs[i].name, like, n)) return i;
    return -1;
}

static clv_status check_alike(const clv__op_io *io, int i, const char *name, int like, clv__error *error) {
    const clv__desc *is = &io->in[i], *wanted = &io->in[like];
    if (is->dtype != wanted->dtype)
        CLV_FAIL(error, CLV_E_DTYPE, "%s is %s, it must be %s", name, clv_dtype_name(is->dtype),
                 clv_dtype_name(wanted->dtype));
    char text[160];
    if (clv_shape_equal(&is->shape, &wanted->shape)) return CLV_OK;
    return differs(io, i, name, clv_shape_text(&wanted->shape, text, sizeof text), like, error);
}

static clv_status check_input(const clv__op_io *io, int i, const clv_op_value *input, const char *name,
                              binding *b, clv__error *error) {
    const type t = type_of(input->type);
    if (!clv__has_in(io, i)) {
        if (t.optional) return CLV_OK;
        CLV_FAIL(error, CLV_E_VALUE, "%s is missing", name);
    }
    if (t.like) return check_alike(io, i, name, input_of(io->op->inputs, t.like), error);
    if (!has_dtype(&t, io->in[i].dtype))
        CLV_FAIL(error, CLV_E_DTYPE, "%s is %s, it must be %.*s", name, clv_dtype_name(io->in[i].dtype),
                 (int)t.n_dtypes, t.dtypes);
    return t.shape ? match(io, i, b, name, t.shape, error) : CLV_OK;
}

/** Groups of inputs, each with letters of its own. What may be left out is in all of them, or in none. */
static clv_status check_groups(const clv__op_io *io, const binding *of_all, clv__error *error) {
    const clv__groups *groups = &io->op->groups;
    const int n = io->n_in - groups->first;
    binding b = *of_all;
    if (n < groups->size || n > groups->most * groups->size || n % groups->size)
        CLV_FAIL(error, CLV_E_VALUE,
                 "it takes 1 to %d groups of %d inputs behind the first %d, not %d inputs", groups->most,
                 groups->size, groups->first, n);
    for (int i = groups->first; i < io->n_in; i++) {
        const int row = row_of(io->op, i);
        const clv_op_value *input = &io->op->inputs[row];
        if (row == groups->first) b = *of_all;
        CLV_TRY(check_input(io, i, input, input->name, &b, error));
        if (clv__has_in(io, i) != clv__has_in(io, row))
            CLV_FAIL(error, CLV_E_VALUE, "some groups have %s, and others have none", input->name);
    }
    return CLV_OK;
}

static clv_status check_inputs(const clv__op_io *io, binding *b, clv__error *error) {
    int k = 0;
    for (int i = 0; io->op->inputs[k].name; i++) {
        if (io->op->groups.size && i == io->op->groups.first) return check_groups(io, b, error);
        const clv_op_value *input = &io->op->inputs[k];
        const bool list = type_of(input->type).list;
        char name[64];
        snprintf(name, sizeof name, list ? "%s[%d]" : "%s", input->name, i - k);
        if (!list || i >= io->n_in) k++;
        if (list && i >= io->n_in && i >= k) break;
        CLV_TRY(check_input(io, i, input, name, b, error));
    }
    return CLV_OK;
}

/** Outputs as their types say; what they do not say is NONE, and -1. */
static clv_status make_outputs(clv__op_io *io, const binding *b, clv__error *error) {
    const clv_op_value *outputs = io->op->outputs;
    for (io->n_out = 0; outputs[io->n_out].name; io->n_out++) {
        const type t = type_of(outputs[io->n_out].type);
        clv__desc *out = &io->out[io->n_out];
        if (t.like) {
            *out = io->in[input_of(io->op->inputs, t.like)];
            continue;
        }
        bool star;
        *out = (clv__desc){.dtype = dtype_at(t.dtypes)};
        if (!t.shape) continue;
        const int rank = items_of(t.shape, &star) + (star ? b->star.rank : 0);
        if (rank > CLV_MAX_RANK)
            CLV_FAIL(error, CLV_E_SHAPE, "the result would have %d dimensions, the most is %d", rank,
                     CLV_MAX_RANK);
        out->shape = known(b, t.shape, rank, NULL);
    }
    return CLV_OK;
}

clv_status clv__op_infer(clv__op_io *io, clv__error *error) {
    const clv__op *op = io->op;
    binding b = {0};
    if (op->inputs) CLV_TRY(check_inputs(io, &b, error));
    if (op->attributes && !op->attributes_of_call)
        CLV_TRY(clv__attributes_check(op->attributes, io->attrs, error));
    return op->infer ? op->infer(io, error) : make_outputs(io, &b, error);
}

clv_status clv__inputs_check(const clv__op_io *io, clv__error *error) {
    binding b = {0};
    return check_inputs(io, &b, error);
}

clv_status clv__outputs_of_types(clv__op_io *io, clv__error *error) {
    binding b = {0};
    CLV_TRY(check_inputs(io, &b, error));
    return make_outputs(io, &b, error);
}

clv_status clv__input_shape(const clv__op_io *io, int i, clv_shape *out, clv__error *error) {
    binding b = {0};
    bool star;
    const char *shape = type_of(io->op->inputs[i].type).shape;
    CLV_TRY(check_inputs(io, &b, error));
    const int items = items_of(shape, &star);
    *out = known(&b, shape, items + (star ? b.star.rank : 0), NULL);
    return CLV_OK;
}

clv_status clv__op_outputs_check(const clv__op_io *io, clv__error *error) {
    binding b = {0};
    char text[160];
    CLV_TRY(check_inputs(io, &b, error));
    for (int i = 0; io->op->outputs[i].name; i++) {
        const clv_op_value *output = &io->op->outputs[i];
        const type t = type_of(output->type);
        const int like = t.like ? input_of(io->op->inputs, t.like) : -1;
        if (t.like && like < 0) CLV_FAIL(error, CLV_E_INTERNAL, "there is no input '%s'", t.like);
        const clv__desc *is = &io->out[i], *wanted = t.like ? &io->in[like] : NULL;
        if (i >= io->n_out || (wanted ? is->dtype != wanted->dtype : !has_dtype(&t, is->dtype)) ||
            (wanted && !clv_shape_equal(&is->shape, &wanted->shape)))
            CLV_FAIL(error, CLV_E_INTERNAL, "output %d is %s %s, not %s", i, clv_dtype_name(is->dtype),
                     clv_shape_text(&is->shape, text, sizeof text), output->type);
        if (!t.shape) continue;
        bool star;
        const int items = items_of(t.shape, &star);
        const clv_shape told = known(&b, t.shape, items + (star ? b.star.rank : 0), NULL);
        bool same = told.rank == is->shape.rank;
        for (int d = 0; same && d < told.rank; d++)
            same = told.dims[d] < 0 || told.dims[d] == is->shape.dims[d];
        if (!same)
            CLV_FAIL(error, CLV_E_INTERNAL, "output %d is %s, not %s", i,
                     clv_shape_text(&is->shape, text, sizeof text), output->type);
    }
    return CLV_OK;
}

uint64_t clv__values_halves(const clv_op_value *values, const clv_op_value *inputs) {
    uint64_t mask = 0;
    for (int i = 0; values && values[i].name; i++) {
        type t = type_of(values[i].type);
        while (t.like) t = type_of(inputs[input_of(inputs, t.like)].type);
        if (names(&t, "f16")) mask |= UINT64_C(1) << i;
    }
    return mask;
}

// ---- what a signature may be --------------------------------------------------------------------------------

/** NULL, or what is wrong with a shape; keeps its letters. */
static const char *wrong_shape(const char *shape, binding *letters) {
    const char *item;
    size_t n;
    int stars = 0, items = 0;
    while (next_item(&shape, &item, &n)) {
        const bool number = is_number(item), star = *item == '*', any = *item == '_';
        char name[CLV__VALUE_NAME_BYTES] = "";
        memcpy(name, item, n < sizeof name ? n : 0);
        if (number ? strspn(item, "0123456789") != n : star || any ? n != 1 : !clv__is_value_name(name))
            return "whose brackets hold something else than letters and numbers";
        stars += star, items += !star;
        letters->has_star |= star;
        if (number || star || any || find(letters, item, n) >= 0) continue;
        if (letters->n_symbols == MOST_SYMBOLS) return "which has one letter too many";
        letters->symbols[letters->n_symbols].name = item;
        letters->symbols[letters->n_symbols++].n = n;
    }
    if (*shape != ']') return "whose bracket is not closed";
    if (shape[1] && strcmp(shape + 1, "?") != 0 && strcmp(shape + 1, "...") != 0)
        return "with more behind its bracket";
    return stars > 1 || items > CLV_MAX_RANK ? "which has too many dimensions" : NULL;
}

static bool is_word(const char *at, const char *word) {
    return strcspn(at, "|[?.") == strlen(word) && !strncmp(at, word, strlen(word));
}

/** NULL, or what is wrong with a type of the i-th of `values`. */
static const char *wrong_type(const clv_op_signature *s, const clv_op_value *values, int i,
                              binding *letters) {
    const type t = type_of(values[i].type);
    const bool input = values == s->inputs;
    if (!input && (t.optional || t.list)) return "and an output is neither optional nor a list";
    if (t.list && values[i + 1].name) return "and only the last input can be a list";
    if (t.like) {
        const int k = input_of(s->inputs, t.like);
        return k < 0 || (input && k >= i) || type_of(s->inputs[k].type).optional
                   ? "and no input that is always there has that name before it"
                   : NULL;
    }
    for (size_t at = 0; at < t.n_dtypes; at += strcspn(t.dtypes + at, "|[?.") + 1)
        if (!dtype_at(t.dtypes + at) && !is_word(t.dtypes + at, "any") && !is_word(t.dtypes + at, "int"))
            return "with an unknown dtype";
    if (!t.n_dtypes) return "without a dtype";
    if (names(&t, "f16") && !has_dtype(&t, CLV_DTYPE_F32)) return "and what takes f16 must take f32";
    return t.shape ? wrong_shape(t.shape, letters) : NULL;
}

/** Do the letters of inputs that are always there say all of an output? */
static bool is_determined(const clv_op_signature *s, const type *t) {
    binding sure = {0};
    const char *item;
    size_t n;
    for (int i = 0; s->inputs[i].name; i++) {
        const type input = type_of(s->inputs[i].type);
        if (input.shape && !input.optional) (void)wrong_shape(input.shape, &sure);
    }
    if (t->like) return true;
    if (!t->shape || !dtype_at(t->dtypes)) return false;
    for (const char *shape = t->shape; next_item(&shape, &item, &n);)
        if (*item == '*' ? !sure.has_star : !is_number(item) && find(&sure, item, n) < 0) return false;
    return true;
}

static clv_status valid_values(const clv_op_signature *s, const clv_op_value *values, binding *letters,
                               clv__error *error) {
    const bool input = values == s->inputs;
    const int most = input ? CLV__MAX_IN : CLV__MAX_OUT;
    for (int i = 0; values[i].name; i++) {
        if (i == most)
            CLV_FAIL(error, CLV_E_VALUE, "it has more than %d %s", most, input ? "inputs" : "outputs");
        if (!clv__is_value_name(values[i].name))
            CLV_FAIL(error, CLV_E_VALUE, "an input or output cannot be called '%.100s'", values[i].name);
        bool twice = false;
        for (int k = 0; k < i; k++) twice |= !strcmp(values[k].name, values[i].name);
        for (int k = 0; !input && s->inputs[k].name; k++) twice |= !strcmp(s->inputs[k].name, values[i].name);
        if (twice)
            CLV_FAIL(error, CLV_E_VALUE, "two of its inputs and outputs are called '%s'", values[i].name);
        if (!values[i].type) CLV_FAIL(error, CLV_E_VALUE, "'%s' has no type", values[i].name);
        const char *why = wrong_type(s, values, i, letters);
        if (why)
            CLV_FAIL(error, CLV_E_VALUE, "'%s' has the type '%.100s', %s", values[i].name, values[i].type,
                     why);
    }
    return CLV_OK;
}

clv_status clv__signature_valid(const clv_op_signature *s, bool infers, clv__error *error) {
    binding letters = {0};
    CLV_TRY(valid_values(s, s->inputs, &letters, error));
    CLV_TRY(valid_values(s, s->outputs, &letters, error));
    if (!s->outputs[0].name) CLV_FAIL(error, CLV_E_VALUE, "it has no outputs");
    for (int i = 0; !infers && s->outputs[i].name; i++) {
        const type t = type_of(s->outputs[i].type);
        if (!is_determined(s, &t))
            CLV_FAIL(error, CLV_E_VALUE,
                     "its inputs do not determine its output '%s' (%.100s), and it has no infer function",
                     s->outputs[i].name, s->outputs[i].type);
    }
    return CLV_OK;
}
