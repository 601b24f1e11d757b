/* Reductions of a contiguous row.
 *
 * Lanes run side by side so that the compiler keeps them in vector registers, and are
 * joined as a tree, so that a lane adds up only every 32nd element of a row. */
#ifndef FLAMBEAU_LANES_H
#define FLAMBEAU_LANES_H

#include "flambeau.h"

enum { FB_LANES = 32, FB_FEW = 8 };

#define FB_SAME(v) (v)
#define FB_ADD(a, v) ((a) + (v))
/* The second wins when it is NaN; the first stays when it is. */
#define FB_MAX(a, v) ((v) > (a) || (v) != (v) ? (v) : (a))
#define FB_MIN(a, v) ((v) < (a) || (v) != (v) ? (v) : (a))

/* L name(x, n, e): STEP(a, LOAD(x[i])) over a row into lanes of type L that start at
 * IDENTITY and are joined by JOIN; e is a parameter that STEP may name. */
#define FB_ROW(name, T, LOAD, L, IDENTITY, STEP, JOIN) \
    static inline L name(const T *x, i64 n, double e) { \
        (void)e; \
        L some[FB_FEW]; \
        i64 i = 0; \
        for (int k = 0; k < FB_FEW; k++) some[k] = IDENTITY; \
        if (n >= FB_LANES) { \
            L lane[FB_LANES]; \
            for (int k = 0; k < FB_LANES; k++) lane[k] = IDENTITY; \
            for (; i + FB_LANES <= n; i += FB_LANES) \
                for (int k = 0; k < FB_LANES; k++) lane[k] = STEP(lane[k], LOAD(x[i + k])); \
            for (int k = 0; k < FB_FEW; k++) { \
                L a = JOIN(lane[k], lane[k + FB_FEW]), b = JOIN(lane[k + 2 * FB_FEW], lane[k + 3 * FB_FEW]); \
                some[k] = JOIN(a, b); \
            } \
        } \
        for (; i + FB_FEW <= n; i += FB_FEW) \
            for (int k = 0; k < FB_FEW; k++) some[k] = STEP(some[k], LOAD(x[i + k])); \
        for (int w = FB_FEW / 2; w; w /= 2) \
            for (int k = 0; k < w; k++) some[k] = JOIN(some[k], some[k + w]); \
        L a = some[0]; \
        for (; i < n; i++) a = STEP(a, LOAD(x[i])); \
        return a; \
    }

#endif
