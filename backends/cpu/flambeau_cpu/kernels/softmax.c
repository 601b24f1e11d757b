/* softmax and log_softmax along one dimension, forward and backward.
 *
 * Tensors are contiguous (outer, n, inner); q: outer, n, inner.
 * p: output, input.  Backward p: output, gradient, result of the forward. */
#include "lanes.h"
#include "vectormath.h"

enum { TILE = 256 }; /* columns side by side where n is not the last dimension */

enum { TOGETHER = 16 }; /* exponentials at once: a row's rest is padded rather than done one by one */

#define SOFTMAX(T, s, LOG) \
    FB_ROW(highest_##s, T, FB_SAME, T, -INFINITY, FB_MAX, FB_MAX) \
    FB_ROW(total_##s, T, FB_SAME, T, 0, FB_ADD, FB_ADD) \
    static inline void exponentials_##s(const T *x, T *o, i64 n, T high) { \
        i64 i = 0; \
        for (; i + TOGETHER <= n; i += TOGETHER) \
            for (int k = 0; k < TOGETHER; k++) o[i + k] = fb_exp_##s(x[i + k] - high); \
        if (i == n) return; \
        T rest[TOGETHER] = {0}; \
        memcpy(rest, x + i, (size_t)(n - i) * sizeof(T)); \
        for (int k = 0; k < TOGETHER; k++) rest[k] = fb_exp_##s(rest[k] - high); \
        memcpy(o + i, rest, (size_t)(n - i) * sizeof(T)); \
    } \
    /* Of nothing but -inf the exponentials are NaN, as 0 / 0 is. */ \
    static void softmax_row_##s(const T *x, T *o, i64 n) { \
        exponentials_##s(x, o, n, highest_##s(x, n, 0)); \
        T scale = 1 / total_##s(o, n, 0); \
        for (i64 i = 0; i < n; i++) o[i] *= scale; \
    } \
    static void log_softmax_row_##s(const T *x, T *o, i64 n) { \
        T high = highest_##s(x, n, 0); \
        exponentials_##s(x, o, n, high); \
        T log_total = (T)LOG(total_##s(o, n, 0)); \
        for (i64 i = 0; i < n; i++) o[i] = (x[i] - high) - log_total; \
    } \
    static void columns_##s(const T *x, T *o, i64 n, i64 width, i64 inner, bool logarithm) { \
        T high[TILE], total[TILE]; \
        for (i64 j = 0; j < width; j++) { high[j] = -INFINITY; total[j] = 0; } \
        for (i64 i = 0; i < n; i++) \
            for (i64 j = 0; j < width; j++) high[j] = FB_MAX(high[j], x[i * inner + j]); \
        for (i64 i = 0; i < n; i++) { \
            const T *row = x + i * inner; \
            T *to = o + i * inner; \
            if (logarithm) for (i64 j = 0; j < width; j++) total[j] += fb_exp_##s(row[j] - high[j]); \
            else for (i64 j = 0; j < width; j++) { T v = fb_exp_##s(row[j] - high[j]); to[j] = v; total[j] += v; } \
        } \
        for (i64 j = 0; j < width; j++) total[j] = logarithm ? (T)LOG(total[j]) : 1 / total[j]; \
        for (i64 i = 0; i < n; i++) { \
            const T *row = x + i * inner; \
            T *to = o + i * inner; \
            if (logarithm) for (i64 j = 0; j < width; j++) to[j] = (row[j] - high[j]) - total[j]; \
            else for (i64 j = 0; j < width; j++) to[j] *= total[j]; \
        } \
    } \
    static i64 forward_##s(void *const *p, const i64 *q, bool logarithm) { \
        T *out = p[0]; \
        const T *in = p[1]; \
        i64 n = q[1], inner = q[2], tiles = (inner + TILE - 1) / TILE; \
        FB_PARALLEL_FOR(4 * q[0] * n * inner) \
        for (i64 unit = 0; unit < q[0] * tiles; unit++) { \
            i64 at = unit % tiles * TILE, start = unit / tiles * n * inner + at; \
            if (inner > 1) columns_##s(in + start, out + start, n, inner - at < TILE ? inner - at : TILE, inner, logarithm); \
            else if (logarithm) log_softmax_row_##s(in + start, out + start, n); \
            else softmax_row_##s(in + start, out + start, n); \
        } \
        return 0; \
    } \
    static i64 softmax_##s(void *const *p, const i64 *q) { return forward_##s(p, q, false); } \
    static i64 log_softmax_##s(void *const *p, const i64 *q) { return forward_##s(p, q, true); } \
    static i64 backward_##s(void *const *p, const i64 *q, bool logarithm) { \
        T *out = p[0]; \
        const T *grad = p[1], *result = p[2]; \
        i64 n = q[1], inner = q[2], tiles = (inner + TILE - 1) / TILE; \
        FB_PARALLEL_FOR(2 * q[0] * n * inner) \
        for (i64 unit = 0; unit < q[0] * tiles; unit++) { \
            i64 at = unit % tiles * TILE, start = unit / tiles * n * inner + at; \
            i64 width = inner - at < TILE ? inner - at : TILE; \
            const T *g = grad + start, *r = result + start; \
            T *o = out + start, total[TILE]; \
            if (inner == 1) { \
                T sum; \
                if (logarithm) sum = total_##s(g, n, 0); \
                else { \
                    for (i64 i = 0; i < n; i++) o[i] = g[i] * r[i]; \
                    sum = total_##s(o, n, 0); \
                } \
                if (logarithm) for (i64 i = 0; i < n; i++) o[i] = g[i] - fb_exp_##s(r[i]) * sum; \
                else for (i64 i = 0; i < n; i++) o[i] = r[i] * (g[i] - sum); \
                continue; \
            } \
            for (i64 j = 0; j < width; j++) total[j] = 0; \
            for (i64 i = 0; i < n; i++) \
                for (i64 j = 0; j < width; j++) total[j] += logarithm ? g[i * inner + j] : g[i * inner + j] * r[i * inner + j]; \
            for (i64 i = 0; i < n; i++) { \
                i64 k = i * inner; \
                if (logarithm) for (i64 j = 0; j < width; j++) o[k + j] = g[k + j] - fb_exp_##s(r[k + j]) * total[j]; \
                else for (i64 j = 0; j < width; j++) o[k + j] = r[k + j] * (g[k + j] - total[j]); \
            } \
        } \
        return 0; \
    } \
    static i64 softmax_backward_##s(void *const *p, const i64 *q) { return backward_##s(p, q, false); } \
    static i64 log_softmax_backward_##s(void *const *p, const i64 *q) { return backward_##s(p, q, true); }

SOFTMAX(float, f32, logf)
SOFTMAX(double, f64, log)

#define ENTRIES(D, s) \
    {"softmax", D, softmax_##s, {0}}, {"log_softmax", D, log_softmax_##s, {0}}, \
    {"softmax_backward", D, softmax_backward_##s, {0}}, {"log_softmax_backward", D, log_softmax_backward_##s, {0}},
FB_FAMILY(softmax) = {ENTRIES(FB_F32, f32) ENTRIES(FB_F64, f64) FB_END};
