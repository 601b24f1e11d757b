/* Loops that are often small: entering a parallel region costs half a microsecond even for one thread. */
#ifndef FLAMBEAU_SHARE_H
#define FLAMBEAU_SHARE_H

#include "flambeau.h"

/* FB_SHARE(elements, for (...) ...): on several threads if it is large, else just the loop. */
#define FB_SHARE(elements, ...) \
    if (fb_threads > 1 && (elements) >= FB_GRAIN) { \
        FB_PRAGMA(omp parallel for schedule(static) num_threads(fb_threads)) \
        __VA_ARGS__ \
    } else __VA_ARGS__

#endif
