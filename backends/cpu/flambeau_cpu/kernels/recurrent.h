/* Recurrent layers of one element type: a template like gemm.h, which it uses; EXP-like
 * functions are fb_sigmoid_* and fb_tanh_* of vectormath.h.
 *
 * The rows of a sequence lie step by step: step t has size[t] rows, a number that never grows.
 * A layer reads rows of gates (what the input contributes) and adds the state's contribution. */

/* Where row blocks begin. */
static void N(offsets)(i64 steps, const i64 *size, i64 *offset) {
    offset[0] = 0;
    for (i64 t = 0; t < steps; t++) offset[t + 1] = offset[t] + size[t];
}

/* The state before each row: the row of the step before, or the initial state. */
static void N(shifted)(i64 steps, const i64 *size, const i64 *offset, i64 width, bool reverse, const T *states,
                       const T *initial, T *before) {
    size_t row = (size_t)width * sizeof(T);
    for (i64 t = 0; t < steps; t++) {
        i64 from = reverse ? t + 1 : t - 1, there = from < 0 || from >= steps ? 0 : fb_least(size[from], size[t]);
        T *to = before + offset[t] * width;
        if (there) memcpy(to, states + offset[from] * width, (size_t)there * row);
        if (size[t] > there) memcpy(to + there * width, initial + there * width, (size_t)(size[t] - there) * row);
    }
}

/* ---------------------------------------------------------------- the state's weight */

/* A k x n matrix with these strides in panels of PANEL columns, each without gaps: what products with few rows
 * read again and again then stays in the first cache. */
static void N(to_panels)(i64 k, i64 n, const T *b, i64 brs, i64 bcs, T *to) {
    for (i64 first = 0; first < n; first += PANEL) {
        i64 columns = fb_least(PANEL, n - first);
        for (i64 i = 0; i < k; i++) for (i64 j = 0; j < columns; j++) *to++ = b[i * brs + (first + j) * bcs];
    }
}

/* The product of a (m x k, rows without gaps) and a matrix in panels. */
static bool N(by_panels)(i64 m, i64 n, i64 k, const T *a, const T *panels, N(target) t) {
    bool failed = false;
    i64 count = fb_ceil(n, PANEL);
#pragma omp parallel for schedule(static) num_threads(fb_threads) reduction(|| : failed) if (m * n * k >= FB_THREAD_WORK)
    for (i64 panel = 0; panel < count; panel++) {
        i64 first = panel * PANEL, columns = fb_least(PANEL, n - first);
        N(target) mine = t;
        mine.c += first;
        if (mine.bias) mine.bias += first;
        if (!N(gemm)(m, columns, k, a, k, 1, panels + first * k, columns, 1, mine, 1)) failed = true;
    }
    return !failed;
}

/* ---------------------------------------------------------------- one step */

/* x: rows of pre-activations, replaced by activations i, f, g, o. */
static void N(lstm_step)(i64 rows, i64 width, T *x, const T *cell_before, T *cell, T *state) {
    FB_PARALLEL_FOR(rows * width * 8) for (i64 r = 0; r < rows; r++) {
        T *i = x + r * 4 * width, *f = i + width, *g = f + width, *o = g + width;
        const T *before = cell_before + r * width;
        T *c = cell + r * width, *h = state + r * width;
        IVDEP for (i64 j = 0; j < width; j++) {
            i[j] = SIGMOID(i[j]); f[j] = SIGMOID(f[j]); g[j] = TANH(g[j]); o[j] = SIGMOID(o[j]);
            T next = f[j] * before[j] + i[j] * g[j];
            c[j] = next;
            h[j] = o[j] * TANH(next);
        }
    }
}

/* dh, dc: gradients of the step's results; dc becomes that of the cell before. */
static void N(lstm_back)(i64 rows, i64 width, const T *x, const T *cell_before, const T *cell, const T *dh, T *dc, T *dx) {
    FB_PARALLEL_FOR(rows * width * 8) for (i64 r = 0; r < rows; r++) {
        const T *i = x + r * 4 * width, *f = i + width, *g = f + width, *o = g + width;
        const T *before = cell_before + r * width, *now = cell + r * width, *d = dh + r * width;
        T *c = dc + r * width, *di = dx + r * 4 * width, *df = di + width, *dg = df + width, *dout = dg + width;
        IVDEP for (i64 j = 0; j < width; j++) {
            T t = TANH(now[j]), flow = c[j] + d[j] * o[j] * (1 - t * t);
            di[j] = flow * g[j] * i[j] * (1 - i[j]);
            df[j] = flow * before[j] * f[j] * (1 - f[j]);
            dg[j] = flow * i[j] * (1 - g[j] * g[j]);
            dout[j] = d[j] * t * o[j] * (1 - o[j]);
            c[j] = flow * f[j];
        }
    }
}

/* x: the input's part; y: the state's; saved: rows of r, z, n and the state's part of n. */
static void N(gru_step)(i64 rows, i64 width, const T *x, const T *y, const T *before, T *saved, T *state) {
    FB_PARALLEL_FOR(rows * width * 8) for (i64 k = 0; k < rows; k++) {
        const T *xr = x + k * 3 * width, *xz = xr + width, *xn = xz + width;
        const T *yr = y + k * 3 * width, *yz = yr + width, *yn = yz + width, *b = before + k * width;
        T *r = saved + k * 4 * width, *z = r + width, *n = z + width, *m = n + width, *h = state + k * width;
        IVDEP for (i64 j = 0; j < width; j++) {
            r[j] = SIGMOID(xr[j] + yr[j]);
            z[j] = SIGMOID(xz[j] + yz[j]);
            m[j] = yn[j];
            n[j] = TANH(xn[j] + r[j] * yn[j]);
            h[j] = n[j] + z[j] * (b[j] - n[j]);
        }
    }
}

/* dx: gradient of the input's part; dy of the state's part; dh becomes what passes to the state directly. */
static void N(gru_back)(i64 rows, i64 width, const T *saved, const T *before, T *dh, T *dx, T *dy) {
    FB_PARALLEL_FOR(rows * width * 8) for (i64 k = 0; k < rows; k++) {
        const T *r = saved + k * 4 * width, *z = r + width, *n = z + width, *m = n + width, *b = before + k * width;
        T *d = dh + k * width, *xr = dx + k * 3 * width, *xz = xr + width, *xn = xz + width;
        T *yr = dy + k * 3 * width, *yz = yr + width, *yn = yz + width;
        IVDEP for (i64 j = 0; j < width; j++) {
            T dn = d[j] * (1 - z[j]) * (1 - n[j] * n[j]), dr = dn * m[j] * r[j] * (1 - r[j]);
            T dz = d[j] * (b[j] - n[j]) * z[j] * (1 - z[j]);
            xr[j] = yr[j] = dr;
            xz[j] = yz[j] = dz;
            xn[j] = dn;
            yn[j] = dn * r[j];
            d[j] *= z[j];
        }
    }
}

static void N(plain_step)(i64 count, bool relu, T *h) {
    if (relu) IVDEP for (i64 j = 0; j < count; j++) h[j] = h[j] < 0 ? 0 : h[j];
    else FB_PARALLEL_FOR(count) for (i64 j = 0; j < count; j++) h[j] = TANH(h[j]);
}

static void N(plain_back)(i64 count, bool relu, const T *h, const T *dh, T *dx) {
    if (relu) IVDEP for (i64 j = 0; j < count; j++) dx[j] = h[j] > 0 ? dh[j] : 0;
    else IVDEP for (i64 j = 0; j < count; j++) dx[j] = dh[j] * (1 - h[j] * h[j]);
}

/* ---------------------------------------------------------------- a layer */

/* q = {kind, reverse, rows of hx, width, steps, size[steps]}
 * p = {out, h, c, gates, hx, cx, weight, bias, saved}; c, cx for LSTM only; bias for GRU only, may be NULL.
 * saved: LSTM rows of i, f, g, o, then rows of cells; GRU rows of r, z, n, m. */
static i64 N(forward)(void *const *p, const i64 *q) {
    i64 kind = q[0], batch = q[2], width = q[3], steps = q[4];
    const i64 *size = q + 5;
    bool reverse = q[1];
    i64 gates = (kind == LSTM ? 4 : kind == GRU ? 3 : 1) * width, keeps = kind == GRU ? 4 * width : gates;
    T *out = p[0], *last = p[1], *last_cell = p[2], *saved = p[8];
    const T *x = p[3], *hx = p[4], *cx = p[5], *weight = p[6], *bias = p[7];
    i64 *offset = malloc((size_t)(steps + 1) * sizeof *offset);
    T *turned = fb_allocate((size_t)(gates * width) * sizeof(T));
    T *h = fb_allocate((size_t)(batch * width) * sizeof(T)), *c = NULL, *part = NULL;
    bool ok = offset && turned && h;
    if (kind == LSTM) ok = (c = fb_allocate((size_t)(batch * width) * sizeof(T))) && ok;
    if (kind == GRU) ok = (part = fb_allocate((size_t)(batch * gates) * sizeof(T))) && ok;
    if (ok) {
        N(offsets)(steps, size, offset);
        i64 rows = offset[steps];
        T *cells = saved + rows * gates;
        N(to_panels)(width, gates, weight, 1, width, turned);
        /* The states of all sequences; those that are not running keep their initial or last value. */
        memcpy(h, hx, (size_t)(batch * width) * sizeof(T));
        if (c) memcpy(c, cx, (size_t)(batch * width) * sizeof(T));
        for (i64 s = 0; s < steps && ok; s++) {
            i64 t = reverse ? steps - 1 - s : s, n = size[t], at = offset[t];
            T *to = kind == LSTM ? saved + at * gates : kind == GRU ? part : out + at * width;
            const T *added = kind == GRU ? bias : x + at * gates;
            N(target) target = {to, gates, 1, added, kind == GRU ? 0 : gates, 1, 1, 1};
            ok = N(by_panels)(n, gates, width, h, turned, target);
            if (!ok) break;
            T *state = out + at * width;
            if (kind == LSTM) {
                N(lstm_step)(n, width, to, c, cells + at * width, state);
                memcpy(c, cells + at * width, (size_t)(n * width) * sizeof(T));
            } else if (kind == GRU) N(gru_step)(n, width, x + at * gates, part, h, saved + at * keeps, state);
            else N(plain_step)(n * width, kind == RELU, state);
            memcpy(h, state, (size_t)(n * width) * sizeof(T));
        }
        memcpy(last, h, (size_t)(batch * width) * sizeof(T));
        if (c) memcpy(last_cell, c, (size_t)(batch * width) * sizeof(T));
    }
    free(offset);
    if (turned) fb_release(turned);
    if (h) fb_release(h);
    if (c) fb_release(c);
    if (part) fb_release(part);
    return ok ? 0 : NO_MEMORY;
}

/* p = {dgates, dhx, dcx, dweight, dbias, gout, gh, gc, hx, cx, weight, saved, out}
 * dhx and dcx hold the gradients of the last states when called, those of the first when done. */
static i64 N(backward)(void *const *p, const i64 *q) {
    i64 kind = q[0], batch = q[2], width = q[3], steps = q[4];
    const i64 *size = q + 5;
    bool reverse = q[1];
    i64 gates = (kind == LSTM ? 4 : kind == GRU ? 3 : 1) * width, keeps = kind == GRU ? 4 * width : gates;
    T *dx = p[0], *dh = p[1], *dc = p[2], *dweight = p[3], *dbias = p[4];
    const T *gout = p[5], *hx = p[8], *cx = p[9], *weight = p[10], *saved = p[11], *out = p[12];
    i64 *offset = malloc((size_t)(steps + 1) * sizeof *offset), rows = 0;
    if (!offset) return NO_MEMORY;
    N(offsets)(steps, size, offset);
    rows = offset[steps];
    T *before = fb_allocate((size_t)(rows * width) * sizeof(T)), *cell_before = NULL, *dy = dx, *kept = NULL;
    T *panels = fb_allocate((size_t)(gates * width) * sizeof(T));
    bool ok = before && panels;
    if (kind == LSTM) ok = (cell_before = fb_allocate((size_t)(rows * width) * sizeof(T))) && ok;
    if (kind == GRU) {
        dy = fb_allocate((size_t)(rows * gates) * sizeof(T));
        kept = fb_allocate((size_t)(batch * width) * sizeof(T));
        ok = dy && kept && ok;
    }
    if (ok) {
        const T *cells = saved + rows * gates;
        N(to_panels)(gates, width, weight, width, 1, panels);
        N(shifted)(steps, size, offset, width, reverse, out, hx, before);
        if (kind == LSTM) N(shifted)(steps, size, offset, width, reverse, cells, cx, cell_before);
        for (i64 s = 0; s < steps && ok; s++) {
            i64 t = reverse ? s : steps - 1 - s, n = size[t], at = offset[t];
            const T *g = gout + at * width;
            for (i64 j = 0; j < n * width; j++) dh[j] += g[j];
            if (kind == LSTM)
                N(lstm_back)(n, width, saved + at * gates, cell_before + at * width, cells + at * width, dh, dc, dx + at * gates);
            else if (kind == GRU)
                N(gru_back)(n, width, saved + at * keeps, before + at * width, dh, dx + at * gates, dy + at * gates);
            else N(plain_back)(n * width, kind == RELU, out + at * width, dh, dx + at * gates);
            if (kind == GRU) memcpy(kept, dh, (size_t)(n * width) * sizeof(T));
            N(target) target = {dh, width, 1, kept, width, 1, 1, 1};
            ok = N(by_panels)(n, width, gates, dy + at * gates, panels, target);
        }
        if (ok && dweight) {
            N(target) target = {dweight, width, 1, NULL, 0, 0, 1, 0};
            ok = N(gemm)(gates, width, rows, dy, 1, gates, before, width, 1, target, fb_threads);
        }
        if (ok && dbias) {
            memset(dbias, 0, (size_t)gates * sizeof(T));
            for (i64 r = 0; r < rows; r++) for (i64 j = 0; j < gates; j++) dbias[j] += dy[r * gates + j];
        }
    }
    free(offset);
    if (before) fb_release(before);
    if (cell_before) fb_release(cell_before);
    if (dy != dx && dy) fb_release(dy);
    if (kept) fb_release(kept);
    if (panels) fb_release(panels);
    return ok ? 0 : NO_MEMORY;
}
