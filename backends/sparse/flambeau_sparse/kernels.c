/* Kernels on coordinates and values; build_kernels.py declares them and says for which types.
 * Results do not depend on the number of threads: each output element is written by one thread, in one order. */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Below this much work, threads cost more than they save. */
#define FEW 16384

static int threads = 1;

void fs_set_threads(int count) { threads = count < 1 ? 1 : count; }
int fs_get_threads(void) { return threads; }

/* A forked child has one thread: those of the pool are not there. */
static void in_child(void) { threads = 1; }

__attribute__((constructor)) static void prepare(void) {
    threads = omp_get_max_threads();
    pthread_atfork(0, 0, in_child);
}

#define PRAGMA(text) _Pragma(#text)
/* Shares a loop out if there is enough work; more clauses may follow. */
#define SHARED(work, ...) PRAGMA(omp parallel for num_threads(threads) if (threads > 1 && (work) > FEW) __VA_ARGS__)

int64_t fs_places(const int64_t *indices, int64_t dims, int64_t n, const int64_t *sizes, int64_t *places) {
    int64_t bad = n;
    SHARED(n * dims, reduction(min : bad))
    for (int64_t i = 0; i < n; i++) {
        int64_t place = 0;
        for (int64_t d = 0; d < dims; d++) {
            const int64_t index = indices[d * n + i];
            if ((index < 0 || index >= sizes[d]) && i < bad) bad = i;
            place = place * sizes[d] + index;
        }
        places[i] = place;
    }
    return bad;
}

typedef struct {
    int64_t number, from;
} Entry;

#define DIGIT 11
#define DIGITS (1 << DIGIT)

/* One round: entries in the order of one digit; those of one digit keep their order.  Each thread counts, and later
 * moves, one part; `counts` has a row for each thread. */
static void sort_by_digit(const Entry *from, Entry *to, int64_t n, int shift, int parts, int64_t (*counts)[DIGITS]) {
    memset(counts, 0, (size_t)parts * sizeof *counts);
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
    for (int part = 0; part < parts; part++)
        for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i++)
            counts[part][(from[i].number >> shift) & (DIGITS - 1)]++;
    int64_t before = 0;
    for (int digit = 0; digit < DIGITS; digit++)
        for (int part = 0; part < parts; part++) {
            const int64_t count = counts[part][digit];
            counts[part][digit] = before;
            before += count;
        }
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
    for (int part = 0; part < parts; part++)
        for (int64_t i = n * part / parts; i < n * (part + 1) / parts; i++)
            to[counts[part][(from[i].number >> shift) & (DIGITS - 1)]++] = from[i];
}

int fs_order(const int64_t *numbers, int64_t n, int64_t *order) {
    int sorted = 1;
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        sorted &= !i || numbers[i - 1] <= numbers[i];
        most |= numbers[i];
        order[i] = i;
    }
    if (sorted) return 1;
    const int parts = n > FEW ? threads : 1;
    Entry *memory = malloc((size_t)n * 2 * sizeof(Entry)), *from = memory, *to = memory + n;
    int64_t(*counts)[DIGITS] = malloc((size_t)parts * sizeof *counts);
    if (memory && counts) {
        SHARED(n)
        for (int64_t i = 0; i < n; i++) from[i] = (Entry){numbers[i], i};
        for (int shift = 0; shift < 63 && most >> shift; shift += DIGIT) {
            sort_by_digit(from, to, n, shift, parts, counts);
            Entry *swap = from;
            from = to;
            to = swap;
        }
        for (int64_t i = 0; i < n; i++) order[i] = from[i].from;
    }
    const int done = memory && counts;
    free(memory);
    free(counts);
    return done;
}

int64_t fs_runs(const int64_t *numbers, const int64_t *order, int64_t n, int64_t *starts) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (!i || numbers[order[i]] != numbers[order[i - 1]]) starts[count++] = i;
    starts[count] = n;
    return count;
}

static int64_t first_at_least(const int64_t *sorted, int64_t n, int64_t wanted) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (sorted[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

void fs_find(const int64_t *sorted, int64_t n, const int64_t *wanted, int64_t count, int64_t *found) {
    SHARED(count * 8)
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = first_at_least(sorted, n, wanted[i]);
        found[i] = at < n && sorted[at] == wanted[i] ? at : -1;
    }
}

/* In how many parts to do some work: a part may read all rows to find its own, so there are few, and only for more. */
#define MOST_PARTS 16
static int part_count(int64_t work) {
    return work <= 4 * FEW ? 1 : threads < MOST_PARTS ? threads : MOST_PARTS;
}

/* Merges numbers of a from i to `end` with those of b from j to `b_end`; returns how many there are, and writes where
 * each comes from unless that is not asked. */
static int64_t merge(const int64_t *a, int64_t i, int64_t end, const int64_t *b, int64_t j, int64_t b_end,
                     int64_t *from_a, int64_t *from_b) {
    int64_t count = 0;
    for (; i < end || j < b_end; count++) {
        const int take_a = i < end && (j >= b_end || a[i] <= b[j]), take_b = j < b_end && (i >= end || b[j] <= a[i]);
        if (from_a) {
            from_a[count] = take_a ? i : -1;
            from_b[count] = take_b ? j : -1;
        }
        i += take_a;
        j += take_b;
    }
    return count;
}

int64_t fs_merge(const int64_t *a, int64_t n, const int64_t *b, int64_t m, int64_t *from_a, int64_t *from_b) {
    const int parts = n ? part_count(n + m) : 1;
    int64_t starts[MOST_PARTS + 1] = {0}, b_starts[MOST_PARTS + 1] = {0};
    b_starts[parts] = m;
    for (int part = 1; part < parts; part++) {  // never back, even if somebody wrote numbers that do not rise
        const int64_t start = first_at_least(b, m, a[n * part / parts]);
        b_starts[part] = start > b_starts[part - 1] ? start : b_starts[part - 1];
    }
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++)
        starts[part + 1] = merge(a, n * part / parts, n * (part + 1) / parts, b, b_starts[part], b_starts[part + 1], 0, 0);
    for (int part = 0; part < parts; part++) starts[part + 1] += starts[part];
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int part = 0; part < parts; part++)
        merge(a, n * part / parts, n * (part + 1) / parts, b, b_starts[part], b_starts[part + 1],
              from_a + starts[part], from_b + starts[part]);
    return starts[parts];
}

void fs_merged_indices(const int64_t *a, int64_t n, const int64_t *from_a, const int64_t *b, int64_t m,
                       const int64_t *from_b, int64_t dims, int64_t count, int64_t *out) {
    SHARED(dims * count, collapse(2))
    for (int64_t d = 0; d < dims; d++)
        for (int64_t i = 0; i < count; i++)
            out[d * count + i] = from_a[i] >= 0 ? a[d * n + from_a[i]] : b[d * m + from_b[i]];
}

static int rises(const int64_t *rows, int64_t n) {
    int rising = 1;
    SHARED(n, reduction(& : rising))
    for (int64_t i = 1; i < n; i++) rising &= rows[i - 1] <= rows[i];
    return rising;
}

/* Where a part of rising rows begins: never within those of one number. */
static int64_t part_start(const int64_t *rows, int64_t n, int part, int parts) {
    int64_t start = n / parts * part + n % parts * part / parts;
    while (start && start < n && rows[start - 1] == rows[start]) start++;
    return start;
}

/* BODY for each i below n, in their order for each row: a part has a stretch of rows that rise; of others, all those
 * within a range of numbers. */
#define EACH_OWNED(rows, n, count, work, BODY) \
    do { \
        const int parts = part_count(work), rising = parts == 1 || rises(rows, n); \
        _Pragma("omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)") \
        for (int part = 0; part < parts; part++) { \
            const int64_t low = rising ? INT64_MIN : count / parts * part + count % parts * part / parts; \
            const int64_t high = rising || part == parts - 1 \
                ? INT64_MAX : count / parts * (part + 1) + count % parts * (part + 1) / parts; \
            const int64_t end = rising ? part_start(rows, n, part + 1, parts) : n; \
            for (int64_t i = rising ? part_start(rows, n, part, parts) : 0; i < end; i++) \
                if (rows[i] >= low && rows[i] < high) { BODY } \
        } \
    } while (0)

#define FS_DEFINE(name, T) \
    void fs_sum_runs_##name(const T *values, const int64_t *order, const int64_t *starts, int64_t runs, \
                            int64_t width, T *out) { \
        SHARED(starts[runs] * width) \
        for (int64_t r = 0; r < runs; r++) { \
            T *to = out + r * width; \
            memcpy(to, values + order[starts[r]] * width, (size_t)width * sizeof(T)); \
            for (int64_t k = starts[r] + 1; k < starts[r + 1]; k++) { \
                const T *more = values + order[k] * width; \
                for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + more[j]); \
            } \
        } \
    } \
    void fs_add_merged_##name(const T *a, const int64_t *from_a, const T *b, const int64_t *from_b, int64_t n, \
                              int64_t width, T *out) { \
        SHARED(n * width) \
        for (int64_t i = 0; i < n; i++) { \
            const T *one = a + from_a[i] * width, *other = b + from_b[i] * width; \
            T *to = out + i * width; \
            if (from_a[i] < 0) memcpy(to, other, (size_t)width * sizeof(T)); \
            else if (from_b[i] < 0) memcpy(to, one, (size_t)width * sizeof(T)); \
            else for (int64_t j = 0; j < width; j++) to[j] = (T)(one[j] + other[j]); \
        } \
    } \
    void fs_scatter_##name(T *out, int64_t count, const int64_t *places, const T *values, int64_t n, int64_t width) { \
        EACH_OWNED(places, n, count, n * width, \
            T *to = out + places[i] * width; \
            for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + values[i * width + j]); \
        ); \
    } \
    void fs_spmm_##name(const int64_t *rows, const int64_t *columns, const T *values, int64_t n, const T *dense, \
                        int64_t down, int64_t across, int64_t count, int64_t width, T *out) { \
        EACH_OWNED(rows, n, count, n * width, \
            T *restrict to = out + rows[i] * width; \
            const T value = values[i]; \
            const T *from = dense + columns[i] * down; \
            if (across == 1) \
                for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + value * from[j]); \
            else \
                for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + value * from[j * across]); \
        ); \
    } \
    void fs_sddmm_##name(const int64_t *rows, const int64_t *columns, int64_t n, const T *a, int64_t a_down, \
                         int64_t a_across, const T *b, int64_t b_down, int64_t b_across, int64_t inner, T *out) { \
        SHARED(n * inner) \
        for (int64_t k = 0; k < n; k++) { \
            const T *row = a + rows[k] * a_down, *column = b + columns[k] * b_across; \
            T sum = 0; \
            for (int64_t j = 0; j < inner; j++) sum = (T)(sum + row[j * a_across] * column[j * b_down]); \
            out[k] = sum; \
        } \
    }

#define X FS_DEFINE
FS_TYPES

/* Sums over `inner` elements of each value into row places[i]; TERM of x, the size of an element, changes `sum`. */
#define FOLD(T, abs, TERM) \
    EACH_OWNED(places, n, count, n * kept * inner, \
        for (int64_t j = 0; j < kept; j++) { \
            const T *from = values + (i * kept + j) * inner; \
            T sum = out[places[i] * kept + j]; \
            for (int64_t k = 0; k < inner; k++) { \
                const T x = abs(from[k]); \
                TERM; \
            } \
            out[places[i] * kept + j] = sum; \
        } \
    )

#define FS_FOLD(name, T, abs, power) \
    void fs_fold_##name(T *out, int64_t count, const int64_t *places, const T *values, int64_t n, int64_t kept, \
                        int64_t inner, double p) { \
        const T by = (T)p; \
        if (p == 0) FOLD(T, abs, sum += x != 0); \
        else if (p == 1) FOLD(T, abs, sum += x); \
        else if (p == 2) FOLD(T, abs, sum += x * x); \
        else if (isinf(p)) FOLD(T, abs, if (x > sum || x != x) sum = x); \
        else FOLD(T, abs, sum += power(x, by)); \
    }

FS_FOLD(float32, float, fabsf, powf)
FS_FOLD(float64, double, fabs, pow)
