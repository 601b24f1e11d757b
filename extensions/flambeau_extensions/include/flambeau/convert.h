// Python objects to C++ values and back, for the arguments and results of bound functions.
#pragma once

#include <memory>
#if __cplusplus >= 201703L
#include <optional>
#endif

#include "factories.h"

namespace flambeau {

// An object of a class that C++ code defined: the value, kept alive as long as the Python object.
struct Instance {
  PyObject ob_base;
  std::shared_ptr<void> value;
};

// A class defined with class_<T>.
struct ClassRecord {
  PyTypeObject* type;
  const ClassRecord* base;
  void* (*to_base)(void*);
};

template <typename T>
struct Bound {
  static ClassRecord record;
};
template <typename T>
ClassRecord Bound<T>::record = {nullptr, nullptr, nullptr};

// The records of all classes by Python type.
inline std::vector<const ClassRecord*>& class_records() {
  static std::vector<const ClassRecord*> records;
  return records;
}

inline const ClassRecord* record_of(PyTypeObject* type) {
  for (; type; type = type->tp_base) {
    for (const ClassRecord* each : class_records()) {
      if (each->type == type) return each;
    }
  }
  return nullptr;
}

// The value of an object of a class or of one derived from it, or null.
inline void* value_of(PyObject* object, const ClassRecord& wanted) {
  const ClassRecord* record = record_of(Py_TYPE(object));
  if (!record || !wanted.type || !PyObject_TypeCheck(object, wanted.type)) return nullptr;
  void* value = reinterpret_cast<Instance*>(object)->value.get();
  if (!value) {
    throw Error(std::string(wanted.type->tp_name) + ".__init__() was not called; a derived class calls super().__init__().");
  }
  for (; record->type != wanted.type; record = record->base) value = record->to_base(value);
  return value;
}

inline PyObject* new_instance(const ClassRecord& record, std::shared_ptr<void> value) {
  if (!record.type) {
    throw Error("A result is of a C++ class that Python does not know.\nBind it with py::class_ first.");
  }
  PyObject* object = checked(record.type->tp_alloc(record.type, 0)).release();
  new (&reinterpret_cast<Instance*>(object)->value) std::shared_ptr<void>(std::move(value));
  return object;
}

// How a C++ type is read from Python (`load`: false if the object is something else) and written (`store`).
// `Value` is what is kept during the call.  Here: classes defined with class_<T>.
template <typename T, typename = void>
struct Caster {
  using Value = T*;
  static std::string name() {
    const char* known = Bound<T>::record.type ? Bound<T>::record.type->tp_name : "object";
    const char* dot = std::strrchr(known, '.');
    return dot ? dot + 1 : known;
  }
  static bool load(PyObject* from, Value& value) { return (value = static_cast<T*>(value_of(from, Bound<T>::record))); }
  static PyObject* store(T value) { return new_instance(Bound<T>::record, std::make_shared<T>(std::move(value))); }
  static T& get(Value& value) { return *value; }
};

// What casters of plain values have in common.
template <typename T>
struct ValueCaster {
  using Value = T;
  static T& get(T& value) { return value; }
};

template <>
struct Caster<bool> : ValueCaster<bool> {
  static std::string name() { return "bool"; }
  static bool load(PyObject* from, bool& value) {
    value = from == Py_True;
    return PyBool_Check(from);
  }
  static PyObject* store(bool value) { return PyBool_FromLong(value); }
};

template <typename T>
struct Caster<T, typename std::enable_if<std::is_integral<T>::value>::type> : ValueCaster<T> {
  static std::string name() { return "int"; }
  static bool load(PyObject* from, T& value) {
    if (PyBool_Check(from) || Runtime::get().is_tensor(from) || !PyIndex_Check(from)) return false;
    Object number = checked(PyNumber_Index(from));
    int overflow = 0;
    const long long wide = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
    value = static_cast<T>(wide);
    if (overflow || static_cast<long long>(value) != wide || (wide < 0) != (value < T(0))) {
      throw std::overflow_error("the number " + text_of(number.get()) + " does not fit into " +
                                std::to_string(8 * sizeof(T)) + (std::is_signed<T>::value ? " signed" : " unsigned") +
                                " bits");
    }
    return true;
  }
  static PyObject* store(T value) {
    return std::is_signed<T>::value ? PyLong_FromLongLong((long long)value)
                                    : PyLong_FromUnsignedLongLong((unsigned long long)value);
  }
};

template <typename T>
struct Caster<T, typename std::enable_if<std::is_floating_point<T>::value>::type> : ValueCaster<T> {
  static std::string name() { return "float"; }
  static bool load(PyObject* from, T& value) {
    if (PyUnicode_Check(from) || PyBool_Check(from) || Runtime::get().is_tensor(from) || !PyNumber_Check(from)) {
      return false;
    }
    const double number = PyFloat_AsDouble(from);
    if (number == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
    value = T(number);
    return true;
  }
  static PyObject* store(T value) { return PyFloat_FromDouble(double(value)); }
};

template <>
struct Caster<std::string> : ValueCaster<std::string> {
  static std::string name() { return "str"; }
  static bool load(PyObject* from, std::string& value) {
    if (PyBytes_Check(from)) {
      value.assign(PyBytes_AS_STRING(from), size_t(PyBytes_GET_SIZE(from)));
      return true;
    }
    if (!PyUnicode_Check(from)) return false;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(from, &size);
    if (!text) throw PythonError();
    value.assign(text, size_t(size));
    return true;
  }
  static PyObject* store(const std::string& value) {
    return PyUnicode_FromStringAndSize(value.data(), Py_ssize_t(value.size()));
  }
};

template <>
struct Caster<const char*> {
  using Value = std::string;
  static std::string name() { return "str"; }
  static bool load(PyObject* from, std::string& value) { return Caster<std::string>::load(from, value); }
  static PyObject* store(const char* value) { return PyUnicode_FromString(value); }
  static const char* get(std::string& value) { return value.c_str(); }
};

template <>
struct Caster<at::Tensor> : ValueCaster<at::Tensor> {
  static std::string name() { return "Tensor"; }
  static bool load(PyObject* from, at::Tensor& value) {
    if (!Runtime::get().is_tensor(from)) return false;
    value = at::Tensor(Object::borrowed(from));
    return true;
  }
  static PyObject* store(const at::Tensor& value) { return to_python(value).release(); }
};

template <>
struct Caster<at::Scalar> : ValueCaster<at::Scalar> {
  static std::string name() { return "Number"; }
  static bool load(PyObject* from, at::Scalar& value) {
    if (PyBool_Check(from)) {
      value = from == Py_True;
      return true;
    }
    int64_t integer = 0;
    double real = 0;
    if (Caster<int64_t>::load(from, integer)) {
      value = integer;
      return true;
    }
    if (!Caster<double>::load(from, real)) return false;
    value = real;
    return true;
  }
  static PyObject* store(const at::Scalar& value) { return to_python(value).release(); }
};

template <>
struct Caster<at::ScalarType> : ValueCaster<at::ScalarType> {
  static std::string name() { return "dtype"; }
  static bool load(PyObject* from, at::ScalarType& value) {
    if (std::strcmp(Py_TYPE(from)->tp_name, "dtype") != 0) return false;
    value = Runtime::get().scalar_type(from);
    return true;
  }
  static PyObject* store(at::ScalarType value) { return Runtime::get().dtype(value).release(); }
};

template <>
struct Caster<at::Device> : ValueCaster<at::Device> {
  static std::string name() { return "device"; }
  static bool load(PyObject* from, at::Device& value) {
    if (!PyUnicode_Check(from) && !PyObject_IsInstance(from, Runtime::get().device_class.get())) return false;
    value = at::Device(text_of(from));
    return true;
  }
  static PyObject* store(const at::Device& value) { return Runtime::get().device(value).release(); }
};

template <typename T>
struct Caster<std::vector<T>> : ValueCaster<std::vector<T>> {
  static std::string name() { return "list[" + Caster<T>::name() + "]"; }
  static bool load(PyObject* from, std::vector<T>& values) {
    if (PyUnicode_Check(from) || PyBytes_Check(from) || !PySequence_Check(from) || Runtime::get().is_tensor(from)) {
      return false;
    }
    Object items = checked(PySequence_Fast(from, "expected a sequence"));
    values.clear();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
      typename Caster<T>::Value value{};
      if (!Caster<T>::load(PySequence_Fast_GET_ITEM(items.get(), i), value)) return false;
      values.push_back(Caster<T>::get(value));
    }
    return true;
  }
  static PyObject* store(const std::vector<T>& values) {
    Object list = checked(PyList_New(Py_ssize_t(values.size())));
    for (size_t i = 0; i < values.size(); ++i) {
      PyList_SET_ITEM(list.get(), Py_ssize_t(i), checked(Caster<T>::store(values[i])).release());
    }
    return list.release();
  }
};

template <typename T>
struct Caster<at::ArrayRef<T>> {
  using Value = std::vector<T>;
  static std::string name() { return Caster<Value>::name(); }
  static bool load(PyObject* from, Value& values) { return Caster<Value>::load(from, values); }
  static PyObject* store(at::ArrayRef<T> values) { return Caster<Value>::store(values.vec()); }
  static at::ArrayRef<T> get(Value& values) { return values; }
};

template <typename T, typename Optional>
struct OptionalCaster : ValueCaster<Optional> {
  static std::string name() { return Caster<T>::name() + " | None"; }
  static bool load(PyObject* from, Optional& value) {
    if (from == Py_None) return true;
    typename Caster<T>::Value found{};
    if (!Caster<T>::load(from, found)) return false;
    value = Optional(T(Caster<T>::get(found)));
    return true;
  }
  static PyObject* store(const Optional& value) {
    if (value.has_value()) return Caster<T>::store(*value);
    Py_RETURN_NONE;
  }
};
template <typename T>
struct Caster<at::optional<T>> : OptionalCaster<T, at::optional<T>> {};
#if __cplusplus >= 201703L
template <typename T>
struct Caster<std::optional<T>> : OptionalCaster<T, std::optional<T>> {};
#endif

// The numbers 0 to N - 1 as template arguments (std::index_sequence, which C++11 lacks).
template <size_t... I>
struct Indices {};
template <size_t N, size_t... I>
struct Count : Count<N - 1, N - 1, I...> {};
template <size_t... I>
struct Count<0, I...> {
  using Type = Indices<I...>;
};

template <typename Tuple, typename... T>
struct TupleCaster : ValueCaster<Tuple> {
  using All = typename Count<sizeof...(T)>::Type;
  static std::string name() {
    std::string text;
    for (const std::string& each : {Caster<T>::name()...}) text += (text.empty() ? "" : ", ") + each;
    return "tuple[" + text + "]";
  }
  static bool load(PyObject* from, Tuple& value) {
    if (!PyTuple_Check(from) && !PyList_Check(from)) return false;
    Object items = checked(PySequence_Fast(from, "expected a sequence"));
    return PySequence_Fast_GET_SIZE(items.get()) == sizeof...(T) && load(items.get(), value, All());
  }
  static PyObject* store(const Tuple& value) { return store(value, All()); }

 private:
  template <typename U>
  static bool load_one(PyObject* from, U& value) {
    typename Caster<U>::Value found{};
    if (!Caster<U>::load(from, found)) return false;
    value = Caster<U>::get(found);
    return true;
  }
  template <size_t... I>
  static bool load(PyObject* items, Tuple& value, Indices<I...>) {
    bool good = true;
    for (bool each : {true, load_one<T>(PySequence_Fast_GET_ITEM(items, Py_ssize_t(I)), std::get<I>(value))...}) {
      good = good && each;
    }
    return good;
  }
  template <size_t... I>
  static PyObject* store(const Tuple& value, Indices<I...>) {
    Object parts[] = {checked(Caster<T>::store(std::get<I>(value)))...};
    Object tuple = checked(PyTuple_New(sizeof...(T)));
    for (size_t i = 0; i < sizeof...(T); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), parts[i].release());
    return tuple.release();
  }
};
template <typename... T>
struct Caster<std::tuple<T...>> : TupleCaster<std::tuple<T...>, T...> {};
template <typename A, typename B>
struct Caster<std::pair<A, B>> : TupleCaster<std::pair<A, B>, A, B> {};

template <typename T>
struct Caster<std::shared_ptr<T>> : ValueCaster<std::shared_ptr<T>> {
  static std::string name() { return Caster<T>::name(); }
  static bool load(PyObject* from, std::shared_ptr<T>& value) {
    T* raw = nullptr;
    if (!Caster<T>::load(from, raw)) return false;
    value = std::shared_ptr<T>(reinterpret_cast<Instance*>(from)->value, raw);
    return true;
  }
  static PyObject* store(const std::shared_ptr<T>& value) {
    if (!value) Py_RETURN_NONE;
    return new_instance(Bound<T>::record, value);
  }
};
template <typename T>
struct Caster<std::unique_ptr<T>> {
  static std::string name() { return Caster<T>::name(); }
  static PyObject* store(std::unique_ptr<T> value) {
    return Caster<std::shared_ptr<T>>::store(std::shared_ptr<T>(std::move(value)));
  }
};
// A pointer that is returned is owned by the Python object.
template <typename T>
struct Caster<T*> {
  using Value = T*;
  static std::string name() { return Caster<T>::name(); }
  static bool load(PyObject* from, T*& value) { return Caster<T>::load(from, value); }
  static PyObject* store(T* value) { return Caster<std::shared_ptr<T>>::store(std::shared_ptr<T>(value)); }
  static T* get(T* value) { return value; }
};

template <>
struct Caster<Object> : ValueCaster<Object> {
  static std::string name() { return "object"; }
  static bool load(PyObject* from, Object& value) {
    value = Object::borrowed(from);
    return true;
  }
  static PyObject* store(Object value) { return value.release(); }
};

}  // namespace flambeau
