/* One optimiser step over one dense parameter, in a single pass. */
#include "flambeau.h"

/* p: parameter, gradient, momentum buffer or NULL.
 * q: n, then the bits of lr, momentum, dampening, weight_decay; nesterov, first. */
#define SGD(T, suffix) \
    static i64 sgd_##suffix(void *const *p, const i64 *q) { \
        T *param = p[0]; const T *grad = p[1]; T *buffer = p[2]; \
        i64 n = q[0]; \
        T lr = (T)fb_double(q[1]), momentum = (T)fb_double(q[2]), fresh = (T)(1 - fb_double(q[3])), decay = (T)fb_double(q[4]); \
        T kept = q[6] ? 0 : momentum, taken = q[6] ? 1 : fresh, ahead = q[5] ? momentum : 1, now = q[5] ? 1 : 0; \
        if (!buffer) { \
            FB_PARALLEL_FOR(n) for (i64 i = 0; i < n; i++) param[i] -= lr * (grad[i] + decay * param[i]); \
            return 0; \
        } \
        FB_PARALLEL_FOR(n) for (i64 i = 0; i < n; i++) { \
            T g = grad[i] + decay * param[i]; \
            T b = q[6] ? g : kept * buffer[i] + taken * g; \
            buffer[i] = b; \
            param[i] -= lr * (now * g + ahead * b); \
        } \
        return 0; \
    }

/* p: parameter, gradient, mean, mean of squares, largest mean of squares or NULL.
 * q: n, then the bits of step size, beta1, beta2, eps, root of the second correction, weight decay, shrink factor. */
#define ADAM(T, suffix, ROOT) \
    static i64 adam_##suffix(void *const *p, const i64 *q) { \
        T *param = p[0]; const T *grad = p[1]; T *mean = p[2], *square = p[3], *most = p[4]; \
        i64 n = q[0]; \
        T size = (T)fb_double(q[1]), new1 = (T)(1 - fb_double(q[2])), old2 = (T)fb_double(q[3]); \
        T new2 = (T)(1 - fb_double(q[3])), eps = (T)fb_double(q[4]), correction = (T)(1 / fb_double(q[5])); \
        T decay = (T)fb_double(q[6]), shrink = (T)fb_double(q[7]); \
        FB_PARALLEL_FOR(4 * n) for (i64 i = 0; i < n; i++) { \
            T w = param[i] * shrink, g = grad[i] + decay * w; \
            T m = mean[i] + new1 * (g - mean[i]), v = old2 * square[i] + new2 * g * g; \
            mean[i] = m; square[i] = v; \
            if (most) { v = most[i] > v ? most[i] : v; most[i] = v; } \
            param[i] = w - size * m / (ROOT(v) * correction + eps); \
        } \
        return 0; \
    }

SGD(float, f32)
SGD(double, f64)
ADAM(float, f32, sqrtf)
ADAM(double, f64, sqrt)

/* The same step over several parameters.  p: the pointers of each, `width` of them;
 * q: their number, the `words` words after n above, then the n of each. */
#define MANY(step, suffix, width, words) \
    static i64 step##_many_##suffix(void *const *p, const i64 *q) { \
        i64 own[1 + words]; \
        memcpy(own + 1, q + 1, sizeof(i64) * words); \
        for (i64 i = 0; i < q[0]; i++) { \
            own[0] = q[1 + words + i]; \
            step##_##suffix(p + width * i, own); \
        } \
        return 0; \
    }

MANY(sgd, f32, 3, 6)
MANY(sgd, f64, 3, 6)
MANY(adam, f32, 5, 7)
MANY(adam, f64, 5, 7)

FB_FAMILY(optimizer) = {
    {"sgd", FB_F32, sgd_f32, {0}}, {"sgd", FB_F64, sgd_f64, {0}},
    {"adam", FB_F32, adam_f32, {0}}, {"adam", FB_F64, adam_f64, {0}},
    {"sgd_many", FB_F32, sgd_many_f32, {0}}, {"sgd_many", FB_F64, sgd_many_f64, {0}},
    {"adam_many", FB_F32, adam_many_f32, {0}}, {"adam_many", FB_F64, adam_many_f64, {0}}, FB_END};
