/* Matrix products of one element type, for any strides.
 *
 * A template: define T (the element) and N(name) (its suffix) and include tile.h before each
 * inclusion.  From the inside out:
 *   product   the blocked loops around it: panels of B are copied once into
 *             the order in which the tile reads them;
 *   vector    a matrix times a vector, which is bound by memory;
 *   blas      OpenBLAS, for floating-point matrices that are large in every direction;
 *   gemm      picks among these and their transposes, and splits the result among threads.
 *
 * The blocks of k depend on k alone, so that the number of threads does not change a value. */

/* ---------------------------------------------------------------- storing */

/* Where a product goes: c = alpha * product + beta * bias, bias with strides of its own (0: repeated). */
typedef struct {
    T *c;
    i64 crs, ccs;
    const T *bias; /* NULL: none */
    i64 brs, bcs;
    T alpha, beta;
} N(target);

/* Store one tile.  While k is worked on in blocks, c holds the running sum. */
static inline void N(store)(const N(target) *t, i64 row, i64 column, i64 rows, i64 columns, const T *acc, bool first,
                            bool last) {
    T *c = t->c + row * t->crs + column * t->ccs, alpha = last ? t->alpha : 1, beta = t->beta;
    const T *bias = last && t->bias ? t->bias + row * t->brs + column * t->bcs : NULL;
    i64 crs = t->crs, ccs = t->ccs, brs = bias ? t->brs : 0, bcs = t->bcs;
    i64 vectors = ccs == 1 && (!bias || bcs <= 1) ? columns / LANES * LANES : 0;
    for (i64 r = 0; r < rows; r++, c += crs, acc += WIDTH, bias += brs) {
        for (i64 j = 0; j < vectors; j += LANES) {
            N(vec) sum = *(const N(loose) *)(acc + j);
            if (!first) sum += *(const N(loose) *)(c + j);
            sum *= alpha;
            if (bias && bcs) sum += beta * *(const N(loose) *)(bias + j);
            else if (bias) sum += beta * bias[0];
            *(N(loose) *)(c + j) = sum;
        }
        if (vectors == columns) continue;
        T sum[WIDTH]; /* the rest in steps that the compiler can vectorise, whatever the strides */
        for (i64 j = vectors; j < columns; j++) sum[j] = first ? acc[j] : c[j * ccs] + acc[j];
        if (alpha != 1) for (i64 j = vectors; j < columns; j++) sum[j] *= alpha;
        if (bias) for (i64 j = vectors; j < columns; j++) sum[j] += beta * bias[j * bcs];
        for (i64 j = vectors; j < columns; j++) c[j * ccs] = sum[j];
    }
}

/* Put beta * bias where a tile will be added to it. */
static inline void N(seed)(const N(target) *t, i64 row, i64 column, i64 rows, i64 columns) {
    T *c = t->c + row * t->crs + column;
    const T *bias = t->bias + row * t->brs + column * t->bcs;
    T beta = t->beta;
    for (i64 r = 0; r < rows; r++, c += t->crs, bias += t->brs)
        for (i64 j = 0; j < columns; j += LANES) {
            N(vec) value = bias[0] - (N(vec)){0};
            if (t->bcs) value = *(const N(loose) *)(bias + j);
            *(N(loose) *)(c + j) = beta * value;
        }
}

/* --------------------------------------------------------------- blocked */

/* Copy k x n of B into strips of WIDTH columns, the last one filled up with zeros. */
static void N(pack_b)(i64 k, i64 n, const T *b, i64 brs, i64 bcs, T *to) {
    for (i64 j = 0; j < n; j += WIDTH, b += WIDTH * bcs, to += k * WIDTH) {
        i64 columns = fb_least(WIDTH, n - j);
        if (columns < WIDTH) {
            memset(to, 0, (size_t)(k * WIDTH) * sizeof(T));
            if (brs < bcs) {
                for (i64 c = 0; c < columns; c++)
                    for (i64 p = 0; p < k; p++) to[p * WIDTH + c] = b[p * brs + c * bcs];
            } else for (i64 p = 0; p < k; p++)
                for (i64 c = 0; c < columns; c++) to[p * WIDTH + c] = b[p * brs + c * bcs];
        } else if (bcs == 1) {
            for (i64 p = 0; p < k; p++) memcpy(to + p * WIDTH, b + p * brs, WIDTH * sizeof(T));
        } else {
            for (i64 p = 0; p < k; p++)
                for (i64 c = 0; c < WIDTH; c++) to[p * WIDTH + c] = b[p * brs + c * bcs];
        }
    }
}

/* Rows [0, m) of A times strips of B with row distance ldb and strip distance bss. */
static void N(strips)(i64 m, i64 n, i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 ldb, i64 bss,
                      const N(target) *t, i64 row0, i64 column0, bool first, bool last) {
    T acc[FB_ROWS * WIDTH] __attribute__((aligned(64)));
    i64 count = fb_ceil(m, FB_ROWS);
    bool seeded = t->bias && t->alpha == 1 && t->bcs <= 1, plain = t->ccs == 1 && (t->bias ? seeded : !last || t->alpha == 1);
    for (i64 j = 0; j < n; j += WIDTH, b += bss) {
        i64 columns = fb_least(WIDTH, n - j);
        const N(tile_function) *tiles = N(tiles)[columns > LANES];
        bool whole = plain && (columns == WIDTH || columns == LANES); /* the tile itself stores */
        for (i64 s = 0; s < count; s++) {
            i64 row = fb_cut(m, count, s), rows = fb_cut(m, count, s + 1) - row;
            T *c = t->c + (row0 + row) * t->crs + (column0 + j) * t->ccs;
            for (i64 r = 0; r < rows; r++) __builtin_prefetch(c + r * t->crs, 1); /* arrives while the tile is summed */
            bool add = whole && (seeded || !first);
            if (whole && seeded && first) N(seed)(t, row0 + row, column0 + j, rows, columns);
            T *to = whole ? c : acc;
            i64 ts = whole ? t->crs : WIDTH;
            tiles[rows](k, a + row * ars, ars, acs, b, ldb, NULL, to, ts, add);
            if (!whole) N(store)(t, row0 + row, column0 + j, rows, columns, acc, first, last);
        }
    }
}

/* Whether `count` rows, `stride` elements apart, fit the first cache side by side: rows that are many lines apart share few
 * of its sets (64 sets of 8 lines). */
static inline bool N(spread)(i64 count, i64 stride) {
    i64 bytes = stride * (i64)sizeof(T), lines = bytes / 64, step = bytes % 64 ? 1 : fb_least(64, lines & -lines);
    return count * step <= 256;
}

/* B is read where it is if its rows are vectors that the cache can hold together. */
static inline bool N(direct)(i64 n, i64 k, i64 brs, i64 bcs) {
    return bcs == 1 && n % LANES == 0 && brs >= n && brs <= 512 && N(spread)(fb_least(k, FB_DEPTH), brs);
}

static size_t N(scratch)(i64 n, i64 k, i64 brs, i64 bcs) {
    return N(direct)(n, k, brs, bcs) ? 0 : (size_t)(fb_least(k, FB_DEPTH) * fb_ceil(fb_least(n, FB_PANEL), WIDTH) * WIDTH) * sizeof(T);
}

static void N(product)(i64 m, i64 n, i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 brs, i64 bcs,
                       const N(target) *t, T *scratch) {
    i64 blocks = fb_most(1, fb_ceil(k, FB_DEPTH));
    bool direct = N(direct)(n, k, brs, bcs);
    for (i64 j = 0; j < n; j += FB_PANEL) {
        i64 columns = fb_least(FB_PANEL, n - j);
        for (i64 block = 0; block < blocks; block++) {
            i64 p = fb_cut(k, blocks, block), depth = fb_cut(k, blocks, block + 1) - p;
            const T *panel = b + p * brs + j * bcs;
            if (!direct) N(pack_b)(depth, columns, panel, brs, bcs, scratch);
            for (i64 i = 0; i < m; i += FB_BLOCK_ROWS)
                N(strips)(fb_least(FB_BLOCK_ROWS, m - i), columns, depth, a + i * ars + p * acs, ars, acs, direct ? panel : scratch,
                          direct ? brs : WIDTH, direct ? WIDTH : depth * WIDTH, t, i, j, block == 0, block == blocks - 1);
        }
    }
}

/* ---------------------------------------------------------------- vector */

/* sums[r] = row r of a times x, in `chains` independent sums. */
FB_INLINE void N(dots)(const int rows, const int chains, i64 k, const T *a, i64 ars, const T *x, T *sums) {
    N(vec) sum[4][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < chains; c++) sum[r][c] = (N(vec)){0};
    i64 p = 0;
    for (; p + chains * LANES <= k; p += chains * LANES)
#pragma GCC unroll 4
        for (int c = 0; c < chains; c++) {
            N(vec) factor = *(const N(loose) *)(x + p + c * LANES);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) sum[r][c] += factor * *(const N(loose) *)(a + r * ars + p + c * LANES);
        }
    for (int r = 0; r < rows; r++) {
        N(vec) all = sum[r][0];
        for (int c = 1; c < chains; c++) all += sum[r][c];
        T lanes[LANES], total = 0;
        memcpy(lanes, &all, sizeof all);
        for (i64 half = LANES / 2; half; half /= 2)
            for (i64 lane = 0; lane < half; lane++) lanes[lane] += lanes[lane + half];
        for (i64 rest = p; rest < k; rest++) total += a[r * ars + rest] * x[rest];
        sums[r] = lanes[0] + total;
    }
}

/* One dot product, summed in blocks that are then added in pairs. */
static T N(dot)(i64 n, const T *x, const T *y) {
    enum { BLOCK = 4096 };
    T sum;
    if (n <= BLOCK) {
        N(dots)(1, 4, n, x, 0, y, &sum);
        return sum;
    }
    i64 half = (n / BLOCK + 1) / 2 * BLOCK;
    return N(dot)(half, x, y) + N(dot)(n - half, x + half, y + half);
}

/* t = a (m x k) times x (contiguous).  Rows of a are contiguous (dots) or its columns are (sums of columns). */
static void N(vector)(i64 m, i64 k, const T *a, i64 ars, i64 acs, const T *x, const N(target) *t) {
    if (acs == 1 || k == 1) {
        T sums[4 * WIDTH];
        for (i64 i = 0; i < m; i += 4) {
            i64 rows = fb_least(4, m - i);
            const T *row = a + i * ars;
            if (k > 4096) for (i64 r = 0; r < rows; r++) sums[r * WIDTH] = N(dot)(k, row + r * ars, x);
            else {
                T four[4];
                if (rows == 4) N(dots)(4, 2, k, row, ars, x, four);
                else for (i64 r = 0; r < rows; r++) N(dots)(1, 4, k, row + r * ars, ars, x, four + r);
                for (i64 r = 0; r < rows; r++) sums[r * WIDTH] = four[r];
            }
            N(store)(t, i, 0, rows, 1, sums, true, true);
        }
        return;
    }
    enum { CHUNK = 1024 };
    T sum[CHUNK];
    for (i64 i = 0; i < m; i += CHUNK) {
        i64 rows = fb_least(CHUNK, m - i), p = 0;
        const T *from = a + i * ars;
        memset(sum, 0, (size_t)rows * sizeof(T));
        for (; ars == 1 && p + 4 <= k; p += 4) {
            const T *c0 = from + p * acs, *c1 = c0 + acs, *c2 = c1 + acs, *c3 = c2 + acs;
            T x0 = x[p], x1 = x[p + 1], x2 = x[p + 2], x3 = x[p + 3];
            for (i64 r = 0; r < rows; r++) sum[r] += x0 * c0[r] + x1 * c1[r] + (x2 * c2[r] + x3 * c3[r]);
        }
        for (; p < k; p++)
            for (i64 r = 0; r < rows; r++) sum[r] += x[p] * from[r * ars + p * acs];
        N(target) column = *t; /* store a column as a row, which is what store() is quick at */
        column.c += i * t->crs;
        column.ccs = t->crs;
        if (t->bias) column.bias += i * t->brs;
        column.bcs = t->brs;
        for (i64 r = 0; r < rows; r += WIDTH) N(store)(&column, 0, r, 1, fb_least(WIDTH, rows - r), sum + r, true, true);
    }
}

/* ------------------------------------------------------------------ blas */

/* Whether a product is large enough for OpenBLAS, which always copies.  The whole product decides, not a thread's part
 * of it, so that results do not depend on the number of threads. */
static bool N(is_large)(i64 m, i64 n, i64 k) { return fb_least(m, fb_least(n, k)) >= 128; }

/* Let OpenBLAS compute t, on this thread.  Returns false if it does not take such operands. */
static bool N(blas)(i64 m, i64 n, i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 brs, i64 bcs, N(target) t) {
    fb_blas_gemm gemm = (T)0.5 == 0 ? NULL : fb_blas[sizeof(T) == sizeof(double)];
    if (!gemm) return false;
    if (t.ccs != 1) return t.crs == 1 && N(blas)(n, m, k, b, bcs, brs, a, acs, ars, (N(target)){t.c, t.ccs, t.crs, t.bias, t.bcs, t.brs, t.alpha, t.beta});
    bool a_turned = acs != 1, b_turned = bcs != 1;
    i64 lda = a_turned ? acs : ars, ldb = b_turned ? bcs : brs;
    if ((a_turned && ars != 1) || (b_turned && brs != 1) || lda < (a_turned ? m : k) || ldb < (b_turned ? k : n) || t.crs < n ||
        fb_most(fb_most(m, fb_most(n, k)), fb_most(lda, fb_most(ldb, t.crs))) > INT32_MAX) return false;
    for (i64 r = 0; t.bias && r < m; r++)
        for (i64 c = 0; c < n; c++) t.c[r * t.crs + c] = t.beta * t.bias[r * t.brs + c * t.bcs];
    /* Fortran's matrices have their columns in a row: it computes the transposed product. */
    int rows = (int)m, columns = (int)n, depth = (int)k, step_a = (int)lda, step_b = (int)ldb, step_c = (int)t.crs;
    T add = t.bias ? 1 : 0;
    gemm(b_turned ? "T" : "N", a_turned ? "T" : "N", &columns, &rows, &depth, &t.alpha, b, &step_b, a, &step_a, &add, t.c, &step_c);
    return true;
}

/* ------------------------------------------------------------------ gemm */

/* What copying costs, in multiply-adds of a tile, if columns of the result are lanes. */
static double N(cost)(i64 m, i64 n, i64 k, i64 brs, i64 bcs, i64 ccs) {
    double padded = (double)(fb_ceil(n, LANES) * LANES) * (double)m * (double)k;
    double copy_b = N(direct)(n, k, brs, bcs) ? 0 : (double)(n * k) * (bcs == 1 ? 4 : 20);
    return padded + copy_b + (ccs == 1 ? 0 : (double)(m * n) * 20 * (double)fb_ceil(k, FB_DEPTH)); /* each block of k adds to c */
}

/* Matrix times vector on this thread; x has stride xs.  Returns false without memory. */
static bool N(gemv)(i64 m, i64 k, const T *a, i64 ars, i64 acs, const T *x, i64 xs, const N(target) *t) {
    T *copy = NULL;
    if (xs != 1 && k > 1) {
        copy = fb_allocate((size_t)k * sizeof(T));
        if (!copy) return false;
        for (i64 p = 0; p < k; p++) copy[p] = x[p * xs];
        x = copy;
    }
    N(vector)(m, k, a, ars, acs, x, t);
    if (copy) fb_release(copy);
    return true;
}

/* Matrix times matrix on this thread. */
static bool N(gemm_one)(i64 m, i64 n, i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 brs, i64 bcs,
                        const N(target) *t, bool large) {
    if (large && N(blas)(m, n, k, a, ars, acs, b, brs, bcs, *t)) return true;
    char stack[FB_STACK] __attribute__((aligned(64)));
    size_t bytes = N(scratch)(n, k, brs, bcs);
    T *scratch = bytes <= FB_STACK ? (T *)stack : fb_allocate(bytes);
    if (!scratch) return false;
    N(product)(m, n, k, a, ars, acs, b, brs, bcs, t, scratch);
    if (bytes > FB_STACK) fb_release(scratch);
    return true;
}

/* t = alpha * a (m x k) * b (k x n) + beta * bias, the result split among at most `threads` along its longer side.
 * Strides are those of rows and columns.  Returns false without memory. */
static bool N(gemm)(i64 m, i64 n, i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 brs, i64 bcs, N(target) t,
                    i64 threads) {
    if (!m || !n) return true;
    bool vector = m == 1 || n == 1;
    if (vector ? n != 1 : N(cost)(n, m, k, acs, ars, t.crs) < N(cost)(m, n, k, brs, bcs, t.ccs)) {
        /* Work on the transposed product: the rows of the result become lanes. */
        const T *other = a; a = b; b = other;
        i64 s = m; m = n; n = s;
        s = ars; ars = bcs; bcs = s;
        s = acs; acs = brs; brs = s;
        t = (N(target)){t.c, t.ccs, t.crs, t.bias, t.bcs, t.brs, t.alpha, t.beta};
    }
    if ((T)0.5 != 0 && N(is_large)(m, n, k) && !fb_room_for_blas()) return false;
    i64 work = m * n * k;
    bool along_rows = vector || m > n, large = N(is_large)(m, n, k);
    i64 unit = along_rows ? (vector ? 4 : FB_ROWS) : WIDTH, units = fb_ceil(along_rows ? m : n, unit);
    i64 parts = work < (vector ? FB_THREAD_WORK / 4 : FB_THREAD_WORK) ? 1 : fb_least(threads, units);
    if (parts == 1)
        return vector ? N(gemv)(m, k, a, ars, acs, b, brs, &t) : N(gemm_one)(m, n, k, a, ars, acs, b, brs, bcs, &t, large);
    bool failed = false;
#pragma omp parallel for schedule(static) num_threads((int)parts) reduction(|| : failed)
    for (i64 part = 0; part < parts; part++) {
        i64 from = fb_cut(units, parts, part) * unit, to = fb_cut(units, parts, part + 1) * unit;
        i64 row = along_rows ? from : 0, rows = along_rows ? fb_least(to, m) - from : m;
        i64 column = along_rows ? 0 : from, columns = along_rows ? n : fb_least(to, n) - from;
        N(target) mine = t;
        mine.c += row * t.crs + column * t.ccs;
        if (mine.bias) mine.bias += row * t.brs + column * t.bcs;
        const T *my_a = a + row * ars, *my_b = b + column * bcs;
        if (!(vector ? N(gemv)(rows, k, my_a, ars, acs, my_b, brs, &mine)
                     : N(gemm_one)(rows, columns, k, my_a, ars, acs, my_b, brs, bcs, &mine, large)))
            failed = true;
    }
    return !failed;
}
