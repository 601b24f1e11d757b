/* Variance, standard deviation and mean in one reading; see reduce.h.
 * p: variance, input, mean or NULL.  q[2]: the correction (1: unbiased), a double. */
#include "lanes.h"
#include "reduce.h"

enum { BLOCK = 4096, ROWS = 32 };

typedef struct { double count, mean, square; } moments; /* square: sum of squared distances from the mean */

/* Join two sets (T. F. Chan, G. H. Golub, R. J. LeVeque, 1979). */
static inline void merge(moments *into, double count, double mean, double square) {
    double total = into->count + count, distance = mean - into->mean;
    if (count == 0) return;
    into->square += square + distance * distance * (into->count * count / total);
    into->mean += distance * (count / total);
    into->count = total;
}

static void clear(void *state, i64 m) { memset(state, 0, (size_t)m * sizeof(moments)); }
static void join(void *into, const void *from, i64 m) {
    const moments *v = from;
    for (i64 j = 0; j < m; j++) merge((moments *)into + j, v[j].count, v[j].mean, v[j].square);
}

/* Sums of distances from a centre near the mean lose nothing to cancellation.  A row's
 * centre is its block's mean; a column's is the block's first element, which is part of it. */
#define MOMENTS(C) \
    FB_ROW(sum_##C, C, FB_SAME, C, 0, FB_ADD, FB_ADD) \
    static void row_##C(moments *state, const C *x, i64 n) { \
        C centre = sum_##C(x, n, 0) / (C)n, first[FB_LANES] = {0}, second[FB_LANES] = {0}; \
        i64 i = 0; \
        for (; i + FB_LANES <= n; i += FB_LANES) \
            for (int k = 0; k < FB_LANES; k++) { C d = x[i + k] - centre; first[k] += d; second[k] += d * d; } \
        double off = sum_##C(first, FB_LANES, 0), square = sum_##C(second, FB_LANES, 0); \
        for (; i < n; i++) { double d = x[i] - centre; off += d; square += d * d; } \
        double count = (double)n, shift = off / count; \
        square -= off * shift; \
        merge(state, count, centre + shift, square > 0 || square != square ? square : 0); \
    } \
    static void fold_##C(void *states, const fb_panel *panel) { \
        moments *state = states; \
        const C *x = panel->x; \
        i64 n = panel->n, m = panel->m; \
        if (panel->nx == 1) { \
            for (i64 j = 0; j < m; j++, x += panel->mx) \
                for (i64 i = 0; i < n; i += BLOCK) row_##C(&state[j], x + i, n - i < BLOCK ? n - i : BLOCK); \
            return; \
        } \
        C first[FB_TILE], second[FB_TILE]; \
        for (i64 i = 0; i < n; i += ROWS) { \
            i64 rows = n - i < ROWS ? n - i : ROWS; \
            const C *centre = x; \
            for (i64 j = 0; j < m; j++) first[j] = second[j] = 0; \
            for (i64 k = 0; k < rows; k++, x += panel->nx) \
                for (i64 j = 0; j < m; j++) { C d = x[j] - centre[j]; first[j] += d; second[j] += d * d; } \
            double count = (double)rows; \
            for (i64 j = 0; j < m; j++) { \
                double off = first[j], square = second[j] - off * off / count; \
                merge(&state[j], count, centre[j] + off / count, square > 0 || square != square ? square : 0); \
            } \
        } \
    }
MOMENTS(float)
MOMENTS(double)

#define ROUTINE(name, T, C, STORE, gather, VALUE) \
    static void finish_##name(const void *states, i64 m, void *const *p, i64 at, i64 step, i64 reduced, const i64 *q) { \
        const moments *state = states; \
        T *out = (T *)p[0], *mean = p[2]; \
        double freedom = (double)reduced - fb_double(q[2]); \
        if (freedom < 0) freedom = 0; \
        for (i64 j = 0; j < m; j++) { double variance = state[j].square / freedom; out[at + j * step] = STORE(VALUE); } \
        for (i64 j = 0; j < m && mean; j++) mean[at + j * step] = STORE(reduced ? state[j].mean : NAN); \
    } \
    static i64 name(void *const *p, const i64 *q) { \
        static const fb_fold fold = {sizeof(T), sizeof(C), sizeof(moments), false, gather, clear, fold_##C, join, finish_##name}; \
        return fb_reduce(&fold, p, q); \
    }

#define FLOATS(X) \
    X(FB_F16, f16, f16, f16_from_float, float) \
    X(FB_BF16, bf16, bf16, bf16_from_float, float) \
    X(FB_F32, f32, float, (float), float) \
    X(FB_F64, f64, double, (double), double)
FB_FLOAT_GATHERS(gather)
#define X(D, s, T, STORE, C) \
    ROUTINE(var_##s, T, C, STORE, gather_##s, variance) \
    ROUTINE(std_##s, T, C, STORE, gather_##s, sqrt(variance))
FLOATS(X)
#undef X

FB_FAMILY(moments) = {
#define X(D, s, T, STORE, C) {"var", D, var_##s, {0}}, {"std", D, std_##s, {0}},
    FLOATS(X)
#undef X
    FB_END};
