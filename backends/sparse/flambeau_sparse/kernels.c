/* Kernels on coordinates and values; build_kernels.py declares them and says for which types.
 * Results do not depend on the number of threads: each output element is written by one thread, in one order. */
#include <omp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Below this much work, threads cost more than they save. */
#define FEW 16384

int64_t fs_places(const int64_t *indices, int64_t dims, int64_t n, const int64_t *sizes, int64_t *places) {
    int64_t bad = n;
#pragma omp parallel for reduction(min : bad) if (n * dims > FEW)
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
    const int parts = n > FEW ? omp_get_max_threads() : 1;
    Entry *memory = malloc((size_t)n * 2 * sizeof(Entry)), *from = memory, *to = memory + n;
    int64_t(*counts)[DIGITS] = malloc((size_t)parts * sizeof *counts);
    if (memory && counts) {
#pragma omp parallel for if (n > FEW)
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

void fs_find(const int64_t *sorted, int64_t n, const int64_t *wanted, int64_t count, int64_t *found) {
#pragma omp parallel for if (count > FEW / 8)
    for (int64_t i = 0; i < count; i++) {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (sorted[middle] < wanted[i]) low = middle + 1;
            else high = middle;
        }
        found[i] = low < n && sorted[low] == wanted[i] ? low : -1;
    }
}

#define FS_DEFINE(name, T) \
    void fs_sum_runs_##name(const T *values, const int64_t *order, const int64_t *starts, int64_t runs, \
                            int64_t width, T *out) { \
        _Pragma("omp parallel for if (starts[runs] * width > FEW)") \
        for (int64_t r = 0; r < runs; r++) { \
            T *to = out + r * width; \
            memcpy(to, values + order[starts[r]] * width, (size_t)width * sizeof(T)); \
            for (int64_t k = starts[r] + 1; k < starts[r + 1]; k++) { \
                const T *more = values + order[k] * width; \
                for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + more[j]); \
            } \
        } \
    } \
    void fs_scatter_##name(T *out, const int64_t *places, const T *values, int64_t n, int64_t width) { \
        _Pragma("omp parallel for if (n * width > FEW)") \
        for (int64_t i = 0; i < n; i++) { \
            T *to = out + places[i] * width; \
            for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + values[i * width + j]); \
        } \
    } \
    void fs_spmm_##name(const int64_t *starts, const int64_t *columns, const T *values, const T *dense, \
                        int64_t down, int64_t across, int64_t rows, int64_t width, T *out) { \
        _Pragma("omp parallel for schedule(dynamic, 64) if ((starts[rows] + rows) * width > FEW)") \
        for (int64_t r = 0; r < rows; r++) { \
            T *restrict to = out + r * width; \
            memset(to, 0, (size_t)width * sizeof(T)); \
            for (int64_t k = starts[r]; k < starts[r + 1]; k++) { \
                const T value = values[k], *row = dense + columns[k] * down; \
                if (across == 1) \
                    for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + value * row[j]); \
                else \
                    for (int64_t j = 0; j < width; j++) to[j] = (T)(to[j] + value * row[j * across]); \
            } \
        } \
    } \
    void fs_sddmm_##name(const int64_t *rows, const int64_t *columns, int64_t n, const T *a, int64_t a_down, \
                         int64_t a_across, const T *b, int64_t b_down, int64_t b_across, int64_t inner, T *out) { \
        _Pragma("omp parallel for if (n * inner > FEW)") \
        for (int64_t k = 0; k < n; k++) { \
            const T *row = a + rows[k] * a_down, *column = b + columns[k] * b_across; \
            T sum = 0; \
            for (int64_t j = 0; j < inner; j++) sum = (T)(sum + row[j * a_across] * column[j * b_down]); \
            out[k] = sum; \
        } \
    }

#define X FS_DEFINE
FS_TYPES
