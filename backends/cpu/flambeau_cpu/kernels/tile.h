/* The register tile that matrix products and convolutions share, and what goes with it.
 *
 * A template: define T (the element) and N(name) (its suffix) before each inclusion.
 * A tile is a few rows by one or two vectors of a product, held in registers.  The
 * vector type is the compiler's; which instructions it becomes depends on the set the file is compiled for. */

#ifndef FB_TILE_COMMON
#define FB_TILE_COMMON

#if defined(__AVX512F__)
#define FB_VECTOR 64
#elif defined(__AVX__)
#define FB_VECTOR 32
#else
#define FB_VECTOR 16
#endif

#define FB_INLINE static inline __attribute__((always_inline))
#define FB_LANES (FB_VECTOR / (i64)sizeof(T))

enum {
    FB_ROWS = 6,            /* rows of a tile: 12 accumulators, what 16 registers hold */
    FB_DEPTH = 256,         /* k in a block: 16 KiB of B stay in the first cache */
    FB_BLOCK_ROWS = 96,     /* rows of A in a block: it stays in the second cache */
    FB_PANEL = 2048,        /* columns of B copied at a time */
    FB_STACK = 32 << 10,    /* scratch up to this many bytes needs no allocation */
    FB_THREAD_WORK = 1 << 19 /* multiply-adds that pay for waking threads */
};

#ifndef _OPENMP
static inline int omp_get_thread_num(void) { return 0; }
#endif

static inline i64 fb_least(i64 a, i64 b) { return a < b ? a : b; }
static inline i64 fb_most(i64 a, i64 b) { return a > b ? a : b; }
static inline i64 fb_ceil(i64 a, i64 b) { return (a + b - 1) / b; }

/* Cuts n into equal parts of at most `most`; part i begins at fb_cut(n, parts, i). */
static inline i64 fb_cut(i64 n, i64 parts, i64 i) { return n * i / parts; }
#endif

#define LANES FB_LANES
#define WIDTH (2 * FB_LANES)

typedef T N(vec) __attribute__((vector_size(FB_VECTOR)));
typedef T N(loose) __attribute__((vector_size(FB_VECTOR), aligned(sizeof(T)), may_alias));

/* ------------------------------------------------------------------ tile */

/* sum[r][lane] = sum over p < k of a[r * ars + p * acs] * b[p * ldb + lane].  With a table of offsets it is
 * b[off[p] + lane], and ldb is the distance from one vector of lanes to the next.  The sums are stored to `to`,
 * whose rows lie `ts` apart, or added to what is there. */
FB_INLINE void N(tile)(const int rows, const int vectors, i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 ldb,
                       const i64 *off, T *to, i64 ts, bool add) {
    N(vec) sum[FB_ROWS][2];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) sum[r][v] = (N(vec)){0};
    for (i64 p = 0; p < k; p++) {
        const T *at = b + (off ? off[p] : p * ldb);
        N(vec) x[2];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) x[v] = *(const N(loose) *)(at + v * (off ? ldb : LANES));
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            N(vec) factor = a[r * ars + p * acs] - (N(vec)){0}; /* the scalar in every lane */
#pragma GCC unroll 2
            for (int v = 0; v < vectors; v++) sum[r][v] += factor * x[v];
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            N(loose) *at = (N(loose) *)(to + r * ts + v * LANES);
            if (add) sum[r][v] += *at;
            *at = sum[r][v];
        }
}

typedef void (*N(tile_function))(i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 ldb, const i64 *off, T *to, i64 ts, bool add);

#define FB_TILE(rows, vectors) \
    static void N(tile_##rows##vectors)(i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 ldb, const i64 *off, T *to, i64 ts, bool add) { \
        (void)off; N(tile)(rows, vectors, k, a, ars, acs, b, ldb, NULL, to, ts, add); }
#define FB_TILES(rows) FB_TILE(rows, 1) FB_TILE(rows, 2)
FB_TILES(1) FB_TILES(2) FB_TILES(3) FB_TILES(4) FB_TILES(5) FB_TILES(6)

static const N(tile_function) N(tiles)[2][FB_ROWS + 1] = {
    {NULL, N(tile_11), N(tile_21), N(tile_31), N(tile_41), N(tile_51), N(tile_61)},
    {NULL, N(tile_12), N(tile_22), N(tile_32), N(tile_42), N(tile_52), N(tile_62)}};

#undef FB_TILE
#undef FB_TILES
