/* The C functions that Python calls.  interface.h lists the same for cffi. */
#include "flambeau.h"

int fb_supports(const char *isa);
int fb_use(const char *isa);
const fb_kernel *fb_find(const char *name, int dtype);
const char *fb_kernel_name(int family, int index, int *dtype);
void fb_set_threads(int threads);
int fb_get_threads(void);
int fb_flush_denormal(int on);
void fb_use_blas(void *sgemm, void *dgemm);
i64 fb_call(const fb_kernel *kernel, void *p0, void *p1, void *p2, void *p3, void *p4, void *p5, void *p6, void *p7,
            const i64 *q);
i64 fb_call4(const fb_kernel *kernel, void *p0, void *p1, void *p2, void *p3, const i64 *q);
i64 fb_call_n(const fb_kernel *kernel, void *const *p, const i64 *q);
i64 fb_draw(const fb_kernel *kernel, i64 n, void *out, i64 seed, i64 offset, double a, double b);

void fb_run1(const fb_kernel *kernel, i64 n, void *out);
void fb_run2(const fb_kernel *kernel, i64 n, void *out, void *a);
void fb_run3(const fb_kernel *kernel, i64 n, void *out, void *a, void *b);
void fb_spread2(const fb_kernel *kernel, i64 n, void *out, void *a);
void fb_spread3(const fb_kernel *kernel, i64 n, void *out, void *a, void *b, int repeated);
void fb_run4(const fb_kernel *kernel, i64 n, void *out, void *a, void *b, void *c);
void fb_walk(const fb_kernel *kernel, const i64 *plan, void *out, void *a, void *b, void *c, void *d);

void *fb_allocate(size_t bytes);
void fb_release(void *memory);
size_t fb_trim(size_t keep);
i64 fb_cached_bytes(void);
i64 fb_live_bytes(void);
