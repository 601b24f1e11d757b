/* Reduces any set of dimensions of a strided tensor with any fold.
 *
 * A fold keeps one state for each output element and knows four things: clear a
 * state, fold a two-dimensional panel of input into states, join two states, and
 * finish a state into the output.  The driver here does everything else: it
 * merges dimensions, picks the panel whose inner loop runs along the smallest
 * stride, and cuts the work into units.  The cut depends on the shape alone, so
 * a result does not depend on the number of threads.
 *
 * Parameters q: dimensions, mask of the reduced ones (bit d for dimension d), two
 * doubles by their bits, then sizes and input strides, outermost first.  The output
 * is contiguous over the dimensions that stay. */
#ifndef FLAMBEAU_REDUCE_H
#define FLAMBEAU_REDUCE_H

#include "half.h"

enum {
    FB_TILE = 1024,          /* output elements of one unit */
    FB_REDUCE_CHUNK = 65536, /* elements below which a unit is not worth splitting */
    FB_REDUCE_SPLITS = 64,
    FB_BUFFER = 32768,       /* bytes through which strided or converted input goes */
    FB_MOST_DIMS = 64,
};

/* One dimension: its size, its input stride, its stride in the contiguous output
 * (kept dimensions) and in the flat index of reduced elements (reduced ones). */
typedef struct { i64 size, x, out, index; } fb_axis;
typedef struct { int count; i64 total; fb_axis axis[FB_MOST_DIMS]; } fb_axes;

/* A panel: m outputs `mx` apart, each of n elements `nx` apart (in elements); the
 * first has flat index `at` and the next ones follow `step` apart. */
typedef struct { const void *x; i64 n, nx, m, mx, at, step; double a; } fb_panel;

/* Bring b rows of n elements, `nx` and `bx` apart, into contiguous memory as compute elements. */
typedef void (*fb_gather)(void *to, const void *x, i64 n, i64 nx, i64 b, i64 bx);

typedef struct {
    i64 element, compute, state; /* bytes of an input element, of what fold reads, and of a state */
    bool indexed;                /* states carry flat indices */
    fb_gather gather;
    void (*clear)(void *state, i64 m);
    void (*fold)(void *state, const fb_panel *panel); /* of compute elements; nx or mx is 1 */
    void (*join)(void *into, const void *from, i64 m);
    /* Write m outputs from position `at`, `step` apart. */
    void (*finish)(const void *state, i64 m, void *const *p, i64 at, i64 step, i64 reduced, const i64 *q);
} fb_fold;

#define FB_GATHER(name, T, LOAD, C) \
    static void name(void *to, const void *from, i64 n, i64 nx, i64 b, i64 bx) { \
        C *restrict out = to; \
        for (i64 j = 0; j < b; j++, out += n) { \
            const T *x = (const T *)from + j * bx; \
            if (nx == 1) for (i64 i = 0; i < n; i++) out[i] = LOAD(x[i]); \
            else for (i64 i = 0; i < n; i++) out[i] = LOAD(x[i * nx]); \
        } \
    }

/* The same for float16 (is_f16) and bfloat16 to float. */
#define FB_GATHER_HALF(name, T, LOAD, is_f16) \
    static void name(void *to, const void *from, i64 n, i64 nx, i64 b, i64 bx) { \
        float *restrict out = to; \
        for (i64 j = 0; j < b; j++, out += n) { \
            const T *x = (const T *)from + j * bx; \
            if (nx == 1) fb_halves_to_floats(is_f16, n, x, out); \
            else for (i64 i = 0; i < n; i++) out[i] = LOAD(x[i * nx]); \
        } \
    }
/* Gathers of the floating-point types into what they are folded in. */
#define FB_FLOAT_GATHERS(prefix) \
    FB_GATHER_HALF(prefix##_f16, f16, f16_to_float, 1) \
    FB_GATHER_HALF(prefix##_bf16, bf16, bf16_to_float, 0) \
    FB_GATHER(prefix##_f32, float, , float) \
    FB_GATHER(prefix##_f64, double, , double)

/* Fold a panel of any strides: what the fold cannot read directly goes through a buffer. */
static void fb_fold_panel(const fb_fold *fold, void *state, const fb_panel *panel) {
    if (fold->element == fold->compute && (panel->nx == 1 || panel->mx == 1)) {
        fold->fold(state, panel);
        return;
    }
    i64 buffer[FB_BUFFER / 8], room = FB_BUFFER / fold->compute;
    fb_panel part = *panel;
    part.x = buffer;
    const char *x = panel->x;
    if (panel->m == 1 || panel->nx < panel->mx) { /* rows: several short ones, or one long one by pieces */
        i64 together = panel->n < room ? room / (panel->n ? panel->n : 1) : 1;
        for (i64 j = 0; j < panel->m; j += together)
            for (i64 i = 0; i < panel->n; i += room) {
                part.n = panel->n - i < room ? panel->n - i : room;
                part.m = panel->m - j < together ? panel->m - j : together;
                part.nx = 1;
                part.mx = part.n;
                part.at = panel->at + i * panel->step;
                fold->gather(buffer, x + (j * panel->mx + i * panel->nx) * fold->element, part.n, panel->nx, part.m, panel->mx);
                fold->fold((char *)state + j * fold->state, &part);
            }
        return;
    }
    i64 together = room / panel->m; /* a tile fits at least twice */
    for (i64 i = 0; i < panel->n; i += together) {
        part.n = panel->n - i < together ? panel->n - i : together;
        part.nx = panel->m;
        part.mx = 1;
        part.at = panel->at + i * panel->step;
        fold->gather(buffer, x + i * panel->nx * fold->element, panel->m, panel->mx, part.n, panel->nx);
        fold->fold(state, &part);
    }
}

/* Sort by stride (repeated dimensions last) and merge neighbours that walk memory as one. */
static void fb_merge(fb_axes *axes) {
    fb_axis *a = axes->axis;
    for (int i = 1; i < axes->count; i++) {
        fb_axis moved = a[i];
        int j = i;
        for (; j > 0 && moved.x && (!a[j - 1].x || a[j - 1].x > moved.x); j--) a[j] = a[j - 1];
        a[j] = moved;
    }
    int kept = 0;
    for (int i = 1; i < axes->count; i++) {
        fb_axis *last = &a[kept];
        if (a[i].x == last->x * last->size && a[i].out == last->out * last->size && a[i].index == last->index * last->size)
            last->size *= a[i].size;
        else
            a[++kept] = a[i];
    }
    axes->count = axes->count ? kept + 1 : 0;
}

static void fb_split_axes(const i64 *q, bool indexed, fb_axes *outer, fb_axes *inner) {
    int dims = (int)q[0];
    const i64 *size = q + 4, *stride = size + dims;
    outer->count = inner->count = 0;
    outer->total = inner->total = 1;
    for (int d = dims - 1; d >= 0; d--) {
        bool reduced = q[1] >> d & 1;
        fb_axes *axes = reduced ? inner : outer;
        if (size[d] != 1)
            axes->axis[axes->count++] = (fb_axis){size[d], stride[d], reduced ? 0 : outer->total, reduced && indexed ? inner->total : 0};
        axes->total *= size[d];
    }
    if (outer->total > 0 && inner->total > 0) {
        fb_merge(outer);
        fb_merge(inner);
    }
}

typedef struct {
    const fb_fold *fold;
    const char *x;
    fb_axes outer, inner; /* axis[0] of each spans the panel; always at least one */
    i64 tile, tiles, units;
    int split;            /* the inner axis that is cut into pieces */
    i64 piece, pieces;
    double a;
} fb_reduction;

static i64 fb_unit_size(const fb_reduction *r, i64 unit, i64 *first) {
    *first = unit % r->tiles * r->tile;
    i64 left = r->outer.axis[0].size - *first;
    return left < r->tile ? left : r->tile;
}

/* Fold one piece of one unit into cleared states. */
static void fb_fold_unit(const fb_reduction *r, i64 unit, i64 piece, void *state) {
    const fb_axis *m = &r->outer.axis[0];
    i64 first, count = fb_unit_size(r, unit, &first), offset = first * m->x, rest = unit / r->tiles;
    for (int d = 1; d < r->outer.count; d++) {
        offset += rest % r->outer.axis[d].size * r->outer.axis[d].x;
        rest /= r->outer.axis[d].size;
    }
    fb_axes inner = r->inner;
    i64 at = 0;
    fb_axis *cut = &inner.axis[r->split];
    i64 begin = piece * r->piece;
    offset += begin * cut->x;
    at += begin * cut->index;
    cut->size = cut->size - begin < r->piece ? cut->size - begin : r->piece;

    r->fold->clear(state, count);
    i64 index[FB_MOST_DIMS] = {0};
    for (;;) {
        fb_panel panel = {r->x + offset * r->fold->element, inner.axis[0].size, inner.axis[0].x, count, m->x, at,
                          inner.axis[0].index, r->a};
        fb_fold_panel(r->fold, state, &panel);
        int d = 1;
        for (; d < inner.count; d++) {
            offset += inner.axis[d].x;
            at += inner.axis[d].index;
            if (++index[d] < inner.axis[d].size) break;
            offset -= inner.axis[d].x * inner.axis[d].size;
            at -= inner.axis[d].index * inner.axis[d].size;
            index[d] = 0;
        }
        if (d >= inner.count) return;
    }
}

static void fb_finish_unit(const fb_reduction *r, i64 unit, const void *state, void *const *p, const i64 *q) {
    i64 first, count = fb_unit_size(r, unit, &first), rest = unit / r->tiles;
    i64 at = first * r->outer.axis[0].out;
    for (int d = 1; d < r->outer.count; d++) {
        at += rest % r->outer.axis[d].size * r->outer.axis[d].out;
        rest /= r->outer.axis[d].size;
    }
    r->fold->finish(state, count, p, at, r->outer.axis[0].out, r->inner.total, q);
}

static void fb_whole_unit(const fb_reduction *r, i64 unit, void *const *p, const i64 *q) {
    double state[FB_TILE * 3]; /* the largest state has three doubles */
    fb_fold_unit(r, unit, 0, state);
    fb_finish_unit(r, unit, state, p, q);
}

/* p[0] and above are what the fold's finish writes; p[1] is the input.  Returns 0, or 1 without memory. */
static i64 fb_reduce(const fb_fold *fold, void *const *p, const i64 *q) {
    fb_reduction r = {.fold = fold, .x = p[1], .pieces = 1, .piece = INT64_MAX, .a = fb_double(q[2])};
    fb_split_axes(q, fold->indexed, &r.outer, &r.inner);
    i64 work = r.outer.total * r.inner.total;
    if (r.outer.total == 0) return 0;
    if (!r.outer.count) r.outer.axis[r.outer.count++] = (fb_axis){1, 0, 1, 0};
    if (!r.inner.count || !work) {
        r.inner.count = 1;
        r.inner.axis[0] = (fb_axis){work ? 1 : 0, 0, 0, 0};
    }
    if (!work) { /* nothing to read: every output is the identity */
        r.outer.count = 1;
        r.outer.axis[0] = (fb_axis){r.outer.total, 0, 1, 0};
    }
    const fb_axis *n = &r.inner.axis[0], *m = &r.outer.axis[0];
    bool rows = n->x && (n->x < m->x || !m->x);
    r.tile = FB_TILE;
    if (rows && r.inner.total > FB_REDUCE_CHUNK / FB_TILE)
        r.tile = r.inner.total < FB_REDUCE_CHUNK ? FB_REDUCE_CHUNK / r.inner.total : 1;
    r.tiles = (m->size + r.tile - 1) / r.tile;
    r.units = r.tiles * (r.outer.total / m->size);

    if (work < FB_GRAIN) {
        for (i64 unit = 0; unit < r.units; unit++) fb_whole_unit(&r, unit, p, q);
        return 0;
    }
    if (r.units < 16 && work >= 2 * FB_REDUCE_CHUNK) {
        for (int d = 1; d < r.inner.count; d++)
            if (r.inner.axis[d].size > r.inner.axis[r.split].size) r.split = d;
        i64 size = r.inner.axis[r.split].size, pieces = work / FB_REDUCE_CHUNK;
        if (pieces > FB_REDUCE_SPLITS / r.units) pieces = FB_REDUCE_SPLITS / r.units;
        if (pieces > size) pieces = size;
        r.piece = (size + pieces - 1) / pieces;
        if (r.piece > 256) r.piece = (r.piece + 63) & ~(i64)63;
        r.pieces = (size + r.piece - 1) / r.piece;
    }
    if (r.pieces == 1) {
        FB_PARALLEL_FOR(work)
        for (i64 unit = 0; unit < r.units; unit++) fb_whole_unit(&r, unit, p, q);
        return 0;
    }
    i64 width = (r.tile < m->size ? r.tile : m->size) * fold->state, jobs = r.units * r.pieces;
    char *states = malloc((size_t)(width * jobs));
    if (!states) return 1;
    FB_PARALLEL_FOR(work)
    for (i64 job = 0; job < jobs; job++) fb_fold_unit(&r, job / r.pieces, job % r.pieces, states + job * width);
    for (i64 unit = 0; unit < r.units; unit++) {
        char *total = states + unit * r.pieces * width;
        i64 first, count = fb_unit_size(&r, unit, &first);
        for (i64 piece = 1; piece < r.pieces; piece++) fold->join(total, total + piece * width, count);
        fb_finish_unit(&r, unit, total, p, q);
    }
    free(states);
    return 0;
}

#endif
