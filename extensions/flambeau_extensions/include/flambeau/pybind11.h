// at::Tensor and its companions for extensions that bind with the real pybind11.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "convert.h"

namespace flambeau {

// Python errors keep their type on the way through pybind11.
inline void translate(std::exception_ptr error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const PythonError& python) {
    python.restore();
  }
}

// Registered while the library is loaded, which Python does with its lock held.
static const bool translated = (pybind11::register_local_exception_translator(translate), true);

}  // namespace flambeau

namespace pybind11 {
namespace detail {

// What flambeau's own binder reads and writes.
template <typename T>
struct flambeau_caster {
  PYBIND11_TYPE_CASTER(T, const_name("object"));
  bool load(handle from, bool) { return flambeau::Caster<T>::load(from.ptr(), value); }
  static handle cast(const T& value, return_value_policy, handle) { return flambeau::Caster<T>::store(value); }
};
template <>
struct type_caster<at::Tensor> : flambeau_caster<at::Tensor> {
  static constexpr auto name = const_name("Tensor");
};
template <>
struct type_caster<at::Scalar> : flambeau_caster<at::Scalar> {
  static constexpr auto name = const_name("Number");
};
template <>
struct type_caster<at::ScalarType> : flambeau_caster<at::ScalarType> {
  static constexpr auto name = const_name("dtype");
};
template <>
struct type_caster<at::Device> : flambeau_caster<at::Device> {
  static constexpr auto name = const_name("device");
};
template <typename T>
struct type_caster<at::optional<T>> : optional_caster<at::optional<T>, T> {};
template <typename T>
struct type_caster<at::ArrayRef<T>> {
  PYBIND11_TYPE_CASTER(at::ArrayRef<T>, const_name("list"));
  bool load(handle from, bool) {
    if (!flambeau::Caster<std::vector<T>>::load(from.ptr(), values_)) return false;
    value = values_;
    return true;
  }
  static handle cast(at::ArrayRef<T> value, return_value_policy, handle) {
    return flambeau::Caster<std::vector<T>>::store(value.vec());
  }

 private:
  std::vector<T> values_;
};

}  // namespace detail
}  // namespace pybind11

namespace py = pybind11;
