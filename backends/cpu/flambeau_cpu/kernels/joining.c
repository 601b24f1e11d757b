/* Rows put together or cut to a triangle: cat, tril, triu.
 * FB_SETS: baseline avx2 */
#include "share.h"

/* Every thread writes runs of one output row; short runs of one element are plain stores. */
static void copy_run(char *restrict o, const char *restrict x, i64 bytes) {
    if (bytes == 4) memcpy(o, x, 4);
    else if (bytes == 8) memcpy(o, x, 8);
    else memcpy(o, x, (size_t)bytes);
}

/* p: out, inputs, all dense;  q: inputs, rows, bytes in a row of the output, then bytes in a row of each input. */
static i64 cat(void *const *p, const i64 *q) {
    i64 inputs = q[0], rows = q[1], row = q[2];
    const i64 *part = q + 3;
    char *out = p[0];
    if (rows >= fb_threads || fb_threads == 1) {
        FB_SHARE(rows * row / 4, for (int t = 0; t < fb_threads; t++) {
            i64 first = rows * t / fb_threads, last = rows * (t + 1) / fb_threads, at = 0;
            if (last - first == 1) {
                for (i64 k = 0; k < inputs; at += part[k++])
                    copy_run(out + first * row + at, (const char *)p[1 + k] + first * part[k], part[k]);
            } else for (i64 k = 0; k < inputs; at += part[k++]) {
                const char *x = (const char *)p[1 + k];
                for (i64 r = first; r < last; r++) copy_run(out + r * row + at, x + r * part[k], part[k]);
            }
        })
        return 0;
    }
    for (i64 r = 0; r < rows; r++) {
        i64 at = 0;
        for (i64 k = 0; k < inputs; at += part[k++]) {
            char *o = out + r * row + at;
            const char *x = (const char *)p[1 + k] + r * part[k];
            i64 bytes = part[k];
            FB_SHARE(bytes / 4, for (int t = 0; t < fb_threads; t++) {
                i64 first = (bytes * t / fb_threads) & ~(i64)63, last = (bytes * (t + 1) / fb_threads) & ~(i64)63;
                if (t == fb_threads - 1) last = bytes;
                memcpy(o + first, x + first, (size_t)(last - first));
            })
        }
    }
    return 0;
}

/* p: out, x, dense;  q: matrices, rows, columns, diagonal, element size, 1 to keep what lies above it, else below. */
static i64 triangle(void *const *p, const i64 *q) {
    i64 matrices = q[0], rows = q[1], columns = q[2], diagonal = q[3], size = q[4];
    bool upper = q[5];
    char *out = p[0];
    const char *x = p[1];
    FB_SHARE(matrices * rows * columns, for (i64 r = 0; r < matrices * rows; r++) {
        i64 edge = r % rows + diagonal + !upper; /* first column above; or one past the last column below */
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        char *o = out + r * columns * size;
        const char *from = x + r * columns * size;
        size_t left = (size_t)(edge * size), right = (size_t)((columns - edge) * size);
        if (upper) {
            memset(o, 0, left);
            memcpy(o + left, from + left, right);
        } else {
            memcpy(o, from, left);
            memset(o + left, 0, right);
        }
    })
    return 0;
}

/* Bytes are bytes: found under one dtype for all. */
FB_FAMILY(joining) = {{"cat", FB_U8, cat, {1}}, {"triangle", FB_U8, triangle, {1}}, FB_END};
