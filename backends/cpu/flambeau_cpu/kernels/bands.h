/* Convolutions that read their input in place: a band of rows of a few channels, padded, lies in the second cache, and
 * a table says where each tap of the kernel finds its element.  No element is copied once per tap.
 *
 * A template: define T and N(name), include tile.h and columns.h, then this. */

#ifndef FB_BANDS_COMMON
#define FB_BANDS_COMMON
enum {
    FB_BAND_BYTES = 96 << 10, /* a band, beside the weights in the second cache */
    FB_BAND_COLUMNS = 768     /* outputs of a row at a time */
};
#endif

/* How a group's input is cut into bands.  Each band holds, for each of its channels and each tap of the first dimension, rows
 * whose columns are stored by their residue modulo the step, so that the outputs of a row read neighbours. */
typedef struct {
    i64 low[3], reach[3];                     /* first tap; how far it is to the last */
    i64 blocks, channels;                     /* of channels */
    i64 bands, rows, cuts, columns;           /* of output rows, and of outputs in a row */
    i64 lane_row, row, plane, channel, elements;
} N(bands);

static N(bands) N(plan_bands)(const fb_convolution *c, bool whole) {
    N(bands) b;
    i64 step = c->step[1], high = c->grid[1], across = c->grid[2];
    for (int d = 0; d < 3; d++) {
        i64 low = c->tap[d][0], last = low;
        for (i64 t = 1; t < c->taps[d]; t++) low = fb_least(low, c->tap[d][t]), last = fb_most(last, c->tap[d][t]);
        b.low[d] = low;
        b.reach[d] = last - low + 1;
    }
    b.blocks = whole ? 1 : fb_most(1, fb_ceil(c->channels, fb_most(1, FB_DEPTH / fb_volume(c->taps))));
    b.channels = fb_ceil(c->channels, b.blocks);
    b.cuts = whole ? 1 : fb_ceil(across, FB_BAND_COLUMNS);
    b.columns = b.cuts == 1 ? across : fb_ceil(fb_ceil(across, b.cuts), WIDTH) * WIDTH;
    b.lane_row = fb_ceil((b.columns - 1) * c->step[2] + b.reach[2], c->step[2]);
    b.row = b.lane_row * c->step[2];
    i64 room = FB_BAND_BYTES / (i64)sizeof(T) / fb_most(1, b.channels * c->taps[0] * b.row);
    b.rows = whole ? high : fb_least(high, fb_most(2, (room - b.reach[1]) / step + 1));
    b.bands = fb_ceil(high, b.rows);
    b.rows = fb_ceil(high, b.bands);
    if (b.bands > 1) b.rows += b.rows % 2;
    b.plane = b.row * ((b.rows - 1) * step + b.reach[1]);
    /* An odd number of cache lines from channel to channel: they do not fight for one place in the cache. */
    b.channel = (fb_ceil(b.plane * c->taps[0] * (i64)sizeof(T), 64) | 1) * 64 / (i64)sizeof(T);
    b.elements = b.channels * b.channel + 4 * WIDTH; /* and lanes that read past the last row */
    return b;
}

/* Channels [first, last) of a group's input x, for output rows [y, y + rows) and outputs from `at` of plane z. */
static void N(fill_band)(const fb_convolution *c, const N(bands) *b, const T *x, i64 first, i64 last, i64 z, i64 y, i64 rows,
                         i64 at, T *to) {
    i64 step = c->step[2], width = c->in[2], low = at * step + b->low[2], height = (rows - 1) * c->step[1] + b->reach[1];
    i64 begin = fb_least(b->row, fb_most(0, -low)), end = fb_most(begin, fb_least(b->row, width - low));
    x += first * fb_volume(c->in);
    for (i64 channel = first; channel < last; channel++, x += fb_volume(c->in), to += b->channel)
        for (i64 kz = 0; kz < c->taps[0]; kz++)
            for (i64 r = 0; r < height; r++) {
                i64 fz = z * c->step[0] + c->tap[0][kz], fy = y * c->step[1] + b->low[1] + r;
                T *row = to + kz * b->plane + r * b->row;
                const T *from = x + (fz * c->in[1] + fy) * width + low;
                bool outside = (uint64_t)fz >= (uint64_t)c->in[0] || (uint64_t)fy >= (uint64_t)c->in[1];
                if (outside || begin == end) memset(row, 0, (size_t)b->row * sizeof(T));
                else if (step == 1) {
                    for (i64 j = 0; j < begin; j++) row[j] = 0;
                    N(copy)(row + begin, from + begin, end - begin);
                    for (i64 j = end; j < b->row; j++) row[j] = 0;
                } else for (i64 residue = 0; residue < step; residue++, row += b->lane_row) {
                    i64 j0 = fb_ceil(fb_most(0, begin - residue), step), j1 = fb_most(j0, fb_ceil(fb_most(0, end - residue), step));
                    for (i64 j = 0; j < j0; j++) row[j] = 0;
                    if (step == 2) for (i64 j = j0; j < j1; j++) row[j] = from[2 * j + residue];
                    else for (i64 j = j0; j < j1; j++) row[j] = from[step * j + residue];
                    for (i64 j = j1; j < b->lane_row; j++) row[j] = 0;
                }
            }
}

/* The rows of the columns, in the order of their products: where each is in the band and in the weights.
 * Rows of the kernel come first and channels inside them, so that the taps inside the image are neighbours. */
static void N(tap_tables)(const fb_convolution *c, const N(bands) *b, i64 wc, const i64 *tap, i64 *offset, i64 *weight) {
    for (i64 block = 0; block < b->blocks; block++) {
        i64 first = fb_cut(c->channels, b->blocks, block), last = fb_cut(c->channels, b->blocks, block + 1);
        for (i64 kz = 0; kz < c->taps[0]; kz++)
            for (i64 ky = 0; ky < c->taps[1]; ky++)
                for (i64 channel = first; channel < last; channel++)
                    for (i64 kx = 0; kx < c->taps[2]; kx++) {
                        i64 x = c->tap[2][kx] - b->low[2];
                        *offset++ = (channel - first) * b->channel + kz * b->plane + (c->tap[1][ky] - b->low[1]) * b->row
                                    + x % c->step[2] * b->lane_row + x / c->step[2];
                        *weight++ = channel * wc + tap[(kz * c->taps[1] + ky) * c->taps[2] + kx];
                    }
    }
}

/* Taps [first, last) of dimension d that are inside the input for some position from `from` to `to`. */
static void N(taps_inside)(const fb_convolution *c, int d, i64 from, i64 to, i64 *first, i64 *last) {
    i64 low = c->taps[d], high = 0;
    for (i64 t = 0; t < c->taps[d]; t++)
        if (from * c->step[d] + c->tap[d][t] < c->in[d] && to * c->step[d] + c->tap[d][t] >= 0) {
            low = fb_least(low, t);
            high = t + 1;
        }
    *first = low;
    *last = fb_most(low, high);
}

#define FB_TABLE_TILE(rows, vectors) \
    static void N(table_tile_##rows##vectors)(i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 ldb, const i64 *off, T *to, \
                                                 i64 ts, bool add) { \
        (void)ars; (void)acs; N(tile)(rows, vectors, k, a, 1, rows, b, ldb, off, to, ts, add); }
FB_TABLE_TILE(1, 1) FB_TABLE_TILE(2, 1) FB_TABLE_TILE(3, 1) FB_TABLE_TILE(4, 1) FB_TABLE_TILE(5, 1) FB_TABLE_TILE(6, 1)
FB_TABLE_TILE(1, 2) FB_TABLE_TILE(2, 2) FB_TABLE_TILE(3, 2) FB_TABLE_TILE(4, 2) FB_TABLE_TILE(5, 2) FB_TABLE_TILE(6, 2)
#undef FB_TABLE_TILE
static const N(tile_function) N(table_tiles)[2][FB_ROWS + 1] = {
    {NULL, N(table_tile_11), N(table_tile_21), N(table_tile_31), N(table_tile_41), N(table_tile_51), N(table_tile_61)},
    {NULL, N(table_tile_12), N(table_tile_22), N(table_tile_32), N(table_tile_42), N(table_tile_52), N(table_tile_62)}};

/* Up to four vectors of one or two output rows of one channel: the tile for a single row of weights.
 * The second row reads `next` elements further; acc has rows of 2 * WIDTH. */
FB_INLINE void N(line)(const int rows, const int vectors, i64 k, const T *w, const T *b, i64 next, const i64 *off, T *acc) {
    N(vec) sum[2][4];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sum[r][v] = (N(vec)){0};
    for (i64 p = 0; p < k; p++) {
        N(vec) factor = w[p] - (N(vec)){0};
        const T *at = b + off[p];
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++) sum[r][v] += factor * *(const N(loose) *)(at + r * next + v * LANES);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) *(N(loose) *)(acc + r * 2 * WIDTH + v * LANES) = sum[r][v];
}

static void N(lines)(i64 rows, i64 lanes, i64 k, const T *w, const T *b, i64 next, const i64 *off, T *acc) {
    switch (fb_least(4, fb_ceil(lanes, LANES)) + (rows == 2 ? 4 : 0)) {
    case 1: N(line)(1, 1, k, w, b, next, off, acc); break;
    case 2: N(line)(1, 2, k, w, b, next, off, acc); break;
    case 3: N(line)(1, 3, k, w, b, next, off, acc); break;
    case 4: N(line)(1, 4, k, w, b, next, off, acc); break;
    case 5: N(line)(2, 1, k, w, b, next, off, acc); break;
    case 6: N(line)(2, 2, k, w, b, next, off, acc); break;
    case 7: N(line)(2, 3, k, w, b, next, off, acc); break;
    default: N(line)(2, 4, k, w, b, next, off, acc);
    }
}

/* Store one or two vectors of an output row, or add to it. */
static inline void N(put_lanes)(T *out, i64 stride, i64 lanes, const T *acc, T add, bool first) {
    if (stride != 1) {
        for (i64 l = 0; l < lanes; l++) out[l * stride] = acc[l] + (first ? add : out[l * stride]);
        return;
    }
    i64 l = 0;
    for (; l + LANES <= lanes; l += LANES) {
        N(vec) value = *(const N(loose) *)(acc + l);
        if (first) value += add;
        else value += *(const N(loose) *)(out + l);
        *(N(loose) *)(out + l) = value;
    }
    if (first && l && l < lanes) { /* the last vector overlaps the one before it */
        l = lanes - LANES;
        *(N(loose) *)(out + l) = *(const N(loose) *)(acc + l) + add;
    } else for (; l < lanes; l++) out[l] = acc[l] + (first ? add : out[l]);
}

/* Rows of the kernel [first, last) that touch the image at rows y to `to` of plane z. */
static inline void N(kernel_rows)(const fb_convolution *c, const N(bands) *b, i64 z, i64 y, i64 to, i64 *first, i64 *last) {
    i64 kz0, kz1, ky0, ky1, high = c->taps[1];
    if (c->taps[0] == 1 && y * c->step[1] + b->low[1] >= 0 && to * c->step[1] + b->low[1] + b->reach[1] <= c->in[1]) {
        *first = 0, *last = high; /* all of them, as nearly everywhere */
        return;
    }
    N(taps_inside)(c, 0, z, z, &kz0, &kz1);
    N(taps_inside)(c, 1, y, to, &ky0, &ky1);
    bool some = kz1 - kz0 == 1;
    *first = kz0 * high + (some ? ky0 : 0);
    *last = some ? kz0 * high + ky1 : kz1 * high;
}

static void N(forward_bands)(const fb_convolution *c, const N(bands) *b, const T *x, const T *weights, const T *bias, T *out,
                             const i64 *offset, char *scratch, size_t scratch_size) {
    i64 rows = c->rows, depth = c->channels * fb_volume(c->taps), strips = fb_ceil(rows, FB_ROWS), ox = c->out_at[2];
    i64 pair = c->grid[2] <= LANES || rows == 1 ? 2 : 1; /* narrow rows: a vector from each of two */
    i64 bands = c->grid[0] * b->bands * b->cuts, tasks = c->images * c->groups * bands;
#pragma omp parallel for schedule(static) num_threads((int)c->threads) \
    if (c->threads > 1 && tasks > 1 && c->images * c->groups * rows * depth * fb_volume(c->grid) > FB_THREAD_WORK)
    for (i64 task = 0; task < tasks; task++) {
        i64 plane = task / bands, image = plane / c->groups, group = plane % c->groups, z = task % bands / (b->bands * b->cuts);
        i64 y0 = task % bands / b->cuts % b->bands * b->rows, y1 = fb_least(c->grid[1], y0 + b->rows);
        i64 x0 = task % b->cuts * b->columns, across = fb_least(b->columns, c->grid[2] - x0);
        T acc[FB_ROWS * WIDTH] __attribute__((aligned(64)));
        T *band = (T *)(scratch + scratch_size * (size_t)omp_get_thread_num());
        T *to = out + c->out_start + image * c->out_image + group * c->out_group + z * c->out_at[0] + x0 * ox;
        const T *group_bias = bias ? bias + group * rows : NULL;
        for (i64 block = 0; block < b->blocks; block++) {
            i64 c0 = fb_cut(c->channels, b->blocks, block), c1 = fb_cut(c->channels, b->blocks, block + 1);
            i64 kernel_row = (c1 - c0) * c->taps[2];
            bool start = block == 0;
            N(fill_band)(c, b, x + plane * c->channels * fb_volume(c->in), c0, c1, z, y0, y1 - y0, x0, band);
            for (i64 y = y0; y < y1; y += pair) {
                i64 both = fb_least(pair, y1 - y), first, last;
                N(kernel_rows)(c, b, z, y, y + both - 1, &first, &last);
                i64 k = (last - first) * kernel_row, k0 = c0 * fb_volume(c->taps) + first * kernel_row;
                const i64 *at = offset + k0;
                const T *from = band + (y - y0) * c->step[1] * b->row;
                T *line = to + y * c->out_at[1];
                if (rows == 1) {
                    T add = group_bias ? group_bias[0] : 0;
                    for (i64 j = 0; j < across; j += 2 * WIDTH) {
                        N(lines)(both, across - j, k, weights + group * depth + k0, from + j, c->step[1] * b->row, at, acc);
                        for (i64 r = 0; r < both; r++)
                            for (i64 l = j; l < fb_least(across, j + 2 * WIDTH); l += WIDTH)
                                N(put_lanes)(line + r * c->out_at[1] + l * ox, ox, fb_least(WIDTH, across - l),
                                             acc + r * 2 * WIDTH + l - j, add, start);
                    }
                    continue;
                }
                for (i64 j = 0; j < across; j += WIDTH) {
                    i64 lanes = fb_least(WIDTH, across - j);
                    const N(tile_function) *tile = N(table_tiles)[both == 2 || lanes > LANES];
                    for (i64 s = 0; s < strips; s++) {
                        i64 m = fb_cut(rows, strips, s), high = fb_cut(rows, strips, s + 1) - m;
                        for (i64 r = 0; r < high; r++) __builtin_prefetch(line + (m + r) * c->out_row + j * ox, 1);
                        T *place = line + m * c->out_row + j * ox;
                        bool plain = both == 1 && ox == 1 && (lanes == WIDTH || lanes == LANES) && !(start && bias);
                        tile[high](k, weights + (group * rows + m) * depth + k0 * high, 1, high, from + j,
                                   both == 2 ? c->step[1] * b->row : LANES, at, plain ? place : acc, plain ? c->out_row : WIDTH,
                                   plain && !start);
                        if (plain) continue;
                        for (i64 r = 0; r < high; r++)
                            for (i64 v = 0; v < both; v++)
                                N(put_lanes)(place + r * c->out_row + v * c->out_at[1], ox, lanes,
                                             acc + r * WIDTH + v * LANES, group_bias ? group_bias[m + r] : 0, start);
                    }
                }
            }
        }
    }
}

/* ----------------------------------------------------------------- weight */

/* Few rows and channels: dot products of rows of the gradient with rows of the padded input, lanes along the row. */
typedef char N(mask) __attribute__((vector_size(FB_VECTOR)));

FB_INLINE void N(tap_dots)(const int taps, i64 across, const T *dy, const T *x, const i64 *off, N(vec) *sums) {
    N(vec) sum[9];
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++) sum[t] = sums[t];
    i64 j = 0;
    for (; j + LANES <= across; j += LANES) {
        N(vec) g = *(const N(loose) *)(dy + j);
#pragma GCC unroll 9
        for (int t = 0; t < taps; t++) sum[t] += g * *(const N(loose) *)(x + off[t] + j);
    }
    if (j < across) { /* lanes past the row are cleared on both sides: no NaN leaks in */
        N(vec) g = {0};
        N(mask) inside = {0};
        memcpy(&g, dy + j, (size_t)(across - j) * sizeof(T));
        memset(&inside, 255, (size_t)(across - j) * sizeof(T));
#pragma GCC unroll 9
        for (int t = 0; t < taps; t++)
            sum[t] += g * (N(vec))((N(mask))(*(const N(loose) *)(x + off[t] + j)) & inside);
    }
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++) sums[t] = sum[t];
}

static bool N(weight_bands)(const fb_convolution *c, const N(bands) *b, const i64 *every_tap, const T *x, const T *dy, T *dw) {
    i64 depth = c->channels * fb_volume(c->taps), rows = c->rows, across = c->grid[2], weights = c->groups * rows * depth;
    i64 in_group = c->channels * fb_volume(c->in), pieces = fb_least(c->images, FB_PIECES);
    size_t each = (size_t)b->elements;
    i64 *offset = fb_allocate(((size_t)(pieces * weights) + each * (size_t)c->threads) * sizeof(T) + (size_t)depth * 16);
    if (!offset) return false;
    i64 *at = offset + depth;
    T *sums = (T *)(at + depth), *scratch = sums + pieces * weights;
    N(tap_tables)(c, b, fb_volume(c->taps), every_tap, offset, at);
    i64 tasks = pieces * c->groups;
#pragma omp parallel for schedule(static) num_threads((int)c->threads) if (c->threads > 1 && tasks > 1)
    for (i64 task = 0; task < tasks; task++) {
        i64 piece = task / c->groups, group = task % c->groups;
        T *band = scratch + each * (size_t)omp_get_thread_num(), *sum = sums + piece * weights + group * rows * depth;
        memset(sum, 0, (size_t)(rows * depth) * sizeof(T));
        for (i64 image = fb_cut(c->images, pieces, piece); image < fb_cut(c->images, pieces, piece + 1); image++)
            for (i64 z = 0; z < c->grid[0]; z++) {
                N(fill_band)(c, b, x + (image * c->groups + group) * in_group, 0, c->channels, z, 0, c->grid[1], 0, band);
                for (i64 m = 0; m < rows; m++)
                    for (i64 t = 0; t < depth; t += 9) {
                        N(vec) lanes[9] = {{0}};
                        i64 taps = fb_least(9, depth - t);
                        const T *g = dy + image * c->out_image + group * c->out_group + m * c->out_row + z * c->grid[1] * across;
                        for (i64 y = 0; y < c->grid[1]; y++, g += across) {
                            const T *from = band + y * c->step[1] * b->row;
                            if (taps == 9) N(tap_dots)(9, across, g, from, offset + t, lanes);
                            else for (i64 i = 0; i < taps; i++) N(tap_dots)(1, across, g, from, offset + t + i, lanes + i);
                        }
                        for (i64 i = 0; i < taps; i++)
                            for (i64 l = 0; l < LANES; l++) sum[m * depth + at[t + i]] += lanes[i][l];
                    }
            }
    }
    memcpy(dw, sums, (size_t)weights * sizeof(T));
    for (i64 piece = 1; piece < pieces; piece++)
        for (i64 i = 0; i < weights; i++) dw[i] += sums[piece * weights + i];
    fb_release(offset);
    return true;
}
