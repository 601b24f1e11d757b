/* Comparisons: two inputs of one type, a truth value out.  NaN compares as in C. */
#include "pointwise.h"

#define STAMP(suffix, T, code, W) \
    FB_LOOP2(eq_##suffix, uint8_t, T, T, a == b) FB_LOOP2(ne_##suffix, uint8_t, T, T, a != b) \
    FB_LOOP2(lt_##suffix, uint8_t, T, T, a < b) FB_LOOP2(le_##suffix, uint8_t, T, T, a <= b)
FB_EACH_INT(STAMP)
FB_EACH_FLOAT(STAMP)
#undef STAMP
FB_LOOP2_DENSE(eq_c64, uint8_t, float _Complex, float _Complex, a == b)
FB_LOOP2_DENSE(ne_c64, uint8_t, float _Complex, float _Complex, a != b)
FB_LOOP2_DENSE(eq_c128, uint8_t, double _Complex, double _Complex, a == b)
FB_LOOP2_DENSE(ne_c128, uint8_t, double _Complex, double _Complex, a != b)

/* a > b is b < a. */
#define SWAPPED(name, function) \
    static void name(i64 n, char *const *p, const i64 *s) { \
        char *const q[] = {p[0], p[2], p[1]}; \
        const i64 t[] = {s[0], s[2], s[1]}; \
        function(n, q, t); \
    }
#define STAMP(suffix, T, code, W) SWAPPED(gt_##suffix, lt_##suffix) SWAPPED(ge_##suffix, le_##suffix)
FB_EACH_INT(STAMP)
FB_EACH_FLOAT(STAMP)
#undef STAMP
FB_HALVES(eq, ".xx")
FB_HALVES(ne, ".xx")
FB_HALVES(lt, ".xx")
FB_HALVES(le, ".xx")
FB_HALVES(gt, ".xx")
FB_HALVES(ge, ".xx")

#define ENTRY(name, code, function, T) {#name, code, function, {1, T, T}},
#define ROW(suffix, code, T) \
    ENTRY(eq, code, eq_##suffix, T) ENTRY(ne, code, ne_##suffix, T) ENTRY(lt, code, lt_##suffix, T) \
    ENTRY(le, code, le_##suffix, T) ENTRY(gt, code, gt_##suffix, T) ENTRY(ge, code, ge_##suffix, T)

FB_FAMILY(comparison) = {
#define STAMP(suffix, T, code, W) ROW(suffix, code, sizeof(T))
    FB_EACH_INT(STAMP)
    FB_EACH_FLOAT(STAMP)
#undef STAMP
    ROW(u8, FB_BOOL, 1) ROW(f16, FB_F16, 2) ROW(bf16, FB_BF16, 2)
    ENTRY(eq, FB_C64, eq_c64, 8) ENTRY(ne, FB_C64, ne_c64, 8)
    ENTRY(eq, FB_C128, eq_c128, 16) ENTRY(ne, FB_C128, ne_c128, 16)
    FB_END};
