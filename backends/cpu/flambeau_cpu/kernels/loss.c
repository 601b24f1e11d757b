/* Losses: pairs of equal shape, and scores of classes against class numbers. */
#include "vectormath.h"

enum { NONE, MEAN, SUM };           /* how the values are reduced */
enum { STEP = 256, CHUNK = 16384, TILE = 64, LANES = 16, FEW = 32 };

/* Fixed lanes, so that the sum does not depend on the instruction set's width more than it must. */
#define LANED(s, C) \
    static C total_##s(const C *v, i64 n) { \
        C lane[LANES] = {0}, rest = 0; \
        i64 i = 0; \
        for (; i + LANES <= n; i += LANES) for (int k = 0; k < LANES; k++) lane[k] += v[i + k]; \
        for (; i < n; i++) rest += v[i]; \
        for (int half = LANES / 2; half; half /= 2) for (int k = 0; k < half; k++) lane[k] += lane[k + half]; \
        return lane[0] + rest; \
    }

/* ---------------------------------------------------------------- pairs */

/* value: p = {out, x, t}; slope: p = {out, grad, x, t}; q = {n, reduction, parameter}.
 * A gradient that was reduced is one number. */
#define PAIRS(s, T, C, LOAD, STORE) \
    typedef void (*pair_##s)(i64 n, C *v, const T *x, const T *t, C a); \
    static i64 value_##s(pair_##s step, void *const *p, const i64 *q) { \
        i64 n = q[0], chunks = (n + CHUNK - 1) / CHUNK; \
        T *out = p[0]; const T *x = p[1], *t = p[2]; C a = (C)fb_double(q[2]); \
        double few[64], *part = chunks <= 64 ? few : malloc((size_t)chunks * sizeof *part); \
        if (!part) return -1; \
        FB_PARALLEL_FOR(n) for (i64 chunk = 0; chunk < chunks; chunk++) { \
            i64 first = chunk * CHUNK, last = first + CHUNK < n ? first + CHUNK : n; \
            double sum = 0; \
            for (i64 i = first; i < last; i += STEP) { \
                C v[STEP]; \
                i64 count = last - i < STEP ? last - i : STEP; \
                step(count, v, x + i, t + i, a); \
                if (q[1] == NONE) for (i64 k = 0; k < count; k++) out[i + k] = STORE(v[k]); \
                else sum += (double)total_##s(v, count); \
            } \
            part[chunk] = sum; \
        } \
        if (q[1] != NONE) { \
            double sum = 0; \
            for (i64 chunk = 0; chunk < chunks; chunk++) sum += part[chunk]; \
            out[0] = STORE((C)(q[1] == MEAN ? sum / (double)n : sum)); \
        } \
        if (part != few) free(part); \
        return 0; \
    } \
    static i64 slope_##s(pair_##s step, void *const *p, const i64 *q) { \
        i64 n = q[0], chunks = (n + CHUNK - 1) / CHUNK; \
        T *out = p[0]; const T *grad = p[1], *x = p[2], *t = p[3]; C a = (C)fb_double(q[2]); \
        C scale = q[1] == NONE || !n ? 1 : LOAD(grad[0]) / (C)(q[1] == MEAN ? n : 1); \
        FB_PARALLEL_FOR(n) for (i64 chunk = 0; chunk < chunks; chunk++) { \
            i64 first = chunk * CHUNK, last = first + CHUNK < n ? first + CHUNK : n; \
            for (i64 i = first; i < last; i += STEP) { \
                C v[STEP]; \
                i64 count = last - i < STEP ? last - i : STEP; \
                step(count, v, x + i, t + i, a); \
                if (q[1] == NONE) for (i64 k = 0; k < count; k++) out[i + k] = STORE(v[k] * LOAD(grad[i + k])); \
                else for (i64 k = 0; k < count; k++) out[i + k] = STORE(v[k] * scale); \
            } \
        } \
        return 0; \
    }

/* One loss: its value and its slope in x, from x, t, their difference d and the parameter a. */
#define PAIR(name, s, T, C, LOAD, VALUE, SLOPE) \
    static void name##_at_##s(i64 n, C *v, const T *xs, const T *ts, C a) { \
        (void)a; \
        for (i64 i = 0; i < n; i++) { C x = LOAD(xs[i]), t = LOAD(ts[i]), d = x - t; (void)d; v[i] = (C)(VALUE); } \
    } \
    static void name##_slope_at_##s(i64 n, C *v, const T *xs, const T *ts, C a) { \
        (void)a; \
        for (i64 i = 0; i < n; i++) { C x = LOAD(xs[i]), t = LOAD(ts[i]), d = x - t; (void)d; v[i] = (C)(SLOPE); } \
    } \
    static i64 name##_##s(void *const *p, const i64 *q) { return value_##s(name##_at_##s, p, q); } \
    static i64 name##_slope_##s(void *const *p, const i64 *q) { return slope_##s(name##_slope_at_##s, p, q); }

#define SIZE(d) ((d) < 0 ? -(d) : (d))
#define SIGN(d) ((d) > 0 ? 1 : (d) < 0 ? -1 : (d))
#define BETWEEN(d, a) ((d) > (a) ? (a) : (d) < -(a) ? -(a) : (d))
#define LOGISTIC(EXP, x) (1 / (1 + EXP(-(x))))
#define BOUNDED(v) ((v) < -100 ? -100 : (v))
#define LOSSES(s, T, C, LOAD, STORE, EXP, LOG, LOG1P) \
    PAIR(l1, s, T, C, LOAD, SIZE(d), SIGN(d)) \
    PAIR(mse, s, T, C, LOAD, d * d, 2 * d) \
    PAIR(smooth_l1, s, T, C, LOAD, SIZE(d) < a ? d * d / (2 * a) : SIZE(d) - a / 2, SIZE(d) < a ? d / a : SIGN(d)) \
    PAIR(huber, s, T, C, LOAD, SIZE(d) <= a ? d * d / 2 : a * (SIZE(d) - a / 2), BETWEEN(d, a)) \
    PAIR(bce_logits, s, T, C, LOAD, (x > 0 ? x : 0) - x * t + LOG1P(EXP(-SIZE(x))), LOGISTIC(EXP, x) - t) \
    PAIR(bce, s, T, C, LOAD, -(t * BOUNDED(LOG(x)) + (1 - t) * BOUNDED(LOG1P(-x))), d / (x * (1 - x) < (C)1e-12 ? (C)1e-12 : x * (1 - x)))

/* ---------------------------------------------------------------- classes */

/* Scores lie as (outer, classes, inner); there is one target for each (outer, inner).
 * forward:  p = {out, x, target, weight or NULL, scratch}
 * backward: p = {out, grad, x, target, weight or NULL, scratch}
 * q = {outer, classes, inner, reduction, ignored target, whether x is to be normalised}
 * scratch: the log of the sum of exp(x) for each target, and the total weight.
 * Returns 1 + the position of a target that is no class. */
#define CLASSES(s, T, C, LOAD, STORE, EXP, LOG) \
    /* One row: its largest score, and the sum of exp(score - largest). */ \
    static C shifted_sum_##s(const T *x, i64 classes, C *largest) { \
        C top = -INFINITY, sum = 0, v[STEP], best[LANES]; \
        i64 c = 0; \
        for (int k = 0; k < LANES; k++) best[k] = -INFINITY; \
        for (; c + LANES <= classes; c += LANES) \
            for (int k = 0; k < LANES; k++) { C a = LOAD(x[c + k]); best[k] = a > best[k] ? a : best[k]; } \
        for (; c < classes; c++) { C a = LOAD(x[c]); top = a > top ? a : top; } \
        for (int half = LANES / 2; half; half /= 2) \
            for (int k = 0; k < half; k++) best[k] = best[k] > best[k + half] ? best[k] : best[k + half]; \
        *largest = top = best[0] > top ? best[0] : top; \
        for (c = 0; c < classes; c += STEP) { \
            i64 count = classes - c < STEP ? classes - c : STEP; \
            for (i64 k = 0; k < count; k++) v[k] = EXP(LOAD(x[c + k]) - top); \
            sum += total_##s(v, count); \
        } \
        return sum; \
    } \
    static void log_sums_of_rows_##s(const T *x, i64 classes, i64 count, C *out) { \
        C top[TILE], sum[TILE]; \
        for (i64 j = 0; j < count; j++) sum[j] = shifted_sum_##s(x + j * classes, classes, top + j); \
        for (i64 j = 0; j < count; j++) out[j] = top[j] + LOG(sum[j]); \
    } \
    static void log_sums_##s(const T *x, i64 classes, i64 inner, i64 count, C *out) { \
        C top[TILE], sum[TILE]; \
        for (i64 j = 0; j < count; j++) { top[j] = -INFINITY; sum[j] = 0; } \
        for (i64 c = 0; c < classes; c++) \
            for (i64 j = 0; j < count; j++) { C a = LOAD(x[c * inner + j]); top[j] = a > top[j] ? a : top[j]; } \
        for (i64 c = 0; c < classes; c++) \
            for (i64 j = 0; j < count; j++) sum[j] += EXP(LOAD(x[c * inner + j]) - top[j]); \
        for (i64 j = 0; j < count; j++) out[j] = top[j] + LOG(sum[j]); \
    } \
    static i64 classes_##s(void *const *p, const i64 *q) { \
        i64 outer = q[0], classes = q[1], inner = q[2], reduction = q[3], ignored = q[4], n = outer * inner; \
        T *out = p[0]; const T *x = p[1], *weight = p[3]; const i64 *target = p[2]; C *scratch = p[4]; \
        for (i64 i = 0; i < n; i++) \
            if (target[i] != ignored && (target[i] < 0 || target[i] >= classes)) return 1 + i; \
        i64 tile = inner == 1 && classes > 2048 ? 1 : TILE, tiles = ((inner == 1 ? n : inner) + tile - 1) / tile; \
        if (q[5] && inner == 1) { \
            FB_PARALLEL_FOR(n * classes * 4) for (i64 k = 0; k < tiles; k++) { \
                T turned[FEW * TILE]; \
                i64 first = k * tile, count = n - first < tile ? n - first : tile; \
                if (classes > FEW) { log_sums_of_rows_##s(x + first * classes, classes, count, scratch + first); continue; } \
                /* Short rows: many at once, turned so that rows are lanes. */ \
                for (i64 j = 0; j < count; j++) \
                    for (i64 c = 0; c < classes; c++) turned[c * TILE + j] = x[(first + j) * classes + c]; \
                log_sums_##s(turned, classes, TILE, count, scratch + first); \
            } \
        } else if (q[5]) FB_PARALLEL_FOR(n * classes) for (i64 k = 0; k < outer * tiles; k++) { \
            i64 o = k / tiles, first = k % tiles * TILE; \
            log_sums_##s(x + o * classes * inner + first, classes, inner, inner - first < TILE ? inner - first : TILE, \
                         scratch + o * inner + first); \
        } \
        double sum = 0, total = 0; \
        for (i64 i = 0; i < n; i++) { \
            i64 t = target[i]; \
            if (t == ignored) { if (reduction == NONE) out[i] = STORE((C)0); continue; } \
            C w = weight ? LOAD(weight[t]) : 1; \
            C value = LOAD(x[(i / inner * classes + t) * inner + i % inner]); \
            value = q[5] ? scratch[i] - value : -value; \
            value *= w; \
            if (reduction == NONE) out[i] = STORE(value); \
            sum += (double)value; total += (double)w; \
        } \
        scratch[n] = (C)total; \
        if (reduction != NONE) out[0] = STORE((C)(reduction == MEAN ? sum / total : sum)); \
        return 0; \
    } \
    static i64 classes_slope_##s(void *const *p, const i64 *q) { \
        i64 outer = q[0], classes = q[1], inner = q[2], reduction = q[3], ignored = q[4], n = outer * inner; \
        T *out = p[0]; const T *grad = p[1], *x = p[2], *weight = p[4]; const i64 *target = p[3]; const C *scratch = p[5]; \
        FB_PARALLEL_FOR(n * classes * 2) for (i64 o = 0; o < outer; o++) { \
            const T *xs = x + o * classes * inner; \
            T *to = out + o * classes * inner; \
            if (!q[5]) memset(to, 0, (size_t)(classes * inner) * sizeof(T)); \
            for (i64 first = 0; first < inner; first += TILE) { \
                i64 count = inner - first < TILE ? inner - first : TILE; \
                C scale[TILE] = {0}, level[TILE]; \
                for (i64 j = 0; j < count; j++) { \
                    i64 i = o * inner + first + j, t = target[i]; \
                    level[j] = q[5] ? scratch[i] : 0; \
                    if (t == ignored) continue; \
                    scale[j] = (weight ? LOAD(weight[t]) : 1) * LOAD(grad[reduction == NONE ? i : 0]); \
                    if (reduction == MEAN) scale[j] /= scratch[n]; \
                } \
                if (q[5] && inner == 1 && scale[0] == 0) memset(to, 0, (size_t)classes * sizeof(T)); \
                else if (q[5] && inner == 1) \
                    for (i64 c = 0; c < classes; c++) to[c] = STORE(EXP(LOAD(xs[c]) - level[0]) * scale[0]); \
                else if (q[5]) for (i64 c = 0; c < classes; c++) \
                    for (i64 j = 0; j < count; j++) \
                        to[c * inner + first + j] = \
                            STORE(scale[j] == 0 ? 0 : EXP(LOAD(xs[c * inner + first + j]) - level[j]) * scale[j]); \
                for (i64 j = 0; j < count; j++) { \
                    i64 t = target[o * inner + first + j]; \
                    if (t == ignored) continue; \
                    i64 at = t * inner + first + j; \
                    to[at] = STORE((q[5] && scale[j] != 0 ? EXP(LOAD(xs[at]) - level[j]) - 1 : -1) * scale[j]); \
                } \
            } \
        } \
        return 0; \
    }

#define SAME(x) (x)
#define TYPES(X) \
    X(FB_F32, f32, float, float, SAME, (float), fb_exp_f32, fb_log_f32, fb_log1p_f32) \
    X(FB_F64, f64, double, double, SAME, (double), fb_exp_f64, fb_log_f64, log1p) \
    X(FB_F16, f16, f16, float, f16_to_float, f16_from_float, fb_exp_f32, fb_log_f32, fb_log1p_f32) \
    X(FB_BF16, bf16, bf16, float, bf16_to_float, bf16_from_float, fb_exp_f32, fb_log_f32, fb_log1p_f32)

#define X(D, s, T, C, LOAD, STORE, EXP, LOG, LOG1P) \
    LANED(s, C) \
    PAIRS(s, T, C, LOAD, STORE) \
    LOSSES(s, T, C, LOAD, STORE, EXP, LOG, LOG1P) \
    CLASSES(s, T, C, LOAD, STORE, EXP, LOG)
TYPES(X)
#undef X

#define BOTH(name, D, s) {"loss_" #name, D, name##_##s, {0}}, {"loss_" #name "_slope", D, name##_slope_##s, {0}},
#define X(D, s, ...) \
    BOTH(l1, D, s) BOTH(mse, D, s) BOTH(smooth_l1, D, s) BOTH(huber, D, s) BOTH(bce_logits, D, s) BOTH(bce, D, s) BOTH(classes, D, s)
FB_FAMILY(loss) = {TYPES(X) FB_END};
