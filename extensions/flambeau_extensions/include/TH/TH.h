/* Tensors as C code of PyTorch 0.4 and before sees them, for extensions that flambeau.utils.ffi builds.
 *
 * A tensor's structure is filled in for the time of one call.  THError and THArgCheck leave the function at once: the
 * caller gets a FatalError.  Memory that the function took itself is then not given back.
 */
#ifndef FLAMBEAU_TH_H
#define FLAMBEAU_TH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FLAMBEAU_PRINTF(at) __attribute__((format(printf, at, at + 1), noreturn))
#else
#define FLAMBEAU_PRINTF(at)
#endif

void flambeau_raise(const char *file, int line, const char *format, ...) FLAMBEAU_PRINTF(3);
void flambeau_raise_argument(const char *file, int line, int number, const char *format, ...) FLAMBEAU_PRINTF(4);

#define THError(...) flambeau_raise(__FILE__, __LINE__, __VA_ARGS__)
#define THArgCheck(condition, number, ...)                                                    \
  do {                                                                                        \
    if (!(condition)) flambeau_raise_argument(__FILE__, __LINE__, number, __VA_ARGS__);       \
  } while (0)

/* The structure is also in tensors.py, which fills it in. */
#define FLAMBEAU_TH_TENSOR(Tensor, real)                                                                       \
  typedef struct Tensor {                                                                                      \
    real *data;                                                                                                \
    const int64_t *size, *stride;                                                                              \
    int nDimension;                                                                                            \
    int (*resize)(void *self, int dimensions, const int64_t *sizes);                                           \
  } Tensor;                                                                                                    \
  static inline real *Tensor##_data(const Tensor *self) { return self->data; }                                 \
  static inline int Tensor##_nDimension(const Tensor *self) { return self->nDimension; }                       \
  static inline int64_t Tensor##_size(const Tensor *self, int dimension) {                                     \
    THArgCheck(dimension >= 0 && dimension < self->nDimension, 2, "dimension %d of a %d-D tensor", dimension,  \
               self->nDimension);                                                                              \
    return self->size[dimension];                                                                              \
  }                                                                                                            \
  static inline int64_t Tensor##_stride(const Tensor *self, int dimension) {                                   \
    THArgCheck(dimension >= 0 && dimension < self->nDimension, 2, "dimension %d of a %d-D tensor", dimension,  \
               self->nDimension);                                                                              \
    return self->stride[dimension];                                                                            \
  }                                                                                                            \
  static inline ptrdiff_t Tensor##_nElement(const Tensor *self) {                                              \
    ptrdiff_t count = 1;                                                                                       \
    for (int i = 0; i < self->nDimension; ++i) count *= self->size[i];                                         \
    return count;                                                                                              \
  }                                                                                                            \
  static inline int Tensor##_isContiguous(const Tensor *self) {                                                \
    int64_t step = 1;                                                                                          \
    for (int i = self->nDimension - 1; i >= 0; --i) {                                                          \
      if (self->size[i] != 1 && self->stride[i] != step) return 0;                                             \
      step *= self->size[i];                                                                                   \
    }                                                                                                          \
    return 1;                                                                                                  \
  }                                                                                                            \
  static inline int Tensor##_isSameSizeAs(const Tensor *self, const Tensor *other) {                           \
    if (self->nDimension != other->nDimension) return 0;                                                       \
    for (int i = 0; i < self->nDimension; ++i) {                                                               \
      if (self->size[i] != other->size[i]) return 0;                                                           \
    }                                                                                                          \
    return 1;                                                                                                  \
  }                                                                                                            \
  static inline void Tensor##_resizeNd(Tensor *self, int dimensions, const int64_t *sizes) {                   \
    if (self->resize(self, dimensions, sizes)) THError("the tensor could not be resized");                     \
  }                                                                                                            \
  static inline void Tensor##_resizeAs(Tensor *self, const Tensor *other) {                                    \
    if (!Tensor##_isSameSizeAs(self, other)) Tensor##_resizeNd(self, other->nDimension, other->size);          \
  }                                                                                                            \
  static inline void Tensor##_resize1d(Tensor *self, int64_t a) {                                              \
    const int64_t sizes[] = {a};                                                                               \
    Tensor##_resizeNd(self, 1, sizes);                                                                         \
  }                                                                                                            \
  static inline void Tensor##_resize2d(Tensor *self, int64_t a, int64_t b) {                                   \
    const int64_t sizes[] = {a, b};                                                                            \
    Tensor##_resizeNd(self, 2, sizes);                                                                         \
  }                                                                                                            \
  static inline void Tensor##_resize3d(Tensor *self, int64_t a, int64_t b, int64_t c) {                        \
    const int64_t sizes[] = {a, b, c};                                                                         \
    Tensor##_resizeNd(self, 3, sizes);                                                                         \
  }                                                                                                            \
  static inline void Tensor##_resize4d(Tensor *self, int64_t a, int64_t b, int64_t c, int64_t d) {             \
    const int64_t sizes[] = {a, b, c, d};                                                                      \
    Tensor##_resizeNd(self, 4, sizes);                                                                         \
  }                                                                                                            \
  static inline void Tensor##_fill(Tensor *self, real value) {                                                 \
    if (!Tensor##_isContiguous(self)) THError("only contiguous tensors are filled from C");                    \
    const ptrdiff_t count = Tensor##_nElement(self);                                                           \
    for (ptrdiff_t i = 0; i < count; ++i) self->data[i] = value;                                               \
  }                                                                                                            \
  static inline void Tensor##_zero(Tensor *self) { Tensor##_fill(self, 0); }

FLAMBEAU_TH_TENSOR(THFloatTensor, float)
FLAMBEAU_TH_TENSOR(THDoubleTensor, double)
FLAMBEAU_TH_TENSOR(THByteTensor, uint8_t)
FLAMBEAU_TH_TENSOR(THCharTensor, int8_t)
FLAMBEAU_TH_TENSOR(THShortTensor, int16_t)
FLAMBEAU_TH_TENSOR(THIntTensor, int32_t)
FLAMBEAU_TH_TENSOR(THLongTensor, int64_t)

#endif
