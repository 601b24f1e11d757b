/* Random numbers: uniform, normal, bernoulli, dropout, randint, randperm, exponential, cauchy, geometric.
 *
 * Every kernel: p[0] is dense output; q: n, seed, offset, then parameters (doubles by their bits).  `offset` is the first
 * block of Threefry to use.  A kernel makes PER outputs from each group of 16 blocks, so it uses 16 * ceil(n / PER) of them;
 * PER is 32 at least, whatever the dtype, and the launcher advances the generator as if it were 32.
 */
#include "flambeau.h"
#include "half.h"
#include "share.h"
#include "threefry.h"

/* ------------------------------------------------- vectorisable functions */

/* Natural logarithm of a positive normal number: the series of atanh around 1. */
static inline float log_float(float x) {
    uint32_t b = fb_bits(x) + (0x3f800000u - 0x3f3504f3u);
    float e = (float)((int32_t)(b >> 23) - 127), m = fb_float((b & 0x7fffffu) + 0x3f3504f3u);
    float s = (m - 1) / (m + 1), z = s * s;
    return e * 0.693147180559945f + s * (2 + z * (2.f / 3 + z * (2.f / 5 + z * (2.f / 7 + z * (2.f / 9)))));
}

static inline double log_double(double x) {
    uint64_t b, m_bits, e_bits;
    double m, e;
    memcpy(&b, &x, 8);
    b += 0x3ff0000000000000u - 0x3fe6a09e667f3bcdu;
    e_bits = 0x4330000000000000u | b >> 52; /* 2**52 + exponent: an integer becomes a double */
    m_bits = (b & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu;
    memcpy(&e, &e_bits, 8);
    memcpy(&m, &m_bits, 8);
    e -= 4503599627370496.0 + 1023;
    double s = (m - 1) / (m + 1), z = s * s, t = 2. / 21;
    t = 2. / 19 + z * t; t = 2. / 17 + z * t; t = 2. / 15 + z * t; t = 2. / 13 + z * t; t = 2. / 11 + z * t;
    t = 2. / 9 + z * t; t = 2. / 7 + z * t; t = 2. / 5 + z * t; t = 2. / 3 + z * t;
    return e * 0.6931471805599453094 + s * (2 + z * t);
}

/* Sine and cosine of 2 pi * turn / 2**32 (+ a fraction of one such step): Taylor series within an eighth of a turn. */
static inline void circle_float(uint32_t turn, float *sine, float *cosine) {
    uint32_t quarter = (turn + (1u << 29)) >> 30;
    float a = (float)(int32_t)(turn - (quarter << 30)) * 1.46291807926715968e-9f, z = a * a;
    float s = a * (1 + z * (-1.f / 6 + z * (1.f / 120 + z * (-1.f / 5040 + z * (1.f / 362880)))));
    float c = 1 + z * (-.5f + z * (1.f / 24 + z * (-1.f / 720 + z * (1.f / 40320 + z * (-1.f / 3628800)))));
    float u = quarter & 1 ? c : s, v = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -u : u;
    *cosine = (quarter + 1) & 2 ? -v : v;
}

static inline void circle_double(uint32_t turn, uint32_t fraction, double *sine, double *cosine) {
    uint32_t quarter = (turn + (1u << 29)) >> 30;
    double a = ((double)(int32_t)(turn - (quarter << 30)) + (double)(int32_t)(fraction >> 1) * 0x1p-31) * 1.46291807926715968105e-9;
    double z = a * a;
    double s = 1. / 355687428096000, c = 1. / 20922789888000;
    s = -1. / 1307674368000 + z * s; s = 1. / 6227020800 + z * s; s = -1. / 39916800 + z * s; s = 1. / 362880 + z * s;
    s = -1. / 5040 + z * s; s = 1. / 120 + z * s; s = -1. / 6 + z * s; s = a * (1 + z * s);
    c = -1. / 87178291200 + z * c; c = 1. / 479001600 + z * c; c = -1. / 3628800 + z * c; c = 1. / 40320 + z * c;
    c = -1. / 720 + z * c; c = 1. / 24 + z * c; c = -.5 + z * c; c = 1 + z * c;
    double u = quarter & 1 ? c : s, v = quarter & 1 ? s : c;
    *sine = quarter & 2 ? -u : u;
    *cosine = (quarter + 1) & 2 ? -v : v;
}

/* ---------------------------------------------------------------- filling */

/* FILL defines a kernel that turns the 64 words w of each group into PER values r[]; q holds its parameters. */
#define FILL(kernel, T, PER, PARAMETERS, ...) \
    static void kernel##_group(T *out, i64 g, const i64 *q) { \
        PARAMETERS \
        uint32_t w[WORDS] __attribute__((aligned(64))); \
        T rest[PER]; \
        i64 left = q[0] - g * PER; \
        T *restrict r = left >= PER ? out + g * PER : rest; \
        random_group((uint64_t)q[1], (uint64_t)q[2] + (uint64_t)g * GROUP, w); \
        __VA_ARGS__ \
        if (left < PER) memcpy(out + g * PER, rest, (size_t)left * sizeof(T)); \
    } \
    static i64 kernel(void *const *p, const i64 *q) { \
        FB_SHARE(q[0] * 4, for (i64 g = 0; g < (q[0] + PER - 1) / PER; g++) kernel##_group(p[0], g, q);) \
        return 0; \
    }

#define SAME(x) (x)
#define TWO_DOUBLES double a = fb_double(q[3]), b = fb_double(q[4]);
#define TWO_FLOATS float a = (float)fb_double(q[3]), b = (float)fb_double(q[4]);

/* Uniform in [a, b) with as many bits as the dtype's precision, which never round up to b at a = 0, b = 1. */
#define UNIFORM(D, T, shift, unit, store) \
    FILL(uniform_##D, T, 64, TWO_FLOATS, \
        for (int j = 0; j < 64; j++) { \
            float v = a + (b - a) * ((float)(int32_t)(w[j] >> shift) * unit); \
            r[j] = store(v < b ? v : a); \
        })
UNIFORM(F32, float, 8, 0x1p-24f, SAME)
UNIFORM(F16, f16, 21, 0x1p-11f, f16_from_float)
UNIFORM(BF16, bf16, 24, 0x1p-8f, bf16_from_float)
FILL(uniform_F64, double, 32, TWO_DOUBLES,
    for (int j = 0; j < 32; j++) {
        double v = a + (b - a) * (bits53(w[j], w[32 + j]) * 0x1p-53);
        r[j] = v < b ? v : a;
    })

/* Normal with mean a and deviation b: Box and Muller (1958). */
#define NORMAL(D, T, store) \
    FILL(normal_##D, T, 64, TWO_FLOATS, \
        for (int j = 0; j < 32; j++) { \
            float s, c, radius = sqrtf(-2 * log_float(((float)(int32_t)(w[j] >> 1) + .5f) * 0x1p-31f)); \
            circle_float(w[32 + j], &s, &c); \
            r[j] = store(a + b * (radius * c)); \
            r[32 + j] = store(a + b * (radius * s)); \
        })
NORMAL(F32, float, SAME)
NORMAL(F16, f16, f16_from_float)
NORMAL(BF16, bf16, bf16_from_float)
FILL(normal_F64, double, 32, TWO_DOUBLES,
    for (int j = 0; j < 16; j++) {
        double s, c, radius = sqrt(-2 * log_double((bits53(w[j], w[16 + j]) + .5) * 0x1p-53));
        circle_double(w[32 + j], w[48 + j], &s, &c);
        r[j] = a + b * (radius * c);
        r[16 + j] = a + b * (radius * s);
    })

/* Inversions of the distribution function at u in (0, 1), in double. */
#define INVERSE(name, D, T, store, expression) \
    FILL(name##_##D, T, 32, TWO_DOUBLES (void)b;, \
        for (int j = 0; j < 32; j++) { \
            double u = (bits53(w[j], w[32 + j]) + .5) * 0x1p-53, x = expression; \
            r[j] = store(x); \
        })
#define DOUBLE_TO_F16(x) f16_from_float((float)(x))
#define DOUBLE_TO_BF16(x) bf16_from_float((float)(x))
#define INVERSES(D, T, store) \
    INVERSE(exponential, D, T, store, -log_double(u) / a) \
    INVERSE(cauchy, D, T, store, a + b * tan(3.14159265358979323846 * (u - .5))) \
    INVERSE(geometric, D, T, store, ceil(log_double(u) * a)) /* a = 1 / log(1 - p) */
INVERSES(F32, float, (float))
INVERSES(F64, double, SAME)
INVERSES(F16, f16, DOUBLE_TO_F16)
INVERSES(BF16, bf16, DOUBLE_TO_BF16)
#define GEOMETRIC(D, T) INVERSE(geometric, D, T, (T), ceil(log_double(u) * a))
GEOMETRIC(U8, uint8_t) GEOMETRIC(I8, int8_t) GEOMETRIC(I16, int16_t) GEOMETRIC(I32, int32_t) GEOMETRIC(I64, i64)

/* Bernoulli: 1 where a word lies below p * 2**32.  p travels as that number, 0 ... 2**32. */
#define THRESHOLD uint32_t below = (uint32_t)(q[3] ? q[3] - 1 : 0); int some = q[3] > 0;
#define BERNOULLI(D, T, store) \
    FILL(bernoulli_##D, T, 64, THRESHOLD, for (int j = 0; j < 64; j++) r[j] = store((w[j] <= below) & some);)
#define F16_BIT(x) ((f16){(uint16_t)((x) * 0x3c00)})
#define BF16_BIT(x) ((bf16){(uint16_t)((x) * 0x3f80)})

/* p[1]: probabilities of type P.  Returns 1 if one is not in [0, 1]. */
#define BERNOULLI_EACH(D, T, P, store) \
    static i64 bernoulli_each_##D(void *const *p, const i64 *q) { \
        T *restrict out = p[0]; \
        const P *restrict odds = p[1]; \
        i64 n = q[0], bad = 0; \
        uint64_t seed = (uint64_t)q[1], offset = (uint64_t)q[2]; \
        _Pragma("omp parallel for schedule(static) num_threads(fb_threads) if (fb_threads > 1 && n >= FB_GRAIN) reduction(| : bad)") \
        for (i64 g = 0; g < (n + 63) / 64; g++) { \
            uint32_t w[WORDS] __attribute__((aligned(64))); \
            int wrong = 0, count = (int)(n - g * 64 < 64 ? n - g * 64 : 64); \
            T *restrict r = out + g * 64; \
            const P *restrict o = odds + g * 64; \
            random_group(seed, offset + (uint64_t)g * GROUP, w); \
            for (int j = 0; j < count; j++) { \
                wrong |= !((o[j] >= 0) & (o[j] <= 1)); \
                r[j] = store(((P)(int32_t)(w[j] >> 8) * (P)0x1p-24 < o[j])); \
            } \
            bad |= wrong; \
        } \
        return bad; \
    }

/* Uniform integers q[3] + [0, q[4]); q[4] = 0 means all 2**64.  Multiply and shift: Lemire, "Fast random integer
 * generation in an interval", ACM TOMACS 29 (2019), whose bias of at most range / 2**32 (or 2**64) is left in. */
#define INTEGERS(D, T, store) \
    FILL(narrow_##D, T, 64, i64 low = q[3]; uint64_t range = (uint64_t)q[4];, \
        for (int j = 0; j < 64; j++) r[j] = store((i64)((uint64_t)low + ((uint64_t)w[j] * (uint32_t)range >> 32)));) \
    FILL(wide_##D, T, 32, i64 low = q[3]; uint64_t range = (uint64_t)q[4];, \
        for (int j = 0; j < 32; j++) { \
            uint64_t word = (uint64_t)w[j] << 32 | w[32 + j]; \
            uint64_t value = range ? (uint64_t)((unsigned __int128)word * range >> 64) : word; \
            r[j] = store((i64)((uint64_t)low + value)); \
        }) \
    static i64 integers_##D(void *const *p, const i64 *q) { return q[4] > 0 && q[4] < 1 << 24 ? narrow_##D(p, q) : wide_##D(p, q); }

#define EVERY(X) \
    X(BOOL, uint8_t, float, 0 != ) X(U8, uint8_t, float, (uint8_t)) X(I8, int8_t, float, (int8_t)) \
    X(I16, int16_t, float, (int16_t)) X(I32, int32_t, float, (int32_t)) X(I64, i64, double, (i64)) \
    X(F32, float, float, (float)) X(F64, double, double, (double))
#define I64_TO_F16(x) f16_from_float((float)(x))
#define I64_TO_BF16(x) bf16_from_float((float)(x))
#define EACH_DTYPE(D, T, P, store) BERNOULLI(D, T, store) BERNOULLI_EACH(D, T, P, store) INTEGERS(D, T, store)
EVERY(EACH_DTYPE)
BERNOULLI(F16, f16, F16_BIT) BERNOULLI_EACH(F16, f16, float, F16_BIT) INTEGERS(F16, f16, I64_TO_F16)
BERNOULLI(BF16, bf16, BF16_BIT) BERNOULLI_EACH(BF16, bf16, float, BF16_BIT) INTEGERS(BF16, bf16, I64_TO_BF16)

/* Dropout: x / (1 - odds) where kept, else 0.  p: out, x, mask (bool: kept);  q: n, seed, offset, odds * 2**32, scale. */
#define DROPOUT(D, T, A, load, store) \
    static i64 dropout_##D(void *const *p, const i64 *q) { \
        T *restrict out = p[0]; \
        const T *restrict x = p[1]; \
        uint8_t *restrict mask = p[2]; \
        i64 n = q[0]; \
        uint64_t seed = (uint64_t)q[1], offset = (uint64_t)q[2]; \
        uint32_t odds = (uint32_t)q[3]; \
        A scale = (A)fb_double(q[4]); \
        FB_SHARE(n * 4, for (i64 g = 0; g < (n + 63) / 64; g++) { \
            uint32_t w[WORDS] __attribute__((aligned(64))); \
            random_group(seed, offset + (uint64_t)g * GROUP, w); \
            T *restrict o = out + g * 64; \
            const T *restrict from = x + g * 64; \
            uint8_t *restrict m = mask + g * 64; \
            i64 left = n - g * 64; \
            if (left >= 64) for (int j = 0; j < 64; j++) { \
                m[j] = w[j] >= odds; \
                o[j] = store(load(from[j]) * (w[j] >= odds ? scale : 0)); \
            } else for (int j = 0; j < left; j++) { \
                m[j] = w[j] >= odds; \
                o[j] = store(load(from[j]) * (w[j] >= odds ? scale : 0)); \
            } \
        }) \
        return 0; \
    }
DROPOUT(F32, float, float, SAME, SAME)
DROPOUT(F64, double, double, SAME, SAME)
DROPOUT(F16, f16, float, f16_to_float, f16_from_float)
DROPOUT(BF16, bf16, float, bf16_to_float, bf16_from_float)

/* A uniform permutation of 0 ... n - 1: Fisher and Yates, in Durstenfeld's form (CACM 7, 1964). */
static i64 randperm(void *const *p, const i64 *q) {
    i64 *out = p[0], n = q[0];
    uint64_t seed = (uint64_t)q[1], offset = (uint64_t)q[2];
    uint32_t w[WORDS] __attribute__((aligned(64)));
    for (i64 i = 0; i < n; i++) out[i] = i;
    for (i64 i = 0; i + 1 < n; i += 32) {
        i64 other[32];
        int count = (int)(n - 1 - i < 32 ? n - 1 - i : 32);
        random_group(seed, offset + (uint64_t)i / 2, w);
        for (int j = 0; j < count; j++) {
            uint64_t word = (uint64_t)w[j] << 32 | w[32 + j];
            other[j] = i + j + (i64)((unsigned __int128)word * (uint64_t)(n - i - j) >> 64);
            __builtin_prefetch(out + other[j], 1);
        }
        for (int j = 0; j < count; j++) {
            i64 here = out[i + j];
            out[i + j] = out[other[j]];
            out[other[j]] = here;
        }
    }
    return 0;
}

#define ENTRY(name, D, T) {#name, FB_##D, name##_##D, {sizeof(T)}},
#define FLOATING(D, T) \
    ENTRY(uniform, D, T) ENTRY(normal, D, T) ENTRY(exponential, D, T) ENTRY(cauchy, D, T) ENTRY(geometric, D, T) \
    ENTRY(dropout, D, T) ANY(D, T)
#define ANY(D, T) ENTRY(bernoulli, D, T) ENTRY(bernoulli_each, D, T) ENTRY(integers, D, T)
#define WHOLE(D, T) ENTRY(geometric, D, T) ANY(D, T)

FB_FAMILY(random) = {
    FLOATING(F32, float) FLOATING(F64, double) FLOATING(F16, f16) FLOATING(BF16, bf16)
    WHOLE(U8, uint8_t) WHOLE(I8, int8_t) WHOLE(I16, int16_t) WHOLE(I32, int32_t) WHOLE(I64, i64) ANY(BOOL, uint8_t)
    {"randperm", FB_I64, randperm, {8}},
    FB_END};
