/* Sorting and selecting by unsigned keys.
 *
 * Every dtype maps to an unsigned key of its width whose order is the order of the
 * values: NaN after everything, -0.0 beside 0.0.  An item is a key and its position;
 * items are compared by both, so that no two are equal and every order is stable.
 * Keys of up to 32 bits share one 64-bit word with the position. */
#ifndef FLAMBEAU_ORDER_H
#define FLAMBEAU_ORDER_H

#include "half.h"
#include "registry.h"

typedef uint64_t narrow;                         /* key << 32 | position */
typedef struct { uint64_t key, position; } wide;

#define NARROW_MAKE(key, at) ((uint64_t)(key) << 32 | (uint64_t)(at))
#define NARROW_KEY(item) ((uint32_t)((item) >> 32))
#define NARROW_AT(item) ((i64)(uint32_t)(item))
#define NARROW_LESS(a, b) ((a) < (b))
#define WIDE_MAKE(key, at) ((wide){key, (uint64_t)(at)})
#define WIDE_KEY(item) ((item).key)
#define WIDE_AT(item) ((i64)(item).position)
#define WIDE_LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).position < (b).position))

/* X(dtype, suffix, element, NARROW or WIDE, item, key type) */
#define FB_ORDERED(X) \
    X(FB_BOOL, b8, uint8_t, NARROW, narrow, uint32_t) \
    X(FB_U8, u8, uint8_t, NARROW, narrow, uint32_t) \
    X(FB_I8, i8, int8_t, NARROW, narrow, uint32_t) \
    X(FB_I16, i16, int16_t, NARROW, narrow, uint32_t) \
    X(FB_I32, i32, int32_t, NARROW, narrow, uint32_t) \
    X(FB_I64, i64, int64_t, WIDE, wide, uint64_t) \
    X(FB_F16, f16, f16, NARROW, narrow, uint32_t) \
    X(FB_BF16, bf16, bf16, NARROW, narrow, uint32_t) \
    X(FB_F32, f32, float, NARROW, narrow, uint32_t) \
    X(FB_F64, f64, double, WIDE, wide, uint64_t)

/* key_s(value), value_s(key); vague_s(key): several values share the key, so look at the element;
 * nan_s(key): the value is not a number. */
#define INTEGER_KEY(s, T, U, K, SIGN) \
    static inline K key_##s(T v) { return (K)(U)((U)v ^ SIGN); } \
    static inline T value_##s(K key) { return (T)((U)key ^ SIGN); } \
    static inline bool vague_##s(K key) { (void)key; return false; } \
    static inline bool nan_##s(K key) { (void)key; return false; }
#define FLOAT_KEY(s, T, U, K, SIGN, INFINITE) \
    static inline K key_##s(T v) { \
        U bits; \
        memcpy(&bits, &v, sizeof bits); \
        U flipped = bits & SIGN ? (U)~bits : (U)(bits | SIGN); \
        flipped = bits == SIGN ? SIGN : flipped; \
        return (U)(bits & (U)~SIGN) > INFINITE ? (U)-1 : flipped; \
    } \
    static inline T value_##s(K key) { \
        U bits = key & SIGN ? (U)(key ^ SIGN) : (U)~key; \
        T v; \
        memcpy(&v, &bits, sizeof v); \
        return v; \
    } \
    static inline bool nan_##s(K key) { return key == (U)-1; } \
    static inline bool vague_##s(K key) { return key == SIGN || nan_##s(key); }
INTEGER_KEY(b8, uint8_t, uint8_t, uint32_t, 0)
INTEGER_KEY(u8, uint8_t, uint8_t, uint32_t, 0)
INTEGER_KEY(i8, int8_t, uint8_t, uint32_t, 0x80u)
INTEGER_KEY(i16, int16_t, uint16_t, uint32_t, 0x8000u)
INTEGER_KEY(i32, int32_t, uint32_t, uint32_t, 0x80000000u)
INTEGER_KEY(i64, int64_t, uint64_t, uint64_t, 0x8000000000000000u)
FLOAT_KEY(f16, f16, uint16_t, uint32_t, 0x8000u, 0x7c00u)
FLOAT_KEY(bf16, bf16, uint16_t, uint32_t, 0x8000u, 0x7f80u)
FLOAT_KEY(f32, float, uint32_t, uint32_t, 0x80000000u, 0x7f800000u)
FLOAT_KEY(f64, double, uint64_t, uint64_t, 0x8000000000000000u, 0x7ff0000000000000u)

enum {
    FB_RUN = 12,     /* items that insertion sorts */
    FB_MERGED = 160, /* items up to which merging beats counting digits */
    FB_LONG = 8192,  /* items from which digits of 11 bits beat bytes */
};

/* merge and sort leave the result in one of the two and return which; sort wants items in
 * the order of their positions, merge takes any.  select(items, n, k) moves the k least to
 * the front, in no order. */
#define FB_ORDER(E, W, K) \
    static void insert_##E(E *e, i64 n) { \
        for (i64 i = 1; i < n; i++) { \
            E item = e[i]; \
            i64 j = i; \
            for (; j > 0 && W##_LESS(item, e[j - 1]); j--) e[j] = e[j - 1]; \
            e[j] = item; \
        } \
    } \
    static __attribute__((noinline)) E *merge_##E(E *e, E *spare, i64 n) { \
        for (i64 i = 0; i < n; i += FB_RUN) insert_##E(e + i, n - i < FB_RUN ? n - i : FB_RUN); \
        for (i64 run = FB_RUN; run < n; run *= 2) { \
            for (i64 i = 0; i < n; i += 2 * run) { \
                i64 a = i, middle = i + run < n ? i + run : n, b = middle, end = i + 2 * run < n ? i + 2 * run : n, o = i; \
                while (a < middle && b < end) { \
                    bool second = W##_LESS(e[b], e[a]); \
                    spare[o++] = second ? e[b] : e[a]; \
                    b += second; \
                    a += !second; \
                } \
                memcpy(spare + o, e + a, (size_t)(middle - a) * sizeof(E)); \
                o += middle - a; \
                memcpy(spare + o, e + b, (size_t)(end - b) * sizeof(E)); \
            } \
            E *swap = e; e = spare; spare = swap; \
        } \
        return e; \
    } \
    static inline __attribute__((always_inline)) E *radix_##E(E *e, E *spare, i64 n, const int digit) { \
        enum { MOST = sizeof(K) }; /* passes of the shortest digit, a byte */ \
        const int digits = 1 << digit, passes = ((int)sizeof(K) * 8 + digit - 1) / digit; \
        i64 count[MOST << digit]; \
        memset(count, 0, sizeof *count * (size_t)(passes << digit)); \
        for (i64 i = 0; i < n; i++) { \
            K key = W##_KEY(e[i]); \
            for (int pass = 0; pass < passes; pass++) count[pass << digit | (key >> pass * digit & (K)(digits - 1))]++; \
        } \
        for (int pass = 0; pass < passes; pass++) { \
            int shift = pass * digit; \
            i64 *from = count + (pass << digit), sum = 0; \
            if (from[W##_KEY(e[0]) >> shift & (K)(digits - 1)] == n) continue; /* one digit for all */ \
            for (int d = 0; d < digits; d++) { i64 own = from[d]; from[d] = sum; sum += own; } \
            for (i64 i = 0; i < n; i++) spare[from[W##_KEY(e[i]) >> shift & (K)(digits - 1)]++] = e[i]; \
            E *swap = e; e = spare; spare = swap; \
        } \
        return e; \
    } \
    /* Of items in the order of their positions. */ \
    static __attribute__((noinline)) E *sort_##E(E *e, E *spare, i64 n) { \
        if (n <= FB_MERGED) return merge_##E(e, spare, n); \
        return n < FB_LONG ? radix_##E(e, spare, n, 8) : radix_##E(e, spare, n, 11); \
    }

#define FB_SELECT(E, W) \
    static __attribute__((noinline)) void select_##E(E *e, i64 n, i64 k) { \
        i64 first = 0, last = n - 1, target = k - 1; \
        uint64_t random = 0x9e3779b97f4a7c15u; /* positions that no input can foresee badly */ \
        if (k <= 0 || k >= n) return; \
        while (last - first > FB_RUN) { \
            i64 span = last - first + 1; \
            E pick[3]; \
            for (int t = 0; t < 3; t++) { \
                random = random * 6364136223846793005u + 1442695040888963407u; \
                pick[t] = e[first + (i64)((random >> 33) % (uint64_t)span)]; \
            } \
            insert_##E(pick, 3); \
            i64 a = first, b = last; \
            while (a <= b) { \
                while (W##_LESS(e[a], pick[1])) a++; \
                while (W##_LESS(pick[1], e[b])) b--; \
                if (a > b) break; \
                E swap = e[a]; e[a++] = e[b]; e[b--] = swap; \
            } \
            if (target <= b) last = b; \
            else if (target >= a) first = a; \
            else return; \
        } \
        insert_##E(e + first, last - first + 1); \
    }

#endif
