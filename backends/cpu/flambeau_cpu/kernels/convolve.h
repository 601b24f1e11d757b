/* Convolutions of one element type, as products of matrices that are never written out.
 *
 * A template: define T and N(name), include tile.h, columns.h and bands.h, then this.  A convolution is
 * the product of the weights (rows: output channels) and the columns: the input under each
 * tap of the kernel (rows: input channel and tap) at each output position.
 *
 *   forward   every output position at stride `step` in the input;
 *   input     the gradient of the input: for each residue of the position modulo the stride a
 *             forward convolution of step 1 over the taps that reach it;
 *   weight    the gradient of the weights: output gradients times transposed columns.
 *
 * Two ways to the columns: copied (columns.h), or read in place from a padded band of the input (bands.h).  Copying costs
 * once per tap, which many output channels pay for; reading in place fills whole vectors only in wide rows.  Which way, and all
 * cuts, depend on shapes alone, so results do not depend on the threads. */

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

/* Which way is cheaper, by what one row of the columns costs for an average position: the multiply-adds (two vectors a cycle),
 * with lanes that a row's end leaves empty, and the copying. */
static bool N(prefers_bands)(const fb_convolution *c, const N(bands) *b) {
    double across = (double)c->grid[2], work = (double)c->rows / (2.0 * (double)LANES);
    double vectors = c->grid[2] <= LANES ? 0.5 * (double)(c->grid[1] + c->grid[1] % 2) / (double)c->grid[1]
                                         : (double)(c->grid[2] / WIDTH) + (c->grid[2] % WIDTH > LANES ? 1 : c->grid[2] % WIDTH ? 0.65 : 0);
    double filled = (double)(b->plane * c->taps[0]) / (double)(b->rows * b->columns * fb_volume(c->taps));
    double bands = work * vectors * (double)WIDTH / across + filled * (c->step[2] == 1 ? 0.3 : 1);
    return bands < work * 1.02 + (c->step[2] == 1 ? 0.35 : 0.8);
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
    N(bands) b = N(plan_bands)(&c, false);
    bool bands = N(prefers_bands)(&c, &b);
    size_t weight_bytes = (size_t)fb_ceil(c.groups * c.rows * depth * (i64)sizeof(T), 64) * 64;
    size_t table_bytes = (size_t)fb_ceil(2 * depth * 8, 64) * 64;
    size_t each = (size_t)fb_ceil((bands ? b.elements : FB_DEPTH * (FB_POSITIONS + FB_POSITION_PAD)) * (i64)sizeof(T), 64) * 64;
    char *memory = fb_allocate(weight_bytes + table_bytes + each * (size_t)c.threads), *scratch = memory + weight_bytes + table_bytes;
    if (!memory) return false;
    T *weights = (T *)memory;
    i64 *at = (i64 *)(memory + weight_bytes), *offset = at + depth;
    if (bands) N(tap_tables)(&c, &b, wc, tap, offset, at);
    else for (i64 k = 0; k < depth; k++) at[k] = k / volume * wc + tap[k % volume];
    N(pack_weights)(&c, w, group_stride, wm, at, weights);
    if (bands) N(forward_bands)(&c, &b, x, weights, bias, out, offset, scratch, each);
    else N(forward_columns)(&c, x, weights, bias, out, scratch, each);
    fb_release(memory);
    return true;
}

/* every_tap: 0, 1, ..., the taps in the order of the weights. */
static bool N(weight)(fb_convolution c, const i64 *every_tap, const T *x, const T *dy, T *dw) {
    i64 weights = c.groups * c.rows * c.channels * fb_volume(c.taps);
    if (!weights) return true;
    if (!c.images || !fb_volume(c.grid)) {
        memset(dw, 0, (size_t)weights * sizeof(T));
        return true;
    }
    N(bands) b = N(plan_bands)(&c, true);
    bool bands = c.rows * c.channels <= 4 && b.elements * (i64)sizeof(T) <= 2 * FB_BAND_BYTES && c.grid[2] >= LANES / 2;
    return bands ? N(weight_bands)(&c, &b, every_tap, x, dy, dw) : N(weight_columns)(&c, x, dy, dw);
}
