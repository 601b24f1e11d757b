// Operators declared in C++: loops over memory with a backward of their own, one of operators, one without any.
#include <torch/extension.h>

#include <cmath>

namespace {

template <typename F>
at::Tensor each(const at::Tensor& x, F f) {
  at::Tensor dense = x.contiguous(), result = at::empty_like(dense);
  AT_DISPATCH_FLOATING_TYPES(x.type(), "softclip", [&] {
    const scalar_t* from = dense.data<scalar_t>();
    scalar_t* to = result.data<scalar_t>();
    for (int64_t i = 0; i < dense.numel(); ++i) to[i] = scalar_t(f(from[i], i));
  });
  return result;
}

}  // namespace

// limit * tanh(x / limit), by a loop
at::Tensor softclip(const at::Tensor& x, double limit) {
  return each(x, [&](double value, int64_t) { return limit * std::tanh(value / limit); });
}

// composed of operators, so it can be differentiated again
at::Tensor softclip_backward(const at::Tensor& grad, const at::Tensor& x, double limit) {
  const at::Tensor t = at::tanh(x / limit);
  return grad * (1 - t * t);
}

at::Tensor cube(const at::Tensor& x) {
  return each(x, [](double value, int64_t) { return value * value * value; });
}

// by a loop, so it cannot; reads the result
at::Tensor cube_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& result) {
  const at::Tensor dense = grad.contiguous(), cubes = result.contiguous();
  return each(x, [&](double value, int64_t i) {
    double upstream = 0;
    AT_DISPATCH_FLOATING_TYPES(x.type(), "cube_backward", [&] { upstream = double(dense.data<scalar_t>()[i]); });
    return upstream * 3 * value * value;
  });
}

at::Tensor opaque(const at::Tensor& x) {
  return each(x, [](double value, int64_t) { return value + 1; });
}

// of operators, as memory of other devices has no address
at::Tensor opaque_elsewhere(const at::Tensor& x) { return x + 1; }

std::tuple<at::Tensor, at::Tensor> parts(const at::Tensor& x, const at::Tensor& y, int64_t power) {
  return std::make_tuple(x * y, at::pow(x, double(power)));
}

std::vector<at::Tensor> parts_backward(const at::Tensor& product, const at::Tensor& raised, const at::Tensor& x,
                                       const at::Tensor& y, int64_t power) {
  return {product * y + raised * double(power) * at::pow(x, double(power - 1)), product * x};
}

at::Tensor joined(const std::vector<at::Tensor>& xs, at::optional<at::Tensor> bias) {
  at::Tensor sum = xs[0].clone();
  for (size_t i = 1; i < xs.size(); ++i) sum.add_(xs[i]);
  return bias ? sum + *bias : sum;
}

void doubled_(at::Tensor x) { x.mul_(2); }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  FLAMBEAU_OPERATOR(m, declared, softclip, softclip_backward, py::arg("x"), py::arg("limit") = 1.0, "A soft clip.");
  FLAMBEAU_OPERATOR(m, declared, cube, cube_backward, py::arg("x"));
  FLAMBEAU_OPERATOR(m, declared, opaque, nullptr);
  FLAMBEAU_KERNEL(m, opaque, "numpy", opaque_elsewhere);
  FLAMBEAU_OPERATOR(m, declared, parts, parts_backward, py::arg("x"), py::arg("y"), py::arg("power") = 2)
      .attr("check_shapes")("(n), (n) -> (n), (n)");
  FLAMBEAU_OPERATOR(m, declared, joined, nullptr, py::arg("xs"), py::arg("bias") = py::none());
  FLAMBEAU_OPERATOR(m, declared, doubled_, nullptr, py::arg("x"));
}
