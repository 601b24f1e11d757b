/* What a mask of bytes chooses: masked_fill, masked_select, masked_scatter, nonzero.
 *
 * Choosing is done in two passes over chunks: count what each chunk holds, sum the
 * counts up, then let every chunk write at its own place, on any thread.  Within a
 * chunk eight mask bytes become a number that looks their positions up, which costs
 * the same whatever the mask looks like.
 * FB_SETS: baseline avx2
 *
 * FB_SETS: baseline avx2 */
#include "flambeau.h"
#include "share.h"

enum { CHUNK = 4096, DIMS = 64 };

/* places[b] lists the positions of the bits set in b. */
static uint8_t places[256][8];
__attribute__((constructor)) static void list_places(void) {
    for (int b = 0; b < 256; b++)
        for (int bit = 0, n = 0; bit < 8; bit++)
            if (b >> bit & 1) places[b][n++] = (uint8_t)bit;
}

/* Eight bytes, each 0 or not, as the bits of a number. */
static inline unsigned pack(const uint8_t *mask) {
    uint64_t m;
    memcpy(&m, mask, 8);
    m = ((m & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full) | m;
    return (unsigned)((m >> 7 & 0x0101010101010101ull) * 0x0102040810204080ull >> 56);
}

/* Positions below n (at most CHUNK) at which mask is not 0; list has room for 8 more. */
static i64 positions(i64 n, const uint8_t *mask, int32_t *restrict list) {
    i64 count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        unsigned bits = pack(mask + i);
        const uint8_t *restrict place = places[bits];
        for (int k = 0; k < 8; k++) list[count + k] = (int32_t)i + place[k];
        count += __builtin_popcount(bits);
    }
    for (; i < n; i++) {
        list[count] = (int32_t)i;
        count += mask[i] != 0;
    }
    return count;
}

static i64 count_mask(i64 n, const uint8_t *mask) {
    i64 total = 0;
    for (i64 i = 0; i < n;) {
        i64 end = n - i < 255 * 16 ? n : i + 255 * 16;
        int32_t sum = 0;
        for (; i < end; i++) sum += mask[i] != 0;
        total += sum;
    }
    return total;
}

static inline i64 chunks(i64 n) { return (n + CHUNK - 1) / CHUNK; }
static inline i64 chunk_size(i64 n, i64 c) { return n - c * CHUNK < CHUNK ? n - c * CHUNK : CHUNK; }

/* before[c] becomes the number chosen in chunks before c; returns the total. */
static i64 accumulate(i64 n, i64 *before) {
    i64 total = 0;
    for (i64 c = 0; c < n; c++) {
        i64 here = before[c];
        before[c] = total;
        total += here;
    }
    return total;
}

/* p: mask, before[chunks];  q: n.  Returns the number of elements chosen. */
static i64 mask_count(void *const *p, const i64 *q) {
    const uint8_t *mask = p[0];
    i64 *before = p[1], n = q[0];
    FB_SHARE(n, for (i64 c = 0; c < chunks(n); c++) before[c] = count_mask(chunk_size(n, c), mask + c * CHUNK);)
    return accumulate(chunks(n), before);
}

/* masked_select p: out, x, mask, before;  q: n.
 * masked_scatter p: out, source, mask, before;  q: n.  The source is long enough.
 * masked_fill is a loop: out, x, mask, value. */
#define MASKED(T, name) \
    static i64 select_##name(void *const *p, const i64 *q) { \
        T *out = p[0]; \
        const T *x = p[1]; \
        const uint8_t *mask = p[2]; \
        const i64 *before = p[3]; \
        i64 n = q[0]; \
        FB_SHARE(n, for (i64 c = 0; c < chunks(n); c++) { \
            int32_t list[CHUNK + 8]; \
            i64 count = positions(chunk_size(n, c), mask + c * CHUNK, list); \
            T *restrict o = out + before[c]; \
            const T *restrict from = x + c * CHUNK; \
            i64 k = 0; \
            for (; k + 4 <= count; k += 4) { /* four at a time, so that no vectors are assembled */ \
                o[k] = from[list[k]]; \
                o[k + 1] = from[list[k + 1]]; \
                o[k + 2] = from[list[k + 2]]; \
                o[k + 3] = from[list[k + 3]]; \
            } \
            for (; k < count; k++) o[k] = from[list[k]]; \
        }) \
        return 0; \
    } \
    static i64 scatter_##name(void *const *p, const i64 *q) { \
        T *out = p[0]; \
        const T *source = p[1]; \
        const uint8_t *mask = p[2]; \
        const i64 *before = p[3]; \
        i64 n = q[0]; \
        FB_SHARE(n, for (i64 c = 0; c < chunks(n); c++) { \
            int32_t list[CHUNK + 8]; \
            i64 count = positions(chunk_size(n, c), mask + c * CHUNK, list); \
            T *restrict o = out + c * CHUNK; \
            const T *restrict from = source + before[c]; \
            for (i64 k = 0; k < count; k++) o[list[k]] = from[k]; \
        }) \
        return 0; \
    } \
    static void fill_##name(i64 n, char *const *p, const i64 *s) { \
        if (s[0] == sizeof(T) && s[1] == sizeof(T) && s[2] == 1 && s[3] == 0) { \
            T *o = (T *)p[0], value = *(const T *)p[3]; \
            const T *x = (const T *)p[1]; \
            const uint8_t *m = (const uint8_t *)p[2]; \
            FB_PRAGMA(GCC ivdep) /* o and x may be the same, never half overlap */ \
            for (i64 i = 0; i < n; i++) o[i] = m[i] ? value : x[i]; \
        } else for (i64 i = 0; i < n; i++) { \
            const T *from = (const T *)(p[2][i * s[2]] ? p[3] + i * s[3] : p[1] + i * s[1]); \
            *(T *)(p[0] + i * s[0]) = *from; \
        } \
    }

typedef struct { uint64_t half[2]; } word16;
MASKED(uint8_t, 1)
MASKED(uint16_t, 2)
MASKED(uint32_t, 4)
MASKED(uint64_t, 8)
MASKED(word16, 16)

/* ---------------------------------------------------------------- nonzero */

typedef void (*masker)(i64 n, const void *x, i64 first, uint8_t *restrict mask);

static i64 nonzero_count(void *const *p, const i64 *q, masker set) {
    i64 *before = p[1], n = q[0];
    FB_SHARE(n, for (i64 c = 0; c < chunks(n); c++) {
        uint8_t mask[CHUNK];
        set(chunk_size(n, c), p[0], c * CHUNK, mask);
        before[c] = count_mask(chunk_size(n, c), mask);
    })
    return accumulate(chunks(n), before);
}

/* Flat positions, ascending, as coordinates one after another. */
static void coordinates(i64 count, const int32_t *list, i64 first, int dims, const i64 *size, i64 *out) {
    i64 at[DIMS], rest = first, inner = size[dims - 1];
    for (int d = dims - 1; d >= 0; d--) {
        at[d] = rest % size[d];
        rest /= size[d];
    }
    i64 row = first - at[dims - 1]; /* the flat position at which the current row begins */
    for (i64 k = 0; k < count; k++) {
        i64 flat = first + list[k];
        if (flat - row >= inner) {
            i64 rows = (flat - row) / inner;
            row += rows * inner;
            for (int d = dims - 2; rows; d--) {
                rows += at[d];
                at[d] = rows % size[d];
                rows /= size[d];
            }
        }
        at[dims - 1] = flat - row;
        for (int d = 0; d < dims; d++) out[k * dims + d] = at[d];
    }
}

/* p: out, x, before;  q: n, dims, size[dims].  out is (count, dims). */
static i64 nonzero_write(void *const *p, const i64 *q, masker set) {
    i64 *out = p[0], n = q[0];
    const i64 *before = p[2], *size = q + 2;
    int dims = (int)q[1];
    FB_SHARE(n, for (i64 c = 0; c < chunks(n); c++) {
        uint8_t mask[CHUNK];
        int32_t list[CHUNK + 8];
        set(chunk_size(n, c), p[1], c * CHUNK, mask);
        i64 count = positions(chunk_size(n, c), mask, list);
        i64 *restrict o = out + before[c] * dims;
        if (dims == 1) for (i64 k = 0; k < count; k++) o[k] = c * CHUNK + list[k];
        else if (dims > 1) coordinates(count, list, c * CHUNK, dims, size, o);
    })
    return 0;
}

#define NONZERO(D, T, parts, test) \
    static void mask_##D(i64 n, const void *x, i64 first, uint8_t *restrict mask) { \
        const T *v = (const T *)x + parts * first; \
        for (i64 i = 0; i < n; i++) mask[i] = test; \
    } \
    static i64 nonzero_count_##D(void *const *p, const i64 *q) { return nonzero_count(p, q, mask_##D); } \
    static i64 nonzero_write_##D(void *const *p, const i64 *q) { return nonzero_write(p, q, mask_##D); }

#define PLAIN(X) X(U8, uint8_t, 1, v[i] != 0) X(U16, uint16_t, 1, v[i] != 0) X(U32, uint32_t, 1, v[i] != 0) X(U64, uint64_t, 1, v[i] != 0)
PLAIN(NONZERO)
NONZERO(HALF, uint16_t, 1, (v[i] & 0x7fff) != 0)
NONZERO(F32, float, 1, v[i] != 0)
NONZERO(F64, double, 1, v[i] != 0)
NONZERO(C64, float, 2, (v[2 * i] != 0) | (v[2 * i + 1] != 0))
NONZERO(C128, double, 2, (v[2 * i] != 0) | (v[2 * i + 1] != 0))

#define ENTRIES(D, bytes, kind) \
    {"masked_select", FB_##D, select_##bytes, {bytes}}, {"masked_scatter", FB_##D, scatter_##bytes, {bytes}}, \
    {"masked_fill", FB_##D, fill_##bytes, {bytes, bytes, 1, bytes}}, \
    {"nonzero_count", FB_##D, nonzero_count_##kind, {bytes}}, {"nonzero_write", FB_##D, nonzero_write_##kind, {bytes}},

FB_FAMILY(masking) = {
    {"mask_count", FB_BOOL, mask_count, {1}},
    ENTRIES(BOOL, 1, U8) ENTRIES(U8, 1, U8) ENTRIES(I8, 1, U8) ENTRIES(I16, 2, U16) ENTRIES(I32, 4, U32)
    ENTRIES(I64, 8, U64) ENTRIES(F16, 2, HALF) ENTRIES(BF16, 2, HALF) ENTRIES(F32, 4, F32) ENTRIES(F64, 8, F64)
    ENTRIES(C64, 8, C64) ENTRIES(C128, 16, C128)
    FB_END};
