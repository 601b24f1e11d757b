/* Convolutions of one element type, as products of matrices that are never written out.
 *
 * A template: define T and N(name), include tile.h, then this.  A convolution is
 * the product of the weights (rows: output channels) and the columns: the input under each
 * tap of the kernel (rows: input channel and tap) at each output position.
 *
 *   forward   every output position at stride `step` in the input;
 *   input     the gradient of the input: for each residue of the position modulo the stride a
 *             forward convolution of step 1 over the taps that reach it;
 *   weight    the gradient of the weights: output gradients times transposed columns.
 *
 * Two ways to the columns.  Packed: those of a few hundred positions are copied for as
 * many rows as stay in the second cache.  Direct: the input, padded, is read in place through a
 * table of tap offsets; for few channels, where copying each input once per tap would cost more than
 * the arithmetic.  Cuts depend on shapes alone, so results do not depend on the threads. */

#ifndef FB_CONVOLVE_COMMON
#define FB_CONVOLVE_COMMON

enum {
    FB_POSITIONS = 192,          /* output positions whose columns are packed at a time */
    FB_POSITION_PAD = 16,        /* keeps rows of columns off a power of two */
    FB_DIRECT_BYTES = 192 << 10, /* padded input that the second cache holds */
    FB_DIRECT_ROWS = 40,         /* from here on packing is amortised */
    FB_STREAM_BYTES = 16 << 20,  /* the same where one pass over the input is enough */
    FB_PIECES = 8                /* parts of a weight gradient that are summed apart */
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

/* How many tiles the positions are cut into, and tile i of them.  Tiles stay inside an image unless images are small. */
static i64 fb_tile_count(const fb_convolution *c, i64 *spans) {
    i64 volume = fb_volume(c->grid);
    *spans = 2 * volume < FB_POSITIONS ? 1 : c->images;
    i64 span = *spans == 1 ? volume * c->images : volume;
    return *spans * fb_ceil(span, FB_POSITIONS);
}

static void fb_tile_at(const fb_convolution *c, i64 tile, i64 *from, i64 *count) {
    i64 spans, tiles = fb_tile_count(c, &spans), each = tiles / spans;
    i64 span = fb_volume(c->grid) * (spans == 1 ? c->images : 1), units = fb_ceil(span, 16);
    i64 first = fb_cut(units, each, tile % each) * 16, last = fb_least(span, fb_cut(units, each, tile % each + 1) * 16);
    *from = tile / each * span + first;
    *count = last - first;
}
#endif

#define COLUMN_STRIDE (FB_POSITIONS + FB_POSITION_PAD)

/* ---------------------------------------------------------------- columns */

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
            if (step == 1) memcpy(dst + low, src + at + low, (size_t)(high - low) * sizeof(T));
            else if (step == 2) for (i64 j = low; j < high; j++) dst[j] = src[at + 2 * j];
            else for (i64 j = low; j < high; j++) dst[j] = src[at + step * j];
            for (i64 j = high; j < n; j++) dst[j] = 0;
        }
        for (i64 j = positions; j % WIDTH; j++) to[j] = 0;
        if (++kx == tx) { kx = 0; if (++ky == ty) { ky = 0; if (++kz == tz) kz = 0, channel++; } }
    }
}

/* Where a tile of positions goes: contiguous from `start`, or through a table. */
typedef struct { T *out; const i64 *table; i64 row_stride; } N(place);

static inline void N(put)(const N(place) *to, i64 row, i64 rows, i64 position, i64 columns, const T *acc, const T *bias,
                          bool first) {
    for (i64 r = 0; r < rows; r++, acc += WIDTH) {
        T *out = to->out + (row + r) * to->row_stride, add = bias ? bias[row + r] : 0;
        if (to->table) {
            const i64 *at = to->table + position;
            for (i64 j = 0; j < columns; j++) out[at[j]] = acc[j] + (first ? add : out[at[j]]);
        } else {
            out += position;
            if (first && columns == WIDTH) for (i64 j = 0; j < WIDTH; j++) out[j] = acc[j] + add;
            else if (columns == WIDTH) for (i64 j = 0; j < WIDTH; j++) out[j] += acc[j];
            else for (i64 j = 0; j < columns; j++) out[j] = acc[j] + (first ? add : out[j]);
        }
    }
}

/* ---------------------------------------------------------------- forward */

/* weights: groups of strips of [depth][rows of the strip], see pack_weights. */
static void N(forward_packed)(const fb_convolution *c, const T *x, const T *weights, const T *bias, T *out, char *scratch,
                              size_t scratch_size) {
    i64 spans, tiles = fb_tile_count(c, &spans), depth = c->channels * fb_volume(c->taps), rows = c->rows;
    i64 blocks = fb_most(1, fb_ceil(depth, FB_DEPTH)), strips = fb_ceil(rows, FB_ROWS);
    bool dense = c->out_at[2] == 1 && c->out_at[1] == c->grid[2] && c->out_at[0] == c->grid[1] * c->grid[2];
    i64 tasks = tiles * c->groups;
#pragma omp parallel for schedule(static) num_threads((int)c->threads) if (c->threads > 1 && tasks > 1)
    for (i64 task = 0; task < tasks; task++) {
        i64 group = task / tiles, from, count, table[FB_POSITIONS];
        fb_run runs[FB_POSITIONS];
        T acc[FB_ROWS * WIDTH] __attribute__((aligned(64)));
        T *columns = (T *)(scratch + scratch_size * (size_t)omp_get_thread_num());
        fb_tile_at(c, task % tiles, &from, &count);
        i64 run_count = fb_runs(c, from, count, runs);
        N(place) to = {out + c->out_start + group * c->out_group, table, c->out_row};
        if (dense && runs[0].image == runs[run_count - 1].image) to.out += runs[0].out, to.table = NULL;
        else for (i64 i = 0; i < run_count; i++)
            for (i64 j = 0; j < runs[i].count; j++) table[runs[i].start + j] = runs[i].out + j * c->out_at[2];
        const T *group_bias = bias ? bias + group * rows : NULL;
        for (i64 block = 0; block < blocks; block++) {
            i64 row = fb_cut(depth, blocks, block), deep = fb_cut(depth, blocks, block + 1) - row;
            N(pack_columns)(c, x, group, row, deep, runs, run_count, count, columns);
            for (i64 s0 = 0; s0 < strips; s0 += FB_BLOCK_ROWS / FB_ROWS)
                for (i64 j = 0; j < count; j += WIDTH) {
                    i64 lanes = fb_least(WIDTH, count - j);
                    const N(tile_function) *tile = N(tiles)[lanes > LANES];
                    for (i64 s = s0; s < fb_least(strips, s0 + FB_BLOCK_ROWS / FB_ROWS); s++) {
                        i64 m = fb_cut(rows, strips, s), high = fb_cut(rows, strips, s + 1) - m;
                        for (i64 r = 0; r < high; r++)
                            __builtin_prefetch(to.out + (m + r) * to.row_stride + (to.table ? table[j] : j), 1);
                        tile[high](deep, weights + (group * rows + m) * depth + row * high, 1, high, columns + j,
                                   COLUMN_STRIDE, NULL, acc);
                        N(put)(&to, m, high, j, lanes, acc, group_bias, block == 0);
                    }
                }
        }
    }
}

/* The padded input of one group for the direct way.  Columns of a row are stored by their residue
 * modulo the step, so that the positions of a row read neighbours. */
typedef struct { i64 low[3], size[3], lane_row, row, plane, channel; } N(padded);

static N(padded) N(padding_of)(const fb_convolution *c) {
    N(padded) p;
    for (int d = 0; d < 3; d++) {
        i64 low = c->tap[d][0], high = low;
        for (i64 t = 1; t < c->taps[d]; t++) low = fb_least(low, c->tap[d][t]), high = fb_most(high, c->tap[d][t]);
        p.low[d] = low;
        p.size[d] = (c->grid[d] - 1) * c->step[d] + high - low + 1;
    }
    p.lane_row = fb_ceil(p.size[2], c->step[2]);
    p.row = p.lane_row * c->step[2];
    p.plane = p.row * p.size[1];
    p.channel = p.plane * p.size[0];
    return p;
}

/* Elements of one padded group, with room for the lanes that read past the last row. */
static inline i64 N(padded_elements)(const fb_convolution *c, const N(padded) *p) { return c->channels * p->channel + 4 * WIDTH; }

static void N(pad)(const fb_convolution *c, const N(padded) *p, const T *x, T *to) {
    i64 step = c->step[2], width = c->in[2];
    for (i64 channel = 0; channel < c->channels; channel++, x += fb_volume(c->in))
        for (i64 z = 0; z < p->size[0]; z++)
            for (i64 y = 0; y < p->size[1]; y++, to += p->row) {
                i64 fz = z + p->low[0], fy = y + p->low[1], low = p->low[2];
                if ((uint64_t)fz >= (uint64_t)c->in[0] || (uint64_t)fy >= (uint64_t)c->in[1]) {
                    memset(to, 0, (size_t)p->row * sizeof(T));
                    continue;
                }
                const T *src = x + (fz * c->in[1] + fy) * width;
                i64 first = fb_least(p->row, fb_most(0, -low)), last = fb_most(first, fb_least(p->row, width - low));
                if (step == 1) {
                    for (i64 j = 0; j < first; j++) to[j] = 0;
                    memcpy(to + first, src + low + first, (size_t)(last - first) * sizeof(T));
                    for (i64 j = last; j < p->row; j++) to[j] = 0;
                } else for (i64 residue = 0; residue < step; residue++)
                    for (i64 j = 0; j < p->lane_row; j++) {
                        i64 at = j * step + residue;
                        to[residue * p->lane_row + j] = at >= first && at < last ? src[low + at] : 0;
                    }
            }
    memset(to, 0, 4 * WIDTH * sizeof(T));
}

/* The rows of the columns, in the order of their products: where each is in the padded input and in the weights.
 * Rows of the kernel come first and channels inside them, so that the taps inside the image are neighbours. */
static void N(tap_tables)(const fb_convolution *c, const N(padded) *p, i64 wc, const i64 *tap, i64 *offset, i64 *weight) {
    for (i64 kz = 0; kz < c->taps[0]; kz++)
        for (i64 ky = 0; ky < c->taps[1]; ky++)
            for (i64 channel = 0; channel < c->channels; channel++)
                for (i64 kx = 0; kx < c->taps[2]; kx++) {
                    i64 x = c->tap[2][kx] - p->low[2];
                    *offset++ = channel * p->channel + (c->tap[0][kz] - p->low[0]) * p->plane
                                + (c->tap[1][ky] - p->low[1]) * p->row + x % c->step[2] * p->lane_row + x / c->step[2];
                    *weight++ = channel * wc + tap[(kz * c->taps[1] + ky) * c->taps[2] + kx];
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
    static void N(table_tile_##rows##vectors)(i64 k, const T *a, i64 ars, i64 acs, const T *b, i64 ldb, const i64 *off, T *acc) { \
        (void)ars; (void)acs; N(tile)(rows, vectors, k, a, 1, rows, b, ldb, off, acc); }
FB_TABLE_TILE(1, 1) FB_TABLE_TILE(2, 1) FB_TABLE_TILE(3, 1) FB_TABLE_TILE(4, 1) FB_TABLE_TILE(5, 1) FB_TABLE_TILE(6, 1)
FB_TABLE_TILE(1, 2) FB_TABLE_TILE(2, 2) FB_TABLE_TILE(3, 2) FB_TABLE_TILE(4, 2) FB_TABLE_TILE(5, 2) FB_TABLE_TILE(6, 2)
#undef FB_TABLE_TILE
static const N(tile_function) N(table_tiles)[2][FB_ROWS + 1] = {
    {NULL, N(table_tile_11), N(table_tile_21), N(table_tile_31), N(table_tile_41), N(table_tile_51), N(table_tile_61)},
    {NULL, N(table_tile_12), N(table_tile_22), N(table_tile_32), N(table_tile_42), N(table_tile_52), N(table_tile_62)}};

/* Up to four vectors of one output row of one channel: the tile for a single row of weights. */
FB_INLINE void N(line)(const int vectors, i64 k, const T *w, const T *b, const i64 *off, T *acc) {
    N(vec) sum[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) sum[v] = (N(vec)){0};
    for (i64 p = 0; p < k; p++) {
        N(vec) factor = w[p] - (N(vec)){0};
        const T *at = b + off[p];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++) sum[v] += factor * *(const N(loose) *)(at + v * LANES);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++) *(N(loose) *)(acc + v * LANES) = sum[v];
}

static void N(lines)(i64 lanes, i64 k, const T *w, const T *b, const i64 *off, T *acc) {
    switch (fb_ceil(lanes, LANES)) {
    case 1: N(line)(1, k, w, b, off, acc); break;
    case 2: N(line)(2, k, w, b, off, acc); break;
    case 3: N(line)(3, k, w, b, off, acc); break;
    default: N(line)(4, k, w, b, off, acc);
    }
}

static inline void N(put_lanes)(T *out, i64 stride, i64 lanes, const T *acc, T add) {
    if (stride == 1 && lanes == WIDTH) for (i64 l = 0; l < WIDTH; l++) out[l] = acc[l] + add;
    else for (i64 l = 0; l < lanes; l++) out[l * stride] = acc[l] + add;
}

static void N(forward_direct)(const fb_convolution *c, const T *x, const T *weights, const T *bias, T *out,
                              const N(padded) *p, const i64 *offset, char *scratch, size_t scratch_size) {
    i64 rows = c->rows, depth = c->channels * fb_volume(c->taps), strips = fb_ceil(rows, FB_ROWS);
    i64 in_group = c->channels * fb_volume(c->in), across = c->grid[2], kernel_row = c->channels * c->taps[2];
    i64 tasks = c->images * c->groups, ox = c->out_at[2];
    i64 pair = across <= LANES ? 2 : 1; /* narrow rows: a vector from each of two */
#pragma omp parallel for schedule(static) num_threads((int)c->threads) \
    if (c->threads > 1 && tasks > 1 && tasks * rows * depth * fb_volume(c->grid) > FB_THREAD_WORK)
    for (i64 task = 0; task < tasks; task++) {
        i64 image = task / c->groups, group = task % c->groups;
        T acc[FB_ROWS * WIDTH] __attribute__((aligned(64)));
        T *padded = (T *)(scratch + scratch_size * (size_t)omp_get_thread_num());
        N(pad)(c, p, x + task * in_group, padded);
        T *to = out + c->out_start + image * c->out_image + group * c->out_group;
        const T *group_bias = bias ? bias + group * rows : NULL;
        for (i64 s = 0; s < strips; s++) {
            i64 m = fb_cut(rows, strips, s), high = fb_cut(rows, strips, s + 1) - m;
            const T *strip = weights + (group * rows + m) * depth;
            for (i64 z = 0; z < c->grid[0]; z++)
                for (i64 y = 0; y < c->grid[1]; y += pair) {
                    i64 both = fb_least(pair, c->grid[1] - y), first = 0, last = c->taps[0] * c->taps[1], ky0, ky1;
                    if (c->taps[0] == 1) { /* leave out the rows of the kernel that lie in the padding */
                        N(taps_inside)(c, 1, y, y + both - 1, &ky0, &ky1);
                        first = ky0, last = ky1;
                    }
                    i64 k = (last - first) * kernel_row;
                    const T *w = strip + first * kernel_row * high;
                    const i64 *at = offset + first * kernel_row;
                    const T *from = padded + z * c->step[0] * p->plane + y * c->step[1] * p->row;
                    T *row = to + m * c->out_row + z * c->out_at[0] + y * c->out_at[1];
                    if (rows == 1 && both == 1) {
                        T add = group_bias ? group_bias[0] : 0;
                        for (i64 j = 0; j < across; j += 2 * WIDTH) {
                            N(lines)(across - j, k, w, from + j, at, acc);
                            for (i64 l = 0; l < 2 && j + l * WIDTH < across; l++)
                                N(put_lanes)(row + (j + l * WIDTH) * ox, ox, fb_least(WIDTH, across - j - l * WIDTH), acc + l * WIDTH, add);
                        }
                        continue;
                    }
                    for (i64 j = 0; j < across; j += WIDTH) {
                        i64 lanes = fb_least(WIDTH, across - j);
                        N(table_tiles)[both == 2 || lanes > LANES][high](k, w, 1, high, from + j, both == 2 ? c->step[1] * p->row : LANES, at, acc);
                        for (i64 r = 0; r < high; r++)
                            for (i64 v = 0; v < both; v++)
                                N(put_lanes)(row + r * c->out_row + v * c->out_at[1] + j * ox, ox, lanes, acc + r * WIDTH + v * LANES,
                                             group_bias ? group_bias[m + r] : 0);
                    }
                }
        }
    }
}

/* Weights of each group (output channel m, column row k at w[m * wm + at[k]]) into strips of [depth][rows]. */
static void N(pack_weights)(const fb_convolution *c, const T *w, i64 group_stride, i64 wm, const i64 *at, T *to) {
    i64 depth = c->channels * fb_volume(c->taps), strips = fb_ceil(c->rows, FB_ROWS);
    FB_PARALLEL_FOR(c->groups * c->rows * depth)
    for (i64 i = 0; i < c->groups * strips; i++) {
        i64 group = i / strips, m = fb_cut(c->rows, strips, i % strips), high = fb_cut(c->rows, strips, i % strips + 1) - m;
        T *strip = to + (group * c->rows + m) * depth;
        const T *from = w + group * group_stride + m * wm;
        for (i64 k = 0; k < depth; k++)
            for (i64 r = 0; r < high; r++) *strip++ = from[r * wm + at[k]];
    }
}

/* A forward convolution with the weight of group g, output channel m, input channel ch and tap t at
 * w[g * group_stride + m * wm + ch * wc + tap[t]].  Returns false without memory. */
static bool N(forward)(fb_convolution c, const T *x, const T *w, i64 group_stride, i64 wm, i64 wc, const i64 *tap,
                       const T *bias, T *out) {
    static const i64 nowhere[] = {0};
    if (!c.images || !fb_volume(c.grid) || !c.rows || !c.groups) return true;
    if (!c.channels || !fb_volume(c.taps)) { /* no tap reaches these positions: what remains is the bias */
        for (int d = 0; d < 3; d++) c.taps[d] = 1, c.tap[d] = nowhere;
        c.channels = 0;
    }
    i64 volume = fb_volume(c.taps), depth = c.channels * volume;
    N(padded) p = N(padding_of)(&c);
    i64 padded = N(padded_elements)(&c, &p), bytes = padded * (i64)sizeof(T);
    bool direct = (c.rows <= FB_ROWS ? bytes <= FB_STREAM_BYTES : bytes <= FB_DIRECT_BYTES && c.rows <= FB_DIRECT_ROWS)
                  && (c.grid[2] >= LANES / 2 || c.rows * c.channels == 1);
    size_t weight_bytes = (size_t)fb_ceil(c.groups * c.rows * depth * (i64)sizeof(T), 64) * 64;
    size_t table_bytes = (size_t)fb_ceil(2 * depth * 8, 64) * 64;
    size_t each = (size_t)fb_ceil((direct ? padded : FB_DEPTH * COLUMN_STRIDE) * (i64)sizeof(T), 64) * 64;
    char *memory = fb_allocate(weight_bytes + table_bytes + each * (size_t)c.threads), *scratch = memory + weight_bytes + table_bytes;
    if (!memory) return false;
    T *weights = (T *)memory;
    i64 *at = (i64 *)(memory + weight_bytes), *offset = at + depth;
    if (direct) N(tap_tables)(&c, &p, wc, tap, offset, at);
    else for (i64 k = 0; k < depth; k++) at[k] = k / volume * wc + tap[k % volume];
    N(pack_weights)(&c, w, group_stride, wm, at, weights);
    if (direct) N(forward_direct)(&c, x, weights, bias, out, &p, offset, scratch, each);
    else N(forward_packed)(&c, x, weights, bias, out, scratch, each);
    fb_release(memory);
    return true;
}

/* ----------------------------------------------------------------- weight */

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
static bool N(weight_packed)(const fb_convolution *c, const T *x, const T *dy, T *dw) {
    i64 spans, tiles = fb_tile_count(c, &spans), depth = c->channels * fb_volume(c->taps), rows = c->rows;
    i64 padded_rows = fb_ceil(rows, WIDTH) * WIDTH, size = depth * padded_rows;
    i64 pieces = fb_most(1, fb_least(fb_least(tiles, FB_PIECES), (2 << 20) / (size * c->groups)));
    i64 blocks = fb_ceil(depth, FB_DEPTH), parts = fb_most(1, fb_least(blocks, FB_PIECES / (pieces * c->groups)));
    size_t columns = (size_t)(FB_DEPTH * COLUMN_STRIDE), each = columns + (size_t)(FB_POSITIONS * padded_rows);
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
        T acc[FB_ROWS * WIDTH] __attribute__((aligned(64)));
        fb_run runs[FB_POSITIONS];
        i64 first = fb_cut(blocks, parts, part), last = fb_cut(blocks, parts, part + 1);
        T *sum = sums + (piece * c->groups + group) * size; /* [strip of rows][depth][WIDTH] */
        for (i64 m = 0; m < padded_rows; m += WIDTH)
            for (i64 row = fb_cut(depth, blocks, first); row < fb_cut(depth, blocks, last); row++)
                memset(sum + m * depth + row * WIDTH, 0, WIDTH * sizeof(T));
        for (i64 tile = fb_cut(tiles, pieces, piece); tile < fb_cut(tiles, pieces, piece + 1); tile++) {
            i64 from, count;
            fb_tile_at(c, tile, &from, &count);
            i64 run_count = fb_runs(c, from, count, runs);
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
                    i64 lanes = rows - m > LANES ? WIDTH : LANES;
                    for (i64 s = 0; s < strips; s++) {
                        i64 r0 = fb_cut(deep, strips, s), high = fb_cut(deep, strips, s + 1) - r0;
                        tile_of[high](count, from_column + r0 * stride, stride, 1, gradients + m * count, WIDTH, NULL, acc);
                        T *to = sum + m * depth + (row + r0) * WIDTH;
                        if (lanes == WIDTH) for (i64 j = 0; j < high * WIDTH; j++) to[j] += acc[j];
                        else for (i64 r = 0; r < high; r++)
                            for (i64 j = 0; j < LANES; j++) to[r * WIDTH + j] += acc[r * WIDTH + j];
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

static bool N(weight_direct)(const fb_convolution *c, const N(padded) *p, const i64 *every_tap, const T *x, const T *dy, T *dw) {
    i64 depth = c->channels * fb_volume(c->taps), rows = c->rows, lines = c->grid[0] * c->grid[1], across = c->grid[2];
    i64 in_group = c->channels * fb_volume(c->in), pieces = fb_least(c->images, FB_PIECES), weights = c->groups * rows * depth;
    size_t each = (size_t)N(padded_elements)(c, p);
    T *sums = fb_allocate(((size_t)(pieces * weights) + each * (size_t)c->threads) * sizeof(T) + (size_t)depth * 16);
    if (!sums) return false;
    i64 *offset = (i64 *)sums, *at = offset + depth;
    sums = (T *)(at + depth);
    N(tap_tables)(c, p, fb_volume(c->taps), every_tap, offset, at);
    T *scratch = sums + pieces * weights;
    i64 tasks = pieces * c->groups;
#pragma omp parallel for schedule(static) num_threads((int)c->threads) if (c->threads > 1 && tasks > 1)
    for (i64 task = 0; task < tasks; task++) {
        i64 piece = task / c->groups, group = task % c->groups;
        T *padded = scratch + each * (size_t)omp_get_thread_num();
        T *sum = sums + piece * weights + group * rows * depth;
        memset(sum, 0, (size_t)(rows * depth) * sizeof(T));
        for (i64 image = fb_cut(c->images, pieces, piece); image < fb_cut(c->images, pieces, piece + 1); image++) {
            N(pad)(c, p, x + (image * c->groups + group) * in_group, padded);
            for (i64 m = 0; m < rows; m++)
                for (i64 t = 0; t < depth; t += 9) {
                    N(vec) lanes[9] = {{0}};
                    i64 taps = fb_least(9, depth - t);
                    for (i64 line = 0; line < lines; line++) {
                        i64 z = line / c->grid[1], y = line % c->grid[1];
                        const T *from = padded + z * c->step[0] * p->plane + y * c->step[1] * p->row;
                        const T *g = dy + image * c->out_image + group * c->out_group + m * c->out_row + line * across;
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

/* every_tap: 0, 1, ..., the taps in the order of the weights. */
static bool N(weight)(fb_convolution c, const i64 *every_tap, const T *x, const T *dy, T *dw) {
    i64 depth = c.channels * fb_volume(c.taps), weights = c.groups * c.rows * depth;
    if (!weights) return true;
    if (!c.images || !fb_volume(c.grid)) {
        memset(dw, 0, (size_t)weights * sizeof(T));
        return true;
    }
    N(padded) p = N(padding_of)(&c);
    bool direct = c.rows * c.channels <= 4 && N(padded_elements)(&c, &p) * (i64)sizeof(T) <= FB_DIRECT_BYTES && c.grid[2] >= LANES / 2;
    return direct ? N(weight_direct)(&c, &p, every_tap, x, dy, dw) : N(weight_packed)(&c, x, dy, dw);
}
#undef COLUMN_STRIDE
