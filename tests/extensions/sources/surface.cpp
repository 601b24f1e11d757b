// One function for each part of the C++ surface; test_surface.py says what they return.
#include <torch/extension.h>

#include <map>
#include <sstream>

using torch::Tensor;

// -- factories -------------------------------------------------------------------

std::vector<Tensor> factories() {
  auto options = torch::dtype(torch::kInt64).device(torch::kCPU);
  return {
      at::zeros({2, 3}), torch::ones({2}, options), at::full({2}, 7.0, at::kDouble), at::empty({0, 3}, at::kByte),
      at::arange(3, at::kFloat), at::arange(1, 7, 2), at::eye(2), at::zeros({}), at::tensor({1.5, 2.5}),
      at::tensor(3), torch::linspace(0, 1, 3), at::CPU(at::kFloat).zeros({1}), at::getType(at::kCPU, at::kInt).ones({2}),
  };
}

std::vector<Tensor> like(const Tensor& x) {
  auto& type = x.type();
  return {at::zeros_like(x), at::ones_like(x, at::kInt), x.new_zeros({2}), type.tensor({1, 2}).fill_(4), type.scalarTensor(5),
          at::empty({1}, x.options()).fill_(6), type.toScalarType(at::kLong).zeros({1}), type.copy(x)};
}

Tensor requiring() { return at::ones({2}, at::TensorOptions().requires_grad(true).dtype(at::kDouble)); }

int deleted = 0;
int count_deleted() { return deleted; }

Tensor blob(std::vector<double> values, bool transposed) {
  double* memory = new double[values.size()];
  for (size_t i = 0; i < values.size(); ++i) memory[i] = values[i];
  const int64_t rows = 2, columns = int64_t(values.size()) / 2;
  auto free = [](void* p) {
    delete[] static_cast<double*>(p);
    ++deleted;
  };
  if (transposed) return at::from_blob(memory, {columns, rows}, {1, columns}, free, at::kDouble);
  return at::from_blob(memory, {rows, columns}, free, at::kDouble);
}

// -- arithmetic ------------------------------------------------------------------

std::vector<Tensor> arithmetic(const Tensor& x, const Tensor& y) {
  Tensor z = x.clone();
  z += y;
  z -= 1;
  z *= 2.0;
  z /= y;
  return {x + y, 1 - x, x * 2, 2.5f / y, x - y, -x, x % 2, z, x + at::Scalar(3), true + x};
}

std::vector<Tensor> comparisons(const Tensor& x) {
  return {x > 1, 1 > x, x == 2, x != 2, x <= x, (x > 0) & (x < 2), (x < 1) | (x > 2)};
}

std::vector<Tensor> inplace(Tensor x) {
  x[0] = 5;
  x[1] = at::ones({3}) * 7;
  x.slice(1, 0, 1) = at::zeros({3, 1});
  x.narrow(0, 2, 1).fill_(9);
  x.add_(1).mul_(2);
  Tensor out = at::empty({3, 3}, x.options());
  at::add_out(out, x, x);
  return {x, out};
}

// -- operators of every shape of signature ---------------------------------------

py::object results(const Tensor& x) {
  Tensor values, indices;
  std::tie(values, indices) = at::max(x, 1);
  auto sorted = x.sort(1, /*descending=*/true);
  auto top = at::topk(x, 1);
  std::vector<Tensor> parts = at::split(x, 1, 1), same = x.unbind(0);
  return py::cast(std::make_tuple(values, indices, std::get<0>(sorted), std::get<1>(top), parts, same.size(), x.equal(x)));
}

std::vector<Tensor> operators(const Tensor& x, const Tensor& index) {
  std::vector<Tensor> list = {x, x};
  return {
      at::cat({x, x}, 0), at::stack(list, -1), x.sum(), x.sum(0), x.sum({0, 1}), x.sum(1, true), x.mean(-1), x.max(),
      at::max(x, x * 2), x.view({-1}), x.permute({1, 0}), x.expand({2, 2, 3}), x.t().contiguous(), x.index_select(1, index),
      at::where(x > 2, x, at::zeros_like(x)), x.clamp(2, 4), x.clamp_min(3), x.norm(), x.var(1, false), at::softmax(x, 1),
      at::relu(x - 3), at::elu(x - 3, 0.5), at::leaky_relu(x - 3), x.unsqueeze(0).squeeze(), x.flatten(), x.repeat({1, 2}),
      at::einsum("ij,kj->ik", {x, x}), at::pow(x, 2), at::pow(2, x), x.masked_fill(x > 2, -1), x.transpose(0, 1).mm(x),
      at::linear(x, x), at::linear(x, x, at::ones({2})), at::dropout(x, 0.5, false), x.to(at::kLong), x.gather(1, index.unsqueeze(0)),
      at::conv1d(x.unsqueeze(0), at::ones({1, 2, 2})), at::std(x), x.index_fill(1, index, 0), at::embedding(index, x.t()),
      x.sum(0, false, at::kDouble), at::softmax(x, 1, at::kDouble), x.index({Tensor(), index}),
      at::zeros({1}, at::TensorOptions().layout(at::kStrided).dtype(at::kInt)),
  };
}

// -- what a tensor says ----------------------------------------------------------

std::string description(const Tensor& x) {
  std::stringstream text;
  text << x.sizes() << x.strides() << x.dim() << x.numel() << x.scalar_type() << x.device().str() << x.is_contiguous()
       << x.type().toString() << x.is_cuda() << x.size(-1) << x.stride(0) << x.storage_offset() << x.element_size()
       << x.is_floating_point() << (x.sizes() == at::IntArrayRef({2, 3})) << Tensor().defined() << x.requires_grad();
  return text.str();
}

std::string printed(const Tensor& x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

double element(const Tensor& x) { return x[1][0].item<double>() + x.sum().toCDouble() + x.numel(); }

py::object scalars(const Tensor& x) {
  at::Scalar number = x.sum().item();
  return py::cast(std::make_tuple(number, number.to<int>(), number.isFloatingPoint(), (-number).toDouble()));
}

Tensor through_python(const Tensor& x, py::function f) { return f(x, 2).cast<Tensor>(); }

bool same(const Tensor& x, const Tensor& y) { return x.is_same(y); }

// -- memory ----------------------------------------------------------------------

Tensor transposed_sum(const Tensor& x) {
  auto a = x.accessor<float, 2>();
  auto b = x.packed_accessor<float, 2, at::RestrictPtrTraits, int32_t>();
  Tensor out = at::zeros({a.size(1)});
  float* y = out.data_ptr<float>();
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < a.size(1); ++j) y[j] += a[i][j] + b[int(i)][int(j)] - x.data<float>()[i * a.stride(0) + j * a.stride(1)];
  }
  return out;
}

std::vector<int64_t> as_c(const Tensor& x) {
  FlambeauTensor t = x.as_c();
  return {t.ndim, t.sizes[0], t.sizes[1], t.strides[0], t.strides[1], t.dtype.code, t.dtype.bits, t.device.type,
          t.data == x.data_ptr()};
}

Tensor halves(const Tensor& x) {
  Tensor y = at::empty_like(x);
  for (int64_t i = 0; i < x.numel(); ++i) y.data<at::Half>()[i] = at::Half(float(x.data<at::Half>()[i]) * 2);
  return y;
}

Tensor round_half(const Tensor& x) {
  Tensor y = at::empty(x.sizes(), at::kHalf);
  for (int64_t i = 0; i < x.numel(); ++i) y.data<at::Half>()[i] = x.data<float>()[i];
  return y;
}

Tensor without_gil(const Tensor& x) {
  Tensor y = at::empty_like(x);
  const float* from = x.data<float>();
  float* to = y.data<float>();
  const int64_t n = x.numel();
  py::gil_scoped_release released;
  for (int64_t i = 0; i < n; ++i) to[i] = from[i] + 1;
  return y;
}

Tensor operator_without_gil(const Tensor& x) {
  py::gil_scoped_release released;
  return x + 1;
}

// -- autograd --------------------------------------------------------------------

std::vector<Tensor> gradient(Tensor x) {
  auto y = (x * x).sum();
  y.backward();
  return {x.grad(), x.detach()};
}

Tensor without_history(const Tensor& x) {
  at::NoGradGuard guard;
  return x * 2;
}

at::Tensor kept;  // lives longer than the interpreter
void keep(at::Tensor x) { kept = x; }

// -- errors ----------------------------------------------------------------------

std::string caught(const Tensor& x) {
  try {
    at::mm(x, x);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void failing(int kind) {
  const Tensor undefined;
  switch (kind) {
    case 0: AT_ERROR("got %d of %s", 3, "them");
    case 1: AT_CHECK(kind == 2, "kind is ", kind, ", sizes are ", at::ones({2, 3}).sizes());
    case 2: TORCH_CHECK(kind == 1);
    case 3: throw std::out_of_range("past the end");
    case 4: throw std::invalid_argument("not this");
    case 5: throw py::value_error("from py");
    case 6: undefined.sum();
    case 7: undefined + 1;
    case 8: at::ones({2}).size(3);
    case 9: throw 3;
    case 10: at::ones({2, 2}).accessor<float, 1>();
    case 11: throw std::bad_alloc();
    case 12: TORCH_CHECK(false, "50% of ", 3);
    case 13: throw std::invalid_argument("caf\xe9");
  }
}

// -- binding ---------------------------------------------------------------------

std::string kinds(int a, double b, bool c, const std::string& d, std::vector<int64_t> e, c10::optional<Tensor> f,
                  std::tuple<int, double> g, at::ScalarType h, at::Device i, const char* j) {
  std::ostringstream text;
  text << a << b << c << d << e.size() << f.has_value() << std::get<1>(g) << h << i.str() << j;
  return text.str();
}

uint8_t small(uint8_t x) { return x; }
at::optional<int> maybe(bool some) { return some ? at::optional<int>(4) : at::nullopt; }
int overloaded(const Tensor&) { return 1; }
int overloaded_text(std::string) { return 2; }

struct Shape {
  virtual ~Shape() { ++destroyed; }
  virtual double area() const = 0;
  std::string label = "shape";
  static int destroyed;
};
int Shape::destroyed = 0;
struct Square : Shape {
  explicit Square(double side) : side(side) {}
  double area() const override { return side * side; }
  double side;
};
double area_of(const Shape& shape) { return shape.area(); }
std::shared_ptr<Square> square(double side) { return std::make_shared<Square>(side); }
int destroyed() { return Shape::destroyed; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The C++ surface.";
  m.attr("answer") = 42;
  m.def("factories", &factories);
  m.def("like", &like);
  m.def("requiring", &requiring);
  m.def("blob", &blob, py::arg("values"), py::arg("transposed") = false);
  m.def("count_deleted", &count_deleted);
  m.def("arithmetic", &arithmetic);
  m.def("comparisons", &comparisons);
  m.def("inplace", &inplace);
  m.def("results", &results);
  m.def("operators", &operators);
  m.def("description", &description);
  m.def("printed", &printed);
  m.def("element", &element);
  m.def("scalars", &scalars);
  m.def("through_python", &through_python);
  m.def("same", &same);
  m.def("transposed_sum", &transposed_sum);
  m.def("as_c", &as_c);
  m.def("halves", &halves);
  m.def("round_half", &round_half);
  m.def("without_gil", &without_gil);
  m.def("operator_without_gil", &operator_without_gil);
  m.def("gradient", &gradient);
  m.def("without_history", &without_history);
  m.def("keep", &keep);
  m.def("caught", &caught);
  m.def("failing", &failing);
  m.def("kinds", &kinds, "All kinds of arguments.", py::arg("a"), py::arg("b") = 0.5, py::arg("c") = true,
        py::arg("d") = "text", py::arg("e") = std::vector<int64_t>{1, 2}, py::arg("f") = py::none(),
        py::arg("g") = std::make_tuple(1, 2.5), py::arg("h") = at::kFloat, py::arg("i") = at::Device("cpu"), py::arg("j") = "");
  m.def("small", &small);
  m.def("maybe", &maybe);
  m.def("overloaded", &overloaded);
  m.def("overloaded", &overloaded_text);
  m.def("lambda", [](int x) { return x + 1; }, py::arg("x") = 1);
  m.def("area_of", &area_of);
  m.def("square", &square);
  m.def("destroyed", &destroyed);
  m.def("slow", [](double x) { return x * 2; }, py::call_guard<py::gil_scoped_release>());
  py::class_<Shape, std::shared_ptr<Shape>>(m, "Shape").def("area", &Shape::area).def_readwrite("label", &Shape::label);
  py::class_<Square, Shape, std::shared_ptr<Square>>(m, "Square")
      .def(py::init<double>(), py::arg("side"))
      .def(py::init([](std::string text) { return new Square(double(text.size())); }))
      .def_readonly("side", &Square::side)
      .def_property_readonly("half", [](const Square& self) { return self.side / 2; })
      .def_static("unit", []() { return Square(1); })
      .def("__repr__", [](const Square& self) { return "Square(" + std::to_string(int(self.side)) + ")"; });
}
