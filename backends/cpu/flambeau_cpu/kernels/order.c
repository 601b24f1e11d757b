/* Sorting and selecting along one dimension; see order.h.
 *
 * Tensors are contiguous (outer, n, inner) and n is the dimension at work.
 * p: values, input, indices (int64), any output may be NULL.
 * Returns 0, 1 without memory, 2 for a line of 2^32 elements or more.
 * FB_SETS: baseline avx2 */
#include "order.h"

FB_ORDER(narrow, NARROW, uint32_t)
FB_ORDER(wide, WIDE, uint64_t)
FB_SELECT(narrow, NARROW)
FB_SELECT(wide, WIDE)

enum { SCREEN = 64, FEW = 24 };

/* Runs the last argument for each line on items `e` with room for `room`; `in` is the line's first element, `inner`
 * its step, `line` its number, and (line / inner, line % inner) its place in (outer, inner). */
#define FOR_LINES(T, E, room, ...) \
    const T *input = p[1]; \
    i64 n = q[1], inner = q[2], lines = q[0] * inner, failed = 0; \
    if (n >= (i64)1 << 32) return 2; \
    i64 parts = lines < 16 ? lines : 16, each = parts ? (lines + parts - 1) / parts : 0; \
    FB_PARALLEL_FOR(8 * lines * n) \
    for (i64 part = 0; part < parts; part++) { \
        E *e = fb_allocate((size_t)(room) * sizeof(E) + 64); \
        if (!e) { _Pragma("omp atomic write") failed = 1; continue; } \
        for (i64 line = part * each; line < lines && line < (part + 1) * each; line++) { \
            const T *in = input + line / inner * n * inner + line % inner; \
            __VA_ARGS__ \
        } \
        fb_release(e); \
    } \
    return failed;

/* q: outer, n, inner, descending */
#define SORT(D, s, T, W, E, K) \
    static i64 sort_##s(void *const *p, const i64 *q) { \
        T *values = p[0]; i64 *indices = p[2]; \
        K flip = q[3] ? (K)-1 : 0; \
        FOR_LINES(T, E, 2 * n, { \
            for (i64 i = 0; i < n; i++) e[i] = W##_MAKE((K)(key_##s(in[i * inner]) ^ flip), i); \
            const E *sorted = sort_##E(e, e + n, n); \
            i64 start = in - input; \
            for (i64 i = 0; i < n && values; i++) { \
                K key = W##_KEY(sorted[i]) ^ flip; \
                values[start + i * inner] = vague_##s(key) ? in[W##_AT(sorted[i]) * inner] : value_##s(key); \
            } \
            for (i64 i = 0; i < n && indices; i++) indices[start + i * inner] = W##_AT(sorted[i]); \
        }) \
    }

/* The keys of up to SCREEN elements, a vector loop where the dimension is the last. */
#define KEYS(D, s, T, W, E, K) \
    static void keys_##s(const T *x, i64 inner, i64 many, K flip, K *key) { \
        if (inner == 1) for (i64 j = 0; j < many; j++) key[j] = key_##s(x[j]) ^ flip; \
        else for (i64 j = 0; j < many; j++) key[j] = key_##s(x[j * inner]) ^ flip; \
    }

/* The few least of elements first..last of a line in ascending order, each inserted as it comes. */
#define FEWEST(D, s, T, W, E, K) \
    static i64 few_##s(const T *in, i64 inner, i64 first, i64 last, i64 k, K flip, E *e) { \
        i64 count = 0; \
        K bar = (K)-1; \
        for (i64 i = first; i < last && k; i += SCREEN) { \
            i64 many = last - i < SCREEN ? last - i : SCREEN; \
            K key[SCREEN], any = count < k; \
            keys_##s(in + i * inner, inner, many, flip, key); \
            for (i64 j = 0; j < many; j++) any |= key[j] < bar; \
            for (i64 j = 0; any && j < many; j++) { \
                if (count == k && key[j] >= bar) continue; \
                E item = W##_MAKE(key[j], i + j); \
                i64 at = count < k ? count++ : k - 1; \
                for (; at > 0 && W##_LESS(item, e[at - 1]); at--) e[at] = e[at - 1]; \
                e[at] = item; \
                if (count == k) bar = W##_KEY(e[k - 1]); \
            } \
        } \
        return count; \
    }

/* The k least of elements first..last of a line, in no order; e has room for k + most.
 * What cannot be among them is screened out 64 at a time without a branch each. */
#define LEAST(D, s, T, W, E, K) \
    static i64 least_##s(const T *in, i64 inner, i64 first, i64 last, i64 k, i64 most, K flip, E *e) { \
        if (k <= FEW) return few_##s(in, inner, first, last, k, flip, e); \
        i64 count = 0, i = first; \
        K bar = (K)-1; /* the k-th least so far; later equals come after it */ \
        bool full = false; \
        while (i < last) { \
            i64 many = last - i < SCREEN ? last - i : SCREEN; \
            K key[SCREEN]; \
            keys_##s(in + i * inner, inner, many, flip, key); \
            if (full) { \
                K any = 0; \
                for (i64 j = 0; j < many; j++) any |= key[j] < bar; \
                if (!any) { i += many; continue; } \
            } \
            for (i64 j = 0; j < many; j++) \
                if (!full || key[j] < bar) e[count++] = W##_MAKE(key[j], i + j); \
            i += many; \
            if (count + SCREEN > k + most) { \
                select_##E(e, count, k); \
                count = k; \
                full = true; \
                bar = 0; \
                for (i64 j = 0; j < k; j++) bar = W##_KEY(e[j]) > bar ? W##_KEY(e[j]) : bar; \
            } \
        } \
        if (count > k) { \
            select_##E(e, count, k); \
            count = k; \
        } \
        return count; \
    }

/* q: outer, n, inner, k, largest.  The result is sorted; among equals the first come first. */
#define TOPK(D, s, T, W, E, K) \
    static i64 topk_##s(void *const *p, const i64 *q) { \
        T *values = p[0]; i64 *indices = p[2]; \
        i64 k = q[3], most = q[1] < 4 * SCREEN || k > q[1] / 8 ? q[1] + SCREEN : 2 * SCREEN + (k < 2 * SCREEN ? 4 * k : 8 * SCREEN); \
        K flip = q[4] ? (K)-1 : 0; \
        if (q[0] * q[2] == 1 && fb_threads > 1 && q[1] >= 1 << 18 && k <= q[1] / 64) { \
            const T *in = p[1]; \
            i64 n = q[1], parts = fb_threads, each = (n + parts - 1) / parts, total = 0; \
            if (n >= (i64)1 << 32) return 2; \
            E *e = fb_allocate((size_t)(parts * (k + most) * (i64)sizeof(E))); \
            i64 *found = malloc((size_t)parts * sizeof *found); \
            if (!e || !found) { fb_release(e); free(found); return 1; } \
            FB_PARALLEL_FOR(n) \
            for (i64 part = 0; part < parts; part++) \
                found[part] = least_##s(in, 1, part * each, n < (part + 1) * each ? n : (part + 1) * each, k, most, flip, \
                                        e + part * (k + most)); \
            for (i64 part = 0; part < parts; part++) { \
                memmove(e + total, e + part * (k + most), (size_t)found[part] * sizeof(E)); \
                total += found[part]; \
            } \
            select_##E(e, total, k); \
            const E *sorted = merge_##E(e, e + k, k); \
            for (i64 i = 0; i < k; i++) { values[i] = in[W##_AT(sorted[i])]; indices[i] = W##_AT(sorted[i]); } \
            fb_release(e); \
            free(found); \
            return 0; \
        } \
        FOR_LINES(T, E, 2 * q[1] < k + most ? k + most : k > q[1] / 8 ? 2 * q[1] : k + most, { \
            const E *sorted; \
            if (k > n / 8 && n > 4 * SCREEN) { \
                for (i64 i = 0; i < n; i++) e[i] = W##_MAKE((K)(key_##s(in[i * inner]) ^ flip), i); \
                sorted = sort_##E(e, e + n, n); \
            } else { \
                least_##s(in, inner, 0, n, k, most, flip, e); \
                sorted = merge_##E(e, e + k, k); \
            } \
            i64 start = line / inner * k * inner + line % inner; \
            for (i64 i = 0; i < k; i++) { \
                values[start + i * inner] = in[W##_AT(sorted[i]) * inner]; \
                indices[start + i * inner] = W##_AT(sorted[i]); \
            } \
        }) \
    }

/* q: outer, n, inner, k (from 1), mode 0: kthvalue, 1: median, where the first NaN wins, 2: median that ignores NaN.
 * For a median k is not used.
 * Only the elements that share the leading digit of the one sought are looked at closely. */
#define KTHVALUE(D, s, T, W, E, K) \
    static i64 kthvalue_##s(void *const *p, const i64 *q) { \
        T *values = p[0]; i64 *indices = p[2]; \
        enum { BITS = (int)sizeof(T) * 8, SHIFT = BITS > 11 ? BITS - 11 : 0, DIGITS = 1 << (BITS - SHIFT) }; \
        FOR_LINES(T, E, n, { \
            i64 at = -1, k = q[3], nans = 0, count = 0, below = 0; \
            i64 digit[2][DIGITS]; \
            K wanted = 0; \
            memset(digit, 0, sizeof digit); \
            K key[SCREEN]; \
            for (i64 i = 0; i < n; i += SCREEN) { \
                i64 many = n - i < SCREEN ? n - i : SCREEN, odd = 0; \
                keys_##s(in + i * inner, inner, many, 0, key); \
                for (i64 j = 0; j < many; j++) odd += nan_##s(key[j]); \
                for (i64 j = 0; j < many; j++) digit[j & 1][key[j] >> SHIFT]++; \
                for (i64 j = 0; odd && at < 0; j++) if (nan_##s(key[j])) at = i + j; \
                nans += odd; \
            } \
            for (int d = 0; d < DIGITS; d++) digit[0][d] += digit[1][d]; \
            if (q[4]) k = q[4] == 2 && nans < n ? (n - nans + 1) / 2 : (n + 1) / 2; \
            if (q[4] != 1 || !nans) { \
                while (below + digit[0][wanted] < k) below += digit[0][wanted++]; \
                for (i64 i = 0; i < n; i += SCREEN) { \
                    i64 many = n - i < SCREEN ? n - i : SCREEN; \
                    K any = 0; \
                    keys_##s(in + i * inner, inner, many, 0, key); \
                    for (i64 j = 0; j < many; j++) any |= key[j] >> SHIFT == wanted; \
                    for (i64 j = 0; any && j < many; j++) \
                        if (key[j] >> SHIFT == wanted) e[count++] = W##_MAKE(key[j], i + j); \
                } \
                k -= below; \
                select_##E(e, count, k); \
                E item = e[0]; \
                for (i64 i = 1; i < k; i++) item = W##_LESS(item, e[i]) ? e[i] : item; \
                at = W##_AT(item); \
            } \
            if (values) values[line] = in[at * inner]; \
            if (indices) indices[line] = at; \
        }) \
    }

/* q: outer, n, inner.  The least of the most frequent values, and the last place that holds it. */
#define MODE(D, s, T, W, E, K) \
    static i64 mode_##s(void *const *p, const i64 *q) { \
        T *values = p[0]; i64 *indices = p[2]; \
        FOR_LINES(T, E, 2 * n, { \
            for (i64 i = 0; i < n; i++) e[i] = W##_MAKE(key_##s(in[i * inner]), i); \
            const E *sorted = sort_##E(e, e + n, n); \
            i64 longest = 0; \
            i64 at = 0; \
            for (i64 i = 0; i < n;) { \
                i64 j = i + 1; \
                while (j < n && W##_KEY(sorted[j]) == W##_KEY(sorted[i]) && !nan_##s(W##_KEY(sorted[i]))) j++; \
                if (j - i > longest) { longest = j - i; at = W##_AT(sorted[j - 1]); } \
                i = j; \
            } \
            values[line] = in[at * inner]; \
            indices[line] = at; \
        }) \
    }

FB_ORDERED(SORT)
FB_ORDERED(KEYS)
FB_ORDERED(FEWEST)
FB_ORDERED(LEAST)
FB_ORDERED(TOPK)
FB_ORDERED(KTHVALUE)
FB_ORDERED(MODE)

FB_FAMILY(order) = {
#define X(D, s, T, W, E, K) \
    {"sort", D, sort_##s, {0}}, {"topk", D, topk_##s, {0}}, {"kthvalue", D, kthvalue_##s, {0}}, {"mode", D, mode_##s, {0}},
    FB_ORDERED(X)
#undef X
    FB_END};
