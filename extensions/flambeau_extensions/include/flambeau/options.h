// What a new tensor shall be: options in a chain.
#pragma once

#include "runtime.h"

namespace at {

// How the elements lie in memory; new tensors are strided.
enum class Layout { Strided };
constexpr Layout kStrided = Layout::Strided;

// Element type, device and whether to record history; what is not said is left to the function.
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : type_(type) {}
  TensorOptions(const Device& device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(Device(device)) {}

  TensorOptions dtype(ScalarType type) const { return TensorOptions(type, device_, requires_grad_); }
  TensorOptions device(const Device& device) const { return TensorOptions(type_, device, requires_grad_); }
  TensorOptions device(DeviceType device, int index = -1) const { return this->device(Device(device, index)); }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions requires_grad(bool wanted) const { return TensorOptions(type_, device_, wanted); }
  ScalarType dtype() const { return type_.value_or(kFloat); }
  Device device() const { return device_.value_or(kCPU); }
  bool requires_grad() const { return requires_grad_; }

  // As keyword arguments.
  PyObject* dtype_object() const { return keep(0, type_ ? flambeau::Runtime::get().dtype(*type_) : flambeau::Object()); }
  PyObject* device_object() const {
    return keep(1, device_ ? flambeau::Runtime::get().device(*device_) : flambeau::Object());
  }
  PyObject* requires_grad_object() const { return requires_grad_ ? Py_True : nullptr; }

 private:
  TensorOptions(optional<ScalarType> type, optional<Device> device, bool requires_grad)
      : type_(type), device_(std::move(device)), requires_grad_(requires_grad) {}
  PyObject* keep(int which, flambeau::Object object) const { return (objects_[which] = std::move(object)).get(); }

  optional<ScalarType> type_;
  optional<Device> device_;
  bool requires_grad_ = false;
  mutable flambeau::Object objects_[2];
};

inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions device(const Device& device) { return TensorOptions(device); }
inline TensorOptions device(DeviceType type, int index = -1) { return TensorOptions(Device(type, index)); }
inline TensorOptions requires_grad(bool wanted = true) { return TensorOptions().requires_grad(wanted); }

}  // namespace at
