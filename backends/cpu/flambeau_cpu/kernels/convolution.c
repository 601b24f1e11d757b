/* Convolutions of one to three dimensions, their adjoints, and the copies of patches that
 * unfold and fold make. */
#include "flambeau.h"
#include "half.h"
#include "registry.h"

#define T float
#define N(name) name##_f32
#include "tile.h"
#include "columns.h"
#include "bands.h"
#include "convolve.h"
#undef T
#undef N
#define T double
#define N(name) name##_f64
#include "tile.h"
#include "columns.h"
#include "bands.h"
#include "convolve.h"
#undef T
#undef N

#define T uint64_t /* unsigned: wraps around as signed integers do, without undefined behaviour */
#define N(name) name##_i64
#include "tile.h"
#include "columns.h"
#include "bands.h"
#include "convolve.h"
#undef T
#undef N

enum { NO_MEMORY = -1 };

/* All kernels share one geometry, that of the forward convolution x -> y, always with three spatial dimensions
 * (leading ones of size 1) and contiguous tensors: x (images, groups * channels, in...),
 * y (images, groups * rows, out...), w (groups * rows, channels, kernel...). */
enum { Q_IMAGES, Q_GROUPS, Q_CHANNELS, Q_ROWS, Q_IN, Q_OUT = Q_IN + 3, Q_KERNEL = Q_OUT + 3, Q_STRIDE = Q_KERNEL + 3,
       Q_PADDING = Q_STRIDE + 3, Q_DILATION = Q_PADDING + 3 };

enum { TAPS_AT_ONCE = 1024 }; /* taps along the dimensions together that need no allocation */

static void strides_of(const i64 *size, i64 *stride) {
    stride[2] = 1;
    stride[1] = size[2];
    stride[0] = size[1] * size[2];
}

/* The forward convolution that q describes; `tap` is room for the tap coordinates of all dimensions. */
static fb_convolution forward_of(const i64 *q, i64 *tap) {
    fb_convolution c = {.threads = fb_threads, .images = q[Q_IMAGES], .groups = q[Q_GROUPS], .channels = q[Q_CHANNELS], .rows = q[Q_ROWS]};
    i64 volume = fb_volume(q + Q_OUT);
    c.out_row = volume;
    c.out_group = c.rows * volume;
    c.out_image = c.groups * c.out_group;
    for (int d = 0; d < 3; d++) {
        c.in[d] = q[Q_IN + d];
        c.grid[d] = q[Q_OUT + d];
        c.step[d] = q[Q_STRIDE + d];
        c.taps[d] = q[Q_KERNEL + d];
        c.tap[d] = tap;
        for (i64 t = 0; t < c.taps[d]; t++) *tap++ = t * q[Q_DILATION + d] - q[Q_PADDING + d];
    }
    /* Planes that are used point by point are one long row. */
    for (int d = 1; d >= 0; d--)
        if (c.taps[d] == 1 && c.taps[2] == 1 && c.step[d] == 1 && c.step[2] == 1 && !c.tap[d][0] && !c.tap[2][0]
            && c.in[d] == c.grid[d] && c.in[2] == c.grid[2] && (d == 1 || c.in[1] == 1)) {
            c.in[2] *= c.in[d];
            c.grid[2] *= c.grid[d];
            c.in[d] = c.grid[d] = 1;
        }
    strides_of(c.grid, c.out_at);
    return c;
}

/* The forward convolution that computes the input gradient at positions `residue` modulo the stride; `flat` gets the
 * place of each of its taps in the kernel. */
static fb_convolution adjoint_of(const i64 *q, const i64 *residue, i64 *tap, i64 *flat) {
    fb_convolution c = {.threads = fb_threads, .images = q[Q_IMAGES], .groups = q[Q_GROUPS], .channels = q[Q_ROWS], .rows = q[Q_CHANNELS]};
    i64 volume = fb_volume(q + Q_IN), stride[3], kernel_stride[3], *place[3];
    c.out_row = volume;
    c.out_group = c.rows * volume;
    c.out_image = c.groups * c.out_group;
    strides_of(q + Q_IN, stride);
    strides_of(q + Q_KERNEL, kernel_stride);
    for (int d = 0; d < 3; d++) {
        i64 step = q[Q_STRIDE + d], size = q[Q_IN + d];
        c.in[d] = q[Q_OUT + d];
        c.grid[d] = residue[d] < size ? fb_ceil(size - residue[d], step) : 0;
        c.step[d] = 1;
        c.out_at[d] = stride[d] * step;
        c.out_start += residue[d] * stride[d];
        c.tap[d] = tap;
        place[d] = tap + q[Q_KERNEL + d];
        for (i64 k = 0; k < q[Q_KERNEL + d]; k++) {
            i64 distance = residue[d] + q[Q_PADDING + d] - k * q[Q_DILATION + d];
            if (distance % step) continue;
            tap[c.taps[d]] = distance / step;
            place[d][c.taps[d]++] = k * kernel_stride[d];
        }
        tap += 2 * q[Q_KERNEL + d];
    }
    for (i64 z = 0; z < c.taps[0]; z++)
        for (i64 y = 0; y < c.taps[1]; y++)
            for (i64 x = 0; x < c.taps[2]; x++) *flat++ = place[0][z] + place[1][y] + place[2][x];
    return c;
}

/* conv: p = y, x, w, bias (or NULL)
 * conv_input: p = gradient of x, y's gradient, w, bias of the x channels (or NULL); also the transposed convolution
 * conv_weight: p = gradient of w, x, y's gradient */
#define CONVOLUTION(name, T) \
    static i64 conv_##name(void *const *p, const i64 *q) { \
        const i64 *kernel = q + Q_KERNEL; \
        i64 volume = fb_volume(kernel), few[TAPS_AT_ONCE], need = kernel[0] + kernel[1] + kernel[2] + volume; \
        i64 *tap = need <= TAPS_AT_ONCE ? few : fb_allocate((size_t)need * 8), *flat = tap + need - volume; \
        if (!tap) return NO_MEMORY; \
        fb_convolution c = forward_of(q, tap); \
        for (i64 t = 0; t < volume; t++) flat[t] = t; \
        bool done = forward_##name(c, p[1], p[2], c.rows * c.channels * volume, c.channels * volume, volume, flat, p[3], p[0]); \
        if (tap != few) fb_release(tap); \
        return done ? 0 : NO_MEMORY; \
    } \
    static i64 conv_input_##name(void *const *p, const i64 *q) { \
        const i64 *kernel = q + Q_KERNEL, *stride = q + Q_STRIDE; \
        i64 volume = fb_volume(kernel), few[TAPS_AT_ONCE], need = 2 * (kernel[0] + kernel[1] + kernel[2]) + volume; \
        i64 *tap = need <= TAPS_AT_ONCE ? few : fb_allocate((size_t)need * 8), *flat = tap + need - volume; \
        if (!tap) return NO_MEMORY; \
        bool done = true; \
        for (i64 phase = 0; phase < fb_volume(stride); phase++) { \
            i64 residue[] = {phase / stride[2] / stride[1], phase / stride[2] % stride[1], phase % stride[2]}; \
            fb_convolution c = adjoint_of(q, residue, tap, flat); \
            done = done && forward_##name(c, p[1], p[2], c.rows * c.channels * volume, volume, c.rows * volume, flat, p[3], p[0]); \
        } \
        if (tap != few) fb_release(tap); \
        return done ? 0 : NO_MEMORY; \
    } \
    static i64 conv_weight_##name(void *const *p, const i64 *q) { \
        const i64 *kernel = q + Q_KERNEL; \
        i64 volume = fb_volume(kernel), few[TAPS_AT_ONCE], need = kernel[0] + kernel[1] + kernel[2] + volume; \
        i64 *tap = need <= TAPS_AT_ONCE ? few : fb_allocate((size_t)need * 8), *flat = tap + need - volume; \
        if (!tap) return NO_MEMORY; \
        for (i64 t = 0; t < volume; t++) flat[t] = t; \
        bool done = weight_##name(forward_of(q, tap), flat, p[1], p[2], p[0]); \
        if (tap != few) fb_release(tap); \
        return done ? 0 : NO_MEMORY; \
    }
CONVOLUTION(f32, float)
CONVOLUTION(f64, double)
CONVOLUTION(i64, uint64_t)

/* Half types: through float. */
static i64 sizes_x(const i64 *q) { return q[Q_IMAGES] * q[Q_GROUPS] * q[Q_CHANNELS] * fb_volume(q + Q_IN); }
static i64 sizes_y(const i64 *q) { return q[Q_IMAGES] * q[Q_GROUPS] * q[Q_ROWS] * fb_volume(q + Q_OUT); }
static i64 sizes_w(const i64 *q) { return q[Q_GROUPS] * q[Q_ROWS] * q[Q_CHANNELS] * fb_volume(q + Q_KERNEL); }
static i64 no_bias(const i64 *q) { (void)q; return 0; }
static i64 bias_y(const i64 *q) { return q[Q_GROUPS] * q[Q_ROWS]; }
static i64 bias_x(const i64 *q) { return q[Q_GROUPS] * q[Q_CHANNELS]; }

#define HALF(kernel, name, S, out_size, a_size, b_size, bias_size) \
    static i64 kernel##_##name(void *const *p, const i64 *q) { \
        i64 size[4] = {out_size(q), a_size(q), b_size(q), p[3] ? bias_size(q) : 0}; \
        float *memory = fb_allocate((size_t)(size[0] + size[1] + size[2] + size[3]) * sizeof(float)), *at = memory; \
        if (!memory) return NO_MEMORY; \
        void *wide[4]; \
        for (int i = 0; i < 4; at += size[i++]) { \
            wide[i] = i == 3 && !size[3] ? NULL : at; \
            const S *from = p[i]; \
            FB_PARALLEL_FOR(size[i]) \
            for (i64 j = 0; j < (i ? size[i] : 0); j++) at[j] = name##_to_float(from[j]); \
        } \
        i64 error = kernel##_f32(wide, q); \
        FB_PARALLEL_FOR(size[0]) \
        for (i64 j = 0; j < (error ? 0 : size[0]); j++) ((S *)p[0])[j] = name##_from_float(memory[j]); \
        fb_release(memory); \
        return error; \
    }
#define HALVES(name, S) \
    HALF(conv, name, S, sizes_y, sizes_x, sizes_w, bias_y) \
    HALF(conv_input, name, S, sizes_x, sizes_y, sizes_w, bias_x) \
    HALF(conv_weight, name, S, sizes_w, sizes_x, sizes_y, no_bias)
HALVES(f16, f16)
HALVES(bf16, bf16)

/* ---------------------------------------------------------- unfold, fold */

/* unfold: p = patches, x; patches (images, channels * taps, positions) in the geometry above with groups = 1.
 * fold: p = x, patches: each x is the sum of the patches that hold it. */
#define PATCHES(name, S, A, LOAD, STORE) \
    static i64 unfold_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT, *k = q + Q_KERNEL, *s = q + Q_STRIDE, *pad = q + Q_PADDING, *d = q + Q_DILATION; \
        i64 taps = fb_volume(k), rows = q[Q_IMAGES] * q[Q_CHANNELS] * taps, positions = fb_volume(out); \
        FB_PARALLEL_FOR(rows * positions) \
        for (i64 r = 0; r < rows; r++) { \
            i64 t = r % taps, tz = t / k[2] / k[1], ty = t / k[2] % k[1], tx = t % k[2]; \
            const S *plane = (const S *)p[1] + r / taps * fb_volume(in); \
            S *to = (S *)p[0] + r * positions; \
            for (i64 oz = 0; oz < out[0]; oz++) \
                for (i64 oy = 0; oy < out[1]; oy++) { \
                    i64 z = oz * s[0] - pad[0] + tz * d[0], y = oy * s[1] - pad[1] + ty * d[1], x = tx * d[2] - pad[2]; \
                    bool inside = z >= 0 && z < in[0] && y >= 0 && y < in[1]; \
                    const S *row = plane + (z * in[1] + y) * in[2]; \
                    for (i64 ox = 0; ox < out[2]; ox++, x += s[2]) \
                        *to++ = inside && x >= 0 && x < in[2] ? row[x] : (S){0}; \
                } \
        } \
        return 0; \
    } \
    static i64 fold_##name(void *const *p, const i64 *q) { \
        const i64 *in = q + Q_IN, *out = q + Q_OUT, *k = q + Q_KERNEL, *s = q + Q_STRIDE, *pad = q + Q_PADDING, *d = q + Q_DILATION; \
        i64 taps = fb_volume(k), planes = q[Q_IMAGES] * q[Q_CHANNELS], positions = fb_volume(out), volume = fb_volume(in); \
        A *sums = fb_allocate((size_t)(planes * volume + 1) * sizeof(A)); \
        if (!sums) return NO_MEMORY; \
        FB_PARALLEL_FOR(planes * taps * positions) \
        for (i64 plane = 0; plane < planes; plane++) { \
            A *to = sums + plane * volume; \
            for (i64 i = 0; i < volume; i++) to[i] = 0; \
            const S *from = (const S *)p[1] + plane * taps * positions; \
            for (i64 t = 0; t < taps; t++) { \
                i64 tz = t / k[2] / k[1], ty = t / k[2] % k[1], tx = t % k[2]; \
                for (i64 oz = 0; oz < out[0]; oz++) \
                    for (i64 oy = 0; oy < out[1]; oy++, from += out[2]) { \
                        i64 z = oz * s[0] - pad[0] + tz * d[0], y = oy * s[1] - pad[1] + ty * d[1], x = tx * d[2] - pad[2]; \
                        if (z < 0 || z >= in[0] || y < 0 || y >= in[1]) continue; \
                        A *row = to + (z * in[1] + y) * in[2]; \
                        for (i64 ox = 0; ox < out[2]; ox++, x += s[2]) \
                            if (x >= 0 && x < in[2]) row[x] += LOAD(from[ox]); \
                    } \
            } \
            S *result = (S *)p[0] + plane * volume; \
            for (i64 i = 0; i < volume; i++) result[i] = STORE(to[i]); \
        } \
        fb_release(sums); \
        return 0; \
    }
#define SAME(value) (value)
PATCHES(f32, float, float, SAME, SAME)
PATCHES(f64, double, double, SAME, SAME)
PATCHES(i64, i64, i64, SAME, SAME)
PATCHES(u8, uint8_t, uint8_t, SAME, SAME)
PATCHES(f16, f16, float, f16_to_float, f16_from_float)
PATCHES(bf16, bf16, float, bf16_to_float, bf16_from_float)

#define ROW(name, code) \
    {"conv", code, conv_##name, {0}}, {"conv_input", code, conv_input_##name, {0}}, \
    {"conv_weight", code, conv_weight_##name, {0}}, {"unfold", code, unfold_##name, {0}}, {"fold", code, fold_##name, {0}}
FB_FAMILY(convolution) = {ROW(f32, FB_F32), ROW(f64, FB_F64), ROW(f16, FB_F16), ROW(bf16, FB_BF16), ROW(i64, FB_I64),
                            {"unfold", FB_U8, unfold_u8, {0}}, {"fold", FB_U8, fold_u8, {0}}, {"unfold", FB_BOOL, unfold_u8, {0}}, FB_END};
