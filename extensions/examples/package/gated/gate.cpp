#include "gate.h"

at::Tensor gate(const at::Tensor& x, const at::Tensor& y) {
  AT_CHECK(x.sizes() == y.sizes(), "expected tensors of one size, got ", x.sizes(), " and ", y.sizes());
  return SCALE * at::sigmoid(x) * y;
}
