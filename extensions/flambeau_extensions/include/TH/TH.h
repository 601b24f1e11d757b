/* Tensors as C code of PyTorch 0.4 and before sees them, for extensions that flambeau.utils.ffi builds.
 *
 * A tensor's structure is filled in for the time of one call.  THError and THArgCheck leave the function at once: the
 * caller gets a FatalError.  Memory that the function took itself, with a _new function too, is then not
 * given back.
 */
#ifndef FLAMBEAU_TH_H
#define FLAMBEAU_TH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

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

#define FLAMBEAU_TH_LIST(...) {__VA_ARGS__}

/* What there is for each number of dimensions. */
#define FLAMBEAU_TH_SIZED(Tensor, real, N, values, ...)                                                                \
  static inline void Tensor##_resize##N##d(Tensor *self, __VA_ARGS__) {                                                \
    const int64_t sizes[] = FLAMBEAU_TH_LIST values;                                                                   \
    Tensor##_resizeNd(self, N, sizes);                                                                                 \
  }                                                                                                                    \
  static inline Tensor *Tensor##_newWithSize##N##d(__VA_ARGS__) {                                                      \
    const int64_t sizes[] = FLAMBEAU_TH_LIST values;                                                                   \
    return Tensor##_newNd(N, sizes);                                                                                   \
  }                                                                                                                    \
  static inline real Tensor##_get##N##d(const Tensor *self, __VA_ARGS__) {                                             \
    const int64_t indices[] = FLAMBEAU_TH_LIST values;                                                                 \
    return *Tensor##_placeNd(self, N, indices);                                                                        \
  }                                                                                                                    \
  static inline void Tensor##_set##N##d(Tensor *self, __VA_ARGS__, real value) {                                       \
    const int64_t indices[] = FLAMBEAU_TH_LIST values;                                                                 \
    *Tensor##_placeNd(self, N, indices) = value;                                                                       \
  }

/* The body of a pointwise function: self, in the size of a, of the elements *x of a and *y of b. */
#define FLAMBEAU_TH_EACH(Tensor, a, b, value_of)                                                                       \
  const ptrdiff_t count = Tensor##_nElement(a);                                                                        \
  THArgCheck(Tensor##_nElement(b) == count, 4, "sizes differ: %lld elements and %lld", (long long)count,               \
             (long long)Tensor##_nElement(b));                                                                         \
  Tensor##_resizeAs(self, a);                                                                                          \
  for (ptrdiff_t i = 0; i < count; ++i) {                                                                              \
    const Tensor##_real *x = Tensor##_place(a, i), *y = Tensor##_place(b, i);                                          \
    (void)y;                                                                                                           \
    *Tensor##_place(self, i) = value_of;                                                                               \
  }

/* The structure is also in tensors.py, which fills it in.  resize is NULL in tensors that C made. */
#define FLAMBEAU_TH_TENSOR(Tensor, real)                                                                               \
  typedef struct Tensor {                                                                                              \
    real *data;                                                                                                        \
    const int64_t *size, *stride;                                                                                      \
    int nDimension, references;                                                                                        \
    int (*resize)(void *self, int dimensions, const int64_t *sizes);                                                   \
  } Tensor;                                                                                                            \
  typedef real Tensor##_real;                                                                                          \
  static inline real *Tensor##_data(const Tensor *self) { return self->data; }                                         \
  static inline int Tensor##_nDimension(const Tensor *self) { return self->nDimension; }                               \
  static inline int64_t Tensor##_size(const Tensor *self, int dimension) {                                             \
    THArgCheck(dimension >= 0 && dimension < self->nDimension, 2, "dimension %d of a %d-D tensor", dimension,          \
               self->nDimension);                                                                                      \
    return self->size[dimension];                                                                                      \
  }                                                                                                                    \
  static inline int64_t Tensor##_stride(const Tensor *self, int dimension) {                                           \
    THArgCheck(dimension >= 0 && dimension < self->nDimension, 2, "dimension %d of a %d-D tensor", dimension,          \
               self->nDimension);                                                                                      \
    return self->stride[dimension];                                                                                    \
  }                                                                                                                    \
  static inline ptrdiff_t Tensor##_nElement(const Tensor *self) {                                                      \
    ptrdiff_t count = 1;                                                                                               \
    for (int i = 0; i < self->nDimension; ++i) count *= self->size[i];                                                 \
    return count;                                                                                                      \
  }                                                                                                                    \
  static inline int Tensor##_isContiguous(const Tensor *self) {                                                        \
    int64_t step = 1;                                                                                                  \
    for (int i = self->nDimension - 1; i >= 0; --i) {                                                                  \
      if (self->size[i] != 1 && self->stride[i] != step) return 0;                                                     \
      step *= self->size[i];                                                                                           \
    }                                                                                                                  \
    return 1;                                                                                                          \
  }                                                                                                                    \
  static inline int Tensor##_isSameSizeAs(const Tensor *self, const Tensor *other) {                                   \
    if (self->nDimension != other->nDimension) return 0;                                                               \
    for (int i = 0; i < self->nDimension; ++i) {                                                                       \
      if (self->size[i] != other->size[i]) return 0;                                                                   \
    }                                                                                                                  \
    return 1;                                                                                                          \
  }                                                                                                                    \
  static inline void Tensor##_resizeNd(Tensor *self, int dimensions, const int64_t *sizes) {                           \
    if (!self->resize || self->resize(self, dimensions, sizes)) THError("the tensor could not be resized");            \
  }                                                                                                                    \
  static inline void Tensor##_resizeAs(Tensor *self, const Tensor *other) {                                            \
    if (!Tensor##_isSameSizeAs(self, other)) Tensor##_resizeNd(self, other->nDimension, other->size);                  \
  }                                                                                                                    \
  static inline real *Tensor##_place(const Tensor *self, ptrdiff_t number) {                                           \
    ptrdiff_t offset = 0;                                                                                              \
    for (int i = self->nDimension - 1; i >= 0; --i) {                                                                  \
      offset += number % self->size[i] * self->stride[i];                                                              \
      number /= self->size[i];                                                                                         \
    }                                                                                                                  \
    return self->data + offset;                                                                                        \
  }                                                                                                                    \
  static inline real *Tensor##_placeNd(const Tensor *self, int dimensions, const int64_t *indices) {                   \
    ptrdiff_t offset = 0;                                                                                              \
    THArgCheck(self->nDimension == dimensions, 1, "%d indices for a %d-D tensor", dimensions, self->nDimension);       \
    for (int i = 0; i < dimensions; ++i) {                                                                             \
      THArgCheck(indices[i] >= 0 && indices[i] < self->size[i], i + 2, "index %lld of %lld", (long long)indices[i],    \
                 (long long)self->size[i]);                                                                            \
      offset += indices[i] * self->stride[i];                                                                          \
    }                                                                                                                  \
    return self->data + offset;                                                                                        \
  }                                                                                                                    \
  static inline Tensor *Tensor##_newNd(int dimensions, const int64_t *sizes) {                                         \
    int64_t count = 1;                                                                                                 \
    for (int i = 0; i < dimensions; ++i) {                                                                             \
      THArgCheck(sizes[i] >= 0, i + 1, "a size of %lld", (long long)sizes[i]);                                         \
      if (__builtin_mul_overflow(count, sizes[i], &count)) THError("a tensor of that size is too large");              \
    }                                                                                                                  \
    const size_t head = sizeof(Tensor) + 2 * dimensions * sizeof(int64_t);                                             \
    const int64_t most = (int64_t)((PTRDIFF_MAX - head) / sizeof(real));                                               \
    Tensor *made = count < most ? (Tensor *)malloc(head + count * sizeof(real)) : NULL;                                \
    if (!made) THError("no memory for a tensor of %lld elements", (long long)count);                                   \
    int64_t *size = (int64_t *)(made + 1), *stride = size + dimensions;                                                \
    for (int64_t i = dimensions, step = 1; i--; step *= size[i]) size[i] = sizes[i], stride[i] = step;                 \
    *made = (Tensor){(real *)(stride + dimensions), size, stride, dimensions, 1, NULL};                                \
    return made;                                                                                                       \
  }                                                                                                                    \
  static inline void Tensor##_retain(Tensor *self) { ++self->references; }                                             \
  static inline void Tensor##_free(Tensor *self) {                                                                     \
    if (self && --self->references == 0 && !self->resize) free(self);                                                  \
  }                                                                                                                    \
  static inline void Tensor##_cadd(Tensor *self, Tensor *a, real value, Tensor *b) {                                   \
    FLAMBEAU_TH_EACH(Tensor, a, b, *x + value * *y)                                                                    \
  }                                                                                                                    \
  static inline void Tensor##_cmul(Tensor *self, Tensor *a, Tensor *b) { FLAMBEAU_TH_EACH(Tensor, a, b, *x * *y) }     \
  static inline void Tensor##_add(Tensor *self, Tensor *a, real value) { FLAMBEAU_TH_EACH(Tensor, a, a, *x + value) }  \
  static inline void Tensor##_mul(Tensor *self, Tensor *a, real value) { FLAMBEAU_TH_EACH(Tensor, a, a, *x * value) }  \
  static inline void Tensor##_copy(Tensor *self, Tensor *from) {                                                       \
    THArgCheck(Tensor##_nElement(self) == Tensor##_nElement(from), 2, "%lld elements into %lld",                       \
               (long long)Tensor##_nElement(from), (long long)Tensor##_nElement(self));                                \
    const ptrdiff_t count = Tensor##_nElement(self);                                                                   \
    for (ptrdiff_t i = 0; i < count; ++i) *Tensor##_place(self, i) = *Tensor##_place(from, i);                         \
  }                                                                                                                    \
  static inline void Tensor##_fill(Tensor *self, real value) {                                                         \
    const ptrdiff_t count = Tensor##_nElement(self);                                                                   \
    for (ptrdiff_t i = 0; i < count; ++i) *Tensor##_place(self, i) = value;                                            \
  }                                                                                                                    \
  static inline void Tensor##_zero(Tensor *self) { Tensor##_fill(self, 0); }                                           \
  static inline Tensor *Tensor##_newClone(Tensor *self) {                                                              \
    Tensor *made = Tensor##_newNd(self->nDimension, self->size);                                                       \
    Tensor##_copy(made, self);                                                                                         \
    return made;                                                                                                       \
  }                                                                                                                    \
  static inline Tensor *Tensor##_newContiguous(Tensor *self) {                                                         \
    if (!Tensor##_isContiguous(self)) return Tensor##_newClone(self);                                                  \
    Tensor##_retain(self);                                                                                             \
    return self;                                                                                                       \
  }                                                                                                                    \
  FLAMBEAU_TH_SIZED(Tensor, real, 1, (a), int64_t a)                                                                   \
  FLAMBEAU_TH_SIZED(Tensor, real, 2, (a, b), int64_t a, int64_t b)                                                     \
  FLAMBEAU_TH_SIZED(Tensor, real, 3, (a, b, c), int64_t a, int64_t b, int64_t c)                                       \
  FLAMBEAU_TH_SIZED(Tensor, real, 4, (a, b, c, d), int64_t a, int64_t b, int64_t c, int64_t d)

FLAMBEAU_TH_TENSOR(THFloatTensor, float)
FLAMBEAU_TH_TENSOR(THDoubleTensor, double)
FLAMBEAU_TH_TENSOR(THByteTensor, uint8_t)
FLAMBEAU_TH_TENSOR(THCharTensor, int8_t)
FLAMBEAU_TH_TENSOR(THShortTensor, int16_t)
FLAMBEAU_TH_TENSOR(THIntTensor, int32_t)
FLAMBEAU_TH_TENSOR(THLongTensor, int64_t)

#endif
