/* Elementary functions without branches, so that a loop over them vectorises.
 *
 * fb_NAME_f32 and fb_NAME_f64 stay within 4 units in the last place of the exact
 * result over the whole range, subnormals included, and keep NaN, infinities and
 * -0.0; tests/backends/cpu/test_vectormath.py measures that.  sin, cos and tan
 * hold below FB_TRIG_LIMIT only; loops send larger arguments to libm.
 *
 * Where float would need compensated sums, the float function computes in double.
 * All polynomials are minimax fits (Remez exchange in 50 digits) of the quotient
 * named beside them.  Constants written as hi + lo split a number so that a small
 * integer times hi is exact.
 */
#ifndef FLAMBEAU_VECTORMATH_H
#define FLAMBEAU_VECTORMATH_H

#include "flambeau.h"
#include "half.h"

#define FB_MATH static inline __attribute__((always_inline))

#define FB_TRIG_LIMIT 0x1p19

#define FB_LOG2E 1.44269504088896340736
#define FB_PI_2 1.57079632679489661923
#define FB_PI 3.14159265358979323846
/* Adding this rounds to an integer and leaves it in the low bits. */
#define FB_ROUNDER_F32 0x1.8p23f
#define FB_ROUNDER_F64 0x1.8p52

FB_MATH uint64_t fb_bits64(double value) { uint64_t bits; memcpy(&bits, &value, 8); return bits; }
FB_MATH double fb_from_bits64(uint64_t bits) { double value; memcpy(&value, &bits, 8); return value; }

/* c0 + c1 x + c2 x^2 + ... : the widest call first. */
#define FB_POLY2(x, c0, c1, c2) ((c0) + (x) * ((c1) + (x) * (c2)))
#define FB_POLY4(x, c0, c1, c2, c3, c4) FB_POLY2(x, c0, c1, FB_POLY2(x, c2, c3, c4))
#define FB_POLY6(x, c0, c1, c2, c3, c4, c5, c6) FB_POLY2(x, c0, c1, FB_POLY4(x, c2, c3, c4, c5, c6))
#define FB_POLY8(x, c0, c1, c2, c3, c4, c5, c6, c7, c8) FB_POLY2(x, c0, c1, FB_POLY6(x, c2, c3, c4, c5, c6, c7, c8))
#define FB_POLY10(x, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10) \
    FB_POLY2(x, c0, c1, FB_POLY8(x, c2, c3, c4, c5, c6, c7, c8, c9, c10))

/* ---------------------------------------------------------------- float: exponentials */

/* x 2^n for |n| < 252: two exact steps, so that a subnormal result rounds once. */
FB_MATH float fb_scale_f32(float x, int32_t n) {
    int32_t half = n >> 1;
    return x * fb_float((uint32_t)(half + 127) << 23) * fb_float((uint32_t)(n - half + 127) << 23);
}

/* x = n ln 2 + r with |r| <= ln(2)/2. */
FB_MATH float fb_reduce_exp_f32(float x, int32_t *n) {
    float shifted = x * (float)FB_LOG2E + FB_ROUNDER_F32, k = shifted - FB_ROUNDER_F32;
    *n = (int32_t)(fb_bits(shifted) - fb_bits(FB_ROUNDER_F32));
    return (x - k * 0x1.63p-1f) - k * -0x1.bd0106p-13f; /* ln 2 */
}

FB_MATH float fb_exp_f32(float x) {
    int32_t n;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float r = fb_reduce_exp_f32(x, &n);
    /* (e^r - 1 - r) / r^2 */
    float p = FB_POLY4(r, 0.4999999343f, 0.166665204f, 0.04166839073f, 0.008368745387f, 0.001381454414f);
    return fb_scale_f32(1.0f + (r + r * r * p), n);
}

FB_MATH float fb_expm1_f32(float x) {
    int32_t n;
    float a = x > 89.0f ? 89.0f : x;
    a = a < -18.0f ? -18.0f : a;
    float r = fb_reduce_exp_f32(a, &n);
    float p = FB_POLY4(r, 0.5000000062f, 0.1666654279f, 0.04166628124f, 0.008366610648f, 0.001394650605f);
    float inverse = fb_float((uint32_t)(127 - (n > 100 ? 100 : n)) << 23); /* 2^-n */
    return __builtin_copysignf(fb_scale_f32((r + r * r * p) + (1.0f - inverse), n), x);
}

FB_MATH float fb_sigmoid_f32(float x) {
    float e = fb_exp_f32(-__builtin_fabsf(x));
    return (x >= 0.0f ? 1.0f : e) / (1.0f + e);
}

FB_MATH float fb_tanh_f32(float x) {
    float a = __builtin_fabsf(x);
    float t = fb_expm1_f32(a > 10.0f ? 20.0f : 2.0f * a);
    return __builtin_copysignf(t / (t + 2.0f), x);
}

/* x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)); returns k and log(1 + f) as f - *small. */
FB_MATH float fb_log_parts_f32(float x, float *f, float *small) {
    const uint32_t root = 0x3f3504f3u; /* sqrt(1/2) */
    int tiny = x < 0x1p-126f;
    uint32_t bits = fb_bits(tiny ? x * 0x1p23f : x) - root;
    float g = fb_float((bits & 0x7fffffu) + root) - 1.0f, z = g * g;
    /* (log(1 + f) - f + f^2/2) / f^3 */
    float q = FB_POLY8(g, 0.3333331045f, -0.2499998658f, 0.2000222623f, -0.1666925177f, 0.1421866552f, -0.1238433723f,
                       0.118729164f, -0.1178984817f, 0.06915539719f);
    *f = g;
    *small = 0.5f * z - g * z * q;
    return (float)((int32_t)bits >> 23) + (tiny ? -23.0f : 0.0f);
}

/* What a logarithm of x is where the formula does not hold. */
FB_MATH float fb_log_special_f32(float x, float result) {
    result = x == INFINITY ? x : result;
    result = x > 0.0f ? result : x == 0.0f ? -INFINITY : NAN;
    return x != x ? x : result;
}

FB_MATH float fb_log_f32(float x) {
    float f, small, k = fb_log_parts_f32(x, &f, &small);
    return fb_log_special_f32(x, (f - (small - k * -0x1.bd0106p-13f)) + k * 0x1.63p-1f); /* ln 2 */
}

FB_MATH float fb_log2_f32(float x) {
    float f, small, k = fb_log_parts_f32(x, &f, &small);
    return fb_log_special_f32(x, (f - small) * (float)FB_LOG2E + k);
}

FB_MATH float fb_log10_f32(float x) {
    float f, small, k = fb_log_parts_f32(x, &f, &small);
    return fb_log_special_f32(x, ((f - small) * 0.4342944819f + k * 0x1.3509f8p-18f) + k * 0x1.344p-2f); /* log10(2) */
}

FB_MATH float fb_log1p_f32(float x) {
    float u = 1.0f + x, lost = (x - (u - 1.0f)) / u, result = fb_log_f32(u);
    result = u > 0.0f && u < INFINITY ? result + lost : result;
    return x != x ? x : __builtin_copysignf(result, x);
}

FB_MATH float fb_erf_f32(float x) {
    float a = __builtin_fabsf(x), z = x * x;
    /* erf(a) / a on [0, 1]; -log erfc(a) on [1, 4] */
    float near = FB_POLY6(z, 1.128379166f, -0.3761262582f, 0.1128358515f, -0.02685381199f, 0.005188327729f,
                          -0.0008010193659f, 7.853860632e-5f);
    float b = a > 4.0f ? 4.0f : a;
    float far = FB_POLY6(b, 1.129447993f, 0.6334829274f, 0.1081296413f, -0.02502168067f, 0.004133784559f,
                         -0.0004267396754f, 2.042489761e-5f) * b - 0.0001608409075f;
    return a < 1.0f ? x * near : __builtin_copysignf(1.0f - fb_exp_f32(-far), x);
}

/* ---------------------------------------------------------------- double */

FB_MATH double fb_scale_f64(double x, uint64_t n) {
    uint64_t half = ((n + 4096) >> 1) - 2048;
    return x * fb_from_bits64((half + 1023) << 52) * fb_from_bits64((n - half + 1023) << 52);
}

FB_MATH double fb_reduce_exp_f64(double x, uint64_t *n) {
    double shifted = x * FB_LOG2E + FB_ROUNDER_F64, k = shifted - FB_ROUNDER_F64;
    *n = fb_bits64(shifted) - fb_bits64(FB_ROUNDER_F64);
    return (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33; /* ln 2 */
}

FB_MATH double fb_exp_f64(double x) {
    uint64_t n;
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    double r = fb_reduce_exp_f64(x, &n), z = r * r;
    double p = FB_POLY4(r, 0.50000000000000106682, 0.16666666666666411512, 0.041666666666529732664, 0.0083333333334949800702,
                        0.0013888888943758789443);
    double q = FB_POLY4(r, 0.00019841269505760469258, 0.000024801492950804457443, 2.7557586818814349649e-6,
                        2.7630305859655484719e-7, 2.5000013831782200313e-8);
    return fb_scale_f64(1.0 + (r + z * (p + z * z * r * q)), n);
}

FB_MATH double fb_expm1_f64(double x) {
    uint64_t n;
    double a = x > 710.0 ? 710.0 : x;
    a = a < -40.0 ? -40.0 : a;
    double r = fb_reduce_exp_f64(a, &n);
    double p = FB_POLY10(r, 0.49999999999999999986, 0.16666666666666676638, 0.041666666666666701405, 0.0083333333333215785119,
                         0.0013888888888866807817, 0.00019841269886265928704, 0.000024801587360632879216,
                         2.7557244062135045452e-6, 2.7557242681752683295e-7, 2.5109090359390052388e-8,
                         2.0924470508221123086e-9);
    double inverse = fb_from_bits64((1023 - ((int64_t)n > 1000 ? 1000 : n)) << 52); /* 2^-n */
    return __builtin_copysign(fb_scale_f64((r + r * r * p) + (1.0 - inverse), n), x);
}

FB_MATH double fb_sigmoid_f64(double x) {
    double e = fb_exp_f64(-__builtin_fabs(x));
    return (x >= 0.0 ? 1.0 : e) / (1.0 + e);
}

FB_MATH double fb_tanh_f64(double x) {
    double a = __builtin_fabs(x);
    double t = fb_expm1_f64(a > 20.0 ? 40.0 : 2.0 * a);
    return __builtin_copysign(t / (t + 2.0), x);
}

/* x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for positive normal x. */
FB_MATH double fb_split_f64(double x, double *f) {
    const uint64_t root = 0x3fe6a09e667f3bcdu;
    uint64_t bits = fb_bits64(x) - root;
    *f = fb_from_bits64((bits & 0xfffffffffffffu) + root) - 1.0;
    /* The biased exponent becomes a double by way of the bits of 2^52. */
    return fb_from_bits64(0x4330000000000000u | ((bits + (1024ull << 52)) >> 52)) - (0x1p52 + 1024.0);
}

FB_MATH double fb_log_f64(double x) {
    int tiny = x < 0x1p-1022;
    double f, k = fb_split_f64(tiny ? x * 0x1p54 : x, &f) + (tiny ? -54.0 : 0.0);
    double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    /* log(1 + f) = 2 s + s z R,  R = (2 atanh(s) / s - 2) / z */
    double r = z * FB_POLY6(z, 0.66666666666667346177, 0.39999999999413143763, 0.28571428742763738138, 0.22222198531285987306,
                            0.18183566664329599488, 0.15313986841148744885, 0.14796624259487890295);
    double result = k * 0x1.62e42fee00000p-1 - ((half - (s * (half + r) + k * 0x1.a39ef35793c76p-33)) - f);
    result = x == (double)INFINITY ? x : result;
    result = x > 0.0 ? result : x == 0.0 ? -(double)INFINITY : (double)NAN;
    return x != x ? x : result;
}

/* x = quarter pi/2 + r with |r| <= pi/4, for |x| < FB_TRIG_LIMIT. */
FB_MATH double fb_reduce_trig(double x, uint64_t *quarter) {
    double shifted = x * (1.0 / FB_PI_2) + FB_ROUNDER_F64, k = shifted - FB_ROUNDER_F64;
    *quarter = fb_bits64(shifted);
    return ((x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a600000p-34) - k * 0x1.3198a2e037073p-69; /* pi/2 */
}

FB_MATH double fb_sine_f64(double x, uint64_t turn) {
    uint64_t quarter;
    double r = fb_reduce_trig(x, &quarter), z = r * r;
    quarter += turn;
    /* (sin(r)/r - 1) / z  and  (cos(r) - 1 + z/2) / z^2 */
    double p = -0.16666666666666631229 + z * FB_POLY4(z, 0.0083333333333222046347, -0.00019841269829632719387,
                       2.7557313628697104576e-6, -2.5050747856440633732e-8, 1.5896181487804999879e-10);
    double q = 0.04166666666666659793 + z * FB_POLY4(z, -0.0013888888888873841557, 0.000024801587289297388927,
                       -2.7557314296685338235e-7, 2.0875715422100837593e-9, -1.1359227340951043549e-11);
    double sine = r + r * z * p, cosine = (1.0 - 0.5 * z) + z * z * q;
    double result = quarter & 1 ? cosine : sine;
    return fb_from_bits64(fb_bits64(result) ^ (quarter & 2) << 62);
}

FB_MATH double fb_sin_f64(double x) { return x == 0.0 ? x : fb_sine_f64(x, 0); }
FB_MATH double fb_cos_f64(double x) { return fb_sine_f64(x, 1); }

/* ---------------------------------------------------------------- float by way of double */

FB_MATH float fb_sine_f32(float x, uint32_t turn) {
    double shifted = (double)x * (1.0 / FB_PI_2) + FB_ROUNDER_F64, k = shifted - FB_ROUNDER_F64;
    uint32_t quarter = (uint32_t)fb_bits64(shifted) + turn;
    float r = (float)(((double)x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a62633ap-34), z = r * r;
    float sine = r + r * z * FB_POLY2(z, -0.166666548f, 0.008332168924f, -0.0001951601169f);
    float cosine = (1.0f - 0.5f * z) + z * z * FB_POLY2(z, 0.04166664663f, -0.001388735537f, 2.443700865e-5f);
    float result = quarter & 1 ? cosine : sine;
    return fb_float(fb_bits(result) ^ (quarter & 2) << 30);
}

FB_MATH float fb_sin_f32(float x) { return x == 0.0f ? x : fb_sine_f32(x, 0); }
FB_MATH float fb_cos_f32(float x) { return fb_sine_f32(x, 1); }

FB_MATH float fb_tan_f32(float x) {
    uint64_t quarter;
    double r = fb_reduce_trig(x, &quarter), z = r * r;
    double sine = r + r * z * FB_POLY4(z, -0.16666666666666631229, 0.0083333333333222046347, -0.00019841269829632719387,
                                       2.7557313628697104576e-6, -2.5050747856440633732e-8);
    double cosine = (1.0 - 0.5 * z) + z * z * FB_POLY4(z, 0.04166666666666659793, -0.0013888888888873841557,
                                       0.000024801587289297388927, -2.7557314296685338235e-7, 2.0875715422100837593e-9);
    double result = quarter & 1 ? -cosine / sine : sine / cosine;
    return x == 0.0f ? x : (float)result;
}

FB_MATH float fb_sinh_f32(float x) {
    double d = x, e = fb_exp_f64(d), near = d * (1.0 + d * d * (1.0 / 6.0 + d * d * (1.0 / 120.0)));
    return (float)(__builtin_fabs(d) < 0.03 ? near : 0.5 * (e - 1.0 / e));
}

FB_MATH float fb_cosh_f32(float x) {
    double e = fb_exp_f64(x);
    return (float)(0.5 * (e + 1.0 / e));
}

/* (asin(s)/s - 1) / z on [0, 1/2], z = s^2 */
FB_MATH double fb_asin_series(double s, double z) {
    return s + s * z * FB_POLY6(z, 0.16666667191531108158, 0.074999480093116774595, 0.044660205346582366329,
                                0.030109710125884664432, 0.024621899537047876387, 0.0074578506480211585423,
                                0.034706954270945988607);
}

FB_MATH float fb_asin_f32(float x) {
    double a = __builtin_fabsf(x);
    int near = a <= 0.5;
    double z = near ? a * a : 0.5 * (1.0 - a), y = fb_asin_series(near ? a : __builtin_sqrt(z), z);
    return __builtin_copysignf((float)(near ? y : FB_PI_2 - 2.0 * y), x);
}

FB_MATH float fb_acos_f32(float x) {
    double a = __builtin_fabsf(x);
    int near = a <= 0.5;
    double z = near ? a * a : 0.5 * (1.0 - a), y = fb_asin_series(near ? a : __builtin_sqrt(z), z);
    double far = x < 0.0f ? FB_PI - 2.0 * y : 2.0 * y;
    return (float)(near ? FB_PI_2 - __builtin_copysign(y, (double)x) : far);
}

/* (atan(q)/q - 1) / z on [0, 1], z = q^2 */
FB_MATH double fb_atan_series(double q) {
    double z = q * q;
    double p = -0.3333332743385365119 + z * FB_POLY8(z, 0.19999692622553698538, -0.14280130868138842489, 0.11060245300066774711,
                       -0.088188509514463133855, 0.067595778478608245275, -0.044946522932814756141, 0.022760403862524470165,
                       -0.0074226661173986073989, 0.0011348837733003141244);
    return q + q * z * p;
}

FB_MATH float fb_atan_f32(float x) {
    double a = __builtin_fabsf(x);
    int big = a > 1.0;
    double y = fb_atan_series((big ? -1.0 : a) / (big ? a : 1.0));
    return __builtin_copysignf((float)(big ? y + FB_PI_2 : y), x);
}

FB_MATH float fb_atan2_f32(float y, float x) {
    double a = __builtin_fabsf(y), b = __builtin_fabsf(x);
    int steep = a > b;
    double over = steep ? -b : a, under = steep ? a : b, q = over / under;
    q = under == 0.0 ? 0.0 : q;                              /* 0 / 0 */
    q = b == (double)INFINITY && a == b ? 1.0 : q;           /* inf / inf */
    double angle = fb_atan_series(q);
    angle = steep ? angle + FB_PI_2 : angle;
    angle = __builtin_copysignf(1.0f, x) < 0.0f ? FB_PI - angle : angle;
    float result = __builtin_copysignf((float)angle, y);
    return x != x || y != y ? x + y : result;
}

/* erfc(a) = e^(-a^2) / (1 + a) * W((a - 3) / (a + 3)) for a >= 0 */
FB_MATH float fb_erfc_f32(float x) {
    double a = __builtin_fabsf(x);
    a = a > 10.1 ? 10.1 : a;
    double t = (a - 3.0) / (a + 3.0);
    double w = FB_POLY2(t, 0.71600460472770286118, -0.23092733360419204386,
               FB_POLY10(t, 0.099020753390142041428, -0.010235361485779878861, -0.023803894923565458882, 0.021957358625341652679,
                         -0.0097510884202473283886, 0.0016209831686333510965, 0.00064916165312199558427,
                         -0.00037295975397676448157, -0.000032194569629229056107, 0.000057477720225804744785,
                         0.000012822772015581723816));
    double tail = fb_exp_f64(-a * a) * w / (1.0 + a);
    return (float)(x < 0.0f ? 2.0 - tail : tail);
}

/* All bits set where a condition holds. */
FB_MATH uint32_t fb_mask(int condition) { return -(uint32_t)condition; }

/* x^y with every special case of C's pow.  Branches would keep loops from being vectorised, and a choice
 * of a constant becomes one: such choices are made by masks. */
FB_MATH float fb_pow_f32(float x, float y) {
    const float infinite = INFINITY;
    const uint64_t limit = 0x4064000000000000u; /* 160: 2^160 becomes infinite and 2^-160 zero */
    float a = __builtin_fabsf(x);
    double f, k = fb_split_f64(a, &f), s = f / (2.0 + f), z = s * s;
    double power = k + FB_LOG2E * (2.0 * s + s * z * FB_POLY4(z, 0.66666666675819818525, 0.39999995614845478612,
                       0.28572109954840849365, 0.22176153233852706271, 0.19584691768188149863));
    power = a == 0.0f ? -(double)INFINITY : power;
    power = a < infinite ? power : (double)a;
    double t = (double)y * power;
    uint64_t size = fb_bits64(t) & 0x7fffffffffffffffu, cut = size < limit ? size : limit;
    double within = __builtin_copysign(fb_from_bits64(cut), t);
    double shifted = within + FB_ROUNDER_F64, r = within - (shifted - FB_ROUNDER_F64);
    double p = FB_POLY2(r, 0.99999999996161874751, 0.69314718072870744214, FB_POLY4(r, 0.24022651198764725618,
                       0.055504103528420917361, 0.0096180271717355008431, 0.0013333922846270735607,
                       0.00015469317588687507873) + r * r * r * r * r * 0.00001520190389916911468);
    float result = (float)(p * fb_from_bits64((fb_bits64(shifted) - fb_bits64(FB_ROUNDER_F64) + 1023) << 52));

    float b = __builtin_fabsf(y);
    double whole = (double)b + FB_ROUNDER_F64; /* rounded to units, the last bit tells odd from even */
    int integer = whole - FB_ROUNDER_F64 == (double)b, odd = integer & (b < 0x1p24f) & (int)fb_bits64(whole);
    uint32_t bits = fb_bits(result) | (fb_bits(x) & (uint32_t)odd << 31);
    bits |= fb_mask((x != x) | (y != y) | ((x < 0.0f) & !integer & (a < infinite))) & 0x7fc00000u;
    uint32_t one = fb_mask((x == 1.0f) | (y == 0.0f) | ((a == 1.0f) & (b == infinite)));
    return fb_float((bits & ~one) | (0x3f800000u & one));
}

#endif
