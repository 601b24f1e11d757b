/* Convolutions by columns: the input under every tap of the kernel, copied for a few hundred positions and as many
 * rows as stay in the second cache, is the right operand of a matrix product.
 *
 * A template: define T and N(name), include tile.h, then this. */

#ifndef FB_COLUMNS_COMMON
#define FB_COLUMNS_COMMON

enum {
    FB_POSITIONS = 192,    /* output positions whose columns are packed at a time */
    FB_POSITION_PAD = 16,  /* keeps rows of columns off a power of two */
    FB_PIECES = 8          /* parts of a weight gradient that are summed apart */
};

/* One forward convolution: the geometry of a group, the same for all. */
typedef struct {
    i64 threads;
    i64 images, groups, channels, rows; /* input channels and output channels of a group */
    i64 in[3], grid[3], step[3];        /* input size; output positions; input distance of positions */
    i64 taps[3];
    const i64 *tap[3];                  /* input coordinate of each tap at position 0, may be negative */
    i64 out_image, out_group, out_row, out_at[3], out_start; /* strides of the output */
} fb_convolution;

/* A stretch of positions along the last dimension. */
typedef struct { i64 image, z, y, x, start, count, out; } fb_run;

static inline i64 fb_volume(const i64 *v) { return v[0] * v[1] * v[2]; }

/* The runs of positions [from, from + count) of all images, with the input coordinates of tap 0. */
static i64 fb_runs(const fb_convolution *c, i64 from, i64 count, fb_run *runs) {
    i64 made = 0, volume = fb_volume(c->grid);
    for (i64 done = 0; done < count; made++) {
        i64 at = from + done, image = at / volume, rest = at % volume;
        i64 x = rest % c->grid[2], y = rest / c->grid[2] % c->grid[1], z = rest / c->grid[2] / c->grid[1];
        i64 length = fb_least(c->grid[2] - x, count - done);
        runs[made] = (fb_run){image, z * c->step[0], y * c->step[1], x * c->step[2], done, length,
                              image * c->out_image + z * c->out_at[0] + y * c->out_at[1] + x * c->out_at[2]};
        done += length;
    }
    return made;
}

/* The positions of all images in tiles of whole vectors. */
static inline i64 fb_tile_count(const fb_convolution *c) { return fb_ceil(c->images * fb_volume(c->grid), FB_POSITIONS); }

static inline i64 fb_tile_start(const fb_convolution *c, i64 tile) {
    i64 positions = c->images * fb_volume(c->grid);
    return fb_least(positions, fb_cut(fb_ceil(positions, 16), fb_tile_count(c), tile) * 16);
}
#endif

#define COLUMN_STRIDE (FB_POSITIONS + FB_POSITION_PAD)

/* A short copy; the last vector overlaps the one before it. */
static inline void N(copy)(T *to, const T *from, i64 n) {
    i64 i = 0;
    for (; i + LANES <= n; i += LANES) *(N(loose) *)(to + i) = *(const N(loose) *)(from + i);
    if (i == n) return;
    if (n >= LANES) *(N(loose) *)(to + n - LANES) = *(const N(loose) *)(from + n - LANES);
    else for (; i < n; i++) to[i] = from[i];
}

/* Rows [row, row + rows) of the columns at the runs: to[r * COLUMN_STRIDE + position]. */
static void N(pack_columns)(const fb_convolution *c, const T *x, i64 group, i64 row, i64 rows, const fb_run *runs,
                            i64 run_count, i64 positions, T *to) {
    i64 tx = c->taps[2], ty = c->taps[1], tz = c->taps[0], volume = fb_volume(c->in), step = c->step[2];
    i64 kx = row % tx, ky = row / tx % ty, kz = row / tx / ty % tz, channel = row / tx / ty / tz;
    i64 image_size = c->groups * c->channels * volume, width = c->in[2];
    for (i64 r = 0; r < rows; r++, to += COLUMN_STRIDE) {
        const T *plane = x + (group * c->channels + channel) * volume;
        i64 dz = c->tap[0][kz], dy = c->tap[1][ky], dx = c->tap[2][kx];
        for (i64 i = 0; i < run_count; i++) {
            const fb_run *run = runs + i;
            i64 z = run->z + dz, y = run->y + dy, at = run->x + dx, n = run->count;
            T *dst = to + run->start;
            if ((uint64_t)z >= (uint64_t)c->in[0] || (uint64_t)y >= (uint64_t)c->in[1]) {
                memset(dst, 0, (size_t)n * sizeof(T));
                continue;
            }
            const T *src = plane + run->image * image_size + (z * c->in[1] + y) * width;
            i64 low = 0, high = n;
            if (at < 0) low = fb_least(n, (step - 1 - at) / step);
            if (at + (n - 1) * step >= width) high = at >= width ? 0 : (width - at + step - 1) / step;
            if (high < low) high = low;
            for (i64 j = 0; j < low; j++) dst[j] = 0;
            if (step == 1) N(copy)(dst + low, src + at + low, high - low);
            else if (step == 2) for (i64 j = low; j < high; j++) dst[j] = src[at + 2 * j];
            else for (i64 j = low; j < high; j++) dst[j] = src[at + step * j];
            for (i64 j = high; j < n; j++) dst[j] = 0;
        }
        for (i64 j = positions; j % WIDTH; j++) to[j] = 0;
        if (++kx == tx) { kx = 0; if (++ky == ty) { ky = 0; if (++kz == tz) kz = 0, channel++; } }
    }
}

/* Store a tile of results; positions are neighbours, or lie where the table says. */
static inline void N(put)(T *out, i64 row_stride, const i64 *table, i64 row, i64 rows, i64 columns, const T *acc, const T *bias, bool first) {
    bool dense = table[columns - 1] - table[0] == columns - 1;
    for (i64 r = 0; r < rows; r++, acc += WIDTH) {
        T *to = out + (row + r) * row_stride, add = bias ? bias[row + r] : 0;
        if (dense) {
            to += table[0];
            if (first && columns == WIDTH) for (i64 j = 0; j < WIDTH; j++) to[j] = acc[j] + add;
            else if (columns == WIDTH) for (i64 j = 0; j < WIDTH; j++) to[j] += acc[j];
            else for (i64 j = 0; j < columns; j++) to[j] = acc[j] + (first ? add : to[j]);
        } else for (i64 j = 0; j < columns; j++) to[table[j]] = acc[j] + (first ? add : to[table[j]]);
    }
}

/* weights: groups of strips of [depth][rows of the strip], see pack_weights. */
static void N(forward_columns)(const fb_convolution *c, const T *x, const T *weights, const T *bias, T *out, char *scratch,
                               size_t scratch_size) {
    i64 tiles = fb_tile_count(c), depth = c->channels * fb_volume(c->taps), rows = c->rows;
    i64 blocks = fb_most(1, fb_ceil(depth, FB_DEPTH)), strips = fb_ceil(rows, FB_ROWS), at_once = FB_BLOCK_ROWS / FB_ROWS;
    i64 tasks = tiles * c->groups;
#pragma omp parallel for schedule(static) num_threads((int)c->threads) if (c->threads > 1 && tasks > 1)
    for (i64 task = 0; task < tasks; task++) {
        i64 group = task / tiles, from = fb_tile_start(c, task % tiles), count = fb_tile_start(c, task % tiles + 1) - from;
        i64 table[FB_POSITIONS + 16];
        fb_run runs[FB_POSITIONS + 16];
        T acc[FB_ROWS * WIDTH] __attribute__((aligned(64)));
        T *columns = (T *)(scratch + scratch_size * (size_t)omp_get_thread_num());
        T *to = out + c->out_start + group * c->out_group;
        const T *group_bias = bias ? bias + group * rows : NULL;
        i64 run_count = fb_runs(c, from, count, runs);
        for (i64 i = 0; i < run_count; i++)
            for (i64 j = 0; j < runs[i].count; j++) table[runs[i].start + j] = runs[i].out + j * c->out_at[2];
        for (i64 block = 0; block < blocks; block++) {
            i64 row = fb_cut(depth, blocks, block), deep = fb_cut(depth, blocks, block + 1) - row;
            N(pack_columns)(c, x, group, row, deep, runs, run_count, count, columns);
            for (i64 s0 = 0; s0 < strips; s0 += at_once)
                for (i64 j = 0; j < count; j += WIDTH) {
                    i64 lanes = fb_least(WIDTH, count - j);
                    const N(tile_function) *tile = N(tiles)[lanes > LANES];
                    bool dense = (lanes == WIDTH || lanes == LANES) && table[j + lanes - 1] - table[j] == lanes - 1;
                    for (i64 s = s0; s < fb_least(strips, s0 + at_once); s++) {
                        i64 m = fb_cut(rows, strips, s), high = fb_cut(rows, strips, s + 1) - m;
                        for (i64 r = 0; r < high; r++) __builtin_prefetch(to + (m + r) * c->out_row + table[j], 1);
                        bool plain = dense && !(block == 0 && bias);
                        tile[high](deep, weights + (group * rows + m) * depth + row * high, 1, high, columns + j, COLUMN_STRIDE, NULL,
                                   plain ? to + m * c->out_row + table[j] : acc, plain ? c->out_row : WIDTH, plain && block);
                        if (!plain) N(put)(to, c->out_row, table + j, m, high, lanes, acc, group_bias, block == 0);
                    }
                }
        }
    }
}

/* Positions of a tile of output gradients, transposed: strips of WIDTH channels, to[position][channel]. */
static void N(pack_gradients)(const fb_convolution *c, const T *dy, i64 group, const fb_run *runs, i64 run_count, i64 positions, T *to) {
    for (i64 m = 0; m < c->rows; m += WIDTH, to += positions * WIDTH) {
        i64 high = fb_least(WIDTH, c->rows - m);
        if (high < WIDTH) memset(to, 0, (size_t)(positions * WIDTH) * sizeof(T));
        for (i64 i = 0; i < run_count; i++) {
            const T *from = dy + group * c->out_group + m * c->out_row + runs[i].out;
            T *dst = to + runs[i].start * WIDTH;
            for (i64 r = 0; r < high; r++)
                for (i64 j = 0; j < runs[i].count; j++) dst[j * WIDTH + r] = from[r * c->out_row + j];
        }
    }
}

/* dw, laid out as [group][row][channel][tap], is summed in pieces of the positions; each piece by one thread. */
static bool N(weight_columns)(const fb_convolution *c, const T *x, const T *dy, T *dw) {
    i64 tiles = fb_tile_count(c), depth = c->channels * fb_volume(c->taps), rows = c->rows;
    i64 padded_rows = fb_ceil(rows, WIDTH) * WIDTH, size = depth * padded_rows;
    i64 pieces = fb_most(1, fb_least(fb_least(tiles, FB_PIECES), (2 << 20) / (size * c->groups)));
    i64 blocks = fb_ceil(depth, FB_DEPTH), parts = fb_most(1, fb_least(blocks, FB_PIECES / (pieces * c->groups)));
    size_t columns = (size_t)(FB_DEPTH * COLUMN_STRIDE), each = columns + (size_t)(COLUMN_STRIDE * padded_rows);
    T *sums = fb_allocate(((size_t)(size * c->groups * pieces) + each * (size_t)c->threads) * sizeof(T));
    if (!sums) return false;
    T *scratch = sums + size * c->groups * pieces;
    i64 tasks = pieces * c->groups * parts;
    /* One tap, on the point itself (see forward_of): the input is the columns. */
    bool pointwise = c->taps[2] == 1 && c->step[2] == 1 && !c->tap[2][0] && fb_volume(c->taps) == 1 && c->in[2] == c->grid[2] && c->in[1] == 1 && c->in[0] == 1;
#pragma omp parallel for schedule(static) num_threads((int)c->threads) if (c->threads > 1 && tasks > 1)
    for (i64 task = 0; task < tasks; task++) {
        i64 piece = task / parts / c->groups, group = task / parts % c->groups, part = task % parts;
        T *column = scratch + each * (size_t)omp_get_thread_num(), *gradients = column + columns;
        fb_run runs[FB_POSITIONS + 16];
        i64 first = fb_cut(blocks, parts, part), last = fb_cut(blocks, parts, part + 1);
        T *sum = sums + (piece * c->groups + group) * size; /* [strip of rows][depth][WIDTH] */
        for (i64 m = 0; m < padded_rows; m += WIDTH)
            for (i64 row = fb_cut(depth, blocks, first); row < fb_cut(depth, blocks, last); row++)
                memset(sum + m * depth + row * WIDTH, 0, WIDTH * sizeof(T));
        for (i64 tile = fb_cut(tiles, pieces, piece); tile < fb_cut(tiles, pieces, piece + 1); tile++) {
            i64 from = fb_tile_start(c, tile), count = fb_tile_start(c, tile + 1) - from, run_count = fb_runs(c, from, count, runs);
            N(pack_gradients)(c, dy, group, runs, run_count, count, gradients);
            for (i64 block = first; block < last; block++) {
                i64 row = fb_cut(depth, blocks, block), deep = fb_cut(depth, blocks, block + 1) - row;
                i64 strips = fb_ceil(deep, FB_ROWS);
                const T *from_column = column;
                i64 stride = COLUMN_STRIDE;
                if (pointwise && run_count == 1) {
                    stride = c->in[2];
                    from_column = x + ((runs[0].image * c->groups + group) * c->channels + row) * stride + runs[0].x;
                } else N(pack_columns)(c, x, group, row, deep, runs, run_count, count, column);
                for (i64 m = 0; m < rows; m += WIDTH) {
                    const N(tile_function) *tile_of = N(tiles)[rows - m > LANES];
                    for (i64 s = 0; s < strips; s++) {
                        i64 r0 = fb_cut(deep, strips, s), high = fb_cut(deep, strips, s + 1) - r0;
                        tile_of[high](count, from_column + r0 * stride, stride, 1, gradients + m * count, WIDTH, NULL,
                                      sum + m * depth + (row + r0) * WIDTH, WIDTH, true);
                    }
                }
            }
        }
    }
    FB_PARALLEL_FOR(size * c->groups * pieces)
    for (i64 i = 0; i < c->groups * rows; i++) {
        i64 group = i / rows, m = i % rows;
        T *to = dw + i * depth;
        for (i64 piece = 0; piece < pieces; piece++) {
            const T *sum = sums + (piece * c->groups + group) * size + m / WIDTH * WIDTH * depth + m % WIDTH;
            if (piece == 0) for (i64 r = 0; r < depth; r++) to[r] = sum[r * WIDTH];
            else for (i64 r = 0; r < depth; r++) to[r] += sum[r * WIDTH];
        }
    }
    fb_release(sums);
    return true;
}

#undef COLUMN_STRIDE
