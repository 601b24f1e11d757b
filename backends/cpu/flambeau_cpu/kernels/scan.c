/* Running sums, products and extrema along one dimension.
 *
 * Parameters q: outer, n, inner of a contiguous (outer, n, inner) tensor that is scanned
 * along n.  p: output, input, and for extrema the indices. */
#include "half.h"
#include "lanes.h"

enum {
    BLOCK = 64,    /* elements whose prefixes are found side by side */
    CHUNK = 65536, /* of a row; fixed, so that sums do not depend on threads */
    TILE = 512,    /* columns side by side */
};

/* Eight neighbours in a vector; three shifted additions make their prefix sums. */
typedef float eight_f32 __attribute__((vector_size(32), aligned(4)));
typedef double eight_f64 __attribute__((vector_size(64), aligned(8)));
typedef uint64_t eight_i64 __attribute__((vector_size(64), aligned(8)));
#define PREFIXES(v, zero) \
    v += __builtin_shufflevector(v, zero, 8, 0, 1, 2, 3, 4, 5, 6); \
    v += __builtin_shufflevector(v, zero, 8, 8, 0, 1, 2, 3, 4, 5); \
    v += __builtin_shufflevector(v, zero, 8, 8, 8, 8, 0, 1, 2, 3);

/* Running sum of a chunk that starts from `base`; returns the sum of the chunk alone.  Sums of
 * blocks are added up in W, so that errors do not add up.  Without an output it only adds up. */
#define SUM_CHUNK(s, L, W, eight) \
    static W sum_chunk_##s(const L *x, L *o, i64 n, W base) { \
        const eight zero = {0}; \
        W total = 0; \
        i64 i = 0; \
        for (; i + BLOCK <= n; i += BLOCK) { \
            eight v[BLOCK / 8]; \
            for (int k = 0; k < BLOCK / 8; k++) { v[k] = *(const eight *)(x + i + 8 * k); PREFIXES(v[k], zero) } \
            for (int k = 0; k < BLOCK / 8; k++) { \
                if (o) *(eight *)(o + i + 8 * k) = v[k] + (L)(base + total); \
                total += v[k][7]; \
            } \
        } \
        for (; i < n; i++) { \
            total += x[i]; \
            if (o) o[i] = (L)(base + total); \
        } \
        return total; \
    } \
    static void sum_row_##s(const L *x, L *o, i64 n) { \
        W base = 0; \
        for (i64 i = 0; i < n; i += CHUNK) base += sum_chunk_##s(x + i, o + i, n - i < CHUNK ? n - i : CHUNK, base); \
    } \
    /* One long row on several threads: first what every chunk adds, then the chunks. */ \
    static i64 sum_long_row_##s(const L *x, L *o, i64 n) { \
        i64 chunks = (n + CHUNK - 1) / CHUNK; \
        W *base = malloc((size_t)chunks * sizeof *base), sum = 0; \
        if (!base) return 1; \
        FB_PARALLEL_FOR(n) \
        for (i64 c = 0; c < chunks; c++) \
            base[c] = sum_chunk_##s(x + c * CHUNK, NULL, n - c * CHUNK < CHUNK ? n - c * CHUNK : CHUNK, 0); \
        for (i64 c = 0; c < chunks; c++) { W own = base[c]; base[c] = sum; sum += own; } \
        FB_PARALLEL_FOR(n) \
        for (i64 c = 0; c < chunks; c++) \
            sum_chunk_##s(x + c * CHUNK, o + c * CHUNK, n - c * CHUNK < CHUNK ? n - c * CHUNK : CHUNK, base[c]); \
        free(base); \
        return 0; \
    }
SUM_CHUNK(f32, float, double, eight_f32)
SUM_CHUNK(f64, double, double, eight_f64)
SUM_CHUNK(i64, uint64_t, uint64_t, eight_i64)

/* float16 and bfloat16 rows add up in double, one by one. */
#define SUM_ROW_OF_HALVES(s, T) \
    static void sum_row_##s(const T *x, T *o, i64 n) { \
        double sum = 0; \
        for (i64 i = 0; i < n; i++) { sum += s##_to_float(x[i]); o[i] = s##_from_float((float)sum); } \
    } \
    static i64 sum_long_row_##s(const T *x, T *o, i64 n) { sum_row_##s(x, o, n); return 0; }
SUM_ROW_OF_HALVES(f16, f16)
SUM_ROW_OF_HALVES(bf16, bf16)

#define PRODUCT_ROW(s, T, LOAD, STORE, L, W) \
    static void prod_row_##s(const T *x, T *o, i64 n) { \
        W product = 1; \
        for (i64 i = 0; i < n; i++) { product *= LOAD(x[i]); o[i] = STORE(product); } \
    }

/* Columns side by side: `width` of them, `stride` from one row to the next. */
#define COLUMNS(name, s, T, LOAD, STORE, W, IDENTITY, OP) \
    static void name##_columns_##s(const T *x, T *o, i64 n, i64 width, i64 stride) { \
        W run[TILE]; \
        for (i64 j = 0; j < width; j++) run[j] = IDENTITY; \
        for (i64 i = 0; i < n; i++, x += stride, o += stride) \
            for (i64 j = 0; j < width; j++) { run[j] = run[j] OP LOAD(x[j]); o[j] = STORE(run[j]); } \
    }

#define SCAN(name, s, T, SPLIT_LONG_ROW) \
    static i64 cum##name##_##s(void *const *p, const i64 *q) { \
        T *out = p[0]; const T *in = p[1]; \
        i64 outer = q[0], n = q[1], inner = q[2], tiles = (inner + TILE - 1) / TILE; \
        SPLIT_LONG_ROW \
        FB_PARALLEL_FOR(outer * n * inner) \
        for (i64 unit = 0; unit < outer * tiles; unit++) { \
            i64 at = unit % tiles * TILE, start = unit / tiles * n * inner + at; \
            if (inner == 1) name##_row_##s(in + start, out + start, n); \
            else name##_columns_##s(in + start, out + start, n, inner - at < TILE ? inner - at : TILE, inner); \
        } \
        return 0; \
    }

/* int64 wraps, so it is unsigned here. */
#define SUMMED(X) \
    X(FB_I64, i64, uint64_t, FB_SAME, (uint64_t), uint64_t, uint64_t) \
    X(FB_F16, f16, f16, f16_to_float, f16_from_float, float, double) \
    X(FB_BF16, bf16, bf16, bf16_to_float, bf16_from_float, float, double) \
    X(FB_F32, f32, float, FB_SAME, (float), float, double) \
    X(FB_F64, f64, double, FB_SAME, (double), double, double)
#define X(D, s, T, LOAD, STORE, L, W) \
    PRODUCT_ROW(s, T, LOAD, STORE, L, W) \
    COLUMNS(sum, s, T, LOAD, STORE, W, 0, +) \
    COLUMNS(prod, s, T, LOAD, STORE, W, 1, *) \
    SCAN(sum, s, T, if (fb_threads > 1 && outer * inner == 1 && n >= 2 * CHUNK) return sum_long_row_##s(in, out, n);) \
    SCAN(prod, s, T, )
SUMMED(X)
#undef X

/* y[i] = drive[i] + c y[i-1] with c = coefficient[i] (own) or coefficient[i-1]; backwards if reverse.
 * p: y, coefficient, drive.  q: outer, n, inner, reverse, own. */
#define RECURRENCE(s, T) \
    static i64 recurrence_##s(void *const *p, const i64 *q) { \
        T *out = p[0]; const T *coefficient = p[1], *drive = p[2]; \
        i64 n = q[1], inner = q[2], tiles = (inner + TILE - 1) / TILE; \
        FB_PARALLEL_FOR(2 * q[0] * n * inner) \
        for (i64 unit = 0; unit < q[0] * tiles; unit++) { \
            i64 at = unit % tiles * TILE, start = unit / tiles * n * inner + at, width = inner - at < TILE ? inner - at : TILE; \
            T y[TILE] = {0}; \
            for (i64 i = 0; i < n; i++) { \
                i64 k = start + (q[3] ? n - 1 - i : i) * inner; \
                const T *c = coefficient + (i == 0 || q[4] ? k : q[3] ? k + inner : k - inner); \
                for (i64 j = 0; j < width; j++) out[k + j] = y[j] = i ? drive[k + j] + c[j] * y[j] : drive[k + j]; \
            } \
        } \
        return 0; \
    }
RECURRENCE(f32, float)
RECURRENCE(f64, double)

/* log(e^a + e^b); the larger one apart, so that nothing overflows. */
static inline double log_add(double a, double b) {
    double high = a > b ? a : b, low = a > b ? b : a;
    if (a != a || b != b) return NAN;
    return low == high && isinf(low) ? low : high + log1p(exp(low - high));
}

#define LOGCUMSUMEXP(D, s, T, LOAD, STORE) \
    static i64 logcumsumexp_##s(void *const *p, const i64 *q) { \
        T *out = p[0]; const T *in = p[1]; \
        i64 n = q[1], inner = q[2]; \
        FB_PARALLEL_FOR(16 * q[0] * n * inner) \
        for (i64 line = 0; line < q[0] * inner; line++) { \
            i64 start = line / inner * n * inner + line % inner; \
            double run = -INFINITY; \
            for (i64 i = 0; i < n; i++) { \
                run = log_add(run, LOAD(in[start + i * inner])); \
                out[start + i * inner] = STORE(run); \
            } \
        } \
        return 0; \
    }

/* Of equal extremes the last one counts; NaN is more extreme than any number. */
#define EXTREMUM(name, D, s, T, LOAD, OP) \
    static i64 name##_##s(void *const *p, const i64 *q) { \
        T *out = p[0]; const T *in = p[1]; i64 *indices = p[2]; \
        i64 n = q[1], inner = q[2]; \
        FB_PARALLEL_FOR(2 * q[0] * n * inner) \
        for (i64 line = 0; line < q[0] * inner; line++) { \
            i64 start = line / inner * n * inner + line % inner, best = start; \
            for (i64 i = 0; i < n; i++) { \
                i64 at = start + i * inner; \
                __auto_type v = LOAD(in[at]); __auto_type old = LOAD(in[best]); \
                if (v != v || (old == old && v OP old)) best = at; \
                out[at] = in[best]; \
                indices[at] = (best - start) / inner; \
            } \
        } \
        return 0; \
    }
#define EXTREMA(D, s, T, LOAD) EXTREMUM(cummax, D, s, T, LOAD, >=) EXTREMUM(cummin, D, s, T, LOAD, <=)
#define WHOLE(X) \
    X(FB_BOOL, b8, uint8_t, FB_SAME) \
    X(FB_U8, u8, uint8_t, FB_SAME) \
    X(FB_I8, i8, int8_t, FB_SAME) \
    X(FB_I16, i16, int16_t, FB_SAME) \
    X(FB_I32, i32, int32_t, FB_SAME) \
    X(FB_I64, i64, int64_t, FB_SAME)
#define FLOATS(X) \
    X(FB_F16, f16, f16, f16_to_float) \
    X(FB_BF16, bf16, bf16, bf16_to_float) \
    X(FB_F32, f32, float, FB_SAME) \
    X(FB_F64, f64, double, FB_SAME)
WHOLE(EXTREMA)
FLOATS(EXTREMA)
LOGCUMSUMEXP(FB_F16, f16, f16, f16_to_float, f16_from_float)
LOGCUMSUMEXP(FB_BF16, bf16, bf16, bf16_to_float, bf16_from_float)
LOGCUMSUMEXP(FB_F32, f32, float, FB_SAME, (float))
LOGCUMSUMEXP(FB_F64, f64, double, FB_SAME, (double))

FB_FAMILY(scan) = {
#define X(D, s, T, LOAD) {"cummax", D, cummax_##s, {0}}, {"cummin", D, cummin_##s, {0}},
    WHOLE(X)
    FLOATS(X)
#undef X
#define X(D, s, T, LOAD, STORE, L, W) {"cumsum", D, cumsum_##s, {0}}, {"cumprod", D, cumprod_##s, {0}},
    SUMMED(X)
#undef X
    {"recurrence", FB_F32, recurrence_f32, {0}}, {"recurrence", FB_F64, recurrence_f64, {0}},
#define X(D, s, T, LOAD) {"logcumsumexp", D, logcumsumexp_##s, {0}},
    FLOATS(X)
#undef X
    FB_END};
