/* Special functions, one number at a time: gamma and its relatives, inverse erf. */
#include "pointwise.h"

#define PI 3.14159265358979323846

/* The logarithmic derivative of gamma: recurrence up to 10, then Stirling's series. */
static double digamma_of(double x) {
    if (x == 0) return copysign((double)INFINITY, -x);
    double below = 0;
    if (x < 0) {
        if (x == floor(x)) return (double)NAN;
        below = -PI / tan(PI * (x - rint(x)));
        x = 1 - x;
    }
    for (; x < 10; x += 1) below -= 1 / x;
    double z = 1 / (x * x);
    /* -B(2k) / (2k) */
    double series = z * (-1.0 / 12 + z * (1.0 / 120 + z * (-1.0 / 252 + z * (1.0 / 240 + z * (-1.0 / 132
                  + z * (691.0 / 32760 + z * (-1.0 / 12)))))));
    return x == (double)INFINITY ? x : log(x) - 0.5 / x + series + below;
}

/* Hurwitz zeta for integer s > 1: ten terms, then Euler and Maclaurin.  Poles are infinite.  Below zero the terms on
 * either side of it are two sums of their own: from the first place above, and between the first below and x. */
static double zeta_of(double s, double x) {
    /* B(2k) / (2k)! */
    static const double weight[] = {
        1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 2.08767569878681e-08, -5.284190138687493e-10,
        1.3382536530684679e-11, -3.389680296322583e-13, 8.586062056277845e-15, -2.174868698558062e-16};
    if (x <= 0 && x == floor(x)) return (double)INFINITY;
    if (x != x) return (double)NAN;
    if (x < 0)
        return zeta_of(s, x - floor(x)) + (fmod(s, 2) == 0 ? 1 : -1) * (zeta_of(s, ceil(x) - x) - zeta_of(s, 1 - x));
    double sum = 0;
    for (int i = 0; i < 10 || x < 10; i++, x += 1) sum += pow(x, -s);
    double power = pow(x, -s), factor = s, tail = 0;
    for (int k = 0; k < 10; k++) {
        tail += weight[k] * factor * power / x;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
        power /= x * x;
    }
    return sum + pow(x, 1 - s) / (s - 1) + 0.5 * pow(x, -s) + tail;
}

/* The derivative of order n of digamma. */
static double polygamma_of(i64 n, double x) {
    if (n == 0) return digamma_of(x);
    return (n & 1 ? 1 : -1) * exp(lgamma((double)n + 1)) * zeta_of((double)n + 1, x);
}

/* Halley's method on erf (erfc above 1/2, where it keeps the digits) from Winitzki's approximation. */
static double erfinv_of(double y) {
    double a = fabs(y), x;
    if (!(a <= 1)) return (double)NAN;
    if (a == 1) return copysign((double)INFINITY, y);
    if (a < 0.1) x = a * (0.88622692545275801365 + a * a * 0.23201366653465449);
    else {
        double l = 0.5 * log1p(-a * a), t = 2 / (PI * 0.147) + l;
        x = sqrt(sqrt(t * t - 2 * l / 0.147) - t);
    }
    for (int step = 0; step < 3; step++) {
        double miss = a < 0.5 ? erf(x) - a : (1 - a) - erfc(x);
        double slope = 1.12837916709551257390 * exp(-x * x);
        if (slope == 0) break;
        x -= miss / (slope + x * miss);
    }
    return copysign(x, y);
}

static double lgamma_of(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

#define STAMP(suffix, T, code, W) \
    FB_LOOP1(lgamma_##suffix, T, T, lgamma_of(a)) FB_LOOP1(digamma_##suffix, T, T, digamma_of(a)) \
    FB_LOOP1(erfinv_##suffix, T, T, erfinv_of(a)) FB_LOOP1W(polygamma_##suffix, T, T, T, 1, polygamma_of((i64)w[0], a))
FB_EACH_FLOAT(STAMP)
#undef STAMP
FB_HALVES(lgamma, "xx")
FB_HALVES(digamma, "xx")
FB_HALVES(erfinv, "xx")
FB_HALVES(polygamma, "xxx")

#define ROW(suffix, code, T) \
    {"lgamma", code, lgamma_##suffix, {T, T}}, {"digamma", code, digamma_##suffix, {T, T}}, \
    {"erfinv", code, erfinv_##suffix, {T, T}}, {"polygamma", code, polygamma_##suffix, {T, T, 0}},
FB_FAMILY(special) = {
    ROW(f16, FB_F16, 2) ROW(bf16, FB_BF16, 2) ROW(f32, FB_F32, 4) ROW(f64, FB_F64, 8)
    FB_END};
