// Loops over raw memory, for every element type and by index.
#include "loops.h"

template <typename scalar_t>
void cumulate(scalar_t* out, const scalar_t* in, int64_t n) {
  scalar_t total = 0;
  for (int64_t i = 0; i < n; ++i) out[i] = total += in[i];
}

at::Tensor running_sum(at::Tensor x) {
  AT_ASSERT(x.is_contiguous(), "x must be contiguous");
  auto y = at::zeros_like(x);
  AT_DISPATCH_ALL_TYPES(x.type(), "running_sum", ([&] {
    cumulate<scalar_t>(y.data<scalar_t>(), x.data<scalar_t>(), x.numel());
  }));
  return y;
}

at::Tensor trace_of(at::Tensor x) {
  AT_ASSERT(x.dim() == 2, "expected a matrix");
  auto& type = x.type();
  auto result = type.tensor({1});
  auto a = x.accessor<double, 2>();
  double total = 0;
  for (int64_t i = 0; i < std::min(x.size(0), x.size(1)); ++i) total += a[i][i];
  result.accessor<double, 1>()[0] = total;
  return result;
}
