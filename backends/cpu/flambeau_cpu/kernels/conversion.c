/* From every type to every type, and plain copies.
 *
 * "to_f32" under int64 converts int64 to float32.  Conversions between numbers are
 * C's (integers wrap, floats truncate); anything but 0, NaN included, is true; the
 * imaginary part is dropped or 0.  "copy" moves bits and also fills: from one
 * repeated element. */
#include "pointwise.h"

/* ---------------------------------------------------------------- copies */

static void fill_row(i64 n, char *out, const char *value, i64 bytes) {
    i64 done = bytes;
    memmove(out, value, (size_t)bytes);
    for (i64 total = n * bytes; done < total; done *= 2)  /* doubling, so memcpy does the work */
        memcpy(out + done, out, (size_t)(total - done < done ? total - done : done));
}

#define COPY(bytes, T) \
    static void copy_##bytes(i64 n, char *const *p, const i64 *s) { \
        if (s[1]) { memmove(p[0], p[1], (size_t)n * bytes); return; } \
        T value, *out = (T *)p[0]; \
        memcpy(&value, p[1], bytes); \
        for (i64 i = 0; i < n; i++) out[i] = value; \
    }
COPY(1, uint8_t)
COPY(2, uint16_t)
COPY(4, uint32_t)
COPY(8, uint64_t)
static void copy_16(i64 n, char *const *p, const i64 *s) {
    if (s[1]) memmove(p[0], p[1], (size_t)n * 16);
    else if (n > 0) fill_row(n, p[0], p[1], 16);
}

/* ---------------------------------------------------------------- numbers */

/* A float beyond int32 has no uint8: as elsewhere on this hardware, by way of int32. */
#define TO_BOOL(a) ((a) != 0)
#define TO_U8(a) ((uint8_t)(int32_t)(a))
#define TO_I8(a) ((int8_t)(int32_t)(a))
#define TO_I16(a) ((int16_t)(int32_t)(a))
#define TO_I32(a) ((int32_t)(a))
#define TO_I64(a) ((int64_t)(a))
#define TO_F32(a) ((float)(a))
#define TO_F64(a) ((double)(a))

#define FROM(suffix, A, code, W) \
    FB_LOOP1(suffix##_to_bool, uint8_t, A, TO_BOOL(a)) FB_LOOP1(suffix##_to_u8, uint8_t, A, TO_U8(a)) \
    FB_LOOP1(suffix##_to_i16, int16_t, A, TO_I16(a)) FB_LOOP1(suffix##_to_i32, int32_t, A, TO_I32(a)) \
    FB_LOOP1(suffix##_to_i64, int64_t, A, TO_I64(a)) FB_LOOP1(suffix##_to_f32, float, A, TO_F32(a)) \
    FB_LOOP1(suffix##_to_f64, double, A, TO_F64(a))
FB_EACH_INT(FROM)
FB_EACH_FLOAT(FROM)

/* ---------------------------------------------------------------- halves and complex, by way of a real type */

static void f32_to_half(i64 n, char *const *p, const i64 *s, int is_f16) {
    if (s[1]) fb_floats_to_halves(is_f16, n, (const float *)p[1], p[0]);
    else if (n > 0) {
        fb_floats_to_halves(is_f16, 1, (const float *)p[1], p[0]);
        fill_row(n, p[0], p[0], 2);
    }
}
static void half_to_f32(i64 n, char *const *p, const i64 *s, int is_f16) {
    if (s[1]) fb_halves_to_floats(is_f16, n, p[1], (float *)p[0]);
    else if (n > 0) {
        fb_halves_to_floats(is_f16, 1, p[1], (float *)p[0]);
        fill_row(n, p[0], p[0], 4);
    }
}
static void f32_to_f16(i64 n, char *const *p, const i64 *s) { f32_to_half(n, p, s, 1); }
static void f32_to_bf16(i64 n, char *const *p, const i64 *s) { f32_to_half(n, p, s, 0); }
static void f16_to_f32(i64 n, char *const *p, const i64 *s) { half_to_f32(n, p, s, 1); }
static void bf16_to_f32(i64 n, char *const *p, const i64 *s) { half_to_f32(n, p, s, 0); }

FB_LOOP1(f32_to_c64, float _Complex, float, a)
FB_LOOP1(f64_to_c128, double _Complex, double, a)
FB_LOOP1(c64_to_f32, float, float _Complex, __real__ a)
FB_LOOP1(c128_to_f64, double, double _Complex, __real__ a)
FB_LOOP1(c64_to_c128, double _Complex, float _Complex, a)
FB_LOOP1(c128_to_c64, float _Complex, double _Complex, a)
FB_LOOP1(c64_to_bool, uint8_t, float _Complex, a != 0)
FB_LOOP1(c128_to_bool, uint8_t, double _Complex, a != 0)

/* Two conversions in a row, a block at a time; `between` is the size of the type in the middle. */
static void chain(i64 n, char *const *p, const i64 *s, fb_loop first, fb_loop second, i64 between, i64 out) {
    char block[FB_BLOCK * 8] __attribute__((aligned(64)));
    for (i64 at = 0; at < n; at += FB_BLOCK) {
        i64 count = n - at < FB_BLOCK ? n - at : FB_BLOCK;
        char *const there[] = {block, p[1] + at * s[1]}, *const back[] = {p[0] + at * out, block};
        const i64 step[] = {between, s[1]}, dense[] = {out, between};
        first(count, there, step);
        second(count, back, dense);
    }
}
#define CHAIN(from, to, via, between, out) \
    static void from##_to_##to(i64 n, char *const *p, const i64 *s) { \
        chain(n, p, s, from##_to_##via, via##_to_##to, between, out); \
    }
#define OUT_OF(half) \
    CHAIN(half, bool, f32, 4, 1) CHAIN(half, u8, f32, 4, 1) CHAIN(half, i16, f32, 4, 2) CHAIN(half, i32, f32, 4, 4) \
    CHAIN(half, i64, f32, 4, 8) CHAIN(half, f64, f32, 4, 8) CHAIN(half, c64, f32, 4, 8) CHAIN(half, c128, f64, 8, 16)
#define INTO(number) \
    CHAIN(number, f16, f32, 4, 2) CHAIN(number, bf16, f32, 4, 2) CHAIN(number, c64, f32, 4, 8) CHAIN(number, c128, f64, 8, 16)
#define OUT_OF_COMPLEX(complex, real, bytes) \
    CHAIN(complex, u8, real, bytes, 1) CHAIN(complex, i16, real, bytes, 2) CHAIN(complex, i32, real, bytes, 4) \
    CHAIN(complex, i64, real, bytes, 8) CHAIN(complex, f16, real, bytes, 2) CHAIN(complex, bf16, real, bytes, 2)
OUT_OF(f16)
OUT_OF(bf16)
CHAIN(f16, bf16, f32, 4, 2)
CHAIN(bf16, f16, f32, 4, 2)
INTO(u8)
INTO(i8)
INTO(i16)
INTO(i32)
INTO(i64)
CHAIN(f64, f16, f32, 4, 2)
CHAIN(f64, bf16, f32, 4, 2)
CHAIN(f64, c64, f32, 4, 8)
CHAIN(f32, c128, f64, 8, 16)
OUT_OF_COMPLEX(c64, f32, 4)
OUT_OF_COMPLEX(c128, f64, 8)
CHAIN(c64, f64, f32, 4, 8)
CHAIN(c128, f32, f64, 8, 4)

/* int8 has the bits of uint8. */
#define ROW(suffix, code, bytes, bools) \
    {"copy", code, copy_##bytes, {bytes, bytes}}, \
    {"to_bool", code, bools, {1, bytes}}, {"to_u8", code, suffix##_to_u8, {1, bytes}}, \
    {"to_i8", code, suffix##_to_u8, {1, bytes}}, {"to_i16", code, suffix##_to_i16, {2, bytes}}, \
    {"to_i32", code, suffix##_to_i32, {4, bytes}}, {"to_i64", code, suffix##_to_i64, {8, bytes}}, \
    {"to_f16", code, suffix##_to_f16, {2, bytes}}, {"to_bf16", code, suffix##_to_bf16, {2, bytes}}, \
    {"to_f32", code, suffix##_to_f32, {4, bytes}}, {"to_f64", code, suffix##_to_f64, {8, bytes}}, \
    {"to_c64", code, suffix##_to_c64, {8, bytes}}, {"to_c128", code, suffix##_to_c128, {16, bytes}},
#define f16_to_f16 copy_2
#define bf16_to_bf16 copy_2
#define c64_to_c64 copy_8
#define c128_to_c128 copy_16

FB_FAMILY(conversion) = {
    ROW(u8, FB_BOOL, 1, copy_1) ROW(u8, FB_U8, 1, u8_to_bool) ROW(i8, FB_I8, 1, i8_to_bool) ROW(i16, FB_I16, 2, i16_to_bool)
    ROW(i32, FB_I32, 4, i32_to_bool) ROW(i64, FB_I64, 8, i64_to_bool)
    ROW(f16, FB_F16, 2, f16_to_bool) ROW(bf16, FB_BF16, 2, bf16_to_bool)
    ROW(f32, FB_F32, 4, f32_to_bool) ROW(f64, FB_F64, 8, f64_to_bool)
    ROW(c64, FB_C64, 8, c64_to_bool) ROW(c128, FB_C128, 16, c128_to_bool)
    FB_END};
