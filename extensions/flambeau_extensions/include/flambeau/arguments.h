// Parameters of operators: each turns what C++ code passes into the Python object that the core takes.
#pragma once

#include <tuple>

#include "runtime.h"

namespace at {

class Tensor;
using TensorList = ArrayRef<Tensor>;
using Pair = std::tuple<Tensor, Tensor>;

inline flambeau::Object to_python(const Scalar& number) {
  return flambeau::checked(number.isFloatingPoint()  ? PyFloat_FromDouble(number.toDouble())
                           : number.isBoolean() ? PyBool_FromLong(number.toBool())
                                                : PyLong_FromLongLong(number.toLong()));
}

template <typename T>
flambeau::Object to_python(const T* values, size_t count) {
  flambeau::Object tuple = flambeau::checked(PyTuple_New(Py_ssize_t(count)));
  for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), to_python(values[i]).release());
  return tuple;
}

flambeau::Object to_python(const Tensor& tensor);

// A parameter.  Without a value it is left out of the call.
class Argument {
 public:
  PyObject* get() const { return value_.get(); }

 protected:
  Argument(flambeau::Object value) : value_(std::move(value)) {}

 private:
  flambeau::Object value_;
};

// What an operator returns, as the C++ type that its declaration names.
template <typename T>
T result(flambeau::Object value);
template <>
Tensor result<Tensor>(flambeau::Object value);
template <>
Pair result<Pair>(flambeau::Object value);
template <>
std::vector<Tensor> result<std::vector<Tensor>>(flambeau::Object value);
template <>
inline bool result<bool>(flambeau::Object value) {
  return value.get() == Py_True;
}

template <>
inline int64_t result<int64_t>(flambeau::Object value) {
  const int64_t number = PyLong_AsLongLong(value.get());
  if (number == -1 && PyErr_Occurred()) throw flambeau::PythonError();
  return number;
}
template <>
inline double result<double>(flambeau::Object value) {
  const double number = PyFloat_AsDouble(value.get());
  if (number == -1 && PyErr_Occurred()) throw flambeau::PythonError();
  return number;
}
template <>
inline flambeau::Object result<flambeau::Object>(flambeau::Object value) {
  return value;
}

#define FLAMBEAU_OP(...) static flambeau::Operator op = {__VA_ARGS__, nullptr}
#define FLAMBEAU_OPTIONS options.dtype_object(), options.device_object(), options.requires_grad_object()
#define FLAMBEAU_IF(condition) typename std::enable_if<condition, int>::type = 0

// A number.
struct Number : Argument {
  Number(const Scalar& value) : Argument(to_python(value)) {}
  template <typename T, FLAMBEAU_IF(std::is_arithmetic<T>::value)>
  Number(T value) : Argument(to_python(Scalar(value))) {}

 protected:
  using Argument::Argument;
};

// An integer; a floating-point value does not compile.
struct Int : Argument {
  template <typename T, FLAMBEAU_IF(std::is_integral<T>::value)>
  Int(T value) : Argument(to_python(Scalar(value))) {}
  Int(const Scalar& value) : Argument(to_python(value)) {}

 protected:
  using Argument::Argument;
};

struct Flag : Argument {
  Flag(bool value) : Argument(flambeau::Object::borrowed(value ? Py_True : Py_False)) {}

 protected:
  using Argument::Argument;
};

struct Text : Argument {
  Text(const char* value) : Argument(flambeau::checked(PyUnicode_FromString(value))) {}
  Text(const std::string& value) : Text(value.c_str()) {}

 protected:
  using Argument::Argument;
};

// One integer or several.
struct Ints : Argument {
  template <typename T, FLAMBEAU_IF(std::is_integral<T>::value)>
  Ints(T value) : Argument(to_python(Scalar(value))) {}
  Ints(IntArrayRef values) : Argument(to_python(values.data(), values.size())) {}
  Ints(std::initializer_list<int64_t> values) : Argument(to_python(values.begin(), values.size())) {}
  template <typename T>
  Ints(const std::vector<T>& values) : Argument(to_python(values.data(), values.size())) {}

 protected:
  using Argument::Argument;
};

struct Tensors : Argument {
  Tensors(TensorList values);
  Tensors(std::initializer_list<Tensor> values);
  Tensors(const std::vector<Tensor>& values);

 protected:
  using Argument::Argument;
};

struct ElementType : Argument {
  ElementType(ScalarType type) : Argument(flambeau::Runtime::get().dtype(type)) {}

 protected:
  using Argument::Argument;
};

// Whatever the operator takes.
struct Any : Argument {
  Any(const Tensor& value) : Argument(to_python(value)) {}
  Any(const Scalar& value) : Argument(to_python(value)) {}
  template <typename T, FLAMBEAU_IF(std::is_arithmetic<T>::value)>
  Any(T value) : Any(Scalar(value)) {}
  Any(const char* value) : Argument(flambeau::checked(PyUnicode_FromString(value))) {}
  Any(const std::string& value) : Any(value.c_str()) {}
  Any(nullopt_t) : Argument(flambeau::Object::borrowed(Py_None)) {}
  Any(std::initializer_list<int64_t> values) : Argument(to_python(values.begin(), values.size())) {}
  Any(IntArrayRef values) : Argument(to_python(values.data(), values.size())) {}
  Any(const std::vector<int64_t>& values) : Any(IntArrayRef(values)) {}
  Any(const std::vector<Tensor>& values);
  Any(ScalarType type) : Argument(flambeau::Runtime::get().dtype(type)) {}

 protected:
  using Argument::Argument;
};

// A parameter that may be left out.
template <typename T>
struct Maybe : T {
  using T::T;
  Maybe() : T(flambeau::Object()) {}
  Maybe(const T& value) : T(value) {}
  Maybe(nullopt_t) : T(flambeau::Object()) {}
  template <typename U, FLAMBEAU_IF((std::is_constructible<T, const U&>::value))>
  Maybe(const optional<U>& value) : T(value ? T(*value) : T(Maybe())) {}
};

}  // namespace at
