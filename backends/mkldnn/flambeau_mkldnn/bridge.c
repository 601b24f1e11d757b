/* From flambeau's tensors to oneDNN's primitives.
 *
 * An operation is made from a table of tensors (what each is to it, its sizes and strides) and numbers.  Where
 * oneDNN computes in another layout than a tensor has, the operation changes it on the way in or out. */
#include "oneapi/dnnl/dnnl.h"

#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

#define MOST_TENSORS 8
#define PARTS (FM_GRAD_RESULT + 1)
#define TRY(call) do { status = (call); if (status != dnnl_success) goto failed; } while (0)

/* What oneDNN calls the parts, by the order of enum fm_part. */
static const int ARGUMENTS[PARTS] = {
    DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST, DNNL_ARG_MEAN, DNNL_ARG_VARIANCE, DNNL_ARG_SCALE,
    DNNL_ARG_SHIFT, DNNL_ARG_DIFF_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST,
};

typedef struct {
    int part, manner;
    dnnl_memory_desc_t given, computed; /* the tensor's layout, and that of the primitive; computed may be NULL: alike */
    dnnl_primitive_t reorder;
    size_t place; /* in the working memory */
} tensor;

struct fm_operation {
    dnnl_primitive_t primitive;
    int count, threads;
    tensor tensors[MOST_TENSORS];
    dnnl_memory_desc_t scratchpad;
    size_t scratch, kept;
    char name[128];
};

static dnnl_engine_t engine;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int threads = 1;

static void in_child(void) { threads = 1; }
static void begin(void) {
    /* Operations are counted and bounded by their owner; a second cache would keep what that one lets go. */
    dnnl_set_primitive_cache_capacity(0);
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) engine = NULL;
    pthread_atfork(NULL, NULL, in_child);
}

void fm_set_threads(int count) { threads = count < 1 ? 1 : count; }
int fm_get_threads(void) { return threads; }
int fm_has_bfloat16(void) { return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core; }

const char *fm_version(void) {
    static char text[32];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", version->major, version->minor, version->patch);
    return text;
}

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

void fm_free(fm_operation *operation) {
    if (!operation) return;
    for (int i = 0; i < operation->count; i++) {
        tensor *each = operation->tensors + i;
        if (each->given) dnnl_memory_desc_destroy(each->given);
        if (each->computed) dnnl_memory_desc_destroy(each->computed);
        if (each->reorder) dnnl_primitive_destroy(each->reorder);
    }
    if (operation->scratchpad) dnnl_memory_desc_destroy(operation->scratchpad);
    if (operation->primitive) dnnl_primitive_destroy(operation->primitive);
    free(operation);
}

/* ---------------------------------------------------------------- making */

/* The descriptor of a primitive.  Numbers of convolutions and averages: how many dimensions, then for each the
 * strides, dilations - 1, zeros before and zeros after; averages have the window in the place of the weights' sizes and
 * whether zeros count.  Softmax: the dimension.  Norms: the flags are what scale and shift they are given. */
static dnnl_status_t describe(dnnl_primitive_desc_t *made, int kind, dnnl_memory_desc_t *m, const int64_t *numbers,
                              float epsilon, const_dnnl_primitive_attr_t attr) {
    const int64_t n = numbers[0], *stride = numbers + 1, *dilation = stride + n, *before = dilation + n, *after = before + n;
    const dnnl_alg_kind_t direct = dnnl_convolution_direct;
    const unsigned affine = (m[FM_SCALE] ? dnnl_use_scale : 0) | (m[FM_SHIFT] ? dnnl_use_shift : 0);
    dnnl_primitive_desc_t hint = NULL;
    dnnl_status_t status = dnnl_unimplemented;
    switch (kind) {
    case FM_CONVOLUTION:
        return dnnl_convolution_forward_primitive_desc_create(made, engine, dnnl_forward_training, direct, m[FM_SOURCE],
            m[FM_WEIGHTS], m[FM_BIAS], m[FM_RESULT], stride, dilation, before, after, attr);
    case FM_CONVOLUTION_INPUT:
        TRY(dnnl_convolution_forward_primitive_desc_create(&hint, engine, dnnl_forward_training, direct, m[FM_GRAD_SOURCE],
            m[FM_WEIGHTS], NULL, m[FM_GRAD_RESULT], stride, dilation, before, after, attr));
        status = dnnl_convolution_backward_data_primitive_desc_create(made, engine, direct, m[FM_GRAD_SOURCE],
            m[FM_WEIGHTS], m[FM_GRAD_RESULT], stride, dilation, before, after, hint, attr);
        break;
    case FM_CONVOLUTION_WEIGHT:
        TRY(dnnl_convolution_forward_primitive_desc_create(&hint, engine, dnnl_forward_training, direct, m[FM_SOURCE],
            m[FM_GRAD_WEIGHTS], NULL, m[FM_GRAD_RESULT], stride, dilation, before, after, attr));
        status = dnnl_convolution_backward_weights_primitive_desc_create(made, engine, direct, m[FM_SOURCE],
            m[FM_GRAD_WEIGHTS], NULL, m[FM_GRAD_RESULT], stride, dilation, before, after, hint, attr);
        break;
    case FM_MATMUL:
        return dnnl_matmul_primitive_desc_create(made, engine, m[FM_SOURCE], m[FM_WEIGHTS], m[FM_BIAS], m[FM_RESULT], attr);
    case FM_AVERAGE:
    case FM_AVERAGE_BACKWARD: {
        const int64_t *window = after + n;
        const dnnl_alg_kind_t average = window[n] ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
        if (kind == FM_AVERAGE)
            return dnnl_pooling_forward_primitive_desc_create(made, engine, dnnl_forward_inference, average, m[FM_SOURCE],
                m[FM_RESULT], stride, window, dilation, before, after, attr);
        TRY(dnnl_pooling_forward_primitive_desc_create(&hint, engine, dnnl_forward_training, average, m[FM_GRAD_SOURCE],
            m[FM_GRAD_RESULT], stride, window, dilation, before, after, attr));
        status = dnnl_pooling_backward_primitive_desc_create(made, engine, average, m[FM_GRAD_SOURCE], m[FM_GRAD_RESULT],
            stride, window, dilation, before, after, hint, attr);
        break;
    }
    case FM_BATCH_NORM_GIVEN:
        return dnnl_batch_normalization_forward_primitive_desc_create(made, engine, dnnl_forward_inference, m[FM_SOURCE],
            m[FM_RESULT], epsilon, affine | dnnl_use_global_stats, attr);
    case FM_LAYER_NORM:
        return dnnl_layer_normalization_forward_primitive_desc_create(made, engine, dnnl_forward_training, m[FM_SOURCE],
            m[FM_RESULT], m[FM_MEAN], epsilon, affine, attr);
    case FM_SOFTMAX_BACKWARD:
    case FM_LOG_SOFTMAX_BACKWARD: {
        const dnnl_alg_kind_t how = kind == FM_SOFTMAX_BACKWARD ? dnnl_softmax_accurate : dnnl_softmax_log;
        TRY(dnnl_softmax_forward_primitive_desc_create(&hint, engine, dnnl_forward_training, how, m[FM_RESULT],
            m[FM_RESULT], (int)n, attr));
        status = dnnl_softmax_backward_primitive_desc_create(made, engine, how, m[FM_GRAD_SOURCE], m[FM_GRAD_RESULT],
            m[FM_RESULT], (int)n, hint, attr);
        break;
    }
    }
failed:
    if (hint) dnnl_primitive_desc_destroy(hint);
    return status;
}

/* Note how the primitive wants a tensor, with the change of layout if that is not what it is. */
static dnnl_status_t settle(fm_operation *operation, tensor *each, const_dnnl_primitive_desc_t made) {
    const_dnnl_memory_desc_t wanted = dnnl_primitive_desc_query_md(made, dnnl_query_exec_arg_md, ARGUMENTS[each->part]);
    dnnl_status_t status;
    dnnl_primitive_desc_t change = NULL;
    if (!wanted || !dnnl_memory_desc_get_size(wanted)) return dnnl_unimplemented;
    if (dnnl_memory_desc_equal(wanted, each->given)) return dnnl_success;
    TRY(dnnl_memory_desc_clone(&each->computed, wanted));
    const int out = each->manner & FM_WRITTEN;
    TRY(dnnl_reorder_primitive_desc_create(&change, out ? each->computed : each->given, engine,
        out ? each->given : each->computed, engine, NULL));
    TRY(dnnl_primitive_create(&each->reorder, change));
    const size_t size = rounded(dnnl_memory_desc_get_size(each->computed));
    each->place = operation->scratch;
    operation->scratch += size;
    if (each->manner & FM_KEPT) operation->kept = size;
failed:
    if (change) dnnl_primitive_desc_destroy(change);
    return status;
}

static dnnl_status_t make(fm_operation *operation, int kind, const int64_t *at, const int64_t *numbers, double epsilon) {
    dnnl_memory_desc_t by_part[PARTS] = {0}, free_choice[MOST_TENSORS] = {0};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status = dnnl_invalid_arguments;
    const int64_t count = *at++;
    if (!engine || count > MOST_TENSORS) return status;
    operation->count = (int)count;
    for (int i = 0; i < count; i++) {
        tensor *each = operation->tensors + i;
        each->part = (int)at[0], each->manner = (int)at[1];
        const dnnl_data_type_t type = at[2] ? dnnl_bf16 : dnnl_f32;
        const int dims = (int)at[3];
        const int64_t *sizes = at + 4, *strides = sizes + dims;
        at = strides + dims;
        TRY(dnnl_memory_desc_create_with_strides(&each->given, dims, sizes, type, strides));
        by_part[each->part] = each->given;
        if (each->manner & FM_ANY) {
            TRY(dnnl_memory_desc_create_with_tag(free_choice + i, dims, sizes, type, dnnl_format_tag_any));
            by_part[each->part] = free_choice[i];
        }
    }
    TRY(dnnl_primitive_attr_create(&attr));
    TRY(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    TRY(describe(&made, kind, by_part, numbers, (float)epsilon, attr));
    const_dnnl_memory_desc_t pad = dnnl_primitive_desc_query_md(made, dnnl_query_scratchpad_md, 0);
    TRY(dnnl_memory_desc_clone(&operation->scratchpad, pad));
    operation->scratch = rounded(dnnl_memory_desc_get_size(pad));
    const char *name = NULL;
    TRY(dnnl_primitive_desc_query(made, dnnl_query_impl_info_str, 0, &name));
    int changes = 0;
    for (int i = 0; i < count; i++) {
        TRY(settle(operation, operation->tensors + i, made));
        changes += operation->tensors[i].reorder != NULL;
    }
    snprintf(operation->name, sizeof operation->name, "%s, %d reorders", name, changes);
    TRY(dnnl_primitive_create(&operation->primitive, made));
failed:
    for (int i = 0; i < count; i++)
        if (free_choice[i]) dnnl_memory_desc_destroy(free_choice[i]);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (made) dnnl_primitive_desc_destroy(made);
    return status;
}

/* oneDNN asks OpenMP for the number of threads, which is the calling thread's affair: others keep theirs. */
#define WITH_THREADS(count, ...) do { \
        const int before_ = omp_get_max_threads(); \
        if (before_ != (count)) omp_set_num_threads(count); \
        __VA_ARGS__; \
        if (before_ != (count)) omp_set_num_threads(before_); \
    } while (0)

fm_operation *fm_new(int kind, const int64_t *tensors, const int64_t *numbers, double epsilon, int count, int *status) {
    pthread_once(&once, begin);
    fm_operation *operation = calloc(1, sizeof *operation);
    *status = dnnl_out_of_memory;
    if (!operation) return NULL;
    operation->threads = count;
    WITH_THREADS(count, *status = make(operation, kind, tensors, numbers, epsilon));
    if (*status == dnnl_success) return operation;
    fm_free(operation);
    return NULL;
}

int64_t fm_scratch(const fm_operation *operation) { return (int64_t)operation->scratch; }
int64_t fm_kept(const fm_operation *operation) { return (int64_t)operation->kept; }
const char *fm_name(const fm_operation *operation) { return operation->name; }

/* ---------------------------------------------------------------- running */

static dnnl_status_t change_layout(dnnl_stream_t stream, const tensor *each, dnnl_memory_t from, dnnl_memory_t to) {
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return dnnl_primitive_execute(each->reorder, stream, 2, args);
}

static dnnl_status_t keep(const fm_operation *operation, void *from, void *to) {
    dnnl_memory_t source = NULL, target = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_status_t status = dnnl_invalid_arguments;
    for (int i = 0; i < operation->count; i++) {
        const tensor *each = operation->tensors + i;
        if (!(each->manner & FM_KEPT) || !each->reorder) continue;
        TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
        TRY(dnnl_memory_create(&source, each->given, engine, from));
        TRY(dnnl_memory_create(&target, each->computed, engine, to));
        status = change_layout(stream, each, source, target);
        break;
    }
failed:
    if (source) dnnl_memory_destroy(source);
    if (target) dnnl_memory_destroy(target);
    if (stream) dnnl_stream_destroy(stream);
    return status;
}

static dnnl_status_t execute(const fm_operation *operation, const uintptr_t *memory, void *kept, uintptr_t working) {
    dnnl_memory_t given[MOST_TENSORS] = {0}, computed[MOST_TENSORS] = {0}, pad = NULL;
    dnnl_exec_arg_t args[MOST_TENSORS + 1];
    dnnl_stream_t stream = NULL;
    dnnl_status_t status;
    char *scratch = (char *)rounded(working);
    TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    for (int i = 0; i < operation->count; i++) {
        const tensor *each = operation->tensors + i;
        const int ready = kept && (each->manner & FM_KEPT) && each->reorder;
        TRY(dnnl_memory_create(given + i, each->given, engine, (void *)memory[i]));
        args[i].arg = ARGUMENTS[each->part];
        args[i].memory = given[i];
        if (!each->reorder) continue;
        TRY(dnnl_memory_create(computed + i, each->computed, engine, ready ? kept : scratch + each->place));
        args[i].memory = computed[i];
        if (!ready && !(each->manner & FM_WRITTEN)) TRY(change_layout(stream, each, given[i], computed[i]));
    }
    TRY(dnnl_memory_create(&pad, operation->scratchpad, engine, scratch));
    args[operation->count] = (dnnl_exec_arg_t) {DNNL_ARG_SCRATCHPAD, pad};
    TRY(dnnl_primitive_execute(operation->primitive, stream, operation->count + 1, args));
    for (int i = 0; i < operation->count; i++) {
        const tensor *each = operation->tensors + i;
        if (each->reorder && each->manner & FM_WRITTEN) TRY(change_layout(stream, each, computed[i], given[i]));
    }
    status = dnnl_stream_wait(stream);
failed:
    for (int i = 0; i < operation->count; i++) {
        if (given[i]) dnnl_memory_destroy(given[i]);
        if (computed[i]) dnnl_memory_destroy(computed[i]);
    }
    if (pad) dnnl_memory_destroy(pad);
    if (stream) dnnl_stream_destroy(stream);
    return status;
}

int fm_keep(const fm_operation *operation, uintptr_t from, uintptr_t to) {
    int status;
    WITH_THREADS(operation->threads, status = keep(operation, (void *)from, (void *)to));
    return status;
}

int fm_run(const fm_operation *operation, const uintptr_t *memory, uintptr_t kept, uintptr_t scratch) {
    int status;
    WITH_THREADS(operation->threads, status = execute(operation, memory, (void *)kept, scratch));
    return status;
}

/* ---------------------------------------------------------------- contents */

#define LANES 8
#define PIECE ((int64_t)1 << 17)

/* Eight chains, so that their multiplications overlap.  Each step is invertible: a changed word is never lost. */
static uint64_t fingerprint_of(const char *memory, int64_t bytes) {
    uint64_t lanes[LANES] = {1, 2, 3, 4, 5, 6, 7, 8}, block[LANES], all = (uint64_t)bytes;
    for (; bytes > 0; memory += sizeof block, bytes -= (int64_t)sizeof block) {
        if (bytes < (int64_t)sizeof block) memset(block, 0, sizeof block);
        memcpy(block, memory, bytes < (int64_t)sizeof block ? (size_t)bytes : sizeof block);
        for (int i = 0; i < LANES; i++) {
            const uint64_t mixed = (lanes[i] ^ block[i]) * UINT64_C(0x9E3779B97F4A7C15);
            lanes[i] = mixed ^ mixed >> 32;
        }
    }
    for (int i = 0; i < LANES; i++) all = (all ^ lanes[i]) * UINT64_C(0xD6E8FEB86659FD93);
    return all;
}

uint64_t fm_fingerprint(uintptr_t memory, int64_t bytes) {
    const int64_t pieces = (bytes + PIECE - 1) / PIECE;
    uint64_t all = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : all) if (pieces > 1 && threads > 1)
    for (int64_t i = 0; i < pieces; i++) {
        const int64_t size = bytes - i * PIECE < PIECE ? bytes - i * PIECE : PIECE;
        all += fingerprint_of((const char *)memory + i * PIECE, size) * (2 * (uint64_t)i + 1);
    }
    return all;
}
