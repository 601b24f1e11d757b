// A step of Adam over all parameters in one call, and one pass over their memory.
#include <torch/extension.h>

#include <cmath>
#include <vector>

void adam_step(std::vector<at::Tensor> params, std::vector<at::Tensor> grads, std::vector<at::Tensor> means,
               std::vector<at::Tensor> squares, double lr, double beta1, double beta2, double eps, int64_t step) {
  const size_t count = params.size();
  TORCH_CHECK(grads.size() == count && means.size() == count && squares.size() == count,
              "adam_step: expected as many gradients and moments as parameters, ", count, ", got ", grads.size(), ", ",
              means.size(), " and ", squares.size());
  const double first = 1 - std::pow(beta1, double(step)), second = std::sqrt(1 - std::pow(beta2, double(step)));
  for (size_t k = 0; k < count; ++k) {
    TORCH_CHECK(params[k].is_contiguous() && means[k].is_contiguous() && squares[k].is_contiguous(),
                "adam_step: parameter ", k, " or its moments are not contiguous");
    TORCH_CHECK(grads[k].sizes() == params[k].sizes(), "adam_step: parameter ", k, " is of size ", params[k].sizes(),
                ", its gradient of ", grads[k].sizes());
    const at::Tensor grad = grads[k].contiguous();
    AT_DISPATCH_FLOATING_TYPES(params[k].type(), "adam_step", [&] {
      scalar_t *p = params[k].data<scalar_t>(), *m = means[k].data<scalar_t>(), *v = squares[k].data<scalar_t>();
      const scalar_t* g = grad.data<scalar_t>();
      const scalar_t b1 = scalar_t(beta1), b2 = scalar_t(beta2), rate = scalar_t(lr / first), tiny = scalar_t(eps);
      const scalar_t root = scalar_t(1 / second);
      for (int64_t i = 0, n = params[k].numel(); i < n; ++i) {
        m[i] += (g[i] - m[i]) * (1 - b1);
        v[i] = v[i] * b2 + g[i] * g[i] * (1 - b2);
        p[i] -= rate * m[i] / (std::sqrt(v[i]) * root + tiny);
      }
    });
  }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("adam_step", &adam_step, py::arg("params"), py::arg("grads"), py::arg("means"), py::arg("squares"), py::arg("lr"),
        py::arg("beta1"), py::arg("beta2"), py::arg("eps"), py::arg("step"), "a step of Adam over all parameters");
}
