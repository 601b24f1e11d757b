/* Moving elements to and from places that index tensors name.
 *
 * gather, scatter, index_select, index_add, take, put, embedding and advanced
 * indexing are one walk over an iteration space in which element `at` of the
 * target is
 *
 *     sum over dimensions of position * target stride
 *   + sum over index tensors of index[position] * index stride
 *
 * and its partner, the value, has strides of its own.  The launcher writes the
 * operator down as such a plan:
 *
 *     p: target, value, index 0, index 1, ...   (indices are int64)
 *     q: dims, count, flags, size[dims], target stride[dims], value stride[dims],
 *        then for each index: extent, stride, numel, step[dims]
 *
 * An index addresses `extent` places `stride` apart in the target; its numel
 * values are dense, and step says how they are repeated over the dimensions.
 * Flag 1: negative indices count from the end.  Flag 2: the target is fresh
 * memory, which may be left half-written.  All strides are in elements.
 *
 * Returns 0, or 1 + the number of an index tensor that points outside; then the
 * target is as it was, unless it is fresh.
 *
 * Where two positions name one target, the later one comes later, whatever the
 * number of threads: threads share out dimensions that never meet in the target,
 * or failing that each owns a range of the first index.
 * FB_SETS: baseline avx2
 *
 * FB_SETS: baseline avx2 */
#include "flambeau.h"
#include "half.h"

enum { DIMS = 66, INDICES = 64, BLOCK = 256, WRAP = 1, FRESH = 2 };

typedef struct {
    const i64 *data;
    i64 extent, stride, numel;
    i64 step[DIMS];
} indexer;

typedef struct {
    int dims, count, flags;
    i64 esize;
    i64 size[DIMS], target[DIMS], value[DIMS];
    indexer index[INDICES];
} plan;

/* What a mover works on: n rows, row k at element at[k] of the target and at
 * element to[k] of the value, which is element k if linear; the steps are those
 * inside a row. */
typedef struct {
    i64 n, row, target_step, value_step;
    bool linear;
    const i64 *at, *to;
    char *target, *value;
} block;
typedef void (*mover)(const block *b);

/* The part of the walk that one thread does: positions first..last of dimension
 * `dim`, and of these the ones whose first index lies in low..high. */
typedef struct {
    int dim;
    i64 first, last;
    bool owner;
    i64 low, high;
} share;

/* ------------------------------------------------------------------ plans */

static bool mergeable(const plan *g, int outer, int inner) {
    i64 n = g->size[inner];
    if (g->target[outer] != g->target[inner] * n || g->value[outer] != g->value[inner] * n) return false;
    for (int k = 0; k < g->count; k++)
        if (g->index[k].step[outer] != g->index[k].step[inner] * n) return false;
    return true;
}

static void move_dim(plan *g, int to, int from) {
    g->size[to] = g->size[from];
    g->target[to] = g->target[from];
    g->value[to] = g->value[from];
    for (int k = 0; k < g->count; k++) g->index[k].step[to] = g->index[k].step[from];
}

static void unit_dim(plan *g, int dim) {
    g->size[dim] = 1;
    g->target[dim] = g->value[dim] = 0;
    for (int k = 0; k < g->count; k++) g->index[k].step[dim] = 0;
}

/* Reads the plan, drops dimensions of size 1 and merges what can be merged, so
 * that the last dimension is a row (no index varies along it, maybe of size 1)
 * and there is one before it.  Returns the number of positions. */
static i64 read_plan(plan *g, void *const *p, const i64 *q) {
    int dims = (int)q[0];
    g->count = (int)q[1];
    g->flags = (int)q[2];
    const i64 *size = q + 3, *at = size + 3 * dims;
    for (int k = 0; k < g->count; k++, at += 3 + dims) {
        indexer *x = &g->index[k];
        x->data = p[2 + k];
        x->extent = at[0];
        x->stride = at[1];
        x->numel = at[2];
    }
    i64 total = 1;
    g->dims = 0;
    for (int d = 0; d < dims; d++) {
        total *= size[d];
        if (size[d] == 1) continue;
        int e = g->dims++;
        g->size[e] = size[d];
        g->target[e] = size[dims + d];
        g->value[e] = size[2 * dims + d];
        for (int k = 0; k < g->count; k++) g->index[k].step[e] = size[3 * dims + k * (3 + dims) + 3 + d];
        if (e && mergeable(g, e - 1, e)) {
            i64 n = g->size[e - 1];
            move_dim(g, e - 1, e);
            g->size[e - 1] *= n;
            g->dims--;
        }
    }
    bool row = g->dims > 0;
    for (int k = 0; k < g->count && row; k++) row = g->index[k].step[g->dims - 1] == 0;
    if (!row) unit_dim(g, g->dims++);
    if (g->dims < 2) {
        move_dim(g, 1, 0);
        unit_dim(g, 0);
        g->dims = 2;
    }
    return total;
}

/* ------------------------------------------------------------------- walk */

/* Positions along the middle dimension, in elements: j * step for j in a block. */
typedef struct { i64 target[BLOCK], value[BLOCK]; } ramps;

#define EACH_INDEX(begin, value, product) \
    for (i64 j = 0; j < n; j++) { \
        i64 v = value; \
        v += v < 0 ? around : 0; \
        bad |= (uint64_t)v | ((uint64_t)(extent - 1) - (uint64_t)v); \
        at[j] = begin + product; \
    }
/* A 32-bit multiplication where that is enough: vector units have no 64-bit one. */
#define LOCATE(begin) \
    if (step == 1 && stride == 1) EACH_INDEX(begin, i[j], v) \
    else if (step == 1 && narrow) EACH_INDEX(begin, i[j], (i64)((uint64_t)(uint32_t)v * (uint32_t)stride)) \
    else EACH_INDEX(begin, i[j * step], v * stride)

/* Fills at[] and, for an owner, to[] for n positions of the middle dimension.
 * Returns 1 + the number of the first index that is out of range, or 0. */
static i64 locate(const plan *g, const i64 *const *data, i64 n, i64 target, const ramps *ramp, const share *s,
                  i64 *restrict at, i64 *restrict to, i64 *kept) {
    int mid = g->dims - 2;
    *kept = n;
    if (!g->count) for (i64 j = 0; j < n; j++) at[j] = target + ramp->target[j];
    for (int k = 0; k < g->count; k++) {
        const indexer *x = &g->index[k];
        const i64 *restrict i = data[k];
        i64 step = x->step[mid], extent = x->extent, stride = x->stride, around = g->flags & WRAP ? extent : 0;
        bool narrow = extent <= INT32_MAX && stride >= 0 && stride <= INT32_MAX;
        uint64_t bad = 0;
        if (k) { LOCATE(at[j]) }
        else { LOCATE(target + ramp->target[j]) }
        if (bad >> 63) return 1 + k;
    }
    if (s->owner) {
        const indexer *x = &g->index[0];
        i64 count = 0, step = x->step[mid], low = s->low, high = s->high;
        for (i64 j = 0; j < n; j++) {
            i64 v = data[0][j * step];
            v += v < 0 ? x->extent : 0;
            at[count] = at[j];
            to[count] = ramp->value[j];
            count += v >= low && v < high;
        }
        *kept = count;
    }
    return 0;
}

/* Whether all indices lie in 0 ... extent - 1, so that they can be used as they are. */
static bool plain(i64 n, const i64 *i, i64 extent) {
    uint64_t bad = 0;
    for (i64 j = 0; j < n; j++) bad |= (uint64_t)i[j] | ((uint64_t)(extent - 1) - (uint64_t)i[j]);
    return !(bad >> 63);
}

static i64 walk(const plan *g, const share *s, char *target, char *value, mover move) {
    int mid = g->dims - 2;
    i64 first[DIMS], last[DIMS], position[DIMS], at[BLOCK], to[BLOCK], esize = g->esize;
    for (int d = 0; d < g->dims; d++) {
        first[d] = 0;
        last[d] = g->size[d];
    }
    first[s->dim] = s->first;
    last[s->dim] = s->last;
    ramps ramp;
    for (i64 j = 0; j < BLOCK && j < last[mid] - first[mid]; j++) {
        ramp.target[j] = j * g->target[mid];
        ramp.value[j] = j * g->value[mid];
    }
    for (int d = 0; d < g->dims; d++) {
        if (first[d] >= last[d]) return 0;
        position[d] = first[d];
    }
    i64 row_first = first[mid + 1];
    block b = {.row = last[mid + 1] - row_first, .target_step = g->target[mid + 1], .value_step = g->value[mid + 1],
               .linear = !s->owner && g->value[mid] == 1,
               .at = at, .to = s->owner ? to : ramp.value, .target = target};
    const i64 *data[INDICES];
    /* Often the indices are the places themselves. */
    bool direct = g->count == 1 && !s->owner && g->target[mid] == 0 && g->index[0].stride == 1 && g->index[0].step[mid] == 1;
    for (;;) {
        i64 from = row_first * b.target_step, into = row_first * b.value_step;
        for (int d = 0; d < mid; d++) {
            from += position[d] * g->target[d];
            into += position[d] * g->value[d];
        }
        for (i64 j = first[mid]; j < last[mid]; j += BLOCK) {
            i64 n = last[mid] - j < BLOCK ? last[mid] - j : BLOCK;
            for (int k = 0; k < g->count; k++) {
                data[k] = g->index[k].data + j * g->index[k].step[mid];
                for (int d = 0; d < mid; d++) data[k] += position[d] * g->index[k].step[d];
            }
            if (direct && plain(n, data[0], g->index[0].extent)) {
                b.n = n;
                b.at = data[0];
                b.target = target + from * esize;
            } else {
                i64 bad = locate(g, data, n, from + j * g->target[mid], &ramp, s, at, to, &b.n);
                if (bad) return bad;
                b.at = at;
                b.target = target;
            }
            b.value = value + (into + j * g->value[mid]) * esize;
            move(&b);
        }
        int d = mid - 1;
        for (; d >= 0; d--) {
            if (++position[d] < last[d]) break;
            position[d] = first[d];
        }
        if (d < 0) return 0;
    }
}

/* The dimension to share out: the first that gives every thread enough, else
 * the largest.  With `disjoint`, only one whose positions never meet. */
static int split(const plan *g, bool disjoint) {
    int best = -1;
    for (int d = 0; d < g->dims; d++) {
        if (disjoint && g->target[d] == 0) continue;
        if (g->size[d] >= 8 * fb_threads) return d;
        if (best < 0 || g->size[d] > g->size[best]) best = d;
    }
    return best;
}

static i64 run(const plan *g, i64 total, char *target, char *value, mover move, int dim, bool owner) {
    i64 extent = dim < 0 ? 0 : owner ? g->index[0].extent : g->size[dim];
    if (fb_threads == 1 || total < FB_GRAIN || extent < 2) {
        share whole = {.dim = 0, .first = 0, .last = g->size[0]};
        return walk(g, &whole, target, value, move);
    }
    i64 bad = 0;
#pragma omp parallel for schedule(static) num_threads(fb_threads) reduction(max : bad)
    for (int t = 0; t < fb_threads; t++) {
        i64 low = extent * t / fb_threads, high = extent * (t + 1) / fb_threads;
        share part = {.dim = dim, .first = low, .last = high};
        if (owner) part = (share){.dim = 0, .first = 0, .last = g->size[0], .owner = true, .low = low, .high = high};
        i64 found = walk(g, &part, target, value, move);
        bad = found > bad ? found : bad;
    }
    return bad;
}

static i64 get(void *const *p, const i64 *q, i64 esize, mover move) {
    plan g;
    g.esize = esize;
    i64 total = read_plan(&g, p, q);
    return total ? run(&g, total, p[0], p[1], move, split(&g, false), false) : 0;
}

/* Has its highest bit set if one of i[first] ... i[last - 1] is out of range. */
static uint64_t outside(i64 first, i64 last, const i64 *i, i64 extent, i64 around) {
    uint64_t bad = 0;
    for (i64 j = first; j < last; j++) {
        i64 v = i[j] + (i[j] < 0 ? around : 0);
        bad |= (uint64_t)v | ((uint64_t)(extent - 1) - (uint64_t)v);
    }
    return bad;
}

static i64 check(const plan *g) {
    for (int k = 0; k < g->count; k++) {
        const indexer *x = &g->index[k];
        const i64 *i = x->data;
        i64 n = x->numel, extent = x->extent, around = g->flags & WRAP ? extent : 0;
        uint64_t bad = 0;
        if (fb_threads == 1 || n < FB_GRAIN) bad = outside(0, n, i, extent, around);
        else {
            _Pragma("omp parallel for schedule(static) num_threads(fb_threads) reduction(| : bad)")
            for (i64 b = 0; b < n; b += FB_GRAIN / 4) bad |= outside(b, n - b < FB_GRAIN / 4 ? n : b + FB_GRAIN / 4, i, extent, around);
        }
        if (bad >> 63) return 1 + k;
    }
    return 0;
}

static i64 put(void *const *p, const i64 *q, i64 esize, mover move) {
    plan g;
    g.esize = esize;
    i64 total = read_plan(&g, p, q), bad = total && !(g.flags & FRESH) ? check(&g) : 0;
    if (!total || bad) return bad;
    int dim = split(&g, true);
    bool shareable = dim >= 0 && g.size[dim] >= fb_threads;
    /* Every owner reads all indices, which pays only if the moves cost much more. */
    i64 row = g.size[g.dims - 1];
    bool owner = !shareable && g.count && g.index[0].extent >= fb_threads && (row >= 8 || g.index[0].extent >= 1 << 21);
    return run(&g, total, p[0], p[1], move, shareable || owner ? (dim < 0 ? 0 : dim) : -1, owner);
}

/* ----------------------------------------------------------------- movers */

typedef struct { uint64_t half[2]; } word16;

#define UNPACK(b) \
    const i64 *restrict at = b->at, *restrict to = b->to; \
    i64 n = b->n, row = b->row, ts = b->target_step, vs = b->value_step;
/* Single elements, four at a time: left to itself, the compiler assembles them in vector registers, which is slower. */
#define ITSELF(j) (j)
#define LISTED(j) to[j]
#define FOURS(MOVE, f, PLACE) { \
        i64 j = 0; \
        for (; j + 4 <= n; j += 4) { \
            MOVE(f, t[at[j]], v[PLACE(j)]); \
            MOVE(f, t[at[j + 1]], v[PLACE(j + 1)]); \
            MOVE(f, t[at[j + 2]], v[PLACE(j + 2)]); \
            MOVE(f, t[at[j + 3]], v[PLACE(j + 3)]); \
        } \
        for (; j < n; j++) MOVE(f, t[at[j]], v[PLACE(j)]); \
    }
/* The ways a block can lie; f is what an accumulating MOVE applies. */
#define EACH_ROW(MOVE, MOVE_ROW, f) \
    if (row == 1 && b->linear) FOURS(MOVE, f, ITSELF) \
    else if (row == 1) FOURS(MOVE, f, LISTED) \
    else if (ts == 1 && vs == 1) for (i64 j = 0; j < n; j++) MOVE_ROW(f, t + at[j], v + to[j]) \
    else for (i64 j = 0; j < n; j++) for (i64 c = 0; c < row; c++) MOVE(f, t[at[j] + c * ts], v[to[j] + c * vs]);

#define GET(f, t, v) v = t
#define PUT(f, t, v) t = v
#define GET_ROW(f, t, v) memcpy(v, t, (size_t)row * sizeof *(t));
#define PUT_ROW(f, t, v) memcpy(t, v, (size_t)row * sizeof *(t));
#define UPDATE(f, t, v) t = f(t, v)
#define UPDATE_ROW(f, t, v) { \
        __typeof__(t) restrict x = t; \
        __typeof__(v) restrict y = v; \
        for (i64 c = 0; c < row; c++) x[c] = f(x[c], y[c]); \
    }

#define MOVERS(T, name) \
    static void get_##name(const block *b) { \
        UNPACK(b) \
        const T *t = (const T *)b->target; \
        T *v = (T *)b->value; \
        EACH_ROW(GET, GET_ROW, ) \
    } \
    static void put_##name(const block *b) { \
        UNPACK(b) \
        T *t = (T *)b->target; \
        const T *v = (const T *)b->value; \
        EACH_ROW(PUT, PUT_ROW, ) \
    } \
    static i64 index_get_##name(void *const *p, const i64 *q) { return get(p, q, sizeof(T), get_##name); } \
    static i64 index_put_##name(void *const *p, const i64 *q) { return put(p, q, sizeof(T), put_##name); }

MOVERS(uint8_t, 1)
MOVERS(uint16_t, 2)
MOVERS(uint32_t, 4)
MOVERS(uint64_t, 8)
MOVERS(word16, 16)

/* Accumulation: `op` of the old target a and the value b, in arithmetic type T. */
#define ACCUMULATE(op, D, S, T, load, store, f) \
    static inline S op##_##D(S x, S y) { T a = load(x), b = load(y); return store(f(a, b)); } \
    static void op##_rows_##D(const block *b) { \
        UNPACK(b) \
        S *t = (S *)b->target; \
        const S *v = (const S *)b->value; \
        EACH_ROW(UPDATE, UPDATE_ROW, op##_##D) \
    } \
    static i64 index_##op##_##D(void *const *p, const i64 *q) { return put(p, q, sizeof(S), op##_rows_##D); }

#define SAME(x) (x)
#define ADD(a, b) (a + b)
#define MUL(a, b) (a * b)
#define ANY(a, b) (a | b)
#define ALL(a, b) (a & b)
/* NaN, once met, stays. */
#define MAX(a, b) (a != a || a >= b ? a : b)
#define MIN(a, b) (a != a || a <= b ? a : b)

/* X(name, dtype, storage, arithmetic type, load, store, operation); sums of integers wrap, so they are done unsigned. */
#define SMALL(X, op, f) \
    X(op, U8, uint8_t, uint32_t, SAME, (uint8_t), f) \
    X(op, I8, int8_t, int32_t, SAME, (int8_t), f) \
    X(op, I16, int16_t, int32_t, SAME, (int16_t), f)
#define REAL(X, op, f) \
    X(op, F16, f16, float, f16_to_float, f16_from_float, f) \
    X(op, BF16, bf16, float, bf16_to_float, bf16_from_float, f) \
    X(op, F32, float, float, SAME, SAME, f) \
    X(op, F64, double, double, SAME, SAME, f)
#define ARITHMETIC(X, op, f) SMALL(X, op, f) REAL(X, op, f) \
    X(op, I32, uint32_t, uint32_t, SAME, SAME, f) \
    X(op, I64, uint64_t, uint64_t, SAME, SAME, f)
#define ORDERED(X, op, f) SMALL(X, op, f) REAL(X, op, f) \
    X(op, I32, int32_t, int32_t, SAME, SAME, f) \
    X(op, I64, i64, i64, SAME, SAME, f)
#define ACCUMULATIONS(X) \
    ARITHMETIC(X, add, ADD) ARITHMETIC(X, mul, MUL) ORDERED(X, max, MAX) ORDERED(X, min, MIN) \
    X(add, C64, _Complex float, _Complex float, SAME, SAME, ADD) \
    X(add, C128, _Complex double, _Complex double, SAME, SAME, ADD) \
    X(add, BOOL, uint8_t, int, SAME, (uint8_t), ANY) \
    X(mul, BOOL, uint8_t, int, SAME, (uint8_t), ALL)

ACCUMULATIONS(ACCUMULATE)

#define MOVES(D, bytes) \
    {"index_get", FB_##D, index_get_##bytes, {bytes}}, {"index_put", FB_##D, index_put_##bytes, {bytes}},
#define ENTRY(op, D, S, T, load, store, f) {"index_" #op, FB_##D, index_##op##_##D, {sizeof(S)}},

FB_FAMILY(indexing) = {
    MOVES(BOOL, 1) MOVES(U8, 1) MOVES(I8, 1) MOVES(I16, 2) MOVES(I32, 4) MOVES(I64, 8)
    MOVES(F16, 2) MOVES(BF16, 2) MOVES(F32, 4) MOVES(F64, 8) MOVES(C64, 8) MOVES(C128, 16)
    ACCUMULATIONS(ENTRY)
    FB_END};
