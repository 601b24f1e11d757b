/* Products of matrices and vectors: one kernel, "gemm", serves mm, bmm, mv, linear and their
 * add- forms; "dot" is the inner product of two vectors. */
#include "flambeau.h"
#include "half.h"
#include "registry.h"

#define T float
#define N(name) name##_f32
#include "tile.h"
#include "gemm.h"
#undef T
#undef N
#define T double
#define N(name) name##_f64
#include "tile.h"
#include "gemm.h"
#undef T
#undef N
#define T uint32_t /* unsigned: wraps around as signed integers do, without undefined behaviour */
#define N(name) name##_i32
#include "tile.h"
#include "gemm.h"
#undef T
#undef N
#define T uint64_t
#define N(name) name##_i64
#include "tile.h"
#include "gemm.h"
#undef T
#undef N

enum { NO_MEMORY = -1 };

/* gemm: p = c, a, b, bias (or NULL);  c = alpha * a b + beta * bias for each of a batch.
 * q = batch, m, n, k, then batch, row and column stride of a, b, c and bias, then alpha and beta
 * (the bits of a double, or an integer).  c is m x n, a is m x k, b is k x n, bias repeats where a stride is 0.
 * With beta == 0 the bias is not read, with alpha == 0 neither are a and b. */
enum { Q_BATCH, Q_M, Q_N, Q_K, Q_A, Q_B = Q_A + 3, Q_C = Q_B + 3, Q_BIAS = Q_C + 3, Q_ALPHA = Q_BIAS + 3, Q_BETA };

#define GEMM(name, T, SCALAR) \
    static bool gemm_at_##name(void *const *p, const i64 *q, i64 i, i64 k, T alpha, T beta, i64 threads) { \
        const i64 *a = q + Q_A, *b = q + Q_B, *c = q + Q_C, *bias = q + Q_BIAS; \
        target_##name t = {(T *)p[0] + i * c[0], c[1], c[2], beta == 0 || !p[3] ? NULL : (const T *)p[3] + i * bias[0], bias[1], bias[2], \
                           alpha, beta}; \
        return gemm_##name(q[Q_M], q[Q_N], k, (const T *)p[1] + i * a[0], a[1], a[2], (const T *)p[2] + i * b[0], b[1], b[2], t, threads); \
    } \
    static i64 gemm_batch_##name(void *const *p, const i64 *q) { \
        i64 batch = q[Q_BATCH], k = q[Q_K], each = q[Q_M] * q[Q_N] * (k + 1), threads = fb_threads; \
        T alpha = (T)SCALAR(q[Q_ALPHA]), beta = (T)SCALAR(q[Q_BETA]); \
        if (alpha == 0) k = 0, alpha = 1; \
        bool failed = false; \
        if (threads > 1 && batch >= threads && batch * each >= FB_THREAD_WORK && (batch >= 4 * threads || each < 8 * FB_THREAD_WORK)) { \
            /* Many products: a thread takes whole ones. */ \
            FB_PRAGMA(omp parallel for schedule(static) num_threads((int)threads) reduction(|| : failed)) \
            for (i64 i = 0; i < batch; i++) failed = !gemm_at_##name(p, q, i, k, alpha, beta, 1) || failed; \
        } else /* Few: each is split.  (Even an idle parallel region would cost more than a small product.) */ \
            for (i64 i = 0; i < batch; i++) failed = !gemm_at_##name(p, q, i, k, alpha, beta, threads) || failed; \
        return failed ? NO_MEMORY : 0; \
    }
#define SAME(bits) (bits)
GEMM(f32, float, fb_double)
GEMM(f64, double, fb_double)
GEMM(i32, uint32_t, SAME)
GEMM(i64, uint64_t, SAME)

/* Narrow elements are widened, multiplied, and narrowed again. */
#define NARROW(name, S, T, wide, LOAD, STORE) \
    static void widen_##name(const S *from, const i64 *stride, i64 rows, i64 columns, T *to) { \
        FB_PARALLEL_FOR(rows * columns) \
        for (i64 r = 0; r < rows; r++) \
            for (i64 c = 0; c < columns; c++) to[r * columns + c] = LOAD(from[r * stride[1] + c * stride[2]]); \
    } \
    static i64 gemm_batch_##name(void *const *p, const i64 *q) { \
        i64 batch = q[Q_BATCH], m = q[Q_M], n = q[Q_N], k = q[Q_K]; \
        bool bias = p[3] && (wide##_SCALAR(q[Q_BETA]) != 0); \
        T *a = fb_allocate((size_t)(m * k + k * n + m * n * (1 + bias)) * sizeof(T)); \
        if (!a) return NO_MEMORY; \
        T *b = a + m * k, *c = b + k * n, *d = bias ? c + m * n : NULL; \
        i64 one[] = {1, m, n, k, 0, k, 1, 0, n, 1, 0, n, 1, 0, n, 1, q[Q_ALPHA], q[Q_BETA]}, error = 0; \
        const i64 *to = q + Q_C; \
        for (i64 i = 0; i < batch && !error; i++) { \
            widen_##name((const S *)p[1] + i * q[Q_A], q + Q_A, m, k, a); \
            widen_##name((const S *)p[2] + i * q[Q_B], q + Q_B, k, n, b); \
            if (bias) widen_##name((const S *)p[3] + i * q[Q_BIAS], q + Q_BIAS, m, n, d); \
            void *const wide_p[] = {c, a, b, d}; \
            error = gemm_batch_##wide(wide_p, one); \
            S *out = (S *)p[0] + i * to[0]; \
            FB_PARALLEL_FOR(m * n) \
            for (i64 r = 0; r < m; r++) \
                for (i64 j = 0; j < n; j++) out[r * to[1] + j * to[2]] = STORE(c[r * n + j]); \
        } \
        fb_release(a); \
        return error; \
    }
#define f32_SCALAR fb_double
#define i32_SCALAR SAME
#define INT_LOAD(value) (uint32_t)(value)
NARROW(f16, f16, float, f32, f16_to_float, f16_from_float)
NARROW(bf16, bf16, float, f32, bf16_to_float, bf16_from_float)
NARROW(i16, int16_t, uint32_t, i32, INT_LOAD, (int16_t))
NARROW(i8, int8_t, uint32_t, i32, INT_LOAD, (int8_t))
NARROW(u8, uint8_t, uint32_t, i32, INT_LOAD, (uint8_t))

/* dot: p = out, x, y;  q = n, stride of x, stride of y.  Summed in pieces of fixed length, whatever the threads. */
enum { PIECE = 1 << 16 };

#define DOT(name, S, T, wide, LOAD, STORE, plain) \
    static T dot_piece_##name(const S *x, i64 xs, const S *y, i64 ys, i64 n) { \
        if (plain && xs == 1 && ys == 1) return dot_##wide(n, (const T *)x, (const T *)y); \
        enum { CHUNK = 1024 }; \
        T a[CHUNK], b[CHUNK], sum = 0; \
        for (i64 i = 0; i < n; i += CHUNK) { \
            i64 count = fb_least(CHUNK, n - i); \
            for (i64 j = 0; j < count; j++) a[j] = LOAD(x[(i + j) * xs]), b[j] = LOAD(y[(i + j) * ys]); \
            sum += dot_##wide(count, a, b); \
        } \
        return sum; \
    } \
    static i64 dot_all_##name(void *const *p, const i64 *q) { \
        i64 n = q[0], pieces = fb_ceil(n, PIECE); \
        T few[64], *sums = pieces <= 64 ? few : fb_allocate((size_t)pieces * sizeof(T)); \
        if (!sums) return NO_MEMORY; \
        FB_PARALLEL_FOR(n / 4) \
        for (i64 i = 0; i < pieces; i++) \
            sums[i] = dot_piece_##name((const S *)p[1] + i * PIECE * q[1], q[1], (const S *)p[2] + i * PIECE * q[2], q[2], \
                                       fb_least(PIECE, n - i * PIECE)); \
        for (i64 width = 1; width < pieces; width *= 2) \
            for (i64 i = 0; i + width < pieces; i += 2 * width) sums[i] += sums[i + width]; \
        *(S *)p[0] = STORE(pieces ? sums[0] : 0); \
        if (sums != few) fb_release(sums); \
        return 0; \
    }
DOT(f32, float, float, f32, SAME, SAME, true)
DOT(f64, double, double, f64, SAME, SAME, true)
DOT(f16, f16, float, f32, f16_to_float, f16_from_float, false)
DOT(bf16, bf16, float, f32, bf16_to_float, bf16_from_float, false)
DOT(i64, uint64_t, uint64_t, i64, SAME, SAME, true)
DOT(i32, uint32_t, uint32_t, i32, SAME, SAME, true)
DOT(i16, int16_t, uint32_t, i32, INT_LOAD, (int16_t), false)
DOT(i8, int8_t, uint32_t, i32, INT_LOAD, (int8_t), false)
DOT(u8, uint8_t, uint32_t, i32, INT_LOAD, (uint8_t), false)

#define ROW(name, code) {"gemm", code, gemm_batch_##name, {0}}, {"dot", code, dot_all_##name, {0}}
FB_FAMILY(linalg) = {
    ROW(f32, FB_F32), ROW(f64, FB_F64), ROW(i64, FB_I64), ROW(i32, FB_I32), ROW(i16, FB_I16), ROW(i8, FB_I8),
    ROW(u8, FB_U8), ROW(f16, FB_F16), ROW(bf16, FB_BF16), FB_END};
