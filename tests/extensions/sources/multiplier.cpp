// A class with members, and the module of two translation units.
#include "loops.h"

struct Multiplier {
  Multiplier(int rows, int columns) { weight_ = at::CPU(at::kDouble).ones({rows, columns}) * 2; }
  at::Tensor forward(at::Tensor x) const { return x * weight_; }
  at::Tensor weight() const { return weight_; }
  void scale(double by) { weight_ *= by; }

 private:
  at::Tensor weight_;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Multiplier>(m, "Multiplier", "Multiplies by a matrix.")
      .def(py::init<int, int>(), py::arg("rows"), py::arg("columns") = 3)
      .def("forward", &Multiplier::forward)
      .def("scale", &Multiplier::scale, "Scale the weight.", py::arg("by") = 2.0)
      .def("weight", &Multiplier::weight);
  m.def("running_sum", &running_sum);
  m.def("trace_of", &trace_of, "The sum of the diagonal.");
}
