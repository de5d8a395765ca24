// SPDX-License-Identifier: Apache-2.0
// Every way that an op says it can be done in parts (clv__op.split), on every sample: the references of the parts, put together,
// are the reference of the whole.
#include <math.h>

#include "check/subject.h"
#include "graph/graph.h"
#include "graph/signature.h"
#include "harness/harness.h"

enum { MOST_PARTS = 3 };

static int n_ways; // that were possible

/** Values of a use's inputs or outputs. */
typedef struct values {
    double *of[CLV__MAX_IN];
} values;

static double *room_for(const clv__desc *desc) {
    double *room = calloc((size_t)clv__numel(desc) + 1, sizeof *room);
    assert_non_null(room);
    return room;
}

static void run(const clv__op_io *io, const values *in, values *out) {
    clv__ref ref = {.io = io};
    for (int i = 0; i < io->n_in; i++) ref.in[i] = in->of[i];
    for (int i = 0; i < io->n_out; i++) ref.out[i] = out->of[i] = room_for(&io->out[i]);
    if (io->op->reference)
        io->op->reference(&ref);
    else // a view
        memcpy(ref.out[0], ref.in[0], (size_t)clv__numel(&io->out[0]) * sizeof(double));
}

static void release(values *of, int n) {
    for (int i = 0; i < n; i++) free(of->of[i]);
}

/** Copy elements [begin, begin + n of the part) of dimension d of the whole to the part, or back. */
static void carry(double *whole, const clv_shape *shape, double *part, const clv_shape *part_shape, int d,
                  int64_t begin, bool back) {
    int64_t outer = 1, inner = 1;
    for (int k = 0; k < d; k++) outer *= shape->dims[k];
    for (int k = d + 1; k < shape->rank; k++) inner *= shape->dims[k];
    const int64_t long_row = shape->dims[d] * inner, row = part_shape->dims[d] * inner;
    for (int64_t o = 0; o < outer; o++) {
        double *there = whole + o * long_row + begin * inner, *here = part + o * row;
        memcpy(back ? there : here, back ? here : there, (size_t)row * sizeof *here);
    }
}

/** One part of the whole use: its io, and its inputs. */
typedef struct part {
    clv__op_io io;
    clv__desc in_desc[CLV__MAX_IN];
    _Alignas(16) char attrs[CLV__ATTRS_BYTES];
    values in;
} part;

/** How far `length` goes in elements of a tensor's dimension. */
static int64_t times(const clv__split *split, const clv_shape *shape, int d, bool from) {
    if (from) return 1;
    assert_int_equal(shape->dims[d] % split->length, 0);
    return shape->dims[d] / split->length;
}

static void make_part(part *p, const clv__op_io *io, const values *in, const clv__split *split, int64_t begin,
                      int64_t end, double *carried) {
    *p = (part){.io = *io};
    if (io->op->attrs_bytes) memcpy(p->attrs, io->attrs, io->op->attrs_bytes);
    memcpy(p->in_desc, io->in, (size_t)io->n_in * sizeof *io->in);
    p->io.in = p->in_desc;
    p->io.attrs = io->op->attrs_bytes ? p->attrs : NULL;
    if (io->op->split_attrs) io->op->split_attrs(io, split, begin, end, p->attrs);
    for (int i = 0; i < io->n_in; i++) {
        const int d = split->in[i];
        const bool from = i == 0 && split->one_for_one;
        if (carried && d == CLV__SPLIT_CARRY) p->in_desc[i] = io->out[0];
        if (!clv__has_in(&p->io, i)) continue;
        if (d >= 0) p->in_desc[i].shape.dims[d] = (end - begin) * times(split, &io->in[i].shape, d, from);
        p->in.of[i] = room_for(&p->io.in[i]);
        if (carried && d == CLV__SPLIT_CARRY)
            p->in.of[i][0] = *carried;
        else if (d >= 0)
            carry(in->of[i], &io->in[i].shape, p->in.of[i], &p->io.in[i].shape, d,
                  (i == 0 ? split->from : 0) + begin * times(split, &io->in[i].shape, d, from), false);
        else
            memcpy(p->in.of[i], in->of[i], (size_t)clv__numel(&io->in[i]) * sizeof(double));
        for (int64_t k = 0; d == CLV__SPLIT_SHARE && k < clv__numel(&io->in[i]); k++)
            p->in.of[i][k] *= (double)(end - begin) / (double)split->length;
    }
    // the shape rule has to say of the parts what the split does
    clv__error error = {0};
    if (clv__op_infer(&p->io, &error) != CLV_OK)
        fail_msg("%s: a part is refused: %s", io->op->name, error.text);
}

/** Put a part's results, and inputs that it changed, where they belong. */
static void put_together(const part *p, const clv__op_io *io, values *in, const values *got, values *all,
                         const clv__split *split, int64_t begin, int64_t end) {
    const double share = (double)(end - begin) / (double)split->length;
    for (int i = 0; i < io->n_out; i++) {
        const int d = split->out[i];
        const int64_t n = clv__numel(&p->io.out[i]);
        assert_true(d != CLV__SPLIT_WHOLE && d != CLV__SPLIT_SHARE);
        if (d >= 0) {
            clv_shape want = io->out[i].shape;
            want.dims[d] = (end - begin) * times(split, &want, d, false);
            assert_true(clv_shape_equal(&want, &p->io.out[i].shape));
            carry(all->of[i], &io->out[i].shape, got->of[i], &want, d,
                  begin * times(split, &io->out[i].shape, d, false), true);
            continue;
        }
        assert_true(clv_shape_equal(&io->out[i].shape, &p->io.out[i].shape));
        for (int64_t k = 0; k < n; k++) {
            if (d == CLV__SPLIT_CARRY) all->of[i][k] = 0;
            all->of[i][k] += d == CLV__SPLIT_MEAN ? share * got->of[i][k] : got->of[i][k];
        }
    }
    for (int i = 0; i < io->n_in; i++) {
        if (!(io->op->mutates >> i & 1) || !clv__has_in(io, i)) continue;
        assert_true(split->in[i] >= 0); // each part changes its own
        carry(in->of[i], &io->in[i].shape, p->in.of[i], &p->io.in[i].shape, split->in[i],
              begin * times(split, &io->in[i].shape, split->in[i], false), true);
    }
}

static void same(const char *op, const char *label, int way, const char *what, const double *a,
                 const double *b, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const double apart = fabs(a[k] - b[k]), scale = 1 + fabs(a[k]);
        if (apart <= 1e-9 * scale || (isnan(a[k]) && isnan(b[k])) || a[k] == b[k]) continue;
        fail_msg("%s, '%s', way %d: %s [%lld] is %.15g whole and %.15g in parts", op, label, way, what,
                 (long long)k, a[k], b[k]);
    }
}

static void try_way(const clv__op_io *io, const clv__sample *sample, const values *start, int way,
                    const clv__split *split) {
    values whole_in = {0}, in = {0}, whole = {0}, all = {0};
    for (int i = 0; i < io->n_in; i++) {
        if (!clv__has_in(io, i)) continue;
        const size_t bytes = (size_t)clv__numel(&io->in[i]) * sizeof(double);
        memcpy(whole_in.of[i] = room_for(&io->in[i]), start->of[i], bytes);
        memcpy(in.of[i] = room_for(&io->in[i]), start->of[i], bytes);
    }
    for (int i = 0; i < io->n_out; i++) all.of[i] = room_for(&io->out[i]);
    run(io, &whole_in, &whole);
    const int64_t n = split->length < MOST_PARTS ? split->length : MOST_PARTS;
    double *carried = NULL, last = 0;
    for (int64_t k = 0, begin = 0, end; k < n; k++, begin = end) {
        end = k + 1 == n ? split->length : begin + (split->length - begin) / (n - k);
        part p;
        values got = {0};
        make_part(&p, io, start, split, begin, end, carried);
        run(&p.io, &p.in, &got);
        put_together(&p, io, &in, &got, &all, split, begin, end);
        if (io->n_out && clv__numel(&p.io.out[0])) last = got.of[0][0];
        carried = &last;
        release(&got, io->n_out);
        release(&p.in, io->n_in);
    }
    for (int i = 0; i < io->n_out; i++)
        same(io->op->name, sample->label, way, "output", whole.of[i], all.of[i], clv__numel(&io->out[i]));
    for (int i = 0; i < io->n_in; i++)
        if (io->op->mutates >> i & 1 && clv__has_in(io, i))
            same(io->op->name, sample->label, way, "input", whole_in.of[i], in.of[i], clv__numel(&io->in[i]));
    release(&whole, io->n_out);
    release(&all, io->n_out);
    release(&whole_in, io->n_in);
    release(&in, io->n_in);
    n_ways++;
}

enum { MOST_ELEMENTS = 1 << 18 }; // larger samples take longer and say no more

static void try_sample(const clv__op *op, const clv__sample *sample, int number) {
    clv__op_io io = {.op = op, .n_in = sample->n_in, .in = sample->in};
    if (op->attrs_bytes) io.attrs = sample->attrs;
    int64_t n = 0;
    for (int i = 0; i < io.n_in; i++) n += clv__has_in(&io, i) ? clv__numel(&io.in[i]) : 0;
    clv__error error = {0};
    assert_status(clv__op_infer(&io, &error), CLV_OK, NULL);
    for (int i = 0; i < io.n_out; i++) n += clv__numel(&io.out[i]);
    if (n > MOST_ELEMENTS) return;
    values start = {0};
    for (int i = 0; i < io.n_in; i++) {
        if (!clv__has_in(&io, i)) continue;
        start.of[i] = room_for(&io.in[i]);
        clv__fill_values(&sample->fill[i], &io.in[i], clv__test_seed(), (uint64_t)(number * 64 + i),
                         start.of[i]);
    }
    for (int way = 0;; way++) {
        clv__split split = {.length = 0};
        memset(split.in, CLV__SPLIT_WHOLE, sizeof split.in);
        memset(split.out, CLV__SPLIT_WHOLE, sizeof split.out);
        if (!op->split(&io, way, &split)) break;
        if (split.length > 1) try_way(&io, sample, &start, way, &split);
    }
    release(&start, io.n_in);
}

TEST(parts_are_the_whole) {
    for (const clv__op *const *op = clv__ops; *op; op++) {
        if (!(*op)->split) continue;
        const int before = n_ways;
        for (int i = 0;; i++) {
            clv__sample sample = {.n_in = 0};
            if (!clv__op_sample(*op, i, &sample)) break;
            try_sample(*op, &sample, i);
        }
        if (n_ways == before) fail_msg("%s: no sample can be done in parts", (*op)->name);
    }
    print_message("%d ways\n", n_ways);
}

/** Those that have no use for it: their tensors are a few numbers, or one for each channel. LAMB's norms are of the whole. */
TEST(all_but_a_few_can_be_split) {
    for (const clv__op *const *op = clv__ops; *op; op++) {
        const char *name = (*op)->name;
        const bool small = strcmp(name, "clip_scale") == 0 || strcmp(name, "scaler_step") == 0 ||
                           strcmp(name, "batch_norm_update") == 0 || strcmp(name, "lamb_update") == 0;
        if (!(*op)->split != small) fail_msg("%s has %s split", name, small ? "a" : "no");
    }
}

TEST_MAIN(NULL, NULL)
