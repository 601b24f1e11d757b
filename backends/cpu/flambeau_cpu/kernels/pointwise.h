/* Inner loops of pointwise kernels from one expression.
 *
 * The driver hands every operand over contiguous (step = element size) or
 * repeated (step = 0); outputs are contiguous.  A parameter is a trailing operand
 * whose size in the kernel table is 0: one number, always repeated.
 *
 * In an expression a, b and c are the values of the inputs, w[0], w[1], ... the
 * parameters.  In-place calls make an input the very memory of the output, which
 * carries nothing from one iteration to the next: hence ivdep.
 */
#ifndef FLAMBEAU_POINTWISE_H
#define FLAMBEAU_POINTWISE_H

#include "flambeau.h"
#include "half.h"

/* An expression stamped for unsigned types may compare with zero. */
#pragma GCC diagnostic ignored "-Wtype-limits"

enum { FB_BLOCK = 256, FB_INPUTS = 5 };
#define FB_IVDEP _Pragma("GCC ivdep")

/* Runs `loop`, which wants contiguous inputs, by writing repeated inputs out
 * into blocks.  size[k] is the element size of p[k]; 0 passes p[k] through. */
static __attribute__((noinline, unused)) void fb_spread(fb_loop loop, i64 n, char *const *p, const i64 *s,
                                                        const i64 *size, int operands) {
    char block[FB_INPUTS][FB_BLOCK * 16] __attribute__((aligned(64)));
    char *q[FB_INPUTS + 1];
    for (int k = 0; k < operands; k++) {
        q[k] = p[k];
        if (k && size[k] && !s[k]) {
            i64 count = n < FB_BLOCK ? n : FB_BLOCK;
            for (i64 i = 0; i < count; i++) memcpy(block[k - 1] + i * size[k], p[k], (size_t)size[k]);
            q[k] = block[k - 1];
        }
    }
    for (i64 first = 0; first < n; first += FB_BLOCK) {
        i64 count = n - first < FB_BLOCK ? n - first : FB_BLOCK;
        loop(count, q, size);
        for (int k = 0; k < operands; k++) q[k] += s[k] * count;
    }
}

#define FB_LOOP1(function, O, A, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[] = {sizeof(O), sizeof(A)}; \
        if (!s[1] && n > 1) { fb_spread(function, n, p, s, size, 2); return; } \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; out[i] = (O)(expression); } \
    }

/* One input and `count` parameters. */
#define FB_LOOP1W(function, O, A, W, count, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[2 + count] = {sizeof(O), sizeof(A)}; \
        if (!s[1] && n > 1) { fb_spread(function, n, p, s, size, 2 + count); return; } \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; W w[count]; \
        for (int k = 0; k < count; k++) w[k] = *(const W *)p[2 + k]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; out[i] = (O)(expression); } \
    }

/* Two inputs; a repeated one costs nothing. */
#define FB_LOOP2(function, O, A, B, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[] = {sizeof(O), sizeof(A), sizeof(B)}; \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; const B *y = (const B *)p[2]; \
        if (n == 1 || (s[1] && s[2])) { \
            FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; const B b = y[i]; out[i] = (O)(expression); } \
        } else if (s[1]) { \
            const B b = *y; \
            FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; out[i] = (O)(expression); } \
        } else if (s[2]) { \
            const A a = *x; \
            FB_IVDEP for (i64 i = 0; i < n; i++) { const B b = y[i]; out[i] = (O)(expression); } \
        } else fb_spread(function, n, p, s, size, 3); \
    }

/* Two inputs where the arithmetic outweighs reading a repeated one from a block. */
#define FB_LOOP2_DENSE(function, O, A, B, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[] = {sizeof(O), sizeof(A), sizeof(B)}; \
        if (n > 1 && (!s[1] || !s[2])) { fb_spread(function, n, p, s, size, 3); return; } \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; const B *y = (const B *)p[2]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; const B b = y[i]; out[i] = (O)(expression); } \
    }

#define FB_LOOP3(function, O, A, B, C, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[] = {sizeof(O), sizeof(A), sizeof(B), sizeof(C)}; \
        if (n > 1 && (!s[1] || !s[2] || !s[3])) { fb_spread(function, n, p, s, size, 4); return; } \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; const B *y = (const B *)p[2]; const C *z = (const C *)p[3]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; const B b = y[i]; const C c = z[i]; out[i] = (O)(expression); } \
    }

#define FB_LOOP2W(function, O, A, B, W, count, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[3 + count] = {sizeof(O), sizeof(A), sizeof(B)}; \
        if (n > 1 && (!s[1] || !s[2])) { fb_spread(function, n, p, s, size, 3 + count); return; } \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; const B *y = (const B *)p[2]; W w[count]; \
        for (int k = 0; k < count; k++) w[k] = *(const W *)p[3 + k]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; const B b = y[i]; out[i] = (O)(expression); } \
    }

#define FB_LOOP3W(function, O, A, B, C, W, count, expression) \
    static void function(i64 n, char *const *p, const i64 *s) { \
        static const i64 size[4 + count] = {sizeof(O), sizeof(A), sizeof(B), sizeof(C)}; \
        if (n > 1 && (!s[1] || !s[2] || !s[3])) { fb_spread(function, n, p, s, size, 4 + count); return; } \
        O *out = (O *)p[0]; const A *x = (const A *)p[1]; const B *y = (const B *)p[2]; const C *z = (const C *)p[3]; \
        W w[count]; \
        for (int k = 0; k < count; k++) w[k] = *(const W *)p[4 + k]; \
        FB_IVDEP for (i64 i = 0; i < n; i++) { const A a = x[i]; const B b = y[i]; const C c = z[i]; out[i] = (O)(expression); } \
    }

/* Runs a float loop on float16 or bfloat16 operands, block by block.  kinds has
 * one letter an operand: x for a half, anything else for one passed as it is. */
static __attribute__((noinline, unused)) void fb_through_float(fb_loop loop, i64 n, char *const *p, const i64 *s,
                                                               const char *kinds, int type) {
    float block[FB_INPUTS + 1][FB_BLOCK] __attribute__((aligned(64)));
    int operands = (int)strlen(kinds);
    char *q[FB_INPUTS + 1];
    i64 step[FB_INPUTS + 1];
    for (int k = 0; k < operands; k++) {
        q[k] = kinds[k] == 'x' ? (char *)block[k] : p[k];
        step[k] = kinds[k] == 'x' && s[k] ? (i64)sizeof(float) : s[k];
    }
    for (i64 first = 0; first < n; first += FB_BLOCK) {
        i64 count = n - first < FB_BLOCK ? n - first : FB_BLOCK;
        for (int k = 1; k < operands; k++)
            if (kinds[k] == 'x') fb_halves_to_floats(type == FB_F16, s[k] ? count : 1, p[k] + s[k] * first, block[k]);
        loop(count, q, step);
        if (kinds[0] == 'x') fb_floats_to_halves(type == FB_F16, count, block[0], p[0] + s[0] * first);
        for (int k = 0; k < operands; k++) q[k] += kinds[k] == 'x' ? 0 : s[k] * count;
    }
}

/* name_f16 and name_bf16 from name_f32. */
#define FB_HALVES(name, kinds) \
    static void name##_f16(i64 n, char *const *p, const i64 *s) { fb_through_float(name##_f32, n, p, s, kinds, FB_F16); } \
    static void name##_bf16(i64 n, char *const *p, const i64 *s) { fb_through_float(name##_f32, n, p, s, kinds, FB_BF16); }

/* Element types by suffix: X(suffix, C type, dtype code, type without overflow traps). */
#define FB_EACH_SMALL_INT(X) X(u8, uint8_t, FB_U8, uint32_t) X(i8, int8_t, FB_I8, uint32_t) X(i16, int16_t, FB_I16, uint32_t)
#define FB_EACH_INT(X) FB_EACH_SMALL_INT(X) X(i32, int32_t, FB_I32, uint32_t) X(i64, int64_t, FB_I64, uint64_t)
#define FB_EACH_FLOAT(X) X(f32, float, FB_F32, float) X(f64, double, FB_F64, double)

#endif
