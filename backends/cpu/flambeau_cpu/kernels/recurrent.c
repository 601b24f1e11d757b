/* Whole layers of LSTM, GRU and plain recurrent cells, forward and backward; see recurrent.h. */
#include "flambeau.h"
#include "half.h"
#include "registry.h"
#include "vectormath.h"

/* The arrays of a step are apart, or an array is replaced by itself. */
#define IVDEP _Pragma("GCC ivdep")

enum { NO_MEMORY = -1, PANEL = 32, LSTM = 0, GRU, TANH_CELL, RELU };

#define T float
#define N(name) name##_f32
#define SIGMOID(x) fb_sigmoid_f32(x)
#define TANH(x) fb_tanh_f32(x)
#include "tile.h"
#include "gemm.h"
#include "recurrent.h"
#undef T
#undef N
#undef SIGMOID
#undef TANH
#define T double
#define N(name) name##_f64
#define SIGMOID(x) fb_sigmoid_f64(x)
#define TANH(x) fb_tanh_f64(x)
#include "tile.h"
#include "gemm.h"
#include "recurrent.h"
#undef T
#undef N

FB_FAMILY(recurrent) = {
    {"recurrent", FB_F32, forward_f32, {0}},          {"recurrent", FB_F64, forward_f64, {0}},
    {"recurrent_backward", FB_F32, backward_f32, {0}}, {"recurrent_backward", FB_F64, backward_f64, {0}}, FB_END};
