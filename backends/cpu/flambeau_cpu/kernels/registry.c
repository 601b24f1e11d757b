/* Finds kernels by name, runs them, and owns what is global: threads and the
 * instruction set in use.  Compiled once, for the baseline. */
#include "registry.h"

/* FB_FAMILIES, from the build, is X(family, widest) for every file with a table of
 * kernels; widest is the widest instruction set it is compiled for. */
#define TABLE(family, isa) fb_##family##_##isa

#define X(family, widest) extern const fb_kernel TABLE(family, baseline)[];
FB_FAMILIES
#undef X
static const fb_kernel *const baseline[] = {
#define X(family, widest) TABLE(family, baseline),
    FB_FAMILIES
#undef X
    NULL};

#ifdef FB_X86
#define X(family, widest) extern const fb_kernel TABLE(family, avx2)[];
FB_FAMILIES
#undef X
static const fb_kernel *const avx2[] = {
#define X(family, widest) TABLE(family, avx2),
    FB_FAMILIES
#undef X
    NULL};

#define X(family, widest) extern const fb_kernel TABLE(family, widest)[];
FB_FAMILIES
#undef X
static const fb_kernel *const avx512[] = {
#define X(family, widest) TABLE(family, widest),
    FB_FAMILIES
#undef X
    NULL};
#endif

int fb_threads = 1;
static const fb_kernel *const *tables = baseline;

int fb_supports(const char *isa) {
    if (!strcmp(isa, "baseline")) return 1;
#ifdef FB_X86
    if (!strcmp(isa, "avx2"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    if (!strcmp(isa, "avx512"))
        return fb_supports("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    return 0;
}

int fb_use(const char *isa) {
    if (!fb_supports(isa)) return 0;
    tables = baseline;
#ifdef FB_X86
    if (!strcmp(isa, "avx2")) tables = avx2;
    if (!strcmp(isa, "avx512")) tables = avx512;
#endif
    return 1;
}

const fb_kernel *fb_find(const char *name, int dtype) {
    for (const fb_kernel *const *family = tables; *family; family++)
        for (const fb_kernel *kernel = *family; kernel->name; kernel++)
            if (kernel->dtype == dtype && !strcmp(kernel->name, name)) return kernel;
    return NULL;
}

const char *fb_kernel_name(int family, int index, int *dtype) {
    for (int f = 0; tables[f]; f++)
        if (f == family && tables[f][index].name) {
            *dtype = tables[f][index].dtype;
            return tables[f][index].name;
        }
    return NULL;
}

void fb_set_threads(int threads) { fb_threads = threads < 1 ? 1 : threads; }
int fb_get_threads(void) { return fb_threads; }

fb_blas_gemm fb_blas[2];

void fb_use_blas(void *sgemm, void *dgemm) {
    fb_blas[0] = (fb_blas_gemm)sgemm;
    fb_blas[1] = (fb_blas_gemm)dgemm;
}

bool fb_room_for_blas(void) {
    enum { BUFFER = 36 << 20 };
    void *volatile room = malloc((size_t)BUFFER * (size_t)fb_threads); /* never touched: two calls of the system */
    free(room);
    return room != NULL;
}

#ifdef FB_X86
#define FLUSH_TO_ZERO 0x8040u /* results and operands, in the control register of the vector unit */
static void flush_denormal(int on) {
    unsigned now = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(on ? now | FLUSH_TO_ZERO : now & ~FLUSH_TO_ZERO);
}

/* Each thread has a register of its own; threads made later copy their maker's. */
int fb_flush_denormal(int on) {
    flush_denormal(on);
    if (fb_threads > 1) {
#pragma omp parallel num_threads(fb_threads)
        flush_denormal(on);
    }
    return 1;
}
#else
int fb_flush_denormal(int on) { return (void)on, 0; }
#endif

i64 fb_call(const fb_kernel *kernel, void *p0, void *p1, void *p2, void *p3, void *p4, void *p5, void *p6, void *p7,
            const i64 *q) {
    void *const p[] = {p0, p1, p2, p3, p4, p5, p6, p7};
    return ((fb_routine)kernel->function)(p, q);
}

/* Fewer arguments are fewer conversions on Python's side. */
i64 fb_call4(const fb_kernel *kernel, void *p0, void *p1, void *p2, void *p3, const i64 *q) {
    void *const p[] = {p0, p1, p2, p3};
    return ((fb_routine)kernel->function)(p, q);
}

i64 fb_call_n(const fb_kernel *kernel, void *const *p, const i64 *q) { return ((fb_routine)kernel->function)(p, q); }

/* Random fills take everything by value, so that small ones cost no parameter block. */
i64 fb_draw(const fb_kernel *kernel, i64 n, void *out, i64 seed, i64 offset, double a, double b) {
    i64 q[] = {n, seed, offset, 0, 0};
    void *const p[] = {out};
    memcpy(q + 3, &a, sizeof a);
    memcpy(q + 4, &b, sizeof b);
    return ((fb_routine)kernel->function)(p, q);
}
