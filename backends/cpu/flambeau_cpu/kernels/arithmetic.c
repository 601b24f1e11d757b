/* Two inputs, one output of the same type: sums, products, quotients, powers, bits. */
#include "vectormath.h"
#include "pointwise.h"

/* ---------------------------------------------------------------- division and its remainders */

/* The quotient rounded down, as Python defines it: exact where a / b is not. */
#define FLOOR_DIVIDE(T, suffix, MOD, FLOOR, COPYSIGN) \
    FB_MATH T floor_divide_of_##suffix(T a, T b) { \
        T rest = MOD(a, b), quotient = (a - rest) / b, whole; \
        if (b == 0) return a / b; \
        if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1; \
        if (quotient == 0) return COPYSIGN(0, a / b); \
        whole = FLOOR(quotient); \
        return quotient - whole > (T)0.5 ? whole + 1 : whole; \
    } \
    FB_MATH T remainder_of_##suffix(T a, T b) { \
        T rest = MOD(a, b); \
        return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest; \
    }
FLOOR_DIVIDE(float, f32, fmodf, floorf, copysignf)
FLOOR_DIVIDE(double, f64, fmod, floor, copysign)

/* Integers: callers have ruled out b = 0 (kernel has_zero); 0 stands in for the result all the
 * same, so that nothing traps, and b = -1 avoids the overflow of the smallest number. */
#define QUOTIENT(T, W, a, b) ((b) == 0 ? 0 : (T)(b) == (T)-1 && (T)-1 < 0 ? (T)(0 - (W)(a)) : (T)((a) / (b)))
#define REST(T, a, b) ((b) == 0 || ((T)(b) == (T)-1 && (T)-1 < 0) ? 0 : (T)((a) % (b)))
#define DIVIDE_INT(suffix, T, code, W) \
    FB_MATH T rest_of_##suffix(T a, T b) { \
        T rest = REST(T, a, b); \
        return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest; \
    } \
    FB_MATH T floored_of_##suffix(T a, T b) { \
        T rest = REST(T, a, b), quotient = QUOTIENT(T, W, a, b); \
        return rest != 0 && (rest < 0) != (b < 0) ? (T)(quotient - 1) : quotient; \
    } \
    /* Wraps on overflow; a negative power is 0 unless the base is 1 or -1. */ \
    FB_MATH T power_of_##suffix(T a, T b) { \
        if (b < 0) return a == 1 ? 1 : a == (T)-1 ? (b & 1 ? a : 1) : 0; \
        W result = 1, base = (W)a; \
        for (uint64_t left = (uint64_t)b; left; left >>= 1, base *= base) \
            if (left & 1) result *= base; \
        return (T)result; \
    }
FB_EACH_INT(DIVIDE_INT)

/* ---------------------------------------------------------------- loops */

#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

#define STAMP(suffix, T, code, W) \
    FB_LOOP2(add_##suffix, T, T, T, (T)((W)a + (W)b)) \
    FB_LOOP2(sub_##suffix, T, T, T, (T)((W)a - (W)b)) \
    FB_LOOP2(mul_##suffix, T, T, T, (T)((W)a * (W)b)) \
    FB_LOOP2(maximum_##suffix, T, T, T, LARGER(a, b)) \
    FB_LOOP2(minimum_##suffix, T, T, T, SMALLER(a, b)) \
    FB_LOOP2W(add_scaled_##suffix, T, T, T, T, 1, (T)((W)a + (W)w[0] * (W)b)) \
    FB_LOOP2(logical_and_##suffix, uint8_t, T, T, (a != 0) & (b != 0)) \
    FB_LOOP2(logical_or_##suffix, uint8_t, T, T, (a != 0) | (b != 0)) \
    FB_LOOP2(logical_xor_##suffix, uint8_t, T, T, (a != 0) ^ (b != 0))
FB_EACH_INT(STAMP)
FB_EACH_FLOAT(STAMP)
#undef STAMP

#define BITS(T) ((int)sizeof(T) * 8)
#define STAMP(suffix, T, code, W) \
    FB_LOOP2(bitwise_and_##suffix, T, T, T, a & b) \
    FB_LOOP2(bitwise_or_##suffix, T, T, T, a | b) \
    FB_LOOP2(bitwise_xor_##suffix, T, T, T, a ^ b) \
    FB_LOOP2_DENSE(left_shift_##suffix, T, T, T, b < 0 || b >= BITS(T) ? 0 : (T)((W)a << b)) \
    FB_LOOP2_DENSE(right_shift_##suffix, T, T, T, a >> (b < 0 || b >= BITS(T) ? BITS(T) - 1 : b) >> ((T)-1 > 0 && (b >= BITS(T)))) \
    FB_LOOP2_DENSE(floor_divide_##suffix, T, T, T, floored_of_##suffix(a, b)) \
    FB_LOOP2_DENSE(trunc_divide_##suffix, T, T, T, QUOTIENT(T, W, a, b)) \
    FB_LOOP2_DENSE(remainder_##suffix, T, T, T, rest_of_##suffix(a, b)) \
    FB_LOOP2_DENSE(fmod_##suffix, T, T, T, REST(T, a, b)) \
    FB_LOOP2_DENSE(general_pow_##suffix, T, T, T, power_of_##suffix(a, b))
FB_EACH_INT(STAMP)
#undef STAMP

FB_LOOP2(div_f32, float, float, float, a / b)
FB_LOOP2(div_f64, double, double, double, a / b)
FB_LOOP2_DENSE(general_pow_f32, float, float, float, fb_pow_f32(a, b))
FB_LOOP2_DENSE(general_pow_f64, double, double, double, pow(a, b))
FB_LOOP2_DENSE(atan2_f32, float, float, float, fb_atan2_f32(a, b))
FB_LOOP2_DENSE(atan2_f64, double, double, double, atan2(a, b))
FB_LOOP2_DENSE(floor_divide_f32, float, float, float, floor_divide_of_f32(a, b))
FB_LOOP2_DENSE(floor_divide_f64, double, double, double, floor_divide_of_f64(a, b))
FB_LOOP2(trunc_divide_f32, float, float, float, __builtin_truncf(a / b))
FB_LOOP2(trunc_divide_f64, double, double, double, __builtin_trunc(a / b))
FB_LOOP2_DENSE(remainder_f32, float, float, float, remainder_of_f32(a, b))
FB_LOOP2_DENSE(remainder_f64, double, double, double, remainder_of_f64(a, b))
FB_LOOP2_DENSE(fmod_f32, float, float, float, fmodf(a, b))
FB_LOOP2_DENSE(fmod_f64, double, double, double, fmod(a, b))

/* One exponent for all: the common ones are products and roots. */
#define ROOTS(suffix, T, code, W) \
    FB_LOOP1(power_half_##suffix, T, T, sizeof(T) == 4 ? (T)__builtin_sqrtf((float)a) : (T)__builtin_sqrt(a)) \
    FB_LOOP1(power_minus_half_##suffix, T, T, 1 / (sizeof(T) == 4 ? (T)__builtin_sqrtf((float)a) : (T)__builtin_sqrt(a))) \
    FB_LOOP1(power_minus_one_##suffix, T, T, 1 / a) \
    FB_LOOP1(power_minus_two_##suffix, T, T, 1 / (a * a))
FB_EACH_FLOAT(ROOTS)
#define POWER_LOOP(suffix, T, code, W, EXTRA) \
    FB_LOOP1(power_two_##suffix, T, T, (T)((W)a * (W)a)) \
    FB_LOOP1(power_three_##suffix, T, T, (T)((W)a * (W)a * (W)a)) \
    static void pow_##suffix(i64 n, char *const *p, const i64 *s) { \
        fb_loop loop = general_pow_##suffix; \
        if (!s[2] && n > 1) { \
            T b = *(const T *)p[2]; \
            if (b == 2) loop = power_two_##suffix; \
            if (b == 3) loop = power_three_##suffix; \
            EXTRA \
        } \
        loop(n, p, s); \
    }
#define FLOAT_EXTRA(suffix) \
    if (b == 0.5) loop = power_half_##suffix; \
    if (b == -0.5) loop = power_minus_half_##suffix; \
    if (b == -1) loop = power_minus_one_##suffix; \
    if (b == -2) loop = power_minus_two_##suffix;
#define STAMP(suffix, T, code, W) POWER_LOOP(suffix, T, code, W, )
FB_EACH_INT(STAMP)
#undef STAMP
#define STAMP(suffix, T, code, W) POWER_LOOP(suffix, T, code, W, FLOAT_EXTRA(suffix))
FB_EACH_FLOAT(STAMP)
#undef STAMP

#define HALF_OPS(X) X(add) X(sub) X(mul) X(div) X(maximum) X(minimum) X(pow) X(atan2) X(floor_divide) X(trunc_divide) \
    X(remainder) X(fmod)
#define STAMP(name) FB_HALVES(name, "xxx")
HALF_OPS(STAMP)
#undef STAMP
FB_HALVES(add_scaled, "xxxx")
FB_HALVES(logical_and, ".xx")
FB_HALVES(logical_or, ".xx")
FB_HALVES(logical_xor, ".xx")

#define STAMP(suffix, T) \
    FB_LOOP2_DENSE(add_##suffix, T _Complex, T _Complex, T _Complex, a + b) \
    FB_LOOP2_DENSE(sub_##suffix, T _Complex, T _Complex, T _Complex, a - b) \
    FB_LOOP2_DENSE(mul_##suffix, T _Complex, T _Complex, T _Complex, a * b) \
    FB_LOOP2_DENSE(div_##suffix, T _Complex, T _Complex, T _Complex, a / b)
STAMP(c64, float)
STAMP(c128, double)
#undef STAMP

#define ENTRY(name, code, function, O, T) {#name, code, function, {O, T, T}},
FB_FAMILY(arithmetic) = {
#define STAMP(suffix, T, code, W) \
    ENTRY(add, code, add_##suffix, sizeof(T), sizeof(T)) ENTRY(sub, code, sub_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(mul, code, mul_##suffix, sizeof(T), sizeof(T)) ENTRY(pow, code, pow_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(maximum, code, maximum_##suffix, sizeof(T), sizeof(T)) ENTRY(minimum, code, minimum_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(logical_and, code, logical_and_##suffix, 1, sizeof(T)) ENTRY(logical_or, code, logical_or_##suffix, 1, sizeof(T)) \
    ENTRY(logical_xor, code, logical_xor_##suffix, 1, sizeof(T)) \
    ENTRY(floor_divide, code, floor_divide_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(trunc_divide, code, trunc_divide_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(remainder, code, remainder_##suffix, sizeof(T), sizeof(T)) ENTRY(fmod, code, fmod_##suffix, sizeof(T), sizeof(T)) \
    {"add_scaled", code, add_scaled_##suffix, {sizeof(T), sizeof(T), sizeof(T), 0}},
    FB_EACH_INT(STAMP)
    FB_EACH_FLOAT(STAMP)
#undef STAMP
#define STAMP(suffix, T, code, W) \
    ENTRY(bitwise_and, code, bitwise_and_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(bitwise_or, code, bitwise_or_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(bitwise_xor, code, bitwise_xor_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(left_shift, code, left_shift_##suffix, sizeof(T), sizeof(T)) \
    ENTRY(right_shift, code, right_shift_##suffix, sizeof(T), sizeof(T))
    FB_EACH_INT(STAMP)
#undef STAMP
    ENTRY(div, FB_F32, div_f32, 4, 4) ENTRY(div, FB_F64, div_f64, 8, 8)
    ENTRY(atan2, FB_F32, atan2_f32, 4, 4) ENTRY(atan2, FB_F64, atan2_f64, 8, 8)
#define STAMP(name) ENTRY(name, FB_F16, name##_f16, 2, 2) ENTRY(name, FB_BF16, name##_bf16, 2, 2)
    HALF_OPS(STAMP)
#undef STAMP
#define STAMP(name) ENTRY(name, FB_F16, name##_f16, 1, 2) ENTRY(name, FB_BF16, name##_bf16, 1, 2)
    STAMP(logical_and) STAMP(logical_or) STAMP(logical_xor)
#undef STAMP
    {"add_scaled", FB_F16, add_scaled_f16, {2, 2, 2, 0}}, {"add_scaled", FB_BF16, add_scaled_bf16, {2, 2, 2, 0}},
    /* Truth values are bytes 0 and 1. */
#define STAMP(name, function) ENTRY(name, FB_BOOL, function##_u8, 1, 1)
    STAMP(add, bitwise_or) STAMP(mul, bitwise_and) STAMP(maximum, bitwise_or) STAMP(minimum, bitwise_and)
    STAMP(bitwise_and, bitwise_and) STAMP(bitwise_or, bitwise_or) STAMP(bitwise_xor, bitwise_xor)
    STAMP(logical_and, bitwise_and) STAMP(logical_or, bitwise_or) STAMP(logical_xor, bitwise_xor)
#undef STAMP
#define STAMP(name) ENTRY(name, FB_C64, name##_c64, 8, 8) ENTRY(name, FB_C128, name##_c128, 16, 16)
    STAMP(add) STAMP(sub) STAMP(mul) STAMP(div)
#undef STAMP
    FB_END};
