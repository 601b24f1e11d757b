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

void fb_spread3(const fb_kernel *kernel, i64 n, void *out, void *a, void *b, int repeated) {
    char *const p[] = {out, a, b};
    contiguous(kernel, n, p, 3, repeated);
}

void fb_run4(const fb_kernel *kernel, i64 n, void *out, void *a, void *b, void *c) {
    char *const p[] = {out, a, b, c};
    contiguous(kernel, n, p, 4, 0);
}

/* plan: operands, dimensions, numel, sizes[dimensions] (innermost first), then for
 * each operand its element strides[dimensions].  Sizes are at least 1 and numel > 0. */
void fb_walk(const fb_kernel *kernel, const i64 *plan, void *out, void *a, void *b, void *c, void *d) {
    fb_loop loop = (fb_loop)kernel->function;
    int operands = (int)plan[0], dims = (int)plan[1];
    i64 numel = plan[2];
    const i64 *size = plan + 3, *stride = size + dims;
    char *const start[MOST] = {out, a, b, c, d, NULL};
    i64 inner = dims ? size[0] : 1, step[MOST];
    for (int k = 0; k < operands; k++) step[k] = dims ? stride[k * dims] * kernel->size[k] : 0;

    /* Threads split the flat range of inner rows; a single long row is split itself. */
    i64 rows = numel / inner;
    int threads = fb_threads > 1 && numel >= FB_GRAIN ? fb_threads : 1;
    i64 split = rows < threads ? threads : 1;
    i64 piece = (inner + split - 1) / split, pieces = rows * split;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#ifdef _OPENMP
        i64 team = omp_get_num_threads(), rank = omp_get_thread_num();
#else
        i64 team = 1, rank = 0;
#endif
        i64 first = pieces * rank / team, last = pieces * (rank + 1) / team;
        i64 index[64] = {0};
        char *p[MOST];
        if (first < last) {
            i64 row = first / split;
            for (int k = 0; k < operands; k++) p[k] = start[k];
            for (int dim = 1; dim < dims; dim++) {
                index[dim] = row % size[dim];
                row /= size[dim];
                for (int k = 0; k < operands; k++) p[k] += index[dim] * stride[k * dims + dim] * kernel->size[k];
            }
        }
        for (i64 at = first; at < last; at++) {
            i64 begin = at % split * piece, count = inner - begin < piece ? inner - begin : piece;
            char *q[MOST];
            for (int k = 0; k < operands; k++) q[k] = p[k] + begin * step[k];
            if (count > 0) loop(count, q, step);
            if ((at + 1) % split) continue;
            for (int dim = 1; dim < dims; dim++) {
                for (int k = 0; k < operands; k++) p[k] += stride[k * dims + dim] * kernel->size[k];
                if (++index[dim] < size[dim]) break;
                for (int k = 0; k < operands; k++) p[k] -= size[dim] * stride[k * dims + dim] * kernel->size[k];
                index[dim] = 0;
            }
        }
    }
}
