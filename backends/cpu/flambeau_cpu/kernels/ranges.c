/* Values that follow from the position: arange, linspace.  FB_SETS: baseline avx2 */
#include "flambeau.h"
#include "half.h"
#include "share.h"

enum { BLOCK = 256 };

/* p: out;  q: n, start, step (doubles by their bits): start + i * step.
 * linspace also: end, half: from position `half` on it counts back from the end, so that both ends are exact. */
#define REALS(D, T, store) \
    static i64 arange_##D(void *const *p, const i64 *q) { \
        T *out = p[0]; \
        i64 n = q[0]; \
        double start = fb_double(q[1]), step = fb_double(q[2]); \
        FB_SHARE(n, for (i64 b = 0; b < n; b += BLOCK) { \
            i64 count = n - b < BLOCK ? n - b : BLOCK; \
            T *restrict o = out + b; \
            for (i64 j = 0; j < count; j++) { \
                double value = start + step * ((double)b + (double)(int32_t)j); \
                o[j] = store(value); \
            } \
        }) \
        return 0; \
    } \
    static i64 linspace_##D(void *const *p, const i64 *q) { \
        T *out = p[0]; \
        i64 n = q[0], half = q[4]; \
        double start = fb_double(q[1]), step = fb_double(q[2]), end = fb_double(q[3]); \
        FB_SHARE(n, for (i64 i = 0; i < n; i++) { \
            double value = i < half ? start + step * (double)i : end - step * (double)(n - 1 - i); \
            out[i] = store(value); \
        }) \
        return 0; \
    }
#define SAME(x) (x)
#define TO_F16(x) f16_from_float((float)(x))
#define TO_BF16(x) bf16_from_float((float)(x))
REALS(F32, float, (float))
REALS(F64, double, SAME)
REALS(F16, f16, TO_F16)
REALS(BF16, bf16, TO_BF16)

/* q: n, start, step as integers, which wrap. */
#define WHOLE(D, T) \
    static i64 arange_##D(void *const *p, const i64 *q) { \
        T *restrict out = p[0]; \
        i64 n = q[0]; \
        uint64_t start = (uint64_t)q[1], step = (uint64_t)q[2]; \
        FB_SHARE(n, for (i64 b = 0; b < n; b += BLOCK) { \
            i64 count = n - b < BLOCK ? n - b : BLOCK; \
            uint64_t first = start + (uint64_t)b * step; \
            for (i64 j = 0; j < count; j++) out[b + j] = (T)(first + (uint64_t)j * step); \
        }) \
        return 0; \
    }
WHOLE(U8, uint8_t)
WHOLE(I8, int8_t)
WHOLE(I16, int16_t)
WHOLE(I32, int32_t)
WHOLE(I64, i64)

#define ENTRY(name, D, T) {#name, FB_##D, name##_##D, {sizeof(T)}},
FB_FAMILY(ranges) = {
    ENTRY(arange, F32, float) ENTRY(arange, F64, double) ENTRY(arange, F16, f16) ENTRY(arange, BF16, bf16)
    ENTRY(linspace, F32, float) ENTRY(linspace, F64, double) ENTRY(linspace, F16, f16) ENTRY(linspace, BF16, bf16)
    ENTRY(arange, U8, uint8_t) ENTRY(arange, I8, int8_t) ENTRY(arange, I16, int16_t) ENTRY(arange, I32, int32_t)
    ENTRY(arange, I64, i64)
    FB_END};
