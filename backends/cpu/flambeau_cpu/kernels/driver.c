/* Drives a pointwise inner loop over tensors of any strides and over threads. */
#include "registry.h"

enum { MOST = 6 };

/* Dense operands of one geometry; bit k of `repeated` says that operand k is a single element. */
static void contiguous(const fb_kernel *kernel, i64 n, char *const *start, int operands, int repeated) {
    fb_loop loop = (fb_loop)kernel->function;
    i64 step[MOST];
    for (int k = 0; k < operands; k++) step[k] = repeated >> k & 1 ? 0 : kernel->size[k];
    if (fb_threads == 1 || n < FB_GRAIN) {
        loop(n, start, step);
        return;
    }
    i64 parts = fb_threads < n / (FB_GRAIN / 2) ? fb_threads : n / (FB_GRAIN / 2);
    i64 chunk = ((n + parts - 1) / parts + 63) & ~(i64)63;
#pragma omp parallel for schedule(static) num_threads((int)parts)
    for (i64 part = 0; part < parts; part++) {
        i64 first = part * chunk, count = n - first < chunk ? n - first : chunk;
        if (count <= 0) continue;
        char *p[MOST];
        for (int k = 0; k < operands; k++) p[k] = start[k] + first * step[k];
        loop(count, p, step);
    }
}

void fb_run1(const fb_kernel *kernel, i64 n, void *out) {
    char *const p[] = {out};
    contiguous(kernel, n, p, 1, 0);
}

void fb_run2(const fb_kernel *kernel, i64 n, void *out, void *a) {
    char *const p[] = {out, a};
    contiguous(kernel, n, p, 2, 0);
}

void fb_run3(const fb_kernel *kernel, i64 n, void *out, void *a, void *b) {
    char *const p[] = {out, a, b};
    contiguous(kernel, n, p, 3, 0);
}

void fb_spread2(const fb_kernel *kernel, i64 n, void *out, void *a) {
    char *const p[] = {out, a};
    contiguous(kernel, n, p, 2, 2);
}

void fb_spread3(const fb_kernel *kernel, i64 n, void *out, void *a, void *b, int repeated) {
    char *const p[] = {out, a, b};
    contiguous(kernel, n, p, 3, repeated);
}

void fb_run4(const fb_kernel *kernel, i64 n, void *out, void *a, void *b, void *c) {
    char *const p[] = {out, a, b, c};
    contiguous(kernel, n, p, 4, 0);
}

/* ---------------------------------------------------------------- any strides
 *
 * Inner loops see operands that are contiguous or repeated.  A walk therefore goes
 * over tiles of the two dimensions that matter: dimension 0, innermost in the
 * output, and a partner, innermost in an operand that disagrees.  An operand that
 * is neither contiguous nor repeated along dimension 0 is copied through a small
 * buffer, so a transposed operand is read by whole cache lines. */

/* A tile of crossed operands is WIDE rows of 256 bytes; rows below SHORT elements are gathered. */
enum { BUFFER = 8192, DIMS = 64, SHORT = 32, WIDE = 32 };

typedef struct {
    const fb_kernel *kernel;
    int operands, dims, partner;
    i64 size[DIMS];         /* sizes, in the order of the plan */
    i64 stride[MOST][DIMS]; /* strides in bytes */
    i64 tile[2], tiles[2];  /* tile sizes and counts along dimension 0 and the partner */
    bool flat;              /* buffer everything: rows are too short to run one by one */
    char *start[MOST];
} walk;

static bool direct(const walk *w, int k) {
    return w->stride[k][0] == w->kernel->size[k] || w->stride[k][0] == 0;
}

/* to[j][i] = from[i][j] for i < rows, j < columns; leading dimensions in elements.
 * Four by four in registers: one by one, stores to so many rows are what costs. */
#define TURN(name, T) \
    static void name(const T *from, i64 from_row, T *to, i64 to_row, i64 rows, i64 columns) { \
        typedef T four __attribute__((vector_size(4 * sizeof(T)))); \
        i64 i = 0; \
        for (; i + 4 <= rows; i += 4) { \
            const T *f = from + i * from_row; \
            T *t = to + i; \
            i64 j = 0; \
            for (; j + 4 <= columns; j += 4) { \
                four a, b, c, d; \
                memcpy(&a, f + j, sizeof a); \
                memcpy(&b, f + from_row + j, sizeof b); \
                memcpy(&c, f + 2 * from_row + j, sizeof c); \
                memcpy(&d, f + 3 * from_row + j, sizeof d); \
                four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), AB = __builtin_shufflevector(a, b, 2, 6, 3, 7); \
                four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), CD = __builtin_shufflevector(c, d, 2, 6, 3, 7); \
                a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5); \
                b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7); \
                c = __builtin_shufflevector(AB, CD, 0, 1, 4, 5); \
                d = __builtin_shufflevector(AB, CD, 2, 3, 6, 7); \
                memcpy(t + j * to_row, &a, sizeof a); \
                memcpy(t + (j + 1) * to_row, &b, sizeof b); \
                memcpy(t + (j + 2) * to_row, &c, sizeof c); \
                memcpy(t + (j + 3) * to_row, &d, sizeof d); \
            } \
            for (; j < columns; j++) \
                for (i64 k = 0; k < 4; k++) t[j * to_row + k] = f[k * from_row + j]; \
        } \
        for (; i < rows; i++) \
            for (i64 j = 0; j < columns; j++) to[j * to_row + i] = from[i * from_row + j]; \
    }
TURN(turn_1, uint8_t)
TURN(turn_2, uint16_t)
TURN(turn_4, uint32_t)
TURN(turn_8, uint64_t)

/* rows x count elements between strided memory and a dense buffer. */
#define MOVE(bytes, T) case bytes: { \
    T *d = (T *)dense; \
    if (stride == bytes && step % bytes == 0) { \
        if (out) turn_##bytes(d, count, (T *)memory, step / bytes, rows, count); \
        else turn_##bytes((const T *)memory, step / bytes, d, count, count, rows); \
        break; \
    } \
    for (i64 j = 0; j < rows; j++, memory += stride, d += count) { \
        T *m = (T *)memory; \
        if (out) for (i64 i = 0; i < count; i++) *(T *)(memory + i * step) = d[i]; \
        else if (step == bytes) memcpy(d, m, (size_t)count * bytes); \
        else if (step == 2 * bytes) for (i64 i = 0; i < count; i++) d[i] = m[2 * i]; \
        else for (i64 i = 0; i < count; i++) d[i] = *(const T *)(memory + i * step); \
    } \
    break; }
static void move(bool out, char *memory, char *dense, int bytes, i64 count, i64 step, i64 rows, i64 stride) {
    switch (bytes) {
    MOVE(1, uint8_t)
    MOVE(2, uint16_t)
    MOVE(4, uint32_t)
    MOVE(8, uint64_t)
    default:
        for (i64 j = 0; j < rows; j++)
            for (i64 i = 0; i < count; i++) {
                char *m = memory + i * step + j * stride, *d = dense + (j * count + i) * bytes;
                memcpy(out ? m : d, out ? d : m, (size_t)bytes);
            }
    }
}

static void run_tile(const walk *w, char *const *at, i64 count, i64 rows, char (*buffer)[BUFFER]) {
    fb_loop loop = (fb_loop)w->kernel->function;
    char *p[MOST];
    i64 step[MOST], stride[MOST];
    bool one_run = true, store = false;
    for (int k = 0; k < w->operands; k++) {
        i64 bytes = w->kernel->size[k], s0 = w->stride[k][0], s1 = w->dims > 1 ? w->stride[k][w->partner] : 0;
        p[k] = at[k];
        step[k] = s0;
        stride[k] = s1;
        if (!bytes || (!s0 && (!s1 || rows == 1)) || (s0 == bytes && (s1 == bytes * count || rows == 1))) continue;
        if (w->flat || !direct(w, k)) {
            p[k] = buffer[k];
            step[k] = bytes;
            stride[k] = bytes * count;
            if (k) move(false, at[k], p[k], (int)bytes, count, s0, rows, s1);
            else store = true;
        } else one_run = false;
    }
    if (one_run) loop(count * rows, p, step);
    else
        for (i64 row = 0; row < rows; row++) {
            loop(count, p, step);
            for (int k = 0; k < w->operands; k++) p[k] += stride[k];
        }
    if (store) move(true, at[0], buffer[0], w->kernel->size[0], count, w->stride[0][0], rows, w->dims > 1 ? w->stride[0][w->partner] : 0);
}

/* Tiles first ... last - 1, numbered along dimension 0 first. */
static void run_tiles(const walk *w, i64 first, i64 last) {
    char buffer[MOST][BUFFER] __attribute__((aligned(64)));
    for (i64 number = first; number < last; number++) {
        i64 rest = number, origin0 = rest % w->tiles[0] * w->tile[0];
        rest /= w->tiles[0];
        i64 origin1 = rest % w->tiles[1] * w->tile[1];
        rest /= w->tiles[1];
        char *at[MOST];
        for (int k = 0; k < w->operands; k++)
            at[k] = w->start[k] + origin0 * w->stride[k][0] + (w->dims > 1 ? origin1 * w->stride[k][w->partner] : 0);
        for (int dim = 1; dim < w->dims; dim++) {
            if (dim == w->partner) continue;
            i64 index = rest % w->size[dim];
            rest /= w->size[dim];
            if (index)
                for (int k = 0; k < w->operands; k++) at[k] += index * w->stride[k][dim];
        }
        i64 count = w->size[0] - origin0, rows = w->dims > 1 ? w->size[w->partner] - origin1 : 1;
        run_tile(w, at, count < w->tile[0] ? count : w->tile[0], rows < w->tile[1] ? rows : w->tile[1], buffer);
    }
}

static i64 least(i64 a, i64 b) { return a < b ? a : b; }

/* Chooses the partner dimension and the tile shape. */
static void lay_out(walk *w) {
    i64 widest = 1, magnitude = 0;
    bool crossed = false, straight = true;
    w->partner = w->dims > 1 ? 1 : 0;
    for (int k = 0; k < w->operands; k++) {
        if (w->kernel->size[k] > widest) widest = w->kernel->size[k];
        if (direct(w, k)) continue;
        straight = false;
        i64 along = w->stride[k][0] < 0 ? -w->stride[k][0] : w->stride[k][0];
        for (int dim = 1; dim < w->dims; dim++) {
            i64 across = w->stride[k][dim] < 0 ? -w->stride[k][dim] : w->stride[k][dim];
            if (across && across < along && (!crossed || across < magnitude)) {
                crossed = true;
                magnitude = across;
                w->partner = dim;
            }
        }
    }
    i64 capacity = BUFFER / widest, n0 = w->size[0], n1 = w->dims > 1 ? w->size[w->partner] : 1;
    w->flat = n0 < SHORT && n1 > 1;
    if (straight && !w->flat) {
        /* Nothing to copy: whole rows, cut only to feed the threads. */
        w->tile[0] = n0 >= 2 * FB_GRAIN ? FB_GRAIN : n0;
        w->tile[1] = least(n1, (FB_GRAIN / 4 + n0 - 1) / n0);
    } else {
        w->tile[0] = least(n0, crossed && n1 * WIDE > capacity ? WIDE : capacity / (crossed ? n1 : 1));
        w->tile[1] = least(n1, capacity / w->tile[0]);
    }
    w->tiles[0] = (n0 + w->tile[0] - 1) / w->tile[0];
    w->tiles[1] = (n1 + w->tile[1] - 1) / w->tile[1];
}

/* plan: operands, dimensions, numel, sizes[dimensions] (innermost of the output first), then
 * for each operand its element strides[dimensions].  Sizes are at least 1 and numel > 0. */
void fb_walk(const fb_kernel *kernel, const i64 *plan, void *out, void *a, void *b, void *c, void *d) {
    walk w; /* set field by field: clearing it would cost more than a small walk */
    char *const start[] = {out, a, b, c, d};
    w.kernel = kernel;
    w.operands = (int)plan[0];
    w.dims = (int)plan[1];
    const i64 *size = plan + 3, *stride = size + w.dims;
    for (int dim = 0; dim < w.dims; dim++) w.size[dim] = size[dim];
    w.size[0] = w.dims ? size[0] : 1;
    for (int k = 0; k < w.operands; k++) {
        w.start[k] = start[k];
        w.stride[k][0] = 0;
        for (int dim = 0; dim < w.dims; dim++) w.stride[k][dim] = stride[k * w.dims + dim] * kernel->size[k];
    }
    lay_out(&w);
    i64 tiles = w.tiles[0] * w.tiles[1];
    for (int dim = 1; dim < w.dims; dim++)
        if (dim != w.partner) tiles *= w.size[dim];

    i64 parts = fb_threads > 1 && plan[2] >= FB_GRAIN ? least(fb_threads, tiles) : 1;
    if (parts == 1) {
        run_tiles(&w, 0, tiles);
        return;
    }
#pragma omp parallel for schedule(static) num_threads((int)parts)
    for (i64 part = 0; part < parts; part++) run_tiles(&w, tiles * part / parts, tiles * (part + 1) / parts);
}
