/* One input, one output: signs, rounding, elementary functions, predicates. */
#include "vectormath.h"
#include "pointwise.h"

/* ---------------------------------------------------------------- floats */

/* X(name, float expression, double expression) */
#define ELEMENTARY(X) \
    X(neg, -a, -a) \
    X(abs, __builtin_fabsf(a), __builtin_fabs(a)) \
    X(sign, (float)((a > 0.0f) - (a < 0.0f)), (double)((a > 0.0) - (a < 0.0))) \
    X(reciprocal, 1.0f / a, 1.0 / a) \
    X(square, a * a, a * a) \
    X(sqrt, __builtin_sqrtf(a), __builtin_sqrt(a)) \
    X(rsqrt, 1.0f / __builtin_sqrtf(a), 1.0 / __builtin_sqrt(a)) \
    X(floor, __builtin_floorf(a), __builtin_floor(a)) \
    X(ceil, __builtin_ceilf(a), __builtin_ceil(a)) \
    X(trunc, __builtin_truncf(a), __builtin_trunc(a)) \
    X(round, __builtin_rintf(a), __builtin_rint(a)) \
    X(frac, a - __builtin_truncf(a), a - __builtin_trunc(a)) \
    X(exp, fb_exp_f32(a), fb_exp_f64(a)) \
    X(expm1, fb_expm1_f32(a), fb_expm1_f64(a)) \
    X(log, fb_log_f32(a), fb_log_f64(a)) \
    X(log1p, fb_log1p_f32(a), log1p(a)) \
    X(log2, fb_log2_f32(a), log2(a)) \
    X(log10, fb_log10_f32(a), log10(a)) \
    X(asin, fb_asin_f32(a), asin(a)) \
    X(acos, fb_acos_f32(a), acos(a)) \
    X(atan, fb_atan_f32(a), atan(a)) \
    X(sinh, fb_sinh_f32(a), sinh(a)) \
    X(cosh, fb_cosh_f32(a), cosh(a)) \
    X(tanh, fb_tanh_f32(a), fb_tanh_f64(a)) \
    X(sigmoid, fb_sigmoid_f32(a), fb_sigmoid_f64(a)) \
    X(erf, fb_erf_f32(a), erf(a)) \
    X(erfc, fb_erfc_f32(a), erfc(a))

#define STAMP(name, single, twice) \
    FB_LOOP1(name##_f32, float, float, single) FB_LOOP1(name##_f64, double, double, twice) FB_HALVES(name, "xx")
ELEMENTARY(STAMP)
#undef STAMP

/* A block with an argument beyond FB_TRIG_LIMIT goes to libm whole. */
#define TRIGONOMETRIC(name, T, bits, vector, scalar) \
    FB_LOOP1(name##_near, T, T, vector) \
    FB_LOOP1(name##_far, T, T, scalar) \
    static void name(i64 n, char *const *p, const i64 *s) { \
        if (!s[1]) { name##_far(n, p, s); return; } \
        for (i64 first = 0; first < n; first += FB_BLOCK) { \
            i64 count = n - first < FB_BLOCK ? n - first : FB_BLOCK; \
            char *q[] = {p[0] + first * sizeof(T), p[1] + first * sizeof(T)}; \
            const T *x = (const T *)q[1]; \
            bits far = 0; \
            for (i64 i = 0; i < count; i++) far |= (x[i] > (T)FB_TRIG_LIMIT) | (x[i] < -(T)FB_TRIG_LIMIT); \
            if (far) name##_far(count, q, s); else name##_near(count, q, s); \
        } \
    }
TRIGONOMETRIC(sin_f32, float, int32_t, fb_sin_f32(a), sinf(a))
TRIGONOMETRIC(cos_f32, float, int32_t, fb_cos_f32(a), cosf(a))
TRIGONOMETRIC(tan_f32, float, int32_t, fb_tan_f32(a), tanf(a))
TRIGONOMETRIC(sin_f64, double, i64, fb_sin_f64(a), sin(a))
TRIGONOMETRIC(cos_f64, double, i64, fb_cos_f64(a), cos(a))
FB_LOOP1(tan_f64, double, double, tan(a))
FB_HALVES(sin, "xx")
FB_HALVES(cos, "xx")
FB_HALVES(tan, "xx")

/* ---------------------------------------------------------------- integers and complex */

#define WHOLE(X) \
    X(neg, (T)(0 - (W)a)) \
    X(abs, a < 0 ? (T)(0 - (W)a) : a) \
    X(sign, (T)((a > 0) - (a < 0))) \
    X(square, (T)((W)a * (W)a)) \
    X(bitwise_not, (T)~a)

/* The expressions name the types T and W; each stamp gives them a meaning. */
#define INT_LOOP(name, suffix, CT, CW, expression) \
    static void name##_##suffix(i64 n, char *const *p, const i64 *s) { \
        typedef CT T __attribute__((unused)); typedef CW W __attribute__((unused)); \
        static const i64 size[] = {sizeof(T), sizeof(T)}; \
        if (!s[1] && n > 1) { fb_spread(name##_##suffix, n, p, s, size, 2); return; } \
        T *out = (T *)p[0]; const T *x = (const T *)p[1]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const T a = x[i]; out[i] = (T)(expression); } \
    }
#define STAMP(name, expression) \
    INT_LOOP(name, u8, uint8_t, uint32_t, expression) INT_LOOP(name, i8, int8_t, uint32_t, expression) \
    INT_LOOP(name, i16, int16_t, uint32_t, expression) INT_LOOP(name, i32, int32_t, uint32_t, expression) \
    INT_LOOP(name, i64, int64_t, uint64_t, expression)
WHOLE(STAMP)
#undef STAMP
FB_LOOP1(bitwise_not_bool, uint8_t, uint8_t, !a)
FB_LOOP1(neg_c64, float _Complex, float _Complex, -a)
FB_LOOP1(neg_c128, double _Complex, double _Complex, -a)

/* ---------------------------------------------------------------- predicates */

#define BOOLEAN(name, suffix, T, expression) FB_LOOP1(name##_##suffix, uint8_t, T, expression)
BOOLEAN(isnan, f32, float, a != a)
BOOLEAN(isnan, f64, double, a != a)
BOOLEAN(isinf, f32, float, __builtin_fabsf(a) == INFINITY)
BOOLEAN(isinf, f64, double, __builtin_fabs(a) == (double)INFINITY)
BOOLEAN(isfinite, f32, float, __builtin_fabsf(a) < INFINITY)
BOOLEAN(isfinite, f64, double, __builtin_fabs(a) < (double)INFINITY)
#define EITHER_INFINITE(fabs) fabs(__real__ a) == INFINITY || fabs(__imag__ a) == INFINITY
#define BOTH_FINITE(fabs) fabs(__real__ a) < INFINITY && fabs(__imag__ a) < INFINITY
BOOLEAN(isinf, c64, float _Complex, EITHER_INFINITE(__builtin_fabsf))
BOOLEAN(isinf, c128, double _Complex, EITHER_INFINITE(__builtin_fabs))
BOOLEAN(isfinite, c64, float _Complex, BOTH_FINITE(__builtin_fabsf))
BOOLEAN(isfinite, c128, double _Complex, BOTH_FINITE(__builtin_fabs))
FB_HALVES(isnan, ".x")
FB_HALVES(isinf, ".x")
FB_HALVES(isfinite, ".x")
#define STAMP(suffix, T, code, W) BOOLEAN(logical_not, suffix, T, a == 0)
FB_EACH_INT(STAMP)
FB_EACH_FLOAT(STAMP)
#undef STAMP
FB_HALVES(logical_not, ".x")

/* Whether an element is zero, told to *p[0] (a parameter of one byte): integer division asks first. */
#define STAMP(suffix, T, code, W) \
    static void has_zero_##suffix(i64 n, char *const *p, const i64 *s) { \
        const T *x = (const T *)p[1]; \
        T found = 0; \
        if (!s[1]) found = *x == 0; \
        else for (i64 i = 0; i < n; i++) found |= x[i] == 0; \
        if (found) __atomic_store_n(p[0], 1, __ATOMIC_RELAXED); \
    }
FB_EACH_INT(STAMP)
#undef STAMP

#define HALF_AND_FLOAT(name, out16, out32, out64) \
    {#name, FB_F16, name##_f16, {out16, 2}}, {#name, FB_BF16, name##_bf16, {out16, 2}}, \
    {#name, FB_F32, name##_f32, {out32, 4}}, {#name, FB_F64, name##_f64, {out64, 8}},
FB_FAMILY(unary) = {
#define STAMP(name, single, twice) HALF_AND_FLOAT(name, 2, 4, 8)
    ELEMENTARY(STAMP)
#undef STAMP
    HALF_AND_FLOAT(sin, 2, 4, 8) HALF_AND_FLOAT(cos, 2, 4, 8) HALF_AND_FLOAT(tan, 2, 4, 8)
    HALF_AND_FLOAT(isnan, 1, 1, 1) HALF_AND_FLOAT(isinf, 1, 1, 1) HALF_AND_FLOAT(isfinite, 1, 1, 1)
    HALF_AND_FLOAT(logical_not, 1, 1, 1)
#define STAMP(name, expression) \
    {#name, FB_U8, name##_u8, {1, 1}}, {#name, FB_I8, name##_i8, {1, 1}}, {#name, FB_I16, name##_i16, {2, 2}}, \
    {#name, FB_I32, name##_i32, {4, 4}}, {#name, FB_I64, name##_i64, {8, 8}},
    WHOLE(STAMP)
#undef STAMP
#define STAMP(suffix, T, code, W) \
    {"logical_not", code, logical_not_##suffix, {1, sizeof(T)}}, {"has_zero", code, has_zero_##suffix, {0, sizeof(T)}},
    FB_EACH_INT(STAMP)
#undef STAMP
    {"logical_not", FB_BOOL, logical_not_u8, {1, 1}}, {"has_zero", FB_BOOL, has_zero_u8, {0, 1}},
    {"bitwise_not", FB_BOOL, bitwise_not_bool, {1, 1}}, {"sign", FB_BOOL, sign_u8, {1, 1}},
    {"neg", FB_C64, neg_c64, {8, 8}}, {"neg", FB_C128, neg_c128, {16, 16}},
    {"isinf", FB_C64, isinf_c64, {1, 8}}, {"isinf", FB_C128, isinf_c128, {1, 16}},
    {"isfinite", FB_C64, isfinite_c64, {1, 8}}, {"isfinite", FB_C128, isfinite_c128, {1, 16}},
    FB_END};
