// A C++ function as a Python one: arguments by position and name, defaults, documentation, overloads.
#pragma once

#include "convert.h"

namespace flambeau {

struct Parameter {
  std::string name;
  std::string (*type)();  // asked late: a class may be bound after the functions that take it
  Object otherwise;  // the default, if there is one
};

// Lets other threads run during a call, if asked to.
class PerhapsReleaseGil {
 public:
  explicit PerhapsReleaseGil(bool release) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~PerhapsReleaseGil() {
    if (state_) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_;
};

// An argument is of another type: the next overload is tried.
struct Mismatch {
  size_t position;
};

struct Function {
  std::string name, about, doc;
  std::vector<Parameter> parameters;
  std::string (*result)() = nullptr;
  bool release_gil = false;
  bool holds_objects = false;  // a parameter or the result is a tensor or another Python object, by value
  std::shared_ptr<void> target;
  PyObject* (*invoke)(Function&, PyObject* const*) = nullptr;
  std::unique_ptr<Function> next;
  PyMethodDef method = {};

  FLAMBEAU_COLD std::string signature() const {
    std::string text = name + "(";
    for (const Parameter& each : parameters) {
      if (&each != &parameters[0]) text += ", ";
      text += each.name + ": " + each.type();
      if (each.otherwise) text += " = " + representation(each.otherwise.get());
    }
    return text + ") -> " + result();
  }

  // What help() shows; for a single function, inspect.signature() too.
  FLAMBEAU_COLD void describe() {
    doc.clear();
    if (!next) {
      doc = name + "(";
      for (const Parameter& each : parameters) {
        if (&each != &parameters[0]) doc += ", ";
        doc += each.name;
        if (each.otherwise) doc += "=" + (simple(each.otherwise.get()) ? representation(each.otherwise.get()) : "...");
      }
      doc += ")\n--\n\n";
    }
    for (const Function* each = this; each; each = each->next.get()) {
      doc += each->signature() + "\n";
      if (!each->about.empty()) doc += "\n" + each->about + "\n";
    }
    method.ml_doc = doc.c_str();
  }

  // The Python object; it keeps the function alive.
  FLAMBEAU_COLD static Object expose(std::unique_ptr<Function> function, PyObject* module) {
    Function* raw = function.get();
    raw->method = {raw->name.c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call)),
                   METH_FASTCALL | METH_KEYWORDS, nullptr};
    raw->describe();
    Object self = checked(PyCapsule_New(raw, kCapsule, [](PyObject* capsule) {
      delete static_cast<Function*>(PyCapsule_GetPointer(capsule, kCapsule));
    }));
    function.release();
    return checked(PyCFunction_NewEx(&raw->method, self.get(), module));
  }

  // The function behind a Python object, or null.
  static Function* of(PyObject* object) {
    if (object && PyInstanceMethod_Check(object)) object = PyInstanceMethod_GET_FUNCTION(object);
    if (!object || !PyCFunction_Check(object)) return nullptr;
    PyObject* self = PyCFunction_GET_SELF(object);
    const bool ours = self && PyCapsule_IsValid(self, kCapsule);
    return ours ? static_cast<Function*>(PyCapsule_GetPointer(self, kCapsule)) : nullptr;
  }

 private:
  static constexpr const char* kCapsule = "flambeau.function";
  enum { kMost = 32 };

  FLAMBEAU_COLD static std::string representation(PyObject* object) {
    Object text(PyObject_Repr(object));
    return text_of(text.get());
  }
  static bool simple(PyObject* o) {
    return o == Py_None || PyBool_Check(o) || PyLong_Check(o) || PyUnicode_Check(o) ||
           (PyFloat_Check(o) && std::isfinite(PyFloat_AS_DOUBLE(o)));
  }

  static PyObject* call(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    try {
      Function* first = static_cast<Function*>(PyCapsule_GetPointer(self, kCapsule));
      std::string problems;
      for (Function* each = first; each; each = each->next.get()) {
        PyObject* values[kMost];
        const std::string problem = each->arrange(arguments, size_t(count), names, values);
        if (problem.empty()) {
          try {
            return each->invoke(*each, values);
          } catch (const Mismatch& mismatch) {
            const Parameter& parameter = each->parameters[mismatch.position];
            PyObject* got = values[mismatch.position];
            problems += each->name + "(): argument '" + parameter.name + "' must be " + parameter.type() + ", got " +
                        shown(got) + ".\n";
          }
        } else {
          problems += each->name + "() " + problem + ".\n";
        }
      }
      for (Function* each = first; each; each = each->next.get()) {
        problems += (each == first ? "Signature: " : "       or: ") + each->signature() + (each->next ? "\n" : "");
      }
      set_error(PyExc_TypeError, problems);
    } catch (...) {
      set_python_error();
    }
    return nullptr;
  }

  FLAMBEAU_COLD static std::string shown(PyObject* object) {
    if (Runtime::get().is_tensor(object)) {
      const at::Tensor tensor(Object::borrowed(object));
      return std::string(at::info(tensor.scalar_type()).name) + " Tensor of shape " + printed(tensor.sizes());
    }
    std::string text = representation(object);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    return std::string(Py_TYPE(object)->tp_name) + ": " + text;
  }

  // Puts arguments in the order of the parameters; returns what is wrong, if anything.
  std::string arrange(PyObject* const* arguments, size_t count, PyObject* names, PyObject** values) const {
    const size_t wanted = parameters.size();
    if (count > wanted) {
      return "takes " + std::to_string(wanted) + " arguments, got " + std::to_string(count);
    }
    for (size_t i = 0; i < wanted; ++i) values[i] = i < count ? arguments[i] : nullptr;
    for (Py_ssize_t n = 0; names && n < PyTuple_GET_SIZE(names); ++n) {
      const std::string name = text_of(PyTuple_GET_ITEM(names, n));
      size_t i = 0;
      while (i < wanted && parameters[i].name != name) ++i;
      if (i == wanted) return "has no argument '" + name + "'";
      if (values[i]) return "got two values for the argument '" + name + "'";
      values[i] = arguments[count + size_t(n)];
    }
    for (size_t i = 0; i < wanted; ++i) {
      if (!values[i]) values[i] = parameters[i].otherwise.get();
      if (!values[i]) return "is missing the argument '" + parameters[i].name + "'";
    }
    return "";
  }
};

template <typename T>
using Plain = typename std::remove_cv<typename std::remove_reference<T>::type>::type;

// The type by which an argument is read: pointers to bound classes are read as the class.
template <typename A>
struct Loaded {
  using Reader = Caster<Plain<A>>;
  typename Reader::Value value{};
  Loaded(size_t position, PyObject* from) {
    if (!Reader::load(from, value)) throw Mismatch{position};
  }
};

template <typename A>
auto passed(Loaded<A>& loaded) -> decltype(Loaded<A>::Reader::get(loaded.value)) {
  return Loaded<A>::Reader::get(loaded.value);
}

// Whether copying or dropping a value touches reference counts, which only the holder of the GIL may do.
template <typename T>
struct HoldsObjects : std::false_type {};
template <>
struct HoldsObjects<at::Tensor> : std::true_type {};
template <>
struct HoldsObjects<Object> : std::true_type {};
template <typename... T>
struct AnyHoldsObjects : std::false_type {};
template <typename First, typename... Others>
struct AnyHoldsObjects<First, Others...>
    : std::integral_constant<bool, HoldsObjects<First>::value || AnyHoldsObjects<Others...>::value> {};
template <template <typename...> class Container, typename... T>
struct HoldsObjects<Container<T...>> : AnyHoldsObjects<T...> {};

template <typename R>
struct Returned {
  static std::string name() { return Caster<Plain<R>>::name(); }
  template <typename Target, typename... A>
  static PyObject* call(Target& target, bool release, A&&... arguments) {
    return Caster<Plain<R>>::store(compute(target, release, std::forward<A>(arguments)...));
  }

 private:
  template <typename Target, typename... A>
  static R compute(Target& target, bool release, A&&... arguments) {
    PerhapsReleaseGil released(release);
    return target(std::forward<A>(arguments)...);
  }
};
template <>
struct Returned<void> {
  static std::string name() { return "None"; }
  template <typename Target, typename... A>
  static PyObject* call(Target& target, bool release, A&&... arguments) {
    {
      PerhapsReleaseGil released(release);
      target(std::forward<A>(arguments)...);
    }
    Py_RETURN_NONE;
  }
};

template <typename Target, typename R, typename... A>
struct Invoker {
  template <size_t... I>
  static PyObject* run(Function& function, PyObject* const* values, Indices<I...>) {
    (void)values;
    Target& target = *static_cast<Target*>(function.target.get());
    std::tuple<Loaded<A>...> loaded{Loaded<A>(I, values[I])...};  // from left to right
    return Returned<R>::call(target, function.release_gil, passed(std::get<I>(loaded))...);
  }
  static PyObject* invoke(Function& function, PyObject* const* values) {
    return run(function, values, typename Count<sizeof...(A)>::Type());
  }
};

// A Function around anything that can be called with (A...) and returns R.
template <typename R, typename... A, typename Target>
FLAMBEAU_COLD std::unique_ptr<Function> make_function(const char* name, Target target) {
  static_assert(sizeof...(A) <= 32, "functions of more than 32 arguments are not bound");
  std::unique_ptr<Function> function(new Function);
  function->name = name;
  function->target = std::make_shared<Target>(std::move(target));
  function->invoke = Invoker<Target, R, A...>::invoke;
  function->result = Returned<R>::name;
  function->holds_objects = AnyHoldsObjects<R, A...>::value;
  function->parameters = {Parameter{"", Caster<Plain<A>>::name, Object()}...};
  for (size_t i = 0; i < sizeof...(A); ++i) function->parameters[i].name = "arg" + std::to_string(i);
  return function;
}

// Result and arguments of functions, members and lambdas.
template <typename F>
struct Signature : Signature<decltype(&F::operator())> {};
template <typename R, typename... A>
struct Signature<R (*)(A...)> {
  template <typename Target>
  FLAMBEAU_COLD static std::unique_ptr<Function> make(const char* name, Target target) {
    return make_function<R, A...>(name, std::move(target));
  }
};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...) const> : Signature<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {};

template <typename F>
FLAMBEAU_COLD std::unique_ptr<Function> to_function(const char* name, F&& target) {
  using Target = typename std::decay<F>::type;
  return Signature<Target>::make(name, Target(std::forward<F>(target)));
}

}  // namespace flambeau
