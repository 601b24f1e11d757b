// The second translation unit: a class with members, and loops over raw memory.
#include <torch/torch.h>

#include "cell.h"

struct Multiplier {
  Multiplier(int rows, int columns) { weight_ = at::CPU(at::kDouble).ones({rows, columns}) * 2; }
  at::Tensor forward(at::Tensor x) const { return x * weight_; }
  at::Tensor weight() const { return weight_; }
  void scale(double by) { weight_ *= by; }

 private:
  at::Tensor weight_;
};

template <typename scalar_t>
void cumulate(scalar_t* out, const scalar_t* in, int64_t n) {
  scalar_t total = 0;
  for (int64_t i = 0; i < n; ++i) out[i] = total += in[i];
}

at::Tensor running_sum(at::Tensor x) {
  CHECK_CONTIGUOUS(x);
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

void bind_multiplier(py::module& m) {
  py::class_<Multiplier>(m, "Multiplier", "Multiplies by a matrix.")
      .def(py::init<int, int>(), py::arg("rows"), py::arg("columns") = 3)
      .def("forward", &Multiplier::forward)
      .def("scale", &Multiplier::scale, "Scale the weight.", py::arg("by") = 2.0)
      .def("weight", &Multiplier::weight);
  m.def("running_sum", &running_sum);
  m.def("trace_of", &trace_of, "The sum of the diagonal.");
}
