/* Random numbers that need more than a formula: poisson, gamma, multinomial.
 *
 * p and q are those of random.c: q begins with n, seed, offset.  Every element has a
 * stream of its own, numbered offset + element, from which it draws as often as it must.
 * FB_SETS: baseline avx2
 *
 * FB_SETS: baseline avx2 */
#include "flambeau.h"
#include "half.h"
#include "threefry.h"

static double normal(stream *s) {
    double radius = sqrt(-2 * log(next_uniform(s)));
    return radius * cos(6.28318530717958647692 * next_uniform(s));
}

/* Small rates: multiply uniforms (Knuth).  Others: transformed rejection with squeeze,
 * Hormann, "The transformed rejection method for generating Poisson random variables" (1993). */
static double poisson(stream *s, double rate) {
    if (rate < 10) {
        double limit = exp(-rate), product = next_uniform(s), count = 0;
        for (; product > limit; count++) product *= next_uniform(s);
        return count;
    }
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = log(rate);
    double inverse = 1.1239 + 1.1328 / (b - 3.4), accept = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = next_uniform(s) - 0.5, v = next_uniform(s), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= accept) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse) - log(a / (us * us) + b) <= k * log_rate - rate - lgamma(k + 1)) return k;
    }
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000). */
static double gamma_variate(stream *s, double shape) {
    double boost = 1;
    if (shape < 1) {
        boost = pow(next_uniform(s), 1 / shape);
        shape += 1;
    }
    double d = shape - 1. / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(s), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        double u = next_uniform(s);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v)) return boost * d * v;
    }
}

/* p: out, parameter of each element.  Returns 1 if a parameter is negative or NaN. */
#define EACH(name, D, T, load, store, allowed, expression) \
    static i64 name##_##D(void *const *p, const i64 *q) { \
        T *out = p[0]; \
        const T *in = p[1]; \
        i64 n = q[0], bad = 0; \
        _Pragma("omp parallel for schedule(static) num_threads(fb_threads) if (fb_threads > 1 && n >= 1024) reduction(| : bad)") \
        for (i64 i = 0; i < n; i++) { \
            double x = load(in[i]); \
            stream own = {.seed = (uint64_t)q[1], .index = (uint64_t)(q[2] + i)}, *s = &own; \
            if (!(allowed)) { bad |= 1; continue; } \
            double value = expression; \
            out[i] = store(value); \
        } \
        return bad; \
    }
#define SAME(x) (x)
#define TO_F16(x) f16_from_float((float)(x))
#define TO_BF16(x) bf16_from_float((float)(x))
#define BOTH(D, T, load, store, least) \
    EACH(poisson, D, T, load, store, x >= 0 && x < 1e18, poisson(s, x)) \
    EACH(standard_gamma, D, T, load, store, x == x, x > 0 ? fmax(gamma_variate(s, x), least) : 0)
BOTH(F32, float, SAME, (float), 1.17549435e-38)
BOTH(F64, double, SAME, SAME, 2.2250738585072014e-308)
BOTH(F16, f16, f16_to_float, TO_F16, 6.1e-5)
BOTH(BF16, bf16, bf16_to_float, TO_BF16, 1.17549435e-38)

/* ------------------------------------------------------------ multinomial */

/* The count smallest keys, ascending, by a heap with the largest kept on top. */
static bool after(const double *key, i64 a, i64 b) { return key[a] > key[b] || (key[a] == key[b] && a > b); }

static void sift(const double *key, i64 *heap, i64 size, i64 at) {
    i64 moving = heap[at];
    for (i64 child = 2 * at + 1; child < size; child = 2 * at + 1) {
        if (child + 1 < size && after(key, heap[child + 1], heap[child])) child++;
        if (!after(key, heap[child], moving)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moving;
}

static void smallest(const double *key, i64 n, i64 count, i64 *heap) {
    for (i64 i = 0; i < count; i++) heap[i] = i;
    for (i64 i = count / 2 - 1; i >= 0; i--) sift(key, heap, count, i);
    for (i64 i = count; i < n; i++)
        if (after(key, heap[0], i)) {
            heap[0] = i;
            sift(key, heap, count, 0);
        }
    for (i64 size = count - 1; size > 0; size--) {
        i64 top = heap[0];
        heap[0] = heap[size];
        heap[size] = top;
        sift(key, heap, size, 0);
    }
}

/* p: out (rows x count), weights (rows x n, overwritten);  q: rows, seed, offset, n, count, with replacement.
 * Returns 1 if a weight is negative, infinite or NaN, 2 if a row sums to 0, 3 if a row has fewer weights above 0 than
 * count and none may come twice.
 * With replacement: inversion.  Without: the count first arrivals of exponential clocks with these rates
 * (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). */
static i64 multinomial(void *const *p, const i64 *q) {
    i64 rows = q[0], n = q[3], count = q[4], worst = 0;
    bool again = q[5];
    _Pragma("omp parallel for schedule(static) num_threads(fb_threads) if (fb_threads > 1 && rows > 1 && rows * (n + count) >= FB_GRAIN) reduction(max : worst)")
    for (i64 row = 0; row < rows; row++) {
        i64 *out = (i64 *)p[0] + row * count, positive = 0, bad = 0, last = 0;
        double *w = (double *)p[1] + row * n, total = 0;
        stream own = {.seed = (uint64_t)q[1], .index = (uint64_t)(q[2] + row)}, *s = &own;
        for (i64 i = 0; i < n; i++) {
            bad |= !(w[i] >= 0 && w[i] <= 1.7976931348623157e308);
            if (w[i] > 0) { positive++; last = i; }
            total += w[i];
        }
        i64 wrong = bad ? 1 : !(total > 0) ? 2 : !again && positive < count ? 3 : 0;
        if (wrong) {
            worst = wrong > worst ? wrong : worst;
            continue;
        }
        if (!again) {
            for (i64 i = 0; i < n; i++) w[i] = w[i] > 0 ? -log(next_uniform(s)) / w[i] : INFINITY;
            smallest(w, n, count, out);
            continue;
        }
        double sum = 0;
        for (i64 i = 0; i < n; i++) w[i] = sum += w[i];
        for (i64 k = 0; k < count; k++) {
            double wanted = next_uniform(s) * sum;
            i64 low = 0, high = last;
            while (low < high) {
                i64 middle = (low + high) / 2;
                if (w[middle] > wanted) high = middle;
                else low = middle + 1;
            }
            out[k] = low;
        }
    }
    return worst;
}

#define ENTRIES(D, T) {"poisson", FB_##D, poisson_##D, {sizeof(T)}}, {"standard_gamma", FB_##D, standard_gamma_##D, {sizeof(T)}},
FB_FAMILY(sampling) = {
    ENTRIES(F32, float) ENTRIES(F64, double) ENTRIES(F16, f16) ENTRIES(BF16, bf16)
    {"multinomial", FB_I64, multinomial, {8}},
    FB_END};
