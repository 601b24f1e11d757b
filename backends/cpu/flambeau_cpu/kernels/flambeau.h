/* What every kernel file of the CPU plug-in shares: types, the two kernel
 * signatures, and the registry that Python looks kernels up in.
 *
 * Each family file is compiled once per instruction set (see build.py), so a
 * kernel is plain C that the compiler vectorises; nothing here is intrinsic.
 */
#ifndef FLAMBEAU_H
#define FLAMBEAU_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

typedef int64_t i64;

/* Storage types.  The order is the code that Python passes to fb_find. */
enum {
    FB_BOOL, FB_U8, FB_I8, FB_I16, FB_I32, FB_I64,
    FB_F16, FB_BF16, FB_F32, FB_F64, FB_C64, FB_C128, FB_DTYPES
};

/* Pointwise inner loop: n elements; p[0] is the output, p[1...] the inputs;
 * step[k] is the distance in bytes from one element of p[k] to the next: its
 * element size, or 0 for an operand that is repeated.  The driver walks the outer
 * dimensions and the threads, and copies whatever else is strided through buffers.
 * An operand of size 0 in the table is a block of parameters, passed as it is. */
typedef void (*fb_loop)(i64 n, char *const *p, const i64 *step);

/* Everything else: pointers and integer parameters whose meaning is the
 * kernel's own.  Returns 0, or a code that the launcher turns into an error. */
typedef i64 (*fb_routine)(void *const *p, const i64 *q);

typedef struct {
    const char *name;
    int dtype;              /* FB_F32, ...: the key under which it is found */
    void *function;         /* fb_loop or fb_routine */
    unsigned char size[6];  /* loops: element size of p[0], p[1], ... in bytes */
} fb_kernel;

/* A family file ends with one table:  FB_FAMILY(reduction) = { ..., FB_END }; */
#define FB_PASTE2(a, b, c) fb_##a##_##b##c
#define FB_PASTE(a, b, c) FB_PASTE2(a, b, c)
#define FB_FAMILY(family) const fb_kernel FB_PASTE(family, FB_ISA, )[]
#define FB_END {NULL, 0, NULL, {0}}

/* Work below this many elements runs on the calling thread. */
#define FB_GRAIN 32768

/* Threads that fb_parallel regions may use; 1 in a forked child. */
extern int fb_threads;

/* OpenBLAS's sgemm and dgemm, as Fortran calls them, or NULL until they are wanted. */
typedef void (*fb_blas_gemm)(const char *ta, const char *tb, const int *m, const int *n, const int *k, const void *alpha,
                             const void *a, const int *lda, const void *b, const int *ldb, const void *beta, void *c,
                             const int *ldc);
extern fb_blas_gemm fb_blas[2];
/* OpenBLAS ends the process if a thread cannot have its buffer (32 MiB), so ask before: false if memory is that short. */
bool fb_room_for_blas(void);

#define FB_PRAGMA(text) _Pragma(#text)
/* Parallel loop over `work` units of which each costs about `cost` elements:
 *     FB_PARALLEL_FOR(rows * columns) for (i64 r = 0; r < rows; r++) ...        */
#define FB_PARALLEL_FOR(elements) \
    FB_PRAGMA(omp parallel for schedule(static) num_threads(fb_threads) if (fb_threads > 1 && (elements) >= FB_GRAIN))

/* Doubles travel in integer parameters by their bits. */
static inline double fb_double(i64 bits) { double value; memcpy(&value, &bits, sizeof value); return value; }

#endif
