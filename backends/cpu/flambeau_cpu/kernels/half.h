/* float16 and bfloat16: storage types; arithmetic happens in float. */
#ifndef FLAMBEAU_HALF_H
#define FLAMBEAU_HALF_H

#include <stdint.h>
#include <string.h>

typedef struct { uint16_t bits; } f16;
typedef struct { uint16_t bits; } bf16;

static inline uint32_t fb_bits(float value) { uint32_t bits; memcpy(&bits, &value, 4); return bits; }
static inline float fb_float(uint32_t bits) { float value; memcpy(&value, &bits, 4); return value; }

static inline float f16_to_float(f16 h) {
#if defined(__F16C__) || defined(__AVX512F__)
    return (float)__extension__({ _Float16 v; memcpy(&v, &h, 2); v; });
#else
    /* Exponent rebias by a multiplication, which also normalises subnormals. */
    uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16, rest = h.bits & 0x7fffu;
    float value = fb_float(rest << 13) * fb_float(0x77800000u);
    uint32_t bits = fb_bits(value);
    bits = rest >= 0x7c00u ? 0x7f800000u | (rest & 0x3ffu) << 13 : bits;
    return fb_float(bits | sign);
#endif
}

static inline f16 f16_from_float(float value) {
#if defined(__F16C__) || defined(__AVX512F__)
    _Float16 v = (_Float16)value; f16 h; memcpy(&h, &v, 2); return h;
#else
    uint32_t bits = fb_bits(value), sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    uint32_t result;
    if (bits > 0x7f800000u) result = 0x7e00u;
    else if (bits >= 0x477ff000u) result = 0x7c00u;
    else if (bits < 0x38800000u) result = fb_bits(fb_float(bits) + 0.5f) - 0x3f000000u;  /* subnormal: the adder rounds */
    else result = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    f16 h = {(uint16_t)(result | sign)};
    return h;
#endif
}

static inline float bf16_to_float(bf16 h) { return fb_float((uint32_t)h.bits << 16); }

static inline bf16 bf16_from_float(float value) {
    uint32_t bits = fb_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    bf16 h = {(uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16 | 0x40u) : rounded)};
    return h;
}

/* Rows at once.  GCC 12 converts float16 one by one even in a loop, hence the
 * only intrinsics of the plug-in; is_f16 chooses between the two half types. */
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline void fb_halves_to_floats(int is_f16, int64_t n, const void *from, float *to) {
    int64_t i = 0;
    if (!is_f16) {
        for (; i < n; i++) to[i] = bf16_to_float(((const bf16 *)from)[i]);
        return;
    }
    const f16 *half = (const f16 *)from;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(half + i))));
#endif
    for (; i < n; i++) to[i] = f16_to_float(half[i]);
}

static inline void fb_floats_to_halves(int is_f16, int64_t n, const float *from, void *to) {
    int64_t i = 0;
    if (!is_f16) {
        for (; i < n; i++) ((bf16 *)to)[i] = bf16_from_float(from[i]);
        return;
    }
    f16 *half = (f16 *)to;
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(half + i), _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0));
#endif
    for (; i < n; i++) half[i] = f16_from_float(from[i]);
}

#endif
