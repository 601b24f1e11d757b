/* Threefry4x32, a counter-based generator: Salmon, Moraes, Dror and Shaw,
 * "Parallel random numbers: as easy as 1, 2, 3", SC11 (2011); 12 rounds, the
 * number from which the paper found it to pass every test of BigCrush.
 *
 * Block number c of a stream is a pure function of (seed, c), so any thread can
 * compute any part, and the numbers do not depend on how work is shared out.
 * Of the paper's generators this one needs only additions, rotations and
 * exclusive ors of 32 bits, which every vector unit has.
 */
#ifndef FLAMBEAU_THREEFRY_H
#define FLAMBEAU_THREEFRY_H

#include "flambeau.h"

/* Blocks are made in groups, whose lanes fill vector registers. */
enum { GROUP = 16, WORDS = 4 * GROUP };

static inline uint32_t rotated(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

#define EVEN_ROUND(r, s) a += b; b = rotated(b, r) ^ a; c += d; d = rotated(d, s) ^ c;
#define ODD_ROUND(r, s) a += d; d = rotated(d, r) ^ a; c += b; b = rotated(b, s) ^ c;
/* Words a, b, c, d of a counter become random; the key is (low, high, 0, 0). */
#define THREEFRY(low, high) { \
        const uint32_t last = 0x1BD11BDAu ^ low ^ high; \
        a += low; b += high; \
        EVEN_ROUND(10, 26) ODD_ROUND(11, 21) EVEN_ROUND(13, 27) ODD_ROUND(23, 5) \
        a += high; d += last + 1; \
        EVEN_ROUND(6, 20) ODD_ROUND(17, 11) EVEN_ROUND(25, 10) ODD_ROUND(18, 20) \
        c += last; d += low + 2; \
        EVEN_ROUND(10, 26) ODD_ROUND(11, 21) EVEN_ROUND(13, 27) ODD_ROUND(23, 5) \
        b += last; c += low; d += high + 3; }

/* The 64 words of blocks first ... first + 15: word 0 of each, word 1 of each, ...; first is a multiple of 16. */
static inline void random_group(uint64_t seed, uint64_t first, uint32_t *restrict w) {
    const uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (uint32_t j = 0; j < GROUP; j++) {
        uint32_t a = (uint32_t)first + j, b = (uint32_t)(first >> 32), c = 0, d = 0;
        THREEFRY(low, high)
        w[j] = a;
        w[GROUP + j] = b;
        w[2 * GROUP + j] = c;
        w[3 * GROUP + j] = d;
    }
}

/* A stream of its own for each element of a rejection sampler: block `draw` of element `index`. */
typedef struct {
    uint64_t seed, index;
    uint32_t draw, left, word[4];
} stream;

static inline uint32_t next_word(stream *s) {
    if (!s->left) {
        uint32_t a = (uint32_t)s->index, b = (uint32_t)(s->index >> 32), c = s->draw++, d = 1;
        THREEFRY((uint32_t)s->seed, (uint32_t)(s->seed >> 32))
        s->word[0] = a; s->word[1] = b; s->word[2] = c; s->word[3] = d;
        s->left = 4;
    }
    return s->word[--s->left];
}

/* 53 random bits from two words, as a whole number. */
static inline double bits53(uint32_t high, uint32_t low) {
    return (double)(int32_t)(high >> 5) * 67108864.0 + (double)(int32_t)(low >> 6);
}

/* In (0, 1): never 0, so that its logarithm exists. */
static inline double next_uniform(stream *s) {
    uint32_t high = next_word(s);
    return (bits53(high, next_word(s)) + 0.5) * 0x1p-53;
}

#endif
