/* Reductions: sum, prod, extrema, any, all, norms, variance; see reduce.h. */
#include "lanes.h"
#include "reduce.h"
#include "vectormath.h"

enum { BLOCK = 4096, ROWS = 128 }; /* elements that a lane adds up before the wide state takes over */

/* FOLD stamps one fold: element type T read by LOAD, lane type L, state type W, the
 * identity, STEP(a, v) that takes an element into a lane (e: the parameter), JOIN(a, b)
 * for two lanes or states, and FULL(w) that says when more input cannot matter. */
#define FOLD(name, T, LOAD, L, W, IDENTITY, STEP, JOIN, FULL) \
    FB_ROW(name##_row, T, LOAD, L, IDENTITY, STEP, JOIN) \
    static void name##_clear(void *state, i64 m) { for (i64 j = 0; j < m; j++) ((W *)state)[j] = IDENTITY; } \
    static void name##_join(void *into, const void *from, i64 m) { \
        W *w = into; const W *v = from; \
        for (i64 j = 0; j < m; j++) w[j] = JOIN(w[j], v[j]); \
    } \
    static void name##_fold(void *state, const fb_panel *panel) { \
        W *w = state; const T *x = panel->x; \
        i64 n = panel->n, nx = panel->nx, m = panel->m, mx = panel->mx; \
        double e = panel->a; (void)e; \
        if (nx == 1) { \
            for (i64 j = 0; j < m; j++, x += mx) \
                for (i64 i = 0; i < n && !FULL(w[j]); i += BLOCK) { \
                    W v = name##_row(x + i, n - i < BLOCK ? n - i : BLOCK, e); \
                    w[j] = JOIN(w[j], v); \
                } \
            return; \
        } \
        L lane[FB_TILE]; \
        for (i64 i = 0; i < n; i += ROWS) { \
            i64 k = i, last = n - i < ROWS ? n : i + ROWS; \
            for (i64 j = 0; j < m; j++) lane[j] = IDENTITY; \
            for (; k + 4 <= last; k += 4, x += 4 * nx) { \
                const T *x1 = x + nx, *x2 = x1 + nx, *x3 = x2 + nx; \
                for (i64 j = 0; j < m; j++) { \
                    L a = STEP(lane[j], LOAD(x[j])); a = STEP(a, LOAD(x1[j])); \
                    a = STEP(a, LOAD(x2[j])); lane[j] = STEP(a, LOAD(x3[j])); \
                } \
            } \
            for (; k < last; k++, x += nx) \
                for (i64 j = 0; j < m; j++) lane[j] = STEP(lane[j], LOAD(x[j])); \
            for (i64 j = 0; j < m; j++) w[j] = JOIN(w[j], lane[j]); \
        } \
    }

/* ROUTINE makes the kernel `name` of elements T: the fold `base`, read directly when its
 * elements are T (compute size equal) and through GATHER otherwise. */
#define ROUTINE(name, T, GATHER, base, C, W, FINISH) \
    static i64 name(void *const *p, const i64 *q) { \
        static const fb_fold fold = {sizeof(T), sizeof(C), sizeof(W), false, GATHER, base##_clear, base##_fold, base##_join, FINISH}; \
        return fb_reduce(&fold, p, q); \
    }

/* A finish writes O from a state w; `count` elements were reduced, a and b are the parameters. */
#define FINISH(name, O, W, VALUE) \
    static void name(const void *state, i64 m, void *const *p, i64 at, i64 step, i64 reduced, const i64 *q) { \
        const W *states = state; O *out = (O *)p[0] + at; \
        double count = (double)reduced, a = fb_double(q[2]); (void)count; (void)a; \
        for (i64 j = 0; j < m; j++) { W w = states[j]; out[j * step] = VALUE; } \
    }

#define NEVER(w) 0
#define MULTIPLY(a, v) ((a) * (v))
#define OR(a, v) ((a) | ((v) != 0))
#define AND(a, v) ((a) & ((v) != 0))
#define NOT_ZERO(w) ((w) != 0)
#define IS_ZERO(w) ((w) == 0)
#define SIZE(v) _Generic((v), float: fabsf, default: fabs)(v)
#define ADD_NOT_ZERO(a, v) ((a) + ((v) != 0 ? 1 : 0))
#define ADD_SIZE(a, v) ((a) + SIZE(v))
#define ADD_SQUARE(a, v) ((a) + (v) * (v))
#define POWER(v) _Generic((v), float: fb_pow_f32(SIZE(v), (float)e), default: pow(SIZE(v), e))
#define ADD_POWER(a, v) ((a) + POWER(v))
#define MAX_SIZE(a, v) FB_MAX(a, SIZE(v))
#define MIN_SIZE(a, v) FB_MIN(a, SIZE(v))


/* The folds that there are.  The other element types are converted to one of these on
 * the way in: float16 and bfloat16 to float, small integers to int64. */
#define FOLDS_OF_INTEGER(s, T, LOW, HIGH, B) \
    FOLD(sum_##s, T, FB_SAME, uint64_t, uint64_t, 0, FB_ADD, FB_ADD, NEVER) \
    FOLD(max_##s, T, FB_SAME, T, T, LOW, FB_MAX, FB_MAX, NEVER) \
    FOLD(min_##s, T, FB_SAME, T, T, HIGH, FB_MIN, FB_MIN, NEVER)
#define FOLDS_OF_TRUTH(s, T, B) \
    FOLD(any_##s, T, FB_SAME, B, B, 0, OR, OR, NOT_ZERO) \
    FOLD(all_##s, T, FB_SAME, B, B, 1, AND, AND, IS_ZERO)
#define FOLDS_OF_FLOAT(s, T) \
    FOLD(sum_##s, T, FB_SAME, T, double, 0, FB_ADD, FB_ADD, NEVER) \
    FOLD(prod_##s, T, FB_SAME, T, double, 1, MULTIPLY, MULTIPLY, NEVER) \
    FOLD(max_##s, T, FB_SAME, T, T, -INFINITY, FB_MAX, FB_MAX, NEVER) \
    FOLD(min_##s, T, FB_SAME, T, T, INFINITY, FB_MIN, FB_MIN, NEVER) \
    FOLD(norm0_##s, T, FB_SAME, T, double, 0, ADD_NOT_ZERO, FB_ADD, NEVER) \
    FOLD(norm1_##s, T, FB_SAME, T, double, 0, ADD_SIZE, FB_ADD, NEVER) \
    FOLD(norm2_##s, T, FB_SAME, T, double, 0, ADD_SQUARE, FB_ADD, NEVER) \
    FOLD(normp_##s, T, FB_SAME, T, double, 0, ADD_POWER, FB_ADD, NEVER) \
    FOLD(normmax_##s, T, FB_SAME, T, T, 0, MAX_SIZE, FB_MAX, NEVER) \
    FOLD(normmin_##s, T, FB_SAME, T, T, INFINITY, MIN_SIZE, FB_MIN, NEVER)

FOLDS_OF_INTEGER(u8, uint8_t, 0, UINT8_MAX, uint8_t)
FOLDS_OF_TRUTH(u8, uint8_t, uint8_t)
FOLDS_OF_INTEGER(i32, int32_t, INT32_MIN, INT32_MAX, int32_t)
FOLDS_OF_INTEGER(i64, int64_t, INT64_MIN, INT64_MAX, int64_t)
FOLDS_OF_TRUTH(i64, int64_t, int64_t)
FOLD(prod_i64, int64_t, FB_SAME, uint64_t, uint64_t, 1, MULTIPLY, MULTIPLY, NEVER)
FOLDS_OF_FLOAT(f32, float)
FOLDS_OF_TRUTH(f32, float, int32_t)
FOLDS_OF_FLOAT(f64, double)
FOLDS_OF_TRUTH(f64, double, int64_t)

/* dtype, suffix, element; then for sums, for extrema, for truth and for products: the suffix and type of the fold */
#define INTEGERS(X) \
    X(FB_BOOL, b8, uint8_t, u8, uint8_t, u8, uint8_t, u8, uint8_t) \
    X(FB_U8, u8, uint8_t, u8, uint8_t, u8, uint8_t, u8, uint8_t) \
    X(FB_I8, i8, int8_t, i64, int64_t, i64, int64_t, i64, int64_t) \
    X(FB_I16, i16, int16_t, i64, int64_t, i64, int64_t, i64, int64_t) \
    X(FB_I32, i32, int32_t, i32, int32_t, i32, int32_t, i64, int64_t) \
    X(FB_I64, i64, int64_t, i64, int64_t, i64, int64_t, i64, int64_t)
/* dtype, suffix, element, store, suffix and type of the folds, lane of a truth value */
#define FLOATS(X) \
    X(FB_F16, f16, f16, f16_from_float, f32, float, int32_t) \
    X(FB_BF16, bf16, bf16, bf16_from_float, f32, float, int32_t) \
    X(FB_F32, f32, float, (float), f32, float, int32_t) \
    X(FB_F64, f64, double, (double), f64, double, int64_t)

/* Integers add and multiply modulo 2^64. */
FINISH(whole, uint64_t, uint64_t, w)
#define X(D, s, T, sums, S, extrema, E, truths, B) \
    FB_GATHER(widen_##s, T, FB_SAME, int64_t) \
    FB_GATHER(take_##s, T, FB_SAME, T) \
    FINISH(same_##s, T, E, (T)w) \
    FINISH(truth_##s, uint8_t, B, w != 0) \
    ROUTINE(sum_of_##s, T, sizeof(T) == sizeof(S) ? take_##s : widen_##s, sum_##sums, S, uint64_t, whole) \
    ROUTINE(prod_of_##s, T, sizeof(T) == 8 ? take_##s : widen_##s, prod_i64, int64_t, uint64_t, whole) \
    ROUTINE(max_of_##s, T, sizeof(T) == sizeof(E) ? take_##s : widen_##s, max_##extrema, E, E, same_##s) \
    ROUTINE(min_of_##s, T, sizeof(T) == sizeof(E) ? take_##s : widen_##s, min_##extrema, E, E, same_##s) \
    ROUTINE(any_of_##s, T, sizeof(T) == sizeof(B) ? take_##s : widen_##s, any_##truths, B, B, truth_##s) \
    ROUTINE(all_of_##s, T, sizeof(T) == sizeof(B) ? take_##s : widen_##s, all_##truths, B, B, truth_##s)
INTEGERS(X)
#undef X

FB_FLOAT_GATHERS(widen)
#define X(D, s, T, STORE, f, C, B) \
    FINISH(store_##s, T, double, STORE(w)) \
    FINISH(mean_from_##s, T, double, STORE(w / count)) \
    FINISH(root_##s, T, double, STORE(sqrt(w))) \
    FINISH(power_root_##s, T, double, STORE(pow(w, 1 / a))) \
    FINISH(same_##s, T, C, STORE(w)) \
    FINISH(truth_##s, uint8_t, B, w != 0) \
    ROUTINE(sum_of_##s, T, widen_##s, sum_##f, C, double, store_##s) \
    ROUTINE(mean_of_##s, T, widen_##s, sum_##f, C, double, mean_from_##s) \
    ROUTINE(prod_of_##s, T, widen_##s, prod_##f, C, double, store_##s) \
    ROUTINE(max_of_##s, T, widen_##s, max_##f, C, C, same_##s) \
    ROUTINE(min_of_##s, T, widen_##s, min_##f, C, C, same_##s) \
    ROUTINE(any_of_##s, T, widen_##s, any_##f, C, B, truth_##s) \
    ROUTINE(all_of_##s, T, widen_##s, all_##f, C, B, truth_##s) \
    ROUTINE(norm0_of_##s, T, widen_##s, norm0_##f, C, double, store_##s) \
    ROUTINE(norm1_of_##s, T, widen_##s, norm1_##f, C, double, store_##s) \
    ROUTINE(norm2_of_##s, T, widen_##s, norm2_##f, C, double, root_##s) \
    ROUTINE(normp_of_##s, T, widen_##s, normp_##f, C, double, power_root_##s) \
    ROUTINE(normmax_of_##s, T, widen_##s, normmax_##f, C, C, same_##s) \
    ROUTINE(normmin_of_##s, T, widen_##s, normmin_##f, C, C, same_##s)
FLOATS(X)
#undef X

#define ENTRY(name, D, s) {#name, D, name##_of_##s, {0}},
#define BASIC(D, s) \
    {"amax", D, max_of_##s, {0}}, {"amin", D, min_of_##s, {0}}, \
    ENTRY(sum, D, s) ENTRY(prod, D, s) ENTRY(any, D, s) ENTRY(all, D, s)
FB_FAMILY(reduction) = {
#define X(D, s, T, sums, S, extrema, E, truths, B) BASIC(D, s)
    INTEGERS(X)
#undef X
#define X(D, s, T, STORE, f, C, B) \
    BASIC(D, s) ENTRY(mean, D, s) ENTRY(norm0, D, s) ENTRY(norm1, D, s) ENTRY(norm2, D, s) ENTRY(normp, D, s) \
    ENTRY(normmax, D, s) ENTRY(normmin, D, s)
    FLOATS(X)
#undef X
    FB_END};
