/* Kernels on coordinates and values; build_kernels.py declares them and says for which types.
 * Results do not depend on the number of threads: each output element is written by one thread, in one order. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Below this much work, threads cost more than they save. */
#define FEW 16384

void fs_places(const int64_t *indices, int64_t dims, int64_t n, const int64_t *sizes, int64_t *places) {
#pragma omp parallel for if (n * dims > FEW)
    for (int64_t i = 0; i < n; i++) {
        int64_t place = 0;
        for (int64_t d = 0; d < dims; d++) place = place * sizes[d] + indices[d * n + i];
        places[i] = place;
    }
}

typedef struct {
    int64_t number, from;
} Entry;

static void merge(const Entry *a, const Entry *a_end, const Entry *b, const Entry *b_end, Entry *out) {
    while (a < a_end && b < b_end) *out++ = b->number < a->number ? *b++ : *a++;
    memcpy(out, a, (size_t)(a_end - a) * sizeof(Entry));
    memcpy(out + (a_end - a), b, (size_t)(b_end - b) * sizeof(Entry));
}

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* One round: runs of `width` in `from` become runs of twice that in `to`. */
static void merge_runs(const Entry *from, Entry *to, int64_t n, int64_t width) {
#pragma omp parallel for schedule(static) if (n > FEW)
    for (int64_t begin = 0; begin < n; begin += 2 * width) {
        const int64_t middle = least(begin + width, n), end = least(begin + 2 * width, n);
        merge(from + begin, from + middle, from + middle, from + end, to + begin);
    }
}

int fs_order(const int64_t *numbers, int64_t n, int64_t *order) {
    int sorted = 1;
    for (int64_t i = 1; i < n && sorted; i++) sorted = numbers[i - 1] <= numbers[i];
    if (sorted) {
        for (int64_t i = 0; i < n; i++) order[i] = i;
        return 1;
    }
    Entry *from = malloc((size_t)n * 2 * sizeof(Entry)), *to = from + n;
    if (!from) return 0;
    Entry *whole = from;
#pragma omp parallel for if (n > FEW)
    for (int64_t i = 0; i < n; i++) from[i] = (Entry){numbers[i], i};
    for (int64_t width = 1; width < n; width *= 2) {
        merge_runs(from, to, n, width);
        Entry *swap = from;
        from = to;
        to = swap;
    }
    for (int64_t i = 0; i < n; i++) order[i] = from[i].from;
    free(whole);
    return 1;
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
