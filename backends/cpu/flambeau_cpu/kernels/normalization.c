/* Normalisation to mean 0 and variance 1, then scale and shift; forward and backward.
 *
 * row_norm: x is (rows, n) and each row is normalised by itself.  A row's n = S * L elements
 * are S stretches of L that share a weight, number (row % G) * S + stretch: layer_norm has
 * G = 1, L = 1; group_norm G groups of S channels with L positions; instance_norm S = 1.
 * batch_norm: x is (N, C, L) and each channel is normalised over N and L.
 * Sums of squares are of distances from the mean; statistics are in the element type. */
#include "lanes.h"

enum { PARTS = 16, WIDE = 64 }; /* weight gradients are added up in a fixed number of parts */

#define SQUARE_OFF_f32(a, v) ((a) + ((v) - (float)e) * ((v) - (float)e))
#define SQUARE_OFF_f64(a, v) ((a) + ((v) - e) * ((v) - e))

#define NORMALISE(T, s, SQRT) \
    FB_ROW(total_##s, T, FB_SAME, T, 0, FB_ADD, FB_ADD) \
    FB_ROW(square_##s, T, FB_SAME, T, 0, SQUARE_OFF_##s, FB_ADD) \
    /* Of long rows the blocks are added up in double. */ \
    static double long_total_##s(const T *x, i64 n) { \
        double sum = 0; \
        for (i64 i = 0; i < n; i += 4096) sum += total_##s(x + i, n - i < 4096 ? n - i : 4096, 0); \
        return sum; \
    } \
    static double long_square_##s(const T *x, i64 n, double mean) { \
        double sum = 0; \
        for (i64 i = 0; i < n; i += 4096) sum += square_##s(x + i, n - i < 4096 ? n - i : 4096, mean); \
        return sum; \
    } \
    /* q: rows, G, S, L, eps.  p: out, x, weight or NULL, bias or NULL, mean, rstd */ \
    static i64 row_norm_##s(void *const *p, const i64 *q) { \
        T *out = p[0], *means = p[4], *rstds = p[5]; \
        const T *in = p[1], *weight = p[2], *bias = p[3]; \
        i64 rows = q[0], groups = q[1], stretches = q[2], length = q[3], n = stretches * length; \
        double eps = fb_double(q[4]); \
        FB_PARALLEL_FOR(rows * n) \
        for (i64 row = 0; row < rows; row++) { \
            const T *x = in + row * n; \
            T *o = out + row * n; \
            double mean = long_total_##s(x, n) / (double)n, variance = long_square_##s(x, n, mean) / (double)n; \
            T rstd = (T)(1 / SQRT(variance + eps)), centre = (T)mean; \
            means[row] = centre; \
            rstds[row] = rstd; \
            const T *w = weight ? weight + row % groups * stretches : NULL, *b = bias ? bias + row % groups * stretches : NULL; \
            if (length == 1 && w && b) for (i64 j = 0; j < n; j++) o[j] = ((x[j] - centre) * rstd) * w[j] + b[j]; \
            else if (length == 1 && w) for (i64 j = 0; j < n; j++) o[j] = ((x[j] - centre) * rstd) * w[j]; \
            else for (i64 k = 0; k < stretches; k++, x += length, o += length) { \
                T scale = w ? w[k] : 1, add = b ? b[k] : 0; \
                for (i64 j = 0; j < length; j++) o[j] = ((x[j] - centre) * rstd) * scale + add; \
            } \
        } \
        return 0; \
    } \
    /* q: rows, G, S, L.  p: gradient of x, gradient of weight or NULL, of bias or NULL, gradient, x, weight or NULL, mean, rstd */ \
    static i64 row_norm_backward_##s(void *const *p, const i64 *q) { \
        T *to_x = p[0], *to_weight = p[1], *to_bias = p[2]; \
        const T *grad = p[3], *in = p[4], *weight = p[5], *means = p[6], *rstds = p[7]; \
        i64 rows = q[0], groups = q[1], stretches = q[2], length = q[3], n = stretches * length, weights = groups * stretches; \
        i64 parts = rows < PARTS ? (rows ? rows : 1) : PARTS, each = (rows + parts - 1) / parts; \
        T *sums = calloc((size_t)(2 * parts * weights + 1), sizeof(T)); \
        if (!sums) return 1; \
        FB_PARALLEL_FOR(2 * rows * n) \
        for (i64 part = 0; part < parts; part++) { \
            for (i64 row = part * each; row < rows && row < (part + 1) * each; row++) { \
                i64 first = row % groups * stretches; \
                const T *g = grad + row * n, *x = in + row * n, *w = weight ? weight + first : NULL; \
                T *o = to_x + row * n, *dw = sums + 2 * part * weights + first, *db = dw + weights; \
                T mean = means[row], rstd = rstds[row]; \
                double along = 0, sum = 0; \
                if (length == 1) { \
                    for (i64 j = 0; j < n; j++) { dw[j] += g[j] * ((x[j] - mean) * rstd); db[j] += g[j]; } \
                    if (w) for (i64 j = 0; j < n; j++) o[j] = g[j] * w[j]; \
                    const T *gw = w ? o : g; \
                    sum = long_total_##s(gw, n); \
                    for (i64 i = 0; i < n; i += WIDE) { \
                        T product[WIDE]; \
                        i64 many = n - i < WIDE ? n - i : WIDE; \
                        for (i64 j = 0; j < many; j++) product[j] = gw[i + j] * (x[i + j] - mean); \
                        along += total_##s(product, many, 0); \
                    } \
                } else { \
                    for (i64 k = 0; k < stretches; k++) { \
                        const T *gk = g + k * length, *xk = x + k * length; \
                        double here = long_total_##s(gk, length), with = 0; \
                        for (i64 i = 0; i < length; i += WIDE) { \
                            T product[WIDE]; \
                            i64 many = length - i < WIDE ? length - i : WIDE; \
                            for (i64 j = 0; j < many; j++) product[j] = gk[i + j] * (xk[i + j] - mean); \
                            with += total_##s(product, many, 0); \
                        } \
                        dw[k] += (T)(with * rstd); \
                        db[k] += (T)here; \
                        sum += here * (w ? w[k] : 1); \
                        along += with * (w ? w[k] : 1); \
                    } \
                } \
                /* dx = rstd (g w - sum / n - xhat along rstd / n) */ \
                T minus = (T)(sum / (double)n * rstd), tilt = (T)(along / (double)n * rstd * rstd * rstd); \
                if (length == 1) { \
                    const T *gw = w ? o : g; \
                    for (i64 j = 0; j < n; j++) o[j] = gw[j] * rstd - minus - (x[j] - mean) * tilt; \
                } else for (i64 k = 0; k < stretches; k++) { \
                    T scale = (w ? w[k] : 1) * rstd; \
                    const T *gk = g + k * length, *xk = x + k * length; \
                    T *ok = o + k * length; \
                    for (i64 j = 0; j < length; j++) ok[j] = gk[j] * scale - minus - (xk[j] - mean) * tilt; \
                } \
            } \
        } \
        for (i64 part = 1; part < parts; part++) \
            for (i64 k = 0; k < 2 * weights; k++) sums[k] += sums[2 * part * weights + k]; \
        if (to_weight) memcpy(to_weight, sums, (size_t)weights * sizeof(T)); \
        if (to_bias) memcpy(to_bias, sums + weights, (size_t)weights * sizeof(T)); \
        free(sums); \
        return 0; \
    } \
    /* (x - centre) * scale + shift of channels first..first+many of (N, C, L). */ \
    static void affine_##s(const T *in, T *out, i64 N, i64 C, i64 L, i64 first, i64 many, const T *centre, const T *scale, const T *shift) { \
        for (i64 m = 0; m < N; m++) { \
            const T *x = in + (m * C + first) * L; \
            T *o = out + (m * C + first) * L; \
            if (L == 1) for (i64 c = 0; c < many; c++) o[c] = (x[c] - centre[c]) * scale[c] + shift[c]; \
            else for (i64 c = 0; c < many; c++, x += L, o += L) \
                for (i64 j = 0; j < L; j++) o[j] = (x[j] - centre[c]) * scale[c] + shift[c]; \
        } \
    } \
    /* q: N, C, L, eps, training.  p: out, x, weight or NULL, bias or NULL, mean, variance (written in training, \
     * without Bessel's correction, and read otherwise) */ \
    static i64 batch_norm_##s(void *const *p, const i64 *q) { \
        T *out = p[0], *means = p[4], *variances = p[5]; \
        const T *in = p[1], *weight = p[2], *bias = p[3]; \
        i64 N = q[0], C = q[1], L = q[2], wide = L == 1 ? WIDE : 1; \
        double eps = fb_double(q[3]); \
        FB_PARALLEL_FOR(N * C * L) \
        for (i64 first = 0; first < C; first += wide) { \
            i64 many = C - first < wide ? C - first : wide; \
            T centre[WIDE], scale[WIDE], shift[WIDE]; \
            double sum[WIDE] = {0}, square[WIDE] = {0}; \
            if (q[4]) { \
                for (i64 m = 0; m < N; m++) { \
                    const T *x = in + (m * C + first) * L; \
                    if (L == 1) for (i64 c = 0; c < many; c++) sum[c] += x[c]; \
                    else sum[0] += long_total_##s(x, L); \
                } \
                for (i64 c = 0; c < many; c++) sum[c] /= (double)(N * L); \
                for (i64 m = 0; m < N; m++) { \
                    const T *x = in + (m * C + first) * L; \
                    if (L == 1) for (i64 c = 0; c < many; c++) square[c] += (x[c] - sum[c]) * (x[c] - sum[c]); \
                    else square[0] += long_square_##s(x, L, sum[0]); \
                } \
                for (i64 c = 0; c < many; c++) { \
                    means[first + c] = (T)sum[c]; \
                    variances[first + c] = (T)(square[c] /= (double)(N * L)); \
                } \
            } else for (i64 c = 0; c < many; c++) { \
                sum[c] = means[first + c]; \
                square[c] = variances[first + c]; \
            } \
            for (i64 c = 0; c < many; c++) { \
                centre[c] = (T)sum[c]; \
                scale[c] = (T)((weight ? weight[first + c] : 1) / SQRT(square[c] + eps)); \
                shift[c] = bias ? bias[first + c] : 0; \
            } \
            affine_##s(in, out, N, C, L, first, many, centre, scale, shift); \
        } \
        return 0; \
    } \
    /* Of training.  q: N, C, L, eps.  p: gradient of x, of weight, of bias, gradient, x, weight or NULL, mean, variance */ \
    static i64 batch_norm_backward_##s(void *const *p, const i64 *q) { \
        T *to_x = p[0], *to_weight = p[1], *to_bias = p[2]; \
        const T *grad = p[3], *in = p[4], *weight = p[5], *means = p[6], *variances = p[7]; \
        i64 N = q[0], C = q[1], L = q[2], wide = L == 1 ? WIDE : 1; \
        double eps = fb_double(q[3]), count = (double)(N * L); \
        FB_PARALLEL_FOR(2 * N * C * L) \
        for (i64 first = 0; first < C; first += wide) { \
            i64 many = C - first < wide ? C - first : wide; \
            double sum[WIDE] = {0}, with[WIDE] = {0}; \
            T scale[WIDE], tilt[WIDE], minus[WIDE]; \
            const T *mean = means + first; \
            for (i64 m = 0; m < N; m++) { \
                const T *g = grad + (m * C + first) * L, *x = in + (m * C + first) * L; \
                if (L == 1) for (i64 c = 0; c < many; c++) { sum[c] += g[c]; with[c] += g[c] * (x[c] - mean[c]); } \
                else { \
                    sum[0] += long_total_##s(g, L); \
                    for (i64 i = 0; i < L; i += WIDE) { \
                        T product[WIDE]; \
                        i64 these = L - i < WIDE ? L - i : WIDE; \
                        for (i64 j = 0; j < these; j++) product[j] = g[i + j] * (x[i + j] - mean[0]); \
                        with[0] += total_##s(product, these, 0); \
                    } \
                } \
            } \
            for (i64 c = 0; c < many; c++) { \
                double rstd = 1 / SQRT(variances[first + c] + eps), factor = (weight ? weight[first + c] : 1) * rstd; \
                to_weight[first + c] = (T)(with[c] * rstd); \
                to_bias[first + c] = (T)sum[c]; \
                scale[c] = (T)factor; \
                minus[c] = (T)(sum[c] / count * factor); \
                tilt[c] = (T)(with[c] / count * rstd * rstd * factor); \
            } \
            for (i64 m = 0; m < N; m++) { \
                const T *g = grad + (m * C + first) * L, *x = in + (m * C + first) * L; \
                T *o = to_x + (m * C + first) * L; \
                if (L == 1) for (i64 c = 0; c < many; c++) o[c] = g[c] * scale[c] - minus[c] - (x[c] - mean[c]) * tilt[c]; \
                else for (i64 j = 0; j < L; j++) o[j] = g[j] * scale[0] - minus[0] - (x[j] - mean[0]) * tilt[0]; \
            } \
        } \
        return 0; \
    }

NORMALISE(float, f32, sqrt)
NORMALISE(double, f64, sqrt)

#define ENTRIES(D, s) \
    {"row_norm", D, row_norm_##s, {0}}, {"row_norm_backward", D, row_norm_backward_##s, {0}}, \
    {"batch_norm", D, batch_norm_##s, {0}}, {"batch_norm_backward", D, batch_norm_backward_##s, {0}},
FB_FAMILY(normalization) = {ENTRIES(FB_F32, f32) ENTRIES(FB_F64, f64) FB_END};
