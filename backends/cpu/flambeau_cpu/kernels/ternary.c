/* Three inputs, one output: selection, bounds given as tensors, fused products. */
#include "pointwise.h"

/* where(a, b, c) moves bits, so one loop serves every type of a size. */
FB_LOOP3(where_1, uint8_t, uint8_t, uint8_t, uint8_t, a ? b : c)
FB_LOOP3(where_2, uint16_t, uint8_t, uint16_t, uint16_t, a ? b : c)
FB_LOOP3(where_4, uint32_t, uint8_t, uint32_t, uint32_t, a ? b : c)
FB_LOOP3(where_8, uint64_t, uint8_t, uint64_t, uint64_t, a ? b : c)
static void where_16(i64 n, char *const *p, const i64 *s) {
    for (i64 i = 0; i < n; i++) {
        int chosen = p[1][i * s[1]] ? 2 : 3;
        memmove(p[0] + i * 16, p[chosen] + i * s[chosen], 16);
    }
}

/* A bound that is NaN gives NaN; where the bounds cross, the upper one wins. */
#define ABOVE(a, low) ((a) < (low) || (low) != (low) ? (low) : (a))
#define BELOW(a, high) ((a) > (high) || (high) != (high) ? (high) : (a))

#define STAMP(suffix, T, code, W) \
    FB_LOOP3(clamp_##suffix, T, T, T, T, ((ABOVE(a, b) > c || c != c) && a == a ? c : ABOVE(a, b))) \
    FB_LOOP3W(addcmul_##suffix, T, T, T, T, T, 1, (T)((W)a + (W)w[0] * (W)b * (W)c))
FB_EACH_INT(STAMP)
FB_EACH_FLOAT(STAMP)
#undef STAMP

/* From the nearer end, so that the weights 0 and 1 give the ends exactly. */
#define LERP(T, a, b, weight) \
    ((weight) < (T)0.5 && (weight) > (T)-0.5 ? (a) + (weight) * ((b) - (a)) : (b) - ((b) - (a)) * (1 - (weight)))
#define STAMP(suffix, T, code, W) \
    FB_LOOP3W(addcdiv_##suffix, T, T, T, T, T, 1, a + w[0] * b / c) \
    FB_LOOP3(lerp_##suffix, T, T, T, T, LERP(T, a, b, c))
FB_EACH_FLOAT(STAMP)
#undef STAMP
FB_HALVES(clamp, "xxxx")
FB_HALVES(addcmul, "xxxxx")
FB_HALVES(addcdiv, "xxxxx")
FB_HALVES(lerp, "xxxx")

#define WHERE(code, bytes) {"where", code, where_##bytes, {bytes, 1, bytes, bytes}},
#define FLOATING(suffix, code, T) \
    {"addcdiv", code, addcdiv_##suffix, {T, T, T, T, 0}}, {"lerp", code, lerp_##suffix, {T, T, T, T}},
#define ANY(suffix, code, T) \
    {"clamp", code, clamp_##suffix, {T, T, T, T}}, {"addcmul", code, addcmul_##suffix, {T, T, T, T, 0}},

FB_FAMILY(ternary) = {
    WHERE(FB_BOOL, 1) WHERE(FB_U8, 1) WHERE(FB_I8, 1) WHERE(FB_I16, 2) WHERE(FB_I32, 4) WHERE(FB_I64, 8)
    WHERE(FB_F16, 2) WHERE(FB_BF16, 2) WHERE(FB_F32, 4) WHERE(FB_F64, 8) WHERE(FB_C64, 8) WHERE(FB_C128, 16)
#define STAMP(suffix, T, code, W) ANY(suffix, code, sizeof(T))
    FB_EACH_INT(STAMP)
    FB_EACH_FLOAT(STAMP)
#undef STAMP
    ANY(f16, FB_F16, 2) ANY(bf16, FB_BF16, 2)
    FLOATING(f16, FB_F16, 2) FLOATING(bf16, FB_BF16, 2) FLOATING(f32, FB_F32, 4) FLOATING(f64, FB_F64, 8)
    FB_END};
