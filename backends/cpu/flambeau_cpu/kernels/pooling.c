/* Pooling over windows of one to three dimensions, and the moves by index that unpooling and the
 * gradients of maxima are made of.
 *
 * Windows are laid over a row of outputs at a time: each tap of the window is one vectorised pass over the
 * outputs that it reaches, so that no output asks where the padding begins. */
#include "flambeau.h"
#include "half.h"
#include "registry.h"

/* Windows: p as each kernel says; q = planes, then sizes of three dimensions each:
 * input, output, kernel, stride, padding, dilation; then, for averages, whether padding counts
 * and a divisor that replaces the count (0: none).  Planes are contiguous. */
enum { Q_PLANES, Q_IN, Q_OUT = Q_IN + 3, Q_KERNEL = Q_OUT + 3, Q_STRIDE = Q_KERNEL + 3, Q_PADDING = Q_STRIDE + 3,
       Q_DILATION = Q_PADDING + 3, Q_COUNT_PADDING = Q_DILATION + 3, Q_DIVISOR };
enum { OUTPUTS = 256 }; /* outputs of a row that are worked on at a time */

#define INLINE static inline __attribute__((always_inline))

static inline i64 volume(const i64 *size) { return size[0] * size[1] * size[2]; }
static inline i64 least(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 most(i64 a, i64 b) { return a > b ? a : b; }

/* Taps [first, last) of a window that begins at `start` which lie inside [0, size). */
static inline void inside(i64 start, i64 step, i64 taps, i64 size, i64 *first, i64 *last) {
    *first = start < 0 ? (-start + step - 1) / step : 0;
    *last = start >= size ? 0 : least(taps, (size - start + step - 1) / step);
    if (*last < *first) *last = *first;
}

/* -------------------------------------------------------------------- max */

/* p = out, indices, x.  The index is flat in the plane; the first of equals wins, and NaN beats all. */
#define MAX_POOL(name, S, A, I, LOAD, LEAST, ISNAN) \
    INLINE void max_tap_##name(const i64 stride, i64 n, const S *x, I tap, A *best, I *from) { \
        for (i64 i = 0; i < n; i++) { \
            A value = LOAD(x[i * stride]); \
            bool wins = (value > best[i]) | ISNAN(value); \
            best[i] = wins ? value : best[i]; \
            from[i] = wins ? tap : from[i]; \
        } \
    } \
    static i64 max_pool_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT, *k = q + Q_KERNEL, *s = q + Q_STRIDE, *pad = q + Q_PADDING, *d = q + Q_DILATION; \
        i64 outputs = volume(out), rows = q[Q_PLANES] * out[0] * out[1]; \
        FB_PARALLEL_FOR(q[Q_PLANES] * outputs * volume(k)) \
        for (i64 row = 0; row < rows; row++) { \
            i64 y = row % out[1], z = row / out[1] % out[0], plane = row / out[1] / out[0]; \
            const S *x = (const S *)p[2] + plane * volume(in); \
            S *to = (S *)p[0] + row * out[2]; \
            i64 *at = (i64 *)p[1] + row * out[2]; \
            i64 iz = z * s[0] - pad[0], iy = y * s[1] - pad[1], z0, z1, y0, y1; \
            inside(iz, d[0], k[0], in[0], &z0, &z1); \
            inside(iy, d[1], k[1], in[1], &y0, &y1); \
            for (i64 o = 0; o < out[2]; o += OUTPUTS) { \
                i64 n = least(OUTPUTS, out[2] - o), ix = o * s[2] - pad[2]; \
                A best[OUTPUTS]; \
                I from[OUTPUTS]; \
                for (i64 i = 0; i < n; i++) best[i] = LEAST, from[i] = -1; \
                for (i64 tz = z0; tz < z1; tz++) \
                    for (i64 ty = y0; ty < y1; ty++) { \
                        const S *line = x + ((iz + tz * d[0]) * in[1] + iy + ty * d[1]) * in[2]; \
                        for (i64 tx = 0; tx < k[2]; tx++) { \
                            i64 first, last, begin = ix + tx * d[2]; \
                            inside(begin, s[2], n, in[2], &first, &last); \
                            const S *source = line + begin + first * s[2]; \
                            I tap = (I)((tz * k[1] + ty) * k[2] + tx); \
                            if (s[2] == 1) max_tap_##name(1, last - first, source, tap, best + first, from + first); \
                            else if (s[2] == 2) max_tap_##name(2, last - first, source, tap, best + first, from + first); \
                            else max_tap_##name(s[2], last - first, source, tap, best + first, from + first); \
                        } \
                    } \
                i64 corner = (iz * in[1] + iy) * in[2] + ix; \
                if (volume(k) == 4 && k[1] == 2 && k[2] == 2 && d[1] == 1 && d[2] == 1 && !pad[1] && !pad[2]) { \
                    for (i64 i = 0; i < n; i++) { /* the commonest window without divisions */ \
                        i64 tap = from[i] < 0 ? 0 : from[i]; \
                        at[o + i] = corner + i * s[2] + (tap >> 1) * in[2] + (tap & 1); \
                    } \
                } else for (i64 i = 0; i < n; i++) { \
                    i64 tap = from[i], tx, ty, tz; \
                    if (tap < 0) { /* nothing but -inf: the first element of the window */ \
                        i64 first, last; \
                        inside(ix + i * s[2], d[2], k[2], in[2], &first, &last); \
                        tz = z0, ty = y0, tx = first; \
                    } else tx = tap % k[2], ty = tap / k[2] % k[1], tz = tap / k[2] / k[1]; \
                    at[o + i] = corner + i * s[2] + (tz * d[0] * in[1] + ty * d[1]) * in[2] + tx * d[2]; \
                } \
                for (i64 i = 0; i < n; i++) to[o + i] = STORE_##name(best[i]); \
            } \
        } \
        return 0; \
    } \
    static i64 adaptive_max_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT; \
        i64 outputs = volume(out); \
        FB_PARALLEL_FOR(q[Q_PLANES] * volume(in)) \
        for (i64 i = 0; i < q[Q_PLANES] * outputs; i++) { \
            const S *x = (const S *)p[2] + i / outputs * volume(in); \
            i64 index[] = {i % outputs / out[2] / out[1], i % outputs / out[2] % out[1], i % out[2]}, from[3], to[3], at = -1; \
            for (int e = 0; e < 3; e++) from[e] = index[e] * in[e] / out[e], to[e] = ((index[e] + 1) * in[e] + out[e] - 1) / out[e]; \
            A best = LEAST; \
            for (i64 z = from[0]; z < to[0]; z++) \
                for (i64 y = from[1]; y < to[1]; y++) \
                    for (i64 w = from[2]; w < to[2]; w++) { \
                        i64 here = (z * in[1] + y) * in[2] + w; \
                        A value = LOAD(x[here]); \
                        if (value > best || ISNAN(value) || at < 0) best = value, at = here; \
                    } \
            ((S *)p[0])[i] = STORE_##name(best); \
            ((i64 *)p[1])[i] = at; \
        } \
        return 0; \
    }
#define SAME(value) (value)
#define IS_NAN(value) ((value) != (value))
#define NEVER(value) 0
#define STORE_f32 SAME
#define STORE_f64 SAME
#define STORE_f16 f16_from_float
#define STORE_bf16 bf16_from_float
#define STORE_i64 SAME
#define STORE_i32 SAME
#define STORE_i16 SAME
#define STORE_i8 SAME
#define STORE_u8 SAME
MAX_POOL(f32, float, float, int32_t, SAME, -INFINITY, IS_NAN)
MAX_POOL(f64, double, double, i64, SAME, -INFINITY, IS_NAN)
MAX_POOL(f16, f16, float, int32_t, f16_to_float, -INFINITY, IS_NAN)
MAX_POOL(bf16, bf16, float, int32_t, bf16_to_float, -INFINITY, IS_NAN)
MAX_POOL(i64, i64, i64, i64, SAME, INT64_MIN, NEVER)
MAX_POOL(i32, int32_t, int32_t, int32_t, SAME, INT32_MIN, NEVER)
MAX_POOL(i16, int16_t, int16_t, int32_t, SAME, INT16_MIN, NEVER)
MAX_POOL(i8, int8_t, int8_t, int32_t, SAME, INT8_MIN, NEVER)
MAX_POOL(u8, uint8_t, uint8_t, int32_t, SAME, 0, NEVER)

/* ---------------------------------------------------------------- average */

/* How many elements of a window count along one dimension, padding included or not. */
static inline i64 counted(i64 start, i64 kernel, i64 size, i64 padding, bool with_padding) {
    i64 end = least(start + kernel, size + padding);
    return with_padding ? end - start : least(end, size) - most(start, 0);
}

/* avg_pool: p = out, x.   avg_pool_backward: p = gradient of x, gradient of out. */
#define AVG_POOL(name, S, A, LOAD) \
    INLINE void sum_tap_##name(const i64 stride, i64 n, const S *x, A *sum) { \
        for (i64 i = 0; i < n; i++) sum[i] += LOAD(x[i * stride]); \
    } \
    INLINE void spread_tap_##name(const i64 stride, i64 n, const A *share, A *x) { \
        for (i64 i = 0; i < n; i++) x[i * stride] += share[i]; \
    } \
    static void divisors_##name(const i64 *q, i64 z, i64 y, i64 o, i64 n, A *divisor) { \
        const i64 *in = q + Q_IN, *k = q + Q_KERNEL, *s = q + Q_STRIDE, *pad = q + Q_PADDING; \
        bool all = q[Q_COUNT_PADDING]; \
        i64 rest = counted(z * s[0] - pad[0], k[0], in[0], pad[0], all) * counted(y * s[1] - pad[1], k[1], in[1], pad[1], all); \
        for (i64 i = 0; i < n; i++) \
            divisor[i] = (A)(q[Q_DIVISOR] ? q[Q_DIVISOR] : rest * counted((o + i) * s[2] - pad[2], k[2], in[2], pad[2], all)); \
    } \
    static i64 avg_pool_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT, *k = q + Q_KERNEL, *s = q + Q_STRIDE, *pad = q + Q_PADDING; \
        i64 rows = q[Q_PLANES] * out[0] * out[1]; \
        FB_PARALLEL_FOR(q[Q_PLANES] * volume(out) * volume(k)) \
        for (i64 row = 0; row < rows; row++) { \
            i64 y = row % out[1], z = row / out[1] % out[0], plane = row / out[1] / out[0]; \
            const S *x = (const S *)p[1] + plane * volume(in); \
            S *to = (S *)p[0] + row * out[2]; \
            i64 iz = z * s[0] - pad[0], iy = y * s[1] - pad[1], z0, z1, y0, y1; \
            inside(iz, 1, k[0], in[0], &z0, &z1); \
            inside(iy, 1, k[1], in[1], &y0, &y1); \
            for (i64 o = 0; o < out[2]; o += OUTPUTS) { \
                i64 n = least(OUTPUTS, out[2] - o); \
                A sum[OUTPUTS] = {0}, divisor[OUTPUTS]; \
                for (i64 tz = z0; tz < z1; tz++) \
                    for (i64 ty = y0; ty < y1; ty++) \
                        for (i64 tx = 0; tx < k[2]; tx++) { \
                            i64 first, last, begin = o * s[2] - pad[2] + tx; \
                            inside(begin, s[2], n, in[2], &first, &last); \
                            const S *source = x + ((iz + tz) * in[1] + iy + ty) * in[2] + begin + first * s[2]; \
                            if (s[2] == 1) sum_tap_##name(1, last - first, source, sum + first); \
                            else if (s[2] == 2) sum_tap_##name(2, last - first, source, sum + first); \
                            else sum_tap_##name(s[2], last - first, source, sum + first); \
                        } \
                divisors_##name(q, z, y, o, n, divisor); \
                for (i64 i = 0; i < n; i++) to[o + i] = STORE_##name((A)(sum[i] / divisor[i])); \
            } \
        } \
        return 0; \
    } \
    static i64 avg_pool_backward_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT, *k = q + Q_KERNEL, *s = q + Q_STRIDE, *pad = q + Q_PADDING; \
        A *sums = fb_allocate((size_t)(q[Q_PLANES] * volume(in) + 1) * sizeof(A)); \
        if (!sums) return -1; \
        FB_PARALLEL_FOR(q[Q_PLANES] * volume(out) * volume(k)) \
        for (i64 plane = 0; plane < q[Q_PLANES]; plane++) { \
            A *x = sums + plane * volume(in); \
            S *result = (S *)p[0] + plane * volume(in); \
            memset(x, 0, (size_t)volume(in) * sizeof(A)); \
            for (i64 z = 0; z < out[0]; z++) \
                for (i64 y = 0; y < out[1]; y++) { \
                    const S *from = (const S *)p[1] + ((plane * out[0] + z) * out[1] + y) * out[2]; \
                    i64 iz = z * s[0] - pad[0], iy = y * s[1] - pad[1], z0, z1, y0, y1; \
                    inside(iz, 1, k[0], in[0], &z0, &z1); \
                    inside(iy, 1, k[1], in[1], &y0, &y1); \
                    for (i64 o = 0; o < out[2]; o += OUTPUTS) { \
                        i64 n = least(OUTPUTS, out[2] - o); \
                        A share[OUTPUTS], divisor[OUTPUTS]; \
                        divisors_##name(q, z, y, o, n, divisor); \
                        for (i64 i = 0; i < n; i++) share[i] = LOAD(from[o + i]) / divisor[i]; \
                        for (i64 tz = z0; tz < z1; tz++) \
                            for (i64 ty = y0; ty < y1; ty++) \
                                for (i64 tx = 0; tx < k[2]; tx++) { \
                                    i64 first, last, begin = o * s[2] - pad[2] + tx; \
                                    inside(begin, s[2], n, in[2], &first, &last); \
                                    A *target = x + ((iz + tz) * in[1] + iy + ty) * in[2] + begin + first * s[2]; \
                                    if (s[2] == 1) spread_tap_##name(1, last - first, share + first, target); \
                                    else if (s[2] == 2) spread_tap_##name(2, last - first, share + first, target); \
                                    else spread_tap_##name(s[2], last - first, share + first, target); \
                                } \
                    } \
                } \
            for (i64 i = 0; i < volume(in); i++) result[i] = STORE_##name(x[i]); \
        } \
        fb_release(sums); \
        return 0; \
    }
AVG_POOL(f32, float, float, SAME)
AVG_POOL(f64, double, double, SAME)
AVG_POOL(f16, f16, float, f16_to_float)
AVG_POOL(bf16, bf16, float, bf16_to_float)
AVG_POOL(i64, i64, i64, SAME)

/* Adaptive averages: output o of n covers [o * size / n, ceil((o + 1) * size / n)).
 * adaptive_avg: p = out, x.   adaptive_avg_backward: p = gradient of x, gradient of out. */
#define ADAPTIVE_AVG(name, S, A, LOAD) \
    static i64 adaptive_avg_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT; \
        i64 outputs = volume(out); \
        FB_PARALLEL_FOR(q[Q_PLANES] * volume(in)) \
        for (i64 i = 0; i < q[Q_PLANES] * outputs; i++) { \
            const S *x = (const S *)p[1] + i / outputs * volume(in); \
            i64 index[] = {i % outputs / out[2] / out[1], i % outputs / out[2] % out[1], i % out[2]}, from[3], to[3]; \
            for (int e = 0; e < 3; e++) from[e] = index[e] * in[e] / out[e], to[e] = ((index[e] + 1) * in[e] + out[e] - 1) / out[e]; \
            A sum = 0; \
            for (i64 z = from[0]; z < to[0]; z++) \
                for (i64 y = from[1]; y < to[1]; y++) { \
                    const S *line = x + (z * in[1] + y) * in[2]; \
                    A part = 0; \
                    FB_PRAGMA(omp simd reduction(+ : part)) \
                    for (i64 w = from[2]; w < to[2]; w++) part += LOAD(line[w]); \
                    sum += part; \
                } \
            ((S *)p[0])[i] = STORE_##name((A)(sum / (A)((to[0] - from[0]) * (to[1] - from[1]) * (to[2] - from[2])))); \
        } \
        return 0; \
    } \
    static i64 adaptive_avg_backward_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT; \
        i64 outputs = volume(out); \
        A *sums = fb_allocate((size_t)(q[Q_PLANES] * volume(in) + 1) * sizeof(A)); \
        if (!sums) return -1; \
        FB_PARALLEL_FOR(q[Q_PLANES] * volume(in)) \
        for (i64 plane = 0; plane < q[Q_PLANES]; plane++) { \
            A *x = sums + plane * volume(in); \
            S *result = (S *)p[0] + plane * volume(in); \
            memset(x, 0, (size_t)volume(in) * sizeof(A)); \
            for (i64 i = 0; i < outputs; i++) { \
                i64 index[] = {i / out[2] / out[1], i / out[2] % out[1], i % out[2]}, from[3], to[3]; \
                for (int e = 0; e < 3; e++) from[e] = index[e] * in[e] / out[e], to[e] = ((index[e] + 1) * in[e] + out[e] - 1) / out[e]; \
                A share = LOAD(((const S *)p[1])[plane * outputs + i]) / (A)((to[0] - from[0]) * (to[1] - from[1]) * (to[2] - from[2])); \
                for (i64 z = from[0]; z < to[0]; z++) \
                    for (i64 y = from[1]; y < to[1]; y++) \
                        for (i64 w = from[2]; w < to[2]; w++) x[(z * in[1] + y) * in[2] + w] += share; \
            } \
            for (i64 i = 0; i < volume(in); i++) result[i] = STORE_##name(x[i]); \
        } \
        fb_release(sums); \
        return 0; \
    }
ADAPTIVE_AVG(f32, float, float, SAME)
ADAPTIVE_AVG(f64, double, double, SAME)
ADAPTIVE_AVG(f16, f16, float, f16_to_float)
ADAPTIVE_AVG(bf16, bf16, float, bf16_to_float)

/* ---------------------------------------------------------- moves by index */

/* q = planes, elements of a plane of x, elements of a plane of y.  Each y has an index into its plane of x.
 * Returns 1 + the flat position of the first index outside the plane; then nothing is written.
 *   plane_add: p = x, y, indices   x = sum of the y that point here, 0 where none does
 *   plane_put: p = x, y, indices   x = the last y that points here, 0 where none does
 *   plane_get: p = y, x, indices   y = the x that it points to */
static i64 bad_index(const i64 *q, const i64 *index) {
    i64 bad = 0;
    for (i64 i = 0; i < q[0] * q[2]; i++) bad += (uint64_t)index[i] >= (uint64_t)q[1];
    for (i64 i = 0; bad && i < q[0] * q[2]; i++)
        if ((uint64_t)index[i] >= (uint64_t)q[1]) return i + 1;
    return 0;
}

#define MOVES(name, S, ADD) \
    static i64 plane_add_##name(void *const *p, const i64 *q) { \
        i64 bad = bad_index(q, p[2]); \
        if (bad) return bad; \
        FB_PARALLEL_FOR(q[0] * q[1]) \
        for (i64 plane = 0; plane < q[0]; plane++) { \
            S *x = (S *)p[0] + plane * q[1]; \
            const S *y = (const S *)p[1] + plane * q[2]; \
            const i64 *at = (const i64 *)p[2] + plane * q[2]; \
            memset(x, 0, (size_t)q[1] * sizeof(S)); \
            for (i64 i = 0; i < q[2]; i++) x[at[i]] = ADD(x[at[i]], y[i]); \
        } \
        return 0; \
    }
#define PUT_GET(bits, S) \
    static i64 plane_put_##bits(void *const *p, const i64 *q) { \
        i64 bad = bad_index(q, p[2]); \
        if (bad) return bad; \
        FB_PARALLEL_FOR(q[0] * q[1]) \
        for (i64 plane = 0; plane < q[0]; plane++) { \
            S *x = (S *)p[0] + plane * q[1]; \
            const S *y = (const S *)p[1] + plane * q[2]; \
            const i64 *at = (const i64 *)p[2] + plane * q[2]; \
            memset(x, 0, (size_t)q[1] * sizeof(S)); \
            for (i64 i = 0; i < q[2]; i++) x[at[i]] = y[i]; \
        } \
        return 0; \
    } \
    static i64 plane_get_##bits(void *const *p, const i64 *q) { \
        i64 bad = bad_index(q, p[2]); \
        if (bad) return bad; \
        FB_PARALLEL_FOR(q[0] * q[2]) \
        for (i64 i = 0; i < q[0] * q[2]; i++) \
            ((S *)p[0])[i] = ((const S *)p[1])[i / q[2] * q[1] + ((const i64 *)p[2])[i]]; \
        return 0; \
    }
#define PLUS(a, b) ((a) + (b))
#define F16_PLUS(a, b) f16_from_float(f16_to_float(a) + f16_to_float(b))
#define BF16_PLUS(a, b) bf16_from_float(bf16_to_float(a) + bf16_to_float(b))
MOVES(f32, float, PLUS)
MOVES(f64, double, PLUS)
MOVES(f16, f16, F16_PLUS)
MOVES(bf16, bf16, BF16_PLUS)
PUT_GET(8, uint8_t)
PUT_GET(16, uint16_t)
PUT_GET(32, uint32_t)
PUT_GET(64, uint64_t)

#define MAXIMA(name, code, bits) \
    {"max_pool", code, max_pool_##name, {0}}, {"adaptive_max", code, adaptive_max_##name, {0}}, \
    {"plane_put", code, plane_put_##bits, {0}}, {"plane_get", code, plane_get_##bits, {0}}
#define AVERAGES(name, code) \
    {"avg_pool", code, avg_pool_##name, {0}}, {"avg_pool_backward", code, avg_pool_backward_##name, {0}}
#define FLOATS(name, code) \
    {"adaptive_avg", code, adaptive_avg_##name, {0}}, {"adaptive_avg_backward", code, adaptive_avg_backward_##name, {0}}, \
    {"plane_add", code, plane_add_##name, {0}}
FB_FAMILY(pooling) = {
    MAXIMA(f32, FB_F32, 32), MAXIMA(f64, FB_F64, 64), MAXIMA(f16, FB_F16, 16), MAXIMA(bf16, FB_BF16, 16), MAXIMA(i64, FB_I64, 64),
    MAXIMA(i32, FB_I32, 32), MAXIMA(i16, FB_I16, 16), MAXIMA(i8, FB_I8, 8), MAXIMA(u8, FB_U8, 8),
    AVERAGES(f32, FB_F32), AVERAGES(f64, FB_F64), AVERAGES(f16, FB_F16), AVERAGES(bf16, FB_BF16), AVERAGES(i64, FB_I64),
    FLOATS(f32, FB_F32), FLOATS(f64, FB_F64), FLOATS(f16, FB_F16), FLOATS(bf16, FB_BF16), FB_END};
