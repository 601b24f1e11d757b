/* Maximum and minimum with the index of the first one; see reduce.h.
 * NaN is the extreme of every row that holds one.  p: values or NULL, input, indices or NULL. */
#include "lanes.h"
#include "reduce.h"

enum { BLOCK = 2048, ROWS = 1 << 30 };

/* EXTREMUM stamps a fold over C whose row numbers travel in I, of the same width so that
 * both fit one vector.  BEYOND(a, b): a is strictly more extreme; IDENTITY: none is less. */
#define EXTREMUM(name, C, I, IDENTITY, PICK, BEYOND) \
    typedef struct { C value; i64 index; } name##_state; /* index -1: nothing yet */ \
    FB_ROW(name##_row, C, FB_SAME, C, IDENTITY, PICK, PICK) \
    static inline bool name##_better(C a, C b) { return BEYOND(a, b) || (a != a && b == b); } \
    static inline void name##_offer(name##_state *state, C value, i64 index) { \
        bool tie = value == state->value || (value != value && state->value != state->value); \
        if (state->index < 0 || name##_better(value, state->value) || (tie && index < state->index)) \
            *state = (name##_state){value, index}; \
    } \
    static void name##_clear(void *state, i64 m) { \
        for (i64 j = 0; j < m; j++) ((name##_state *)state)[j] = (name##_state){0, -1}; \
    } \
    static void name##_join(void *into, const void *from, i64 m) { \
        const name##_state *v = from; \
        for (i64 j = 0; j < m; j++) \
            if (v[j].index >= 0) name##_offer((name##_state *)into + j, v[j].value, v[j].index); \
    } \
    static i64 name##_find(const C *x, i64 n, C value) { \
        i64 i = 0; \
        for (; i + 64 <= n; i += 64) { \
            I found = 0; \
            for (int k = 0; k < 64; k++) found |= x[i + k] == value || x[i + k] != x[i + k]; \
            if (found) break; \
        } \
        for (; i + 8 <= n; i += 8) { \
            I found = 0; \
            for (int k = 0; k < 8; k++) found |= x[i + k] == value || x[i + k] != x[i + k]; \
            if (found) break; \
        } \
        while (i < n - 1 && x[i] == x[i] && x[i] != value) i++; \
        return i; \
    } \
    static void name##_fold(void *states, const fb_panel *panel) { \
        name##_state *state = states; \
        const C *x = panel->x; \
        i64 n = panel->n, m = panel->m, at = panel->at, step = panel->step; \
        if (panel->nx == 1) { \
            for (i64 j = 0; j < m; j++, x += panel->mx) \
                for (i64 i = 0; i < n; i += BLOCK) { \
                    i64 count = n - i < BLOCK ? n - i : BLOCK; \
                    C best = name##_row(x + i, count, 0); \
                    if (state[j].index >= 0 && at + i * step > state[j].index && !name##_better(best, state[j].value)) continue; \
                    name##_offer(&state[j], best, at + (i + name##_find(x + i, count, best)) * step); \
                } \
            return; \
        } \
        C value[FB_TILE]; \
        I row[FB_TILE]; \
        for (i64 i = 0; i < n; i += ROWS) { \
            I last = (I)(n - i < ROWS ? n - i : ROWS); \
            for (i64 j = 0; j < m; j++) { value[j] = x[j]; row[j] = 0; } \
            x += panel->nx; \
            for (I k = 1; k < last; k++, x += panel->nx) \
                for (i64 j = 0; j < m; j++) { \
                    C v = x[j], old = value[j]; \
                    bool take = BEYOND(v, old) | ((v != v) & (old == old)); \
                    value[j] = take ? v : old; \
                    row[j] = take ? k : row[j]; \
                } \
            for (i64 j = 0; j < m; j++) name##_offer(&state[j], value[j], at + (i + row[j]) * step); \
        } \
    }

#define MORE(a, b) ((a) > (b))
#define LESS(a, b) ((a) < (b))
#define PAIR(s, C, I, LOW, HIGH) \
    EXTREMUM(max_##s, C, I, LOW, FB_MAX, MORE) \
    EXTREMUM(min_##s, C, I, HIGH, FB_MIN, LESS)
PAIR(i32, int32_t, int32_t, INT32_MIN, INT32_MAX)
PAIR(i64, int64_t, int64_t, INT64_MIN, INT64_MAX)
PAIR(f32, float, int32_t, -INFINITY, INFINITY)
PAIR(f64, double, int64_t, -INFINITY, INFINITY)

FB_FLOAT_GATHERS(gather)
FB_GATHER(gather_b8, uint8_t, , int32_t)
FB_GATHER(gather_u8, uint8_t, , int32_t)
FB_GATHER(gather_i8, int8_t, , int32_t)
FB_GATHER(gather_i16, int16_t, , int32_t)
FB_GATHER(gather_i32, int32_t, , int32_t)
FB_GATHER(gather_i64, int64_t, , int64_t)

/* dtype, suffix, element, store, suffix and type of the fold that serves it */
#define DTYPES(X) \
    X(FB_BOOL, b8, uint8_t, (uint8_t), i32, int32_t) \
    X(FB_U8, u8, uint8_t, (uint8_t), i32, int32_t) \
    X(FB_I8, i8, int8_t, (int8_t), i32, int32_t) \
    X(FB_I16, i16, int16_t, (int16_t), i32, int32_t) \
    X(FB_I32, i32, int32_t, (int32_t), i32, int32_t) \
    X(FB_I64, i64, int64_t, (int64_t), i64, int64_t) \
    X(FB_F16, f16, f16, f16_from_float, f32, float) \
    X(FB_BF16, bf16, bf16, bf16_from_float, f32, float) \
    X(FB_F32, f32, float, (float), f32, float) \
    X(FB_F64, f64, double, (double), f64, double)

#define ROUTINE(which, s, T, STORE, f, C) \
    static void which##_finish_##s(const void *states, i64 m, void *const *p, i64 at, i64 step, i64 reduced, const i64 *q) { \
        const which##_##f##_state *state = states; \
        T *values = p[0]; \
        i64 *indices = p[2]; \
        (void)reduced; (void)q; \
        for (i64 j = 0; j < m && values; j++) values[at + j * step] = STORE(state[j].value); \
        for (i64 j = 0; j < m && indices; j++) indices[at + j * step] = state[j].index; \
    } \
    static i64 which##_of_##s(void *const *p, const i64 *q) { \
        static const fb_fold fold = {sizeof(T), sizeof(C), sizeof(which##_##f##_state), true, gather_##s, \
            which##_##f##_clear, which##_##f##_fold, which##_##f##_join, which##_finish_##s}; \
        return fb_reduce(&fold, p, q); \
    }
#define X(D, s, T, STORE, f, C) \
    ROUTINE(max, s, T, STORE, f, C) \
    ROUTINE(min, s, T, STORE, f, C)
DTYPES(X)
#undef X

FB_FAMILY(extrema) = {
#define X(D, s, T, STORE, f, C) {"max", D, max_of_##s, {0}}, {"min", D, min_of_##s, {0}},
    DTYPES(X)
#undef X
    FB_END};
