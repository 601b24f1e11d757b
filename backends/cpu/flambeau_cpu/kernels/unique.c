/* Distinct values in ascending order, with where they went and how often they came.
 *
 * p: values (room for n), input (contiguous), inverse or NULL, counts (room for n) or NULL.  q: n.
 * Returns how many there are, or -1 without memory.  Each NaN is distinct, as NaN equals nothing.
 * FB_SETS: baseline avx2 */
#include "order.h"

FB_ORDER(narrow, NARROW, uint32_t)
FB_ORDER(wide, WIDE, uint64_t)

#define BY_SORTING(D, s, T, W, E, K) \
    static i64 sorted_##s(const T *in, i64 n, T *values, i64 *inverse, i64 *counts) { \
        E *e = fb_allocate((size_t)(2 * n) * sizeof(E) + 64); \
        if (!e) return -1; \
        for (i64 i = 0; i < n; i++) e[i] = W##_MAKE(key_##s(in[i]), i); \
        const E *sorted = sort_##E(e, e + n, n); \
        i64 found = 0; \
        for (i64 i = 0; i < n; i++) { \
            K key = W##_KEY(sorted[i]); \
            bool again = i && key == W##_KEY(sorted[i - 1]) && !nan_##s(key); \
            if (!again) { \
                values[found] = vague_##s(key) ? in[W##_AT(sorted[i])] : value_##s(key); \
                if (counts) counts[found] = 0; \
                found++; \
            } \
            if (counts) counts[found - 1]++; \
            if (inverse) inverse[W##_AT(sorted[i])] = found - 1; \
        } \
        fb_release(e); \
        return found; \
    } \
    static i64 unique_##s(void *const *p, const i64 *q) { \
        if (q[0] >= (i64)1 << 32) return -1; \
        i64 tabled = UNIQUE_BY_TABLE_##s(p[1], q[0], p[0], p[2], p[3]); \
        return tabled != UNTRIED ? tabled : sorted_##s(p[1], q[0], p[0], p[2], p[3]); \
    }

/* Integers that span little more than their number: a table of all of them is less work than sorting. */
enum { UNTRIED = -2 };
#define BY_TABLE(s, T) \
    static i64 tabled_##s(const T *in, i64 n, T *values, i64 *inverse, i64 *counts) { \
        if (!n || n > INT32_MAX) return n ? UNTRIED : 0; \
        T low = in[0], high = in[0]; \
        for (i64 i = 0; i < n; i++) { low = in[i] < low ? in[i] : low; high = in[i] > high ? in[i] : high; } \
        uint64_t span = (uint64_t)high - (uint64_t)low + 1; \
        if (span == 0 || span > (uint64_t)(4 * n + 1024)) return UNTRIED; \
        i64 found = 0; \
        if (!inverse && !counts) { \
            uint8_t *seen = calloc(span, 1); \
            if (!seen) return -1; \
            for (i64 i = 0; i < n; i++) seen[(uint64_t)in[i] - (uint64_t)low] = 1; \
            for (uint64_t v = 0; v < span; v++) \
                if (seen[v]) values[found++] = (T)((uint64_t)low + v); \
            free(seen); \
            return found; \
        } \
        int32_t *count = calloc(span, sizeof *count); \
        if (!count) return -1; \
        for (i64 i = 0; i < n; i++) count[(uint64_t)in[i] - (uint64_t)low]++; \
        for (uint64_t v = 0; v < span; v++) { \
            if (!count[v]) continue; \
            values[found] = (T)((uint64_t)low + v); \
            if (counts) counts[found] = count[v]; \
            count[v] = (int32_t)found++; \
        } \
        for (i64 i = 0; i < n && inverse; i++) inverse[i] = count[(uint64_t)in[i] - (uint64_t)low]; \
        free(count); \
        return found; \
    }
BY_TABLE(u8, uint8_t)
BY_TABLE(i8, int8_t)
BY_TABLE(i16, int16_t)
BY_TABLE(i32, int32_t)
BY_TABLE(i64, int64_t)
#define UNIQUE_BY_TABLE_b8 tabled_u8
#define UNIQUE_BY_TABLE_u8 tabled_u8
#define UNIQUE_BY_TABLE_i8 tabled_i8
#define UNIQUE_BY_TABLE_i16 tabled_i16
#define UNIQUE_BY_TABLE_i32 tabled_i32
#define UNIQUE_BY_TABLE_i64 tabled_i64
#define NO_TABLE(in, n, values, inverse, counts) UNTRIED
#define UNIQUE_BY_TABLE_f16 NO_TABLE
#define UNIQUE_BY_TABLE_bf16 NO_TABLE
#define UNIQUE_BY_TABLE_f32 NO_TABLE
#define UNIQUE_BY_TABLE_f64 NO_TABLE
FB_ORDERED(BY_SORTING)

FB_FAMILY(unique) = {
#define X(D, s, T, W, E, K) {"unique", D, unique_##s, {0}},
    FB_ORDERED(X)
#undef X
    FB_END};
