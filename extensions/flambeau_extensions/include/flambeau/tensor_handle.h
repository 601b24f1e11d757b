// at::Tensor: a strong reference to a Python tensor.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "accessor.h"
#include "arguments.h"
#include "macros.h"
#include "options.h"

namespace at {

class Type;

class Tensor {
 public:
  Tensor() = default;
  // Takes over a reference to a Python tensor, or to None for an undefined one.
  explicit Tensor(flambeau::Object object) : object_(std::move(object)) {
    if (object_.get() == Py_None) object_ = flambeau::Object();
    if (object_ && !flambeau::Runtime::get().is_tensor(object_.get())) {
      throw flambeau::Error(std::string("Expected a Tensor, got ") + Py_TYPE(object_.get())->tp_name + ".");
    }
  }
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(const Tensor& other) & = default;
  Tensor& operator=(Tensor&& other) & noexcept = default;
  // `x[0] = y`, `x.slice(...) = y`: writes into the tensor that the left side names.
  Tensor& operator=(const Tensor& values) && { return copy_(values); }
  Tensor& operator=(Tensor&& values) && { return copy_(values); }
  Tensor& operator=(const Scalar& value) && { return fill_(value); }

  bool defined() const { return bool(object_); }
  void reset() { object_ = flambeau::Object(); }
  bool is_same(const Tensor& other) const { return object_.get() == other.object_.get(); }
  // The Python object; borrowed.
  PyObject* get() const { return object_.get(); }

  // -- what it is ---------------------------------------------------------

  int64_t dim() const { return PyTuple_GET_SIZE(flambeau::Runtime::get().shape.of(geometry())); }
  int64_t ndimension() const { return dim(); }
  IntArrayRef sizes() const { return IntArrayRef(flambeau::packed_geometry(geometry()), size_t(dim())); }
  IntArrayRef strides() const {
    const size_t ndim = size_t(dim());
    return IntArrayRef(flambeau::packed_geometry(geometry()) + ndim, ndim);
  }
  int64_t size(int64_t d) const { return sizes()[axis(d)]; }
  int64_t stride(int64_t d) const { return strides()[axis(d)]; }
  int64_t numel() const { return PyLong_AsLongLong(flambeau::Runtime::get().numel.of(geometry())); }
  bool is_contiguous() const { return flambeau::Runtime::get().contiguous.of(geometry()) == Py_True; }
  int64_t storage_offset() const {
    return PyLong_AsLongLong(flambeau::attribute(checked_get(), "offset").get());
  }
  ScalarType scalar_type() const { return kind().type; }
  ScalarType dtype() const { return kind().type; }
  Device device() const { return kind().device; }
  int64_t get_device() const { return kind().device.index(); }
  bool is_cuda() const { return kind().device.is_cuda(); }
  bool is_cpu() const { return kind().device.is_cpu(); }
  bool is_sparse() const { return !kind().strided; }
  bool is_floating_point() const { return isFloatingType(kind().type); }
  bool is_signed() const { return kind().type != kByte && kind().type != kBool; }
  int64_t element_size() const { return info(kind().type).size; }
  int64_t itemsize() const { return element_size(); }
  int64_t nbytes() const { return numel() * element_size(); }
  Type& type() const;
  TensorOptions options() const;

  // -- its memory ---------------------------------------------------------

  // The address of the first element.  Memory of other devices has one for extensions that are built for them.
  void* data_ptr() const {
    const flambeau::Kind& kind = this->kind();
    if (!kind.strided) {
      throw flambeau::Error("data(): the tensor is sparse and has no single memory.\nCall to_dense() first.");
    }
#ifndef WITH_CUDA
    if (!kind.host) {
      throw flambeau::Error("data(): the tensor is on " + kind.device.str() +
                            ", whose memory this extension, built for the host, cannot reach.\n"
                            "Call cpu() first, or build with CUDAExtension or with_cuda=True.");
    }
#endif
    flambeau::require_gil();
    void* address = kind.address(flambeau::Runtime::get().memory.of(object_.get()), kind.context.get());
    if (!address && PyErr_Occurred()) throw flambeau::PythonError();
    return address;
  }
  template <typename T>
  T* data_ptr() const {
    using Plain = typename std::remove_const<T>::type;
    if (kind().type != CppType<Plain>::value) {
      throw flambeau::Error(std::string("data<") + info(CppType<Plain>::value).name + ">(): the tensor holds " +
                            info(kind().type).name + ".\nConvert it first, for example with to(), or ask for its type.");
    }
    return static_cast<T*>(data_ptr());
  }
  template <typename T>
  T* data() const {
    return data_ptr<T>();
  }
  template <typename T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <typename T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }

  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const {
    expect_dim(N);
    if (!kind().host) {
      throw flambeau::Error("accessor(): the tensor is on " + kind().device.str() +
                            ", and accessors are for the host.\nUse packed_accessor() in a kernel, or cpu().");
    }
    const int64_t* sizes = flambeau::packed_geometry(geometry());
    return TensorAccessor<T, N>(data_ptr<T>(), sizes, sizes + N);
  }
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
  PackedTensorAccessor<T, N, Traits, Index> packed_accessor() const {
    expect_dim(N);
    const int64_t* sizes = flambeau::packed_geometry(geometry());
    return PackedTensorAccessor<T, N, Traits, Index>(data_ptr<T>(), sizes, sizes + N);
  }
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  PackedTensorAccessor<T, N, Traits, int32_t> packed_accessor32() const {
    return packed_accessor<T, N, Traits, int32_t>();
  }
  template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
  PackedTensorAccessor<T, N, Traits, int64_t> packed_accessor64() const {
    return packed_accessor<T, N, Traits, int64_t>();
  }

  // The tensor for functions written in C.
  FlambeauTensor as_c() const {
    int64_t* sizes = const_cast<int64_t*>(flambeau::packed_geometry(geometry()));
    const Device where = device();
    const int32_t code = where.is_cuda() ? FLAMBEAU_CUDA : where.is_cpu() ? FLAMBEAU_CPU : FLAMBEAU_OTHER_DEVICE;
    return {data_ptr(), {code, where.index() < 0 ? 0 : where.index()}, int32_t(dim()), info(kind().type).code,
            sizes, sizes + dim(), 0};
  }

  // -- one element --------------------------------------------------------

  Scalar item() const {
    flambeau::Object value = flambeau::checked(PyObject_CallMethod(checked_get(), "item", nullptr));
    if (PyBool_Check(value.get())) return value.get() == Py_True;
    if (PyFloat_Check(value.get())) return PyFloat_AS_DOUBLE(value.get());
    const long long number = PyLong_AsLongLong(value.get());
    if (number == -1 && PyErr_Occurred()) throw flambeau::PythonError();
    return number;
  }
  template <typename T>
  T item() const {
    return item().to<T>();
  }
  double toCDouble() const { return item<double>(); }
  float toCFloat() const { return item<float>(); }
  int64_t toCLong() const { return item<int64_t>(); }
  int toCInt() const { return item<int>(); }

  // -- conversions --------------------------------------------------------

  Tensor to(ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor to(const Device& device, bool non_blocking = false, bool copy = false) const;
  Tensor to(const Device& device, ScalarType type, bool non_blocking = false, bool copy = false) const;
  Tensor to(const TensorOptions& options, bool non_blocking = false, bool copy = false) const;
  Tensor toType(ScalarType type) const { return to(type); }
  Tensor toType(const Type& type) const;
  Tensor type_as(const Tensor& other) const { return to(other.device(), other.scalar_type()); }
  Tensor cpu() const { return method("cpu"); }
  Tensor cuda() const { return method("cuda"); }

  // -- parts --------------------------------------------------------------

  Tensor operator[](int64_t i) const { return item_at(flambeau::checked(PyLong_FromLongLong(i))); }
  Tensor operator[](const Scalar& i) const { return item_at(to_python(i)); }
  Tensor operator[](const Tensor& index) const { return item_at(flambeau::Object::borrowed(index.get())); }
  Tensor slice(int64_t dim = 0, int64_t start = 0, int64_t end = INT64_MAX, int64_t step = 1) const {
    const size_t before = size_t(axis(dim));
    flambeau::Object parts[3] = {to_python(Scalar(start)), to_python(Scalar(end)), to_python(Scalar(step))};
    flambeau::Object all = flambeau::checked(PySlice_New(nullptr, nullptr, nullptr));
    flambeau::Object part = flambeau::checked(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
    flambeau::Object index = flambeau::checked(PyTuple_New(Py_ssize_t(before) + 1));
    for (size_t i = 0; i < before; ++i) {
      PyTuple_SET_ITEM(index.get(), Py_ssize_t(i), flambeau::Object(all).release());
    }
    PyTuple_SET_ITEM(index.get(), Py_ssize_t(before), part.release());
    return item_at(std::move(index));
  }

  // Elements at indices, one tensor for each dimension; an undefined one takes a dimension whole.
  Tensor index(TensorList indices) const {
    flambeau::Object tuple = to_python(indices.data(), indices.size());
    for (size_t i = 0; i < indices.size(); ++i) {
      if (!indices[i].defined()) {
        PyTuple_SetItem(tuple.get(), Py_ssize_t(i), flambeau::checked(PySlice_New(nullptr, nullptr, nullptr)).release());
      }
    }
    return item_at(std::move(tuple));
  }

  // -- autograd -----------------------------------------------------------

  bool requires_grad() const { return flambeau::attribute(checked_get(), "requires_grad").get() == Py_True; }
  Tensor& set_requires_grad(bool wanted) {
    flambeau::checked(PyObject_SetAttrString(checked_get(), "requires_grad", wanted ? Py_True : Py_False));
    return *this;
  }
  Tensor grad() const { return Tensor(flambeau::attribute(checked_get(), "grad")); }
  bool is_leaf() const { return flambeau::attribute(checked_get(), "is_leaf").get() == Py_True; }
  // The same memory outside of autograd; `data()` of Python.
  Tensor variable_data() const { return Tensor(flambeau::attribute(checked_get(), "data")); }
  void backward(const Tensor& gradient = {}, bool keep_graph = false, bool create_graph = false) const {
    flambeau::checked(PyObject_CallMethod(checked_get(), "backward", "OOO", python_or_none(gradient),
                                          keep_graph ? Py_True : Py_False, create_graph ? Py_True : Py_False));
  }

  // -- operators ----------------------------------------------------------

#include <flambeau/methods.h>

  Tensor operator-() const { return neg(); }
  Tensor& operator+=(const Any& other) { return inplace(PyNumber_InPlaceAdd, other); }
  Tensor& operator-=(const Any& other) { return inplace(PyNumber_InPlaceSubtract, other); }
  Tensor& operator*=(const Any& other) { return inplace(PyNumber_InPlaceMultiply, other); }
  Tensor& operator/=(const Any& other) { return inplace(PyNumber_InPlaceTrueDivide, other); }

  // Calls a method of the Python tensor by name.
  Tensor method(const char* name) const {
    return Tensor(flambeau::checked(PyObject_CallMethod(checked_get(), name, nullptr)));
  }

 private:
  static PyObject* python_or_none(const Tensor& tensor) { return tensor.defined() ? tensor.get() : Py_None; }
  PyObject* checked_get() const {
    if (!object_) throw flambeau::Error("The tensor is undefined: it was never given a value.");
    return object_.get();
  }
  PyObject* geometry() const { return flambeau::Runtime::get().geometry.of(checked_get()); }
  const flambeau::Kind& kind() const {
    flambeau::Runtime& runtime = flambeau::Runtime::get();
    return runtime.kind(runtime.key.of(checked_get()));
  }
  size_t axis(int64_t d) const {
    const int64_t ndim = dim();
    if (d < -ndim || d >= ndim) {
      throw std::out_of_range("Dimension out of range (expected to be in range of [" + std::to_string(-ndim) + ", " +
                              std::to_string(ndim - 1) + "], but got " + std::to_string(d) + ")");
    }
    return size_t(d < 0 ? d + ndim : d);
  }
  void expect_dim(size_t wanted) const {
    if (size_t(dim()) != wanted) {
      throw flambeau::Error("accessor: expected " + std::to_string(wanted) + " dimensions, got " +
                            std::to_string(dim()) + ".");
    }
  }
  Tensor item_at(flambeau::Object index) const {
    return Tensor(flambeau::checked(PyObject_GetItem(checked_get(), index.get())));
  }
  Tensor& inplace(PyObject* (*function)(PyObject*, PyObject*), const Any& other) {
    flambeau::require_gil();
    object_ = flambeau::checked(function(checked_get(), other.get()));
    return *this;
  }

  flambeau::Object object_;
};

// -- results and arguments that need a complete Tensor ------------------------

template <>
inline Tensor result<Tensor>(flambeau::Object value) {
  return Tensor(std::move(value));
}
template <>
inline std::vector<Tensor> result<std::vector<Tensor>>(flambeau::Object value) {
  std::vector<Tensor> tensors;
  flambeau::Object items = flambeau::checked(PySequence_Fast(value.get(), "expected a sequence of tensors"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    tensors.emplace_back(flambeau::Object::borrowed(PySequence_Fast_GET_ITEM(items.get(), i)));
  }
  return tensors;
}
template <>
inline Pair result<Pair>(flambeau::Object value) {
  const std::vector<Tensor> tensors = result<std::vector<Tensor>>(std::move(value));
  return Pair(tensors.at(0), tensors.at(1));
}

inline flambeau::Object to_python(const Tensor& tensor) {
  return flambeau::Object::borrowed(tensor.defined() ? tensor.get() : Py_None);
}
inline Tensors::Tensors(TensorList values) : Argument(to_python(values.data(), values.size())) {}
inline Tensors::Tensors(std::initializer_list<Tensor> values) : Argument(to_python(values.begin(), values.size())) {}
inline Tensors::Tensors(const std::vector<Tensor>& values) : Argument(to_python(values.data(), values.size())) {}
inline Any::Any(const std::vector<Tensor>& values) : Argument(to_python(values.data(), values.size())) {}

inline std::string printed(const Tensor& tensor) { return tensor.defined() ? flambeau::text_of(tensor.get()) : "undefined"; }

}  // namespace at
