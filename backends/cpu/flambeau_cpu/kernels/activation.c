/* Activations and the backward kernels that are worth fusing.  A comment names the
 * parameters w[0], w[1], ... of the loop below it. */
#include "vectormath.h"
#include "pointwise.h"

#define SELECT(T, single, twice) (sizeof(T) == 4 ? (T)(single) : (T)(twice))
#define EXP(T, x) SELECT(T, fb_exp_f32((float)(x)), fb_exp_f64((double)(x)))
#define EXPM1(T, x) SELECT(T, fb_expm1_f32((float)(x)), fb_expm1_f64((double)(x)))
#define SIGMOID(T, x) SELECT(T, fb_sigmoid_f32((float)(x)), fb_sigmoid_f64((double)(x)))
#define TANH(T, x) SELECT(T, fb_tanh_f32((float)(x)), fb_tanh_f64((double)(x)))
#define ERF(T, x) SELECT(T, fb_erf_f32((float)(x)), erf((double)(x)))
#define ABS(T, x) SELECT(T, __builtin_fabsf((float)(x)), __builtin_fabs((double)(x)))
/* log(1 + e) for 0 <= e <= 1: the sum loses at most a rounding, which `e - (u - 1)` restores. */
FB_MATH float log1p_small_f32(float e) { float u = 1.0f + e; return fb_log_f32(u) + (e - (u - 1.0f)) / u; }
FB_MATH double log1p_small_f64(double e) { double u = 1.0 + e; return fb_log_f64(u) + (e - (u - 1.0)) / u; }
#define LOG1P(T, e) SELECT(T, log1p_small_f32((float)(e)), log1p_small_f64((double)(e)))

/* Wherever order alone matters: every number type. */
#define ORDERED(suffix, T, code, W) \
    FB_LOOP1(relu_##suffix, T, T, a <= 0 ? 0 : a) \
    /* low, high */ \
    FB_LOOP1W(clip_##suffix, T, T, T, 2, (a < w[0] || w[0] != w[0] ? w[0] : a) > w[1] || (w[1] != w[1] && a == a) ? w[1] \
              : (a < w[0] || w[0] != w[0] ? w[0] : a)) \
    /* threshold, value */ \
    FB_LOOP1W(threshold_##suffix, T, T, T, 2, a <= w[0] ? w[1] : a) \
    /* gradient, input; threshold */ \
    FB_LOOP2W(threshold_backward_##suffix, T, T, T, T, 1, b <= w[0] ? 0 : a)
FB_EACH_INT(ORDERED)
FB_EACH_FLOAT(ORDERED)

#define SMOOTH(suffix, T, code, W) \
    /* slope */ \
    FB_LOOP1W(leaky_relu_##suffix, T, T, T, 1, a > 0 ? a : a * w[0]) \
    /* alpha * scale, scale, input scale */ \
    FB_LOOP1W(elu_##suffix, T, T, T, 3, a > 0 ? a * w[1] : a != a ? a : EXPM1(T, a * w[2]) * w[0]) \
    /* beta, threshold */ \
    FB_LOOP1W(softplus_##suffix, T, T, T, 2, \
              a * w[0] > w[1] ? a : ((a * w[0] > 0 ? a * w[0] : 0) + LOG1P(T, EXP(T, -ABS(T, a * w[0])))) / w[0]) \
    /* limit */ \
    FB_LOOP1W(hardshrink_##suffix, T, T, T, 1, a >= -w[0] && a <= w[0] ? 0 : a) \
    FB_LOOP1W(softshrink_##suffix, T, T, T, 1, a > w[0] ? a - w[0] : a < -w[0] ? a + w[0] : a * 0) \
    FB_LOOP1(logsigmoid_##suffix, T, T, (a < 0 ? a : 0) - LOG1P(T, EXP(T, -ABS(T, a)))) \
    FB_LOOP1(silu_##suffix, T, T, a * SIGMOID(T, a)) \
    FB_LOOP1(gelu_##suffix, T, T, (T)0.5 * a * (1 + ERF(T, a * (T)0.70710678118654752440))) \
    FB_LOOP1(gelu_tanh_##suffix, T, T, \
             (T)0.5 * a * (1 + TANH(T, (T)0.79788456080286535588 * (a + (T)0.044715 * a * a * a)))) \
    /* Backward: a is the gradient, b the input or, where said, the output. */ \
    FB_LOOP2W(leaky_relu_backward_##suffix, T, T, T, T, 1, b > 0 ? a : a * w[0]) \
    /* beta, threshold */ \
    FB_LOOP2W(softplus_backward_##suffix, T, T, T, T, 2, b * w[0] > w[1] ? a : a * SIGMOID(T, b * w[0])) \
    /* low, high */ \
    FB_LOOP2W(hardtanh_backward_##suffix, T, T, T, T, 2, b > w[0] && b < w[1] ? a : 0) \
    /* the same with the bounds inside: clamp */ \
    FB_LOOP2W(clip_backward_##suffix, T, T, T, T, 2, b >= w[0] && b <= w[1] ? a : 0) \
    FB_LOOP2W(hardshrink_backward_##suffix, T, T, T, T, 1, b >= -w[0] && b <= w[0] ? 0 : a) \
    FB_LOOP2_DENSE(logsigmoid_backward_##suffix, T, T, T, a * SIGMOID(T, -b)) \
    /* b is the output */ \
    FB_LOOP2_DENSE(sigmoid_backward_##suffix, T, T, T, a * ((1 - b) * b)) \
    FB_LOOP2_DENSE(tanh_backward_##suffix, T, T, T, a * (1 - b * b))
FB_EACH_FLOAT(SMOOTH)

/* X(name, letters for FB_HALVES, operands and parameters) */
#define FLOATING(X) \
    X(relu, "xx", INPUTS_1) X(logsigmoid, "xx", INPUTS_1) X(silu, "xx", INPUTS_1) X(gelu, "xx", INPUTS_1) \
    X(gelu_tanh, "xx", INPUTS_1) X(clip, "xxxx", INPUTS_1) X(threshold, "xxxx", INPUTS_1) X(leaky_relu, "xxx", INPUTS_1) \
    X(elu, "xxxxx", INPUTS_1) X(softplus, "xxxx", INPUTS_1) X(hardshrink, "xxx", INPUTS_1) X(softshrink, "xxx", INPUTS_1) \
    X(logsigmoid_backward, "xxx", INPUTS_2) X(sigmoid_backward, "xxx", INPUTS_2) X(tanh_backward, "xxx", INPUTS_2) \
    X(threshold_backward, "xxxx", INPUTS_2) X(leaky_relu_backward, "xxxx", INPUTS_2) \
    X(softplus_backward, "xxxxx", INPUTS_2) X(hardtanh_backward, "xxxxx", INPUTS_2) X(clip_backward, "xxxxx", INPUTS_2) \
    X(hardshrink_backward, "xxxx", INPUTS_2)
#define STAMP(name, letters, sizes) FB_HALVES(name, letters)
FLOATING(STAMP)
#undef STAMP

/* Parameters have size 0, which the rest of the array is. */
#define INPUTS_1(T) {T, T}
#define INPUTS_2(T) {T, T, T}
FB_FAMILY(activation) = {
#define STAMP(name, letters, sizes) \
    {#name, FB_F16, name##_f16, sizes(2)}, {#name, FB_BF16, name##_bf16, sizes(2)}, \
    {#name, FB_F32, name##_f32, sizes(4)}, {#name, FB_F64, name##_f64, sizes(8)},
    FLOATING(STAMP)
#undef STAMP
#define STAMP(suffix, T, code, W) \
    {"relu", code, relu_##suffix, INPUTS_1(sizeof(T))}, {"clip", code, clip_##suffix, INPUTS_1(sizeof(T))}, \
    {"threshold", code, threshold_##suffix, INPUTS_1(sizeof(T))}, \
    {"threshold_backward", code, threshold_backward_##suffix, INPUTS_2(sizeof(T))},
    FB_EACH_INT(STAMP)
#undef STAMP
    FB_END};
