/* A caching allocator for large blocks.
 *
 * A fresh large block costs a page fault per 4 KiB, more than most kernels spend
 * on the arithmetic, so freed blocks are kept by size class and handed out again.
 * Classes are eighths of a power of two: at most 12.5 % is wasted.  The cache is
 * bounded, is emptied on request, and is emptied before an allocation fails. */
#include "registry.h"
#include <pthread.h>
#include <stdio.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif
#ifdef __SANITIZE_ADDRESS__ /* what a block has beyond its size, and blocks in the cache, are out of bounds */
#include <sanitizer/asan_interface.h>
#define CLOSE(start, bytes) __asan_poison_memory_region(start, bytes)
#define OPEN(start, bytes) __asan_unpoison_memory_region(start, bytes)
#else
#define CLOSE(start, bytes)
#define OPEN(start, bytes)
#endif

enum { ALIGN = 64, HEADER = 64, CLASSES = 64 * 8, HUGE_BLOCK = 4 << 20 };

typedef struct block {
    struct block *next;
    size_t bytes;
    int class;
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *cache[CLASSES];
static size_t cached, live, limit;

/* Round up to an eighth of a power of two, and number the result. */
static int classify(size_t bytes, size_t *rounded) {
    if (bytes < 1024) bytes = 1024;
    int power = 63 - __builtin_clzll((unsigned long long)bytes);
    size_t grain = (size_t)1 << (power - 3);
    size_t eighths = (bytes + grain - 1) / grain; /* 8 .. 16 */
    *rounded = eighths * grain;
    return power * 8 + (int)(eighths - 8);
}

static void *fresh(size_t bytes) {
    void *memory = NULL;
    size_t align = bytes >= HUGE_BLOCK ? 2u << 20 : ALIGN;
    if (posix_memalign(&memory, align, bytes)) return NULL;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (bytes >= HUGE_BLOCK) madvise(memory, bytes, MADV_HUGEPAGE);
#endif
    return memory;
}

/* Keep at most a quarter of the machine's memory in the cache. */
static size_t default_limit(void) {
#ifdef __linux__
    return (size_t)sysconf(_SC_PHYS_PAGES) / 4 * (size_t)sysconf(_SC_PAGESIZE);
#else
    return (size_t)1 << 30;
#endif
}

static size_t trim_locked(size_t keep) {
    size_t before = cached;
    for (int class = CLASSES - 1; class >= 0 && cached > keep; class--)
        while (cache[class] && cached > keep) {
            block *b = cache[class];
            cache[class] = b->next;
            cached -= b->bytes;
            OPEN(b + 1, b->bytes - sizeof *b);
            free(b);
        }
    return before - cached;
}

void *fb_allocate(size_t bytes) {
    size_t rounded;
    if (bytes > (size_t)1 << 62) return NULL;
    int class = classify(bytes + HEADER, &rounded);
    pthread_mutex_lock(&lock);
    if (!limit) limit = default_limit();
    block *b = cache[class];
    if (b) {
        cache[class] = b->next;
        cached -= b->bytes;
    }
    live += rounded;
    pthread_mutex_unlock(&lock);
    if (!b) b = fresh(rounded);
    if (!b) {
        fb_trim(0);
        b = fresh(rounded);
    }
    if (!b) {
        pthread_mutex_lock(&lock);
        live -= rounded;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    b->bytes = rounded;
    b->class = class;
    OPEN((char *)b + HEADER, bytes);
    CLOSE((char *)b + HEADER + bytes, rounded - HEADER - bytes);
    return (char *)b + HEADER;
}

void fb_release(void *memory) {
    if (!memory) return;
    block *b = (block *)((char *)memory - HEADER);
    pthread_mutex_lock(&lock);
    live -= b->bytes;
    if (cached + b->bytes > limit) trim_locked(limit > b->bytes ? limit - b->bytes : 0);
    if (b->bytes <= limit) {
        CLOSE(memory, b->bytes - HEADER);
        b->next = cache[b->class];
        cache[b->class] = b;
        cached += b->bytes;
        b = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(b);
}

size_t fb_trim(size_t keep) {
    pthread_mutex_lock(&lock);
    size_t freed = trim_locked(keep);
    pthread_mutex_unlock(&lock);
    return freed;
}

i64 fb_cached_bytes(void) { return (i64)cached; }
i64 fb_live_bytes(void) { return (i64)live; }

/* A forked child has one thread: neither the lock nor the thread pool may be
 * inherited in use. */
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }
static void in_child(void) {
    pthread_mutex_unlock(&lock);
    fb_threads = 1;
}

__attribute__((constructor)) static void register_fork_handlers(void) {
    pthread_atfork(before_fork, after_fork, in_child);
}
