/* A tensor as plain C sees it: a pointer and what describes it.

   The layout is that of DLPack's DLTensor (https://dmlc.github.io/dlpack/latest/c_api.html), so a pointer to
   one may be given to any library that takes the other.  Nothing here owns memory: a FlambeauTensor is valid
   while the Python tensor that it was taken from is alive and keeps its shape. */
#ifndef FLAMBEAU_TENSOR_H
#define FLAMBEAU_TENSOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever this file or the objects behind at::Tensor change in a way that compiled code notices. */
#define FLAMBEAU_ABI_VERSION 1

enum FlambeauDeviceType { FLAMBEAU_CPU = 1, FLAMBEAU_CUDA = 2, FLAMBEAU_CUDA_HOST = 3, FLAMBEAU_OTHER_DEVICE = 12 };
enum FlambeauTypeCode {
  FLAMBEAU_INT = 0, FLAMBEAU_UINT = 1, FLAMBEAU_FLOAT = 2, FLAMBEAU_BFLOAT = 4, FLAMBEAU_COMPLEX = 5, FLAMBEAU_BOOL = 6
};

typedef struct {
  int32_t type; /* FlambeauDeviceType */
  int32_t index;
} FlambeauDevice;

typedef struct {
  uint8_t code; /* FlambeauTypeCode */
  uint8_t bits; /* of one element; of both parts for complex */
  uint16_t lanes; /* always 1 */
} FlambeauDtype;

typedef struct {
  void *data; /* the first element, on the device */
  FlambeauDevice device;
  int32_t ndim;
  FlambeauDtype dtype;
  int64_t *sizes;
  int64_t *strides; /* in elements, never NULL */
  uint64_t byte_offset; /* always 0: data has it applied */
} FlambeauTensor;

/* What a DLPack capsule holds: a tensor, and who frees it. */
typedef struct FlambeauManagedTensor {
  FlambeauTensor tensor;
  void *context;
  void (*free)(struct FlambeauManagedTensor *);
} FlambeauManagedTensor;

#ifdef __cplusplus
}
#endif
#endif
