// SPDX-License-Identifier: Apache-2.0
// The attributes of an op as data (graph/signature.h): what a structure says of them and the other way round, defaults, bounds, the
// arguments of a call by name, and what a list of them may be.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "graph/graph.h"
#include "graph/signature.h"

// ---- in a structure -----------------------------------------------------------------------------------------

static bool is_shape(const clv_op_attribute *list) {
    return list->bytes == sizeof(clv_shape);
}

/** How many numbers a list may have: a shape, or a structure like clv__ints. */
static int room_of(const clv_op_attribute *list) {
    return is_shape(list) ? CLV_MAX_RANK : (int)(list->bytes / sizeof(int)) - 1;
}

void clv__attribute_get(const clv_op_attribute *a, const void *attrs, clv__attribute_value *out) {
    const char *at = (const char *)attrs + a->at;
    *out = (clv__attribute_value){0};
    switch (a->kind) {
    case CLV_ATTRIBUTE_NUMBER:
        out->number = a->bytes == sizeof(double) ? *(const double *)at : (double)*(const float *)at;
        break;
    case CLV_ATTRIBUTE_INT:
    case CLV_ATTRIBUTE_DTYPE:
    case CLV_ATTRIBUTE_BOOL:
        out->number = a->bytes == 1   ? *(const bool *)at
                      : a->bytes == 8 ? (double)*(const int64_t *)at
                                      : *(const int32_t *)at;
        break;
    case CLV_ATTRIBUTE_PAIR:
        out->n = 2;
        for (int i = 0; i < 2; i++) out->list[i] = ((const int32_t *)at)[i];
        break;
    case CLV_ATTRIBUTE_LIST:
        out->n = *(const int *)at; // of a shape: its rank
        for (int i = 0; i < out->n && i < room_of(a); i++)
            out->list[i] =
                is_shape(a) ? ((const clv_shape *)at)->dims[i] : ((const int *)(const void *)at)[1 + i];
        break;
    case CLV_ATTRIBUTE_TEXT: out->text = a->bytes == CLV__TEXT_BYTES ? at : *(const char *const *)at; break;
    }
}

void clv__attribute_set(const clv_op_attribute *a, void *attrs, const clv__attribute_value *value) {
    char *at = (char *)attrs + a->at;
    switch (a->kind) {
    case CLV_ATTRIBUTE_NUMBER:
        if (a->bytes == sizeof(double))
            *(double *)at = value->number;
        else
            *(float *)at = (float)value->number;
        break;
    case CLV_ATTRIBUTE_INT:
    case CLV_ATTRIBUTE_DTYPE:
    case CLV_ATTRIBUTE_BOOL:
        if (a->bytes == 1) *(bool *)at = value->number != 0;
        if (a->bytes == 4) *(int32_t *)at = (int32_t)value->number;
        if (a->bytes == 8) *(int64_t *)at = (int64_t)value->number;
        break;
    case CLV_ATTRIBUTE_PAIR: // one number is for both
        for (int i = 0; i < 2; i++)
            ((int32_t *)at)[i] = (int32_t)(value->n > i ? value->list[i]
                                           : value->n   ? value->list[0]
                                                        : value->number);
        break;
    case CLV_ATTRIBUTE_LIST:
        memset(at, 0, a->bytes); // attributes are compared by their bytes
        *(int *)at = value->n;
        for (int i = 0; i < value->n && i < room_of(a); i++)
            if (is_shape(a))
                ((clv_shape *)at)->dims[i] = value->list[i];
            else
                ((int *)(void *)at)[1 + i] = (int)value->list[i];
        break;
    case CLV_ATTRIBUTE_TEXT:
        if (a->bytes == CLV__TEXT_BYTES)
            strncpy(at, value->text, CLV__TEXT_BYTES - 1);
        else
            *(const char **)at = value->text;
        break;
    }
}

/** Whole numbers with commas between them; false: they are none, or too many. */
static bool read_numbers(const char *text, clv__attribute_value *out) {
    out->n = 0;
    while (*text) {
        char *end;
        if (out->n == CLV_MAX_RANK) return false;
        const double number = clv__number_read(text, &end);
        if (end == text || number != (int32_t)number || (*end && *end != ',')) return false;
        out->list[out->n++] = (int64_t)number;
        text = *end ? end + 1 : end;
    }
    return true;
}

/** The default of an attribute, those before it being theirs; false: its text is none. */
static bool default_of(const clv_op_attribute *list, int i, const void *attrs, clv__attribute_value *out) {
    const clv_op_attribute *a = &list[i];
    char *end;
    *out = (clv__attribute_value){.text = a->fallback};
    if (a->kind == CLV_ATTRIBUTE_TEXT) return true;
    for (int k = 0; k < i; k++) // the value of one before
        if (!strcmp(list[k].name, a->fallback)) {
            clv__attribute_get(&list[k], attrs, out);
            return list[k].kind == a->kind;
        }
    if (a->kind == CLV_ATTRIBUTE_PAIR || a->kind == CLV_ATTRIBUTE_LIST) return read_numbers(a->fallback, out);
    out->number = clv__number_read(a->fallback, &end);
    return end != a->fallback && !*end;
}

void clv__attributes_default(const clv_op_attribute *list, void *attrs) {
    clv__attribute_value value;
    for (int i = 0; list && list[i].name; i++)
        if (list[i].fallback && default_of(list, i, attrs, &value))
            clv__attribute_set(&list[i], attrs, &value);
}

static clv_status check_number(const clv_op_attribute *a, double value, clv__error *error) {
    if (isnan(value) && (a->has_least || a->has_most))
        CLV_FAIL(error, CLV_E_VALUE, "%s is not a number", a->name);
    const bool low = a->has_least && (a->above ? value <= a->least : value < a->least);
    const bool high = a->has_most && (a->below ? value >= a->most : value > a->most);
    if (!low && !high) return CLV_OK;
    const char *how = low ? (a->above ? "above" : "at least") : a->below ? "below" : "at most";
    const double bound = low ? a->least : a->most;
    if (a->kind == CLV_ATTRIBUTE_NUMBER)
        CLV_FAIL(error, CLV_E_VALUE, "%s is %g, it must be %s %g", a->name, value, how, bound);
    CLV_FAIL(error, CLV_E_VALUE, "%s is %.0f, it must be %s %.0f", a->name, value, how, bound);
}

clv_status clv__attributes_check(const clv_op_attribute *list, const void *attrs, clv__error *error) {
    for (int i = 0; list && list[i].name; i++) {
        clv__attribute_value value;
        if (list[i].kind == CLV_ATTRIBUTE_TEXT || !(list[i].has_least || list[i].has_most)) continue;
        clv__attribute_get(&list[i], attrs, &value);
        const bool several = list[i].kind == CLV_ATTRIBUTE_PAIR || list[i].kind == CLV_ATTRIBUTE_LIST;
        if (!several) CLV_TRY(check_number(&list[i], value.number, error));
        for (int k = 0; several && k < value.n; k++)
            CLV_TRY(check_number(&list[i], (double)value.list[k], error));
    }
    return CLV_OK;
}

const clv__op *clv__call_of(const clv__node *node, void *room, const void **attrs) {
    const clv__op *op = node->io.op;
    *attrs = node->attrs;
    if (op->call_of) op = op->call_of(node, room);
    if (op->attributes_of_call) *attrs = room;
    return op;
}

// ---- of a call ----------------------------------------------------------------------------------------------

/** NULL, or what is wrong with a list of at most `most` whole numbers. What is wrong with a shape its op says. */
static const char *read_list(const clv_op_argument *given, int most, bool shape, clv__attribute_value *out) {
    out->n = given->n;
    if (shape && (out->n < 0 || out->n > most)) return NULL;
    if (out->n < 0 || out->n > most || (out->n && !given->list)) return "is a list that is too long, or NULL";
    for (int i = 0; i < out->n; i++) {
        out->list[i] = given->list[i];
        if (!shape && given->list[i] != (int32_t)given->list[i]) return "holds a number that is too large";
    }
    return NULL;
}

/** NULL, or what is wrong with it. */
static const char *read_value(const clv_op_attribute *a, const clv_op_argument *given,
                              clv__attribute_value *out) {
    const clv_attribute_kind kind = a->kind;
    *out = (clv__attribute_value){.number = given->number, .text = given->text};
    if (kind == CLV_ATTRIBUTE_TEXT && a->bytes == CLV__TEXT_BYTES && out->text &&
        strlen(out->text) >= CLV__TEXT_BYTES)
        return "is a text that is too long: 31 bytes at most";
    if (kind == CLV_ATTRIBUTE_TEXT) return out->text ? NULL : "wants a text";
    if (kind == CLV_ATTRIBUTE_NUMBER) return NULL;
    if (kind == CLV_ATTRIBUTE_LIST) return read_list(given, room_of(a), is_shape(a), out);
    if (kind == CLV_ATTRIBUTE_PAIR && given->n) return read_list(given, 2, false, out);
    if (out->number != floor(out->number)) return "wants a whole number"; // NaN, too
    if (kind == CLV_ATTRIBUTE_BOOL) return out->number == 0 || out->number == 1 ? NULL : "is 0 or 1";
    const double most = a->bytes < sizeof(int64_t) ? INT32_MAX : 9007199254740992.0; // all that a double counts
    return fabs(out->number) > most ? "is too large" : NULL;
}

/** "axis, keepdim", for a sentence. */
static const char *names_of(const clv_op_attribute *list, char *text, size_t bytes) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; list && list[i].name && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", list[i].name);
    return *text ? text : "none";
}

/** The argument of that name; `twice`: and another one. NULL: it is not given. */
static const clv_op_argument *argument_of(const clv_op_argument *arguments, int n, const char *name,
                                          bool *twice) {
    const clv_op_argument *found = NULL;
    *twice = false;
    for (int i = 0; i < n; i++) {
        if (!arguments[i].name || strcmp(arguments[i].name, name) != 0) continue;
        *twice = found != NULL;
        found = &arguments[i];
    }
    return found;
}

/** One attribute: as it is given, or its default, in which those before it are what they were made. */
static clv_status read_argument(const char *op, const clv_op_attribute *list, int k,
                                const clv_op_argument *arguments, int n, void *attrs, clv__error *error) {
    bool twice;
    clv__attribute_value value;
    const clv_op_argument *given = argument_of(arguments, n, list[k].name, &twice);
    if (!given && !list[k].fallback) CLV_FAIL(error, CLV_E_VALUE, "%s wants '%s'", op, list[k].name);
    if (!given) {
        if (default_of(list, k, attrs, &value)) clv__attribute_set(&list[k], attrs, &value);
        return CLV_OK;
    }
    const char *why = twice ? "is given twice" : read_value(&list[k], given, &value);
    if (why) CLV_FAIL(error, CLV_E_VALUE, "%s: '%s' %s", op, list[k].name, why);
    clv__attribute_set(&list[k], attrs, &value);
    return CLV_OK;
}

clv_status clv__arguments_read(const char *op, const clv_op_attribute *list, const clv_op_argument *arguments,
                               int n, void *attrs, clv__error *error) {
    for (int k = 0; list && list[k].name; k++)
        CLV_TRY(read_argument(op, list, k, arguments, n, attrs, error));
    for (int i = 0; i < n; i++) {
        bool known = false;
        char text[512];
        for (int k = 0; list && list[k].name && arguments[i].name; k++)
            known |= !strcmp(arguments[i].name, list[k].name);
        if (!known)
            CLV_FAIL(error, CLV_E_NOT_FOUND, "%s has no attribute '%.100s'; it has: %s", op,
                     arguments[i].name ? arguments[i].name : "", names_of(list, text, sizeof text));
    }
    return CLV_OK;
}

int clv__arguments_of(const clv_op_attribute *list, const void *attrs, clv_op_argument *out,
                      int64_t (*lists)[CLV_MAX_RANK]) {
    int n = 0;
    for (; list && list[n].name && n < CLV_NODE_ARGUMENTS; n++) {
        clv__attribute_value value;
        clv__attribute_get(&list[n], attrs, &value);
        memcpy(lists[n], value.list, sizeof lists[n]);
        out[n] = (clv_op_argument){list[n].name, value.number, lists[n], value.n, value.text};
    }
    return n;
}

// ---- what a list may be -------------------------------------------------------------------------------------

bool clv__is_value_name(const char *name) {
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const size_t n = strspn(name, letters);
    return n > 0 && n < CLV__VALUE_NAME_BYTES && !name[n] && !(*name >= '0' && *name <= '9');
}

size_t clv__attributes_place(clv_op_attribute *list) {
    static const size_t bytes[] = {
        [CLV_ATTRIBUTE_NUMBER] = sizeof(double),    [CLV_ATTRIBUTE_INT] = sizeof(int32_t),
        [CLV_ATTRIBUTE_BOOL] = sizeof(int32_t),     [CLV_ATTRIBUTE_DTYPE] = sizeof(int32_t),
        [CLV_ATTRIBUTE_PAIR] = 2 * sizeof(int32_t), [CLV_ATTRIBUTE_LIST] = sizeof(clv__ints),
        [CLV_ATTRIBUTE_TEXT] = CLV__TEXT_BYTES};
    size_t end = 0;
    for (; list->name; list++) {
        if (list->kind == CLV_ATTRIBUTE_NUMBER)
            end = (end + sizeof(double) - 1) / sizeof(double) * sizeof(double);
        list->at = end;
        list->bytes = bytes[list->kind];
        end += list->bytes;
    }
    return end;
}

clv_status clv__attributes_valid(const clv_op_attribute *list, clv__error *error) {
    for (int i = 0; list && list[i].name; i++) {
        const char *name = list[i].name;
        if (i == CLV_NODE_ARGUMENTS)
            CLV_FAIL(error, CLV_E_VALUE, "it has more than %d attributes", CLV_NODE_ARGUMENTS);
        if (!clv__is_value_name(name))
            CLV_FAIL(error, CLV_E_VALUE, "an attribute cannot be called '%.100s'", name);
        for (int k = 0; k < i; k++)
            if (!strcmp(list[k].name, name)) CLV_FAIL(error, CLV_E_VALUE, "it has two attributes '%s'", name);
        if (list[i].kind < CLV_ATTRIBUTE_NUMBER || list[i].kind > CLV_ATTRIBUTE_TEXT)
            CLV_FAIL(error, CLV_E_VALUE, "attribute '%s' is of an unknown kind (%d)", name,
                     (int)list[i].kind);
    }
    return CLV_OK;
}

clv_status clv__attributes_valid_defaults(const clv_op_attribute *list, void *attrs, clv__error *error) {
    for (int i = 0; list && list[i].name; i++) {
        clv__attribute_value value;
        if (!list[i].fallback) continue;
        if (!default_of(list, i, attrs, &value) ||
            (list[i].bytes == CLV__TEXT_BYTES && strlen(list[i].fallback) >= CLV__TEXT_BYTES))
            CLV_FAIL(error, CLV_E_VALUE, "attribute '%s' cannot be '%.100s' by default", list[i].name,
                     list[i].fallback);
        clv__attribute_set(&list[i], attrs, &value);
    }
    return CLV_OK;
}
