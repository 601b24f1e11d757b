// Operators of one's own: declared in a module's PYBIND11_MODULE, dispatched and differentiated like the built-in ones.
//
//   FLAMBEAU_OPERATOR(m, mylib, gate, gate_backward, py::arg("x"), py::arg("limit") = 1.0)
//
// declares mylib::gate, computed by gate(), and puts it into the module.  The schema is the signature of gate().
// gate_backward() takes the gradient of each result, the arguments of gate(), and the results if it has parameters for
// them; it returns the gradient of each tensor argument, at::Tensor() for none.  With nullptr in its place the
// operator has no derivative, and says so when it is asked for one.
//
//   FLAMBEAU_KERNEL(m, gate, "cuda", gate_cuda)
//
// gives the kernel for another device.  Both are Python objects with the methods of flambeau.library.CustomOp:
//
//   FLAMBEAU_OPERATOR(...).attr("check_shapes")("(n), (n) -> (n)");
#pragma once

#include <string>

#define FLAMBEAU_OPERATOR(m, space, function, backward, ...) \
  ::flambeau::declare_operator(m, #space "::" #function, #function, function, backward, ##__VA_ARGS__)
#define FLAMBEAU_KERNEL(m, name, device, function) ::flambeau::add_kernel(m, #name, device, function)

namespace flambeau {

#ifdef FLAMBEAU_PYBIND11
template <typename F, typename... E>
pybind11::object bound(const char* name, F&& function, const E&... extras) {
  return pybind11::cpp_function(std::forward<F>(function), pybind11::name(name), extras...);
}
#else
template <typename F, typename... E>
FLAMBEAU_COLD pybind11::object bound(const char* name, F&& function, const E&... extras) {
  auto made = to_function(name, std::forward<F>(function));
  pybind11::apply(*made, 0, extras...);
  return pybind11::object(Function::expose(std::move(made), nullptr));
}
#endif

inline pybind11::object bound(const char*, std::nullptr_t) {
#ifdef FLAMBEAU_PYBIND11
  return pybind11::none();
#else
  return pybind11::object();
#endif
}

template <typename F, typename B, typename... E>
FLAMBEAU_COLD pybind11::object declare_operator(pybind11::module_& m, const char* full, const char* name, F forward,
                                                B backward, const E&... extras) {
  const Object library = checked(PyImport_ImportModule("flambeau.library"));
  const pybind11::object computes = bound(name, forward, extras...), derives = bound(name, backward);
  Object declared = checked(PyObject_CallMethod(library.get(), "compiled_op", "sOO", full, computes.ptr(), derives.ptr()));
  checked(PyObject_SetAttrString(m.ptr(), name, declared.get()));
#ifdef FLAMBEAU_PYBIND11
  return pybind11::reinterpret_steal<pybind11::object>(declared.release());
#else
  return pybind11::object(std::move(declared));
#endif
}

template <typename F>
FLAMBEAU_COLD void add_kernel(pybind11::module_& m, const char* name, const char* device, F function) {
  const Object declared = attribute(m.ptr(), name);
  checked(PyObject_CallMethod(declared.get(), "register_kernel", "sO", device, bound(name, function).ptr()));
}

}  // namespace flambeau
