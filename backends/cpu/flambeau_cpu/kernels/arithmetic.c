#include "flambeau.h"
#define LOOP(op, name, T, expression) \
    static void op##_##name(i64 n, char *const *p, const i64 *s) { \
        if (s[0] == sizeof(T) && s[1] == sizeof(T) && s[2] == sizeof(T)) { \
            T *o = (T *)p[0]; const T *x = (const T *)p[1], *y = (const T *)p[2]; \
            for (i64 i = 0; i < n; i++) { T a = x[i], b = y[i]; o[i] = (T)(expression); } \
        } else for (i64 i = 0; i < n; i++) { \
            T a = *(const T *)(p[1] + i * s[1]), b = *(const T *)(p[2] + i * s[2]); *(T *)(p[0] + i * s[0]) = (T)(expression); } }
LOOP(add, f32, float, a + b)
LOOP(mul, f32, float, a * b)
FB_FAMILY(arithmetic) = {{"add", FB_F32, add_f32, {4,4,4}}, {"mul", FB_F32, mul_f32, {4,4,4}}, FB_END};
