// New tensors: from memory and from values, the Type objects of before, and arithmetic with numbers.
#pragma once

#include "tensor_handle.h"

namespace at {

inline ScalarType scalar_type(ScalarType type) { return type; }

// Takes host memory that somebody else owns: `deleter(data)` is called when the last tensor over it is gone.
// Without a deleter the memory must outlive the tensor.
template <typename Deleter>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, Deleter deleter, const TensorOptions& options = {}) {
  struct Blob : FlambeauManagedTensor {
    std::vector<int64_t> numbers;
    Deleter deleter;
    explicit Blob(Deleter d) : deleter(std::move(d)) {}
  };
  if (sizes.size() != strides.size()) {
    throw flambeau::Error("from_blob(): " + std::to_string(sizes.size()) + " sizes and " +
                          std::to_string(strides.size()) + " strides.\nGive one stride, in elements, for each size.");
  }
  if (options.device().type() != kCPU) {
    throw flambeau::Error("from_blob() takes host memory; options name the device " + options.device().str() + ".");
  }
  Blob* blob = new Blob(std::move(deleter));
  blob->numbers = sizes.vec();
  blob->numbers.insert(blob->numbers.end(), strides.begin(), strides.end());
  blob->tensor = {data, {FLAMBEAU_CPU, 0}, int32_t(sizes.size()), info(options.dtype()).code, blob->numbers.data(),
                  blob->numbers.data() + sizes.size(), 0};
  blob->free = [](FlambeauManagedTensor* self) {
    Blob* blob = static_cast<Blob*>(self);
    blob->deleter(blob->tensor.data);
    delete blob;
  };
  flambeau::Object capsule(PyCapsule_New(static_cast<FlambeauManagedTensor*>(blob), "dltensor", [](PyObject* capsule) {
    if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // a consumer owns it now
    auto* managed = static_cast<FlambeauManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    managed->free(managed);
  }));
  if (!capsule) blob->free(blob);
  flambeau::checked(capsule ? 0 : -1);
  flambeau::Object import = flambeau::attribute(flambeau::Runtime::get().torch.get(), "from_dlpack");
  Tensor result(flambeau::checked(PyObject_CallOneArg(import.get(), capsule.get())));
  if (options.requires_grad()) result.set_requires_grad(true);
  return result;
}
inline std::vector<int64_t> contiguous_strides(IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i] > 0 ? sizes[i] : 1) strides[i] = step;
  return strides;
}
template <typename Deleter>
Tensor from_blob(void* data, IntArrayRef sizes, Deleter deleter, const TensorOptions& options = {}) {
  return from_blob(data, sizes, contiguous_strides(sizes), deleter, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, contiguous_strides(sizes), [](void*) {}, options);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  return from_blob(data, sizes, strides, [](void*) {}, options);
}

}  // namespace at

#include <flambeau/operators.h>

namespace at {

// Values written in the source: `tensor({1.0, 2.0})`.
inline Tensor tensor(const Any& values, const TensorOptions& options = {}) {
  FLAMBEAU_OP("tensor", 't', 1, 1, "dtype device requires_grad ");
  return Tensor(op({values, FLAMBEAU_OPTIONS}));
}
template <typename T, FLAMBEAU_IF(std::is_arithmetic<T>::value)>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options) {
  flambeau::Object numbers = to_python(values.data(), values.size());
  FLAMBEAU_OP("tensor", 't', 1, 1, "dtype device requires_grad ");
  return Tensor(op({numbers, FLAMBEAU_OPTIONS}));
}
inline Tensor tensor(std::initializer_list<double> values, const TensorOptions& options = {}) {
  return tensor(std::vector<double>(values), options);
}

// An element type on a device, as an object that makes tensors.
class Type {
 public:
  // Types are compared by address and live for ever.
  static Type& get(ScalarType type, const Device& device) {
    static std::vector<Type*>* all = new std::vector<Type*>;
    for (Type* each : *all) {
      if (each->type_ == type && each->device_ == device) return *each;
    }
    all->push_back(new Type(type, device));
    return *all->back();
  }

  ScalarType scalarType() const { return type_; }
  Device device() const { return device_; }
  DeviceType backend() const { return device_.type(); }
  bool is_cuda() const { return device_.is_cuda(); }
  bool is_sparse() const { return false; }
  const char* toString() const { return name_.c_str(); }
  Type& toScalarType(ScalarType type) const { return get(type, device_); }
  Type& toBackend(DeviceType device) const { return get(type_, Device(device)); }
  TensorOptions options() const { return TensorOptions(type_).device(device_); }
  bool operator==(const Type& other) const { return this == &other; }
  bool operator!=(const Type& other) const { return this != &other; }

  Tensor tensor(IntArrayRef sizes) const { return at::empty(sizes, options()); }
  Tensor tensor() const { return at::empty({0}, options()); }
  Tensor zeros(IntArrayRef sizes) const { return at::zeros(sizes, options()); }
  Tensor ones(IntArrayRef sizes) const { return at::ones(sizes, options()); }
  Tensor rand(IntArrayRef sizes) const { return at::rand(sizes, options()); }
  Tensor randn(IntArrayRef sizes) const { return at::randn(sizes, options()); }
  Tensor eye(int64_t n) const { return at::eye(n, nullopt, options()); }
  Tensor arange(const Scalar& end) const { return at::arange(end, options()); }
  Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1) const {
    return at::arange(start, end, step, options());
  }
  Tensor zeros_like(const Tensor& like) const { return at::zeros(like.sizes(), options()); }
  Tensor ones_like(const Tensor& like) const { return at::ones(like.sizes(), options()); }
  Tensor scalarTensor(const Scalar& value) const { return at::tensor(value, options()); }
  Tensor copy(const Tensor& source) const { return source.to(device_, type_, false, true); }
  Tensor tensorFromBlob(void* data, IntArrayRef sizes) const { return at::from_blob(data, sizes, options()); }

 private:
  Type(ScalarType type, const Device& device)
      : type_(type), device_(device),
        name_((device.is_cpu() ? "CPU" : device.is_cuda() ? "CUDA" : device.str()) + at::toString(type) + "Type") {}

  ScalarType type_;
  Device device_;
  std::string name_;
};

inline ScalarType scalar_type(const Type& type) { return type.scalarType(); }
inline Type& getType(DeviceType device, ScalarType type) { return Type::get(type, device); }
inline Type& CPU(ScalarType type) { return Type::get(type, kCPU); }
inline Type& CUDA(ScalarType type) { return Type::get(type, Device("cuda:0")); }

inline Type& Tensor::type() const { return Type::get(scalar_type(), device()); }
inline TensorOptions Tensor::options() const { return TensorOptions(scalar_type()).device(device()); }
inline Tensor Tensor::toType(const Type& type) const { return to(type.device(), type.scalarType()); }

inline Tensor Tensor::to(const TensorOptions& options, bool non_blocking, bool copy) const {
  FLAMBEAU_OP("to", 'm', 1, 1, "device dtype non_blocking copy ");
  return Tensor(op({checked_get(), options.device_object(), options.dtype_object(), non_blocking ? Py_True : nullptr,
                    copy ? Py_True : nullptr}));
}
inline Tensor Tensor::to(ScalarType type, bool non_blocking, bool copy) const {
  return to(TensorOptions(type), non_blocking, copy);
}
inline Tensor Tensor::to(const Device& device, bool non_blocking, bool copy) const {
  return to(TensorOptions(device), non_blocking, copy);
}
inline Tensor Tensor::to(const Device& device, ScalarType type, bool non_blocking, bool copy) const {
  return to(TensorOptions(type).device(device), non_blocking, copy);
}

// Turns recording of history on or off until the end of a block.
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled) : before_(call("is_grad_enabled", nullptr).get() == Py_True) { set(enabled); }
  ~AutoGradMode() { set(before_); }
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  static flambeau::Object call(const char* name, const char* format, PyObject* argument = nullptr) {
    return flambeau::checked(PyObject_CallMethod(flambeau::Runtime::get().torch.get(), name, format, argument));
  }
  static void set(bool enabled) { call("set_grad_enabled", "O", enabled ? Py_True : Py_False); }
  bool before_;
};
struct NoGradGuard : AutoGradMode {
  NoGradGuard() : AutoGradMode(false) {}
};

// ---------------------------------------------------------------- operators between tensors and numbers

#define FLAMBEAU_BINARY(symbol, function)                                                        \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return function(a.get(), b.get()); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) {                              \
    return function(a.get(), to_python(b).get());                                                \
  }                                                                                              \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return function(to_python(a).get(), b.get()); }

template <PyObject* (*Function)(PyObject*, PyObject*)>
Tensor binary(PyObject* a, PyObject* b) {
  if (!a || !b) throw flambeau::Error("An operand is an undefined tensor: it was never given a value.");
  flambeau::require_gil();
  return Tensor(flambeau::checked(Function(a, b)));
}
template <int Comparison>
PyObject* compared(PyObject* a, PyObject* b) {
  return PyObject_RichCompare(a, b, Comparison);
}

FLAMBEAU_BINARY(+, binary<PyNumber_Add>)
FLAMBEAU_BINARY(-, binary<PyNumber_Subtract>)
FLAMBEAU_BINARY(*, binary<PyNumber_Multiply>)
FLAMBEAU_BINARY(/, binary<PyNumber_TrueDivide>)
FLAMBEAU_BINARY(%, binary<PyNumber_Remainder>)
FLAMBEAU_BINARY(&, binary<PyNumber_And>)
FLAMBEAU_BINARY(|, binary<PyNumber_Or>)
FLAMBEAU_BINARY(^, binary<PyNumber_Xor>)
FLAMBEAU_BINARY(<, binary<compared<Py_LT>>)
FLAMBEAU_BINARY(<=, binary<compared<Py_LE>>)
FLAMBEAU_BINARY(>, binary<compared<Py_GT>>)
FLAMBEAU_BINARY(>=, binary<compared<Py_GE>>)
FLAMBEAU_BINARY(==, binary<compared<Py_EQ>>)
FLAMBEAU_BINARY(!=, binary<compared<Py_NE>>)
#undef FLAMBEAU_BINARY

inline std::string printed(const Type& type) { return type.toString(); }

template <typename Character, typename Traits>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream, const Tensor& tensor) {
  return stream << printed(tensor);
}
template <typename Character, typename Traits>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream, const Type& type) {
  return stream << printed(type);
}
template <typename Character, typename Traits, typename T>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream, ArrayRef<T> values) {
  return stream << flambeau::printed(values);
}
template <typename Character, typename Traits>
std::basic_ostream<Character, Traits>& operator<<(std::basic_ostream<Character, Traits>& stream, ScalarType type) {
  return stream << toString(type);
}

}  // namespace at
