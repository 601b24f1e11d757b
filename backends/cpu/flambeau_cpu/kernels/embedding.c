/* Sums of rows of a table in bags. */
#include "flambeau.h"
#include "half.h"

enum { STRIP = 256 }; /* columns at a time */

/* p = {out, table, rows, bag, factors or NULL}; q = {rows of the table, width, entries, bags}.
 * Entry k adds table[rows[k]] * factors[k] to out[bag[k]]; bag never falls.
 * Returns 1 + the position of an entry that names no row. */
#define BAGS(s, T, C, LOAD, STORE) \
    static i64 bags_##s(void *const *p, const i64 *q) { \
        i64 height = q[0], width = q[1], n = q[2], bags = q[3]; \
        T *out = p[0]; const T *table = p[1], *factor = p[4]; const i64 *row = p[2], *bag = p[3]; \
        for (i64 k = 0; k < n; k++) if (row[k] < 0 || row[k] >= height) return 1 + k; \
        FB_PARALLEL_FOR(n * width) for (i64 b = 0; b < bags; b++) { \
            i64 first = 0, end = n; \
            while (first < end) { i64 middle = (first + end) / 2; if (bag[middle] < b) first = middle + 1; else end = middle; } \
            for (end = first; end < n && bag[end] == b; end++) {} \
            for (i64 at = 0; at < width; at += STRIP) { \
                C sum[STRIP] = {0}; \
                i64 count = width - at < STRIP ? width - at : STRIP; \
                i64 k = first; \
                for (; !factor && k + 4 <= end; k += 4) { \
                    const T *r0 = table + row[k] * width + at, *r1 = table + row[k + 1] * width + at; \
                    const T *r2 = table + row[k + 2] * width + at, *r3 = table + row[k + 3] * width + at; \
                    for (i64 next = k + 4; next < n && next < k + 8; next++) \
                        for (i64 j = 0; j < count; j += 64 / (i64)sizeof(T)) \
                            __builtin_prefetch(table + row[next] * width + at + j); \
                    for (i64 j = 0; j < count; j++) sum[j] += (LOAD(r0[j]) + LOAD(r1[j])) + (LOAD(r2[j]) + LOAD(r3[j])); \
                } \
                for (; k < end; k++) { \
                    const T *from = table + row[k] * width + at; \
                    C f = factor ? LOAD(factor[k]) : 1; \
                    for (i64 j = 0; j < count; j++) sum[j] += f * LOAD(from[j]); \
                } \
                for (i64 j = 0; j < count; j++) out[b * width + at + j] = STORE(sum[j]); \
            } \
        } \
        return 0; \
    }

#define SAME(x) (x)
BAGS(f32, float, float, SAME, (float))
BAGS(f64, double, double, SAME, (double))
BAGS(f16, f16, float, f16_to_float, f16_from_float)
BAGS(bf16, bf16, float, bf16_to_float, bf16_from_float)

FB_FAMILY(embedding) = {
    {"bags", FB_F32, bags_f32, {0}}, {"bags", FB_F64, bags_f64, {0}}, {"bags", FB_F16, bags_f16, {0}},
    {"bags", FB_BF16, bags_bf16, {0}}, FB_END};
