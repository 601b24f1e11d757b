// The part of pybind11's interface that extensions use most, compiled in a fraction of its time.
//
// A source that includes pybind11's own headers gets pybind11 instead (see extension.h).
#pragma once

#include <cmath>

#include "function.h"

namespace pybind11 {

using flambeau::Object;
using error_already_set = flambeau::PythonError;
using gil_scoped_release = flambeau::ReleaseGil;
using gil_scoped_acquire = flambeau::HoldGil;

#define FLAMBEAU_EXCEPTION(name, base)  \
  struct name : flambeau::PythonError { \
    explicit name(const std::string& message) : PythonError((flambeau::set_error(base, message), PythonError())) {} \
  };
FLAMBEAU_EXCEPTION(value_error, PyExc_ValueError)
FLAMBEAU_EXCEPTION(type_error, PyExc_TypeError)
FLAMBEAU_EXCEPTION(index_error, PyExc_IndexError)
FLAMBEAU_EXCEPTION(key_error, PyExc_KeyError)
FLAMBEAU_EXCEPTION(stop_iteration, PyExc_StopIteration)
#undef FLAMBEAU_EXCEPTION

// ---------------------------------------------------------------- objects

template <typename T>
Object to_object(T&& value) {
  return flambeau::checked(flambeau::Caster<typename std::decay<T>::type>::store(std::forward<T>(value)));
}

// Any Python object.
class object {
 public:
  object() : object_(Object::borrowed(Py_None)) {}
  explicit object(Object held) : object_(std::move(held)) {}

  PyObject* ptr() const { return object_.get(); }
  const Object& held() const { return object_; }
  bool is_none() const { return ptr() == Py_None; }
  object attr(const char* name) const { return object(flambeau::attribute(ptr(), name)); }
  template <typename... A>
  object operator()(A&&... arguments) const {
    Object values[] = {to_object(std::forward<A>(arguments))..., Object()};
    PyObject* pointers[sizeof...(A) + 1];
    for (size_t i = 0; i < sizeof...(A); ++i) pointers[i] = values[i].get();
    return object(flambeau::checked(PyObject_Vectorcall(ptr(), pointers, sizeof...(A), nullptr)));
  }
  template <typename T>
  T cast() const {
    typename flambeau::Caster<T>::Value value{};
    if (!flambeau::Caster<T>::load(ptr(), value)) {
      throw type_error("expected " + flambeau::Caster<T>::name() + ", got " + Py_TYPE(ptr())->tp_name);
    }
    return flambeau::Caster<T>::get(value);
  }

 private:
  Object object_;
};
using function = object;
using handle = object;

template <typename T>
object cast(T&& value) {
  return object(to_object(std::forward<T>(value)));
}

// ---------------------------------------------------------------- arguments and other extras

struct arg_v {
  const char* name;
  Object otherwise;
};

struct none {};

struct arg {
  const char* name;
  explicit arg(const char* given) : name(given) {}
  template <typename T>
  arg_v operator=(T&& value) const {
    return {name, to_object(std::forward<T>(value))};
  }
  arg_v operator=(none) const { return {name, Object::borrowed(Py_None)}; }
  arg_v operator=(at::nullopt_t) const { return *this = none(); }
};

namespace literals {
inline arg operator"" _a(const char* name, size_t) { return arg(name); }
}  // namespace literals

template <typename Guard>
struct call_guard {
  static_assert(std::is_same<Guard, gil_scoped_release>::value, "the one call_guard is gil_scoped_release");
};

// Takes in the extras of one def(): names, defaults and documentation.
class Extras {
 public:
  Extras(flambeau::Function& function, size_t first) : function_(function), next_(first) {}
  FLAMBEAU_COLD void take(const arg& each) { parameter().name = each.name; }
  FLAMBEAU_COLD void take(const arg_v& each) {
    flambeau::Parameter& next = parameter();
    next.name = each.name;
    next.otherwise = each.otherwise;
  }
  FLAMBEAU_COLD void take(const char* text) { function_.about = text; }
  FLAMBEAU_COLD void take(const std::string& text) { function_.about = text; }
  FLAMBEAU_COLD void take(call_guard<gil_scoped_release>) {
    if (function_.holds_objects) {
      throw flambeau::Error(function_.name + "(): a function that is called without the GIL must not copy or drop tensors.\n"
                            "Take them by const reference and return none, or release the lock inside of the function.");
    }
    function_.release_gil = true;
  }

 private:
  flambeau::Parameter& parameter() {
    if (next_ == function_.parameters.size()) {
      throw flambeau::Error(function_.name + "(): more py::arg than parameters.");
    }
    return function_.parameters[next_++];
  }
  flambeau::Function& function_;
  size_t next_;
};

template <typename... E>
FLAMBEAU_COLD void apply(flambeau::Function& function, size_t first, const E&... extras) {
  Extras taken(function, first);
  int each[] = {0, (taken.take(extras), 0)...};
  (void)each;
}

// Adds a function to a module or class; another one of the same name becomes an overload.
FLAMBEAU_COLD inline void add(PyObject* place, std::unique_ptr<flambeau::Function> function, bool method, PyObject* module,
                PyObject* owner) {
  const std::string name = function->name;
  Object before = owner ? Object::borrowed(PyDict_GetItemString(owner, name.c_str())) : Object();
  flambeau::Function* overloaded = flambeau::Function::of(before.get());
  if (overloaded) {
    flambeau::Function* last = overloaded;
    while (last->next) last = last->next.get();
    last->next = std::move(function);
    overloaded->describe();
    return;
  }
  Object exposed = flambeau::Function::expose(std::move(function), module);
  if (method) exposed = flambeau::checked(PyInstanceMethod_New(exposed.get()));
  flambeau::checked(PyObject_SetAttrString(place, name.c_str(), exposed.get()));
}

// ---------------------------------------------------------------- modules

class module_ : public object {
 public:
  explicit module_(Object module) : object(std::move(module)) {}

  template <typename F, typename... E>
  FLAMBEAU_COLD module_& def(const char* name, F&& target, const E&... extras) {
    auto function = flambeau::to_function(name, std::forward<F>(target));
    apply(*function, 0, extras...);
    Object own = flambeau::checked(PyObject_GetAttrString(ptr(), "__name__"));
    add(ptr(), std::move(function), false, own.get(), PyModule_GetDict(ptr()));
    return *this;
  }

  // `m.doc() = "..."` and `m.attr("name") = value`.
  class Attribute {
   public:
    Attribute(PyObject* place, std::string name) : place_(place), name_(std::move(name)) {}
    template <typename T>
    void operator=(T&& value) {
      flambeau::checked(PyObject_SetAttrString(place_, name_.c_str(), to_object(std::forward<T>(value)).get()));
    }
    operator object() const { return object(flambeau::attribute(place_, name_.c_str())); }

   private:
    PyObject* place_;
    std::string name_;
  };
  Attribute doc() { return Attribute(ptr(), "__doc__"); }
  Attribute attr(const char* name) { return Attribute(ptr(), name); }
};
using module = module_;

// ---------------------------------------------------------------- classes

template <typename... A>
struct init_types {};
template <typename... A>
init_types<A...> init() {
  return {};
}
template <typename F>
struct init_factory {
  F make;
};
template <typename F>
init_factory<F> init(F make) {
  return {std::move(make)};
}

// The object that __init__ is called on.
struct Fresh {
  flambeau::Instance* instance;
};

template <typename T>
std::shared_ptr<T> to_shared(T value) {
  return std::make_shared<T>(std::move(value));
}
template <typename T>
std::shared_ptr<T> to_shared(T* value) {
  return std::shared_ptr<T>(value);
}
template <typename T>
std::shared_ptr<T> to_shared(std::unique_ptr<T> value) {
  return std::shared_ptr<T>(std::move(value));
}
template <typename T>
std::shared_ptr<T> to_shared(std::shared_ptr<T> value) {
  return value;
}

// Base and holder: of the extra arguments of class_, the one that T derives from.
template <typename T, typename... E>
struct Ancestor {
  using Type = void;
};
template <typename T, typename First, typename... E>
struct Ancestor<T, First, E...> {
  using Type = typename std::conditional<std::is_base_of<First, T>::value, First,
                                         typename Ancestor<T, E...>::Type>::type;
};

template <typename T, typename... Options>
class class_ : public object {
  using Base = typename Ancestor<T, Options...>::Type;

 public:
  template <typename... E>
  class_(const module_& scope, const char* name, const E&... extras) : object(create(scope, name, extras...)) {
    flambeau::checked(PyObject_SetAttrString(scope.ptr(), name, ptr()));
  }

  // Methods: members, or functions whose first parameter is the object.
  template <typename F, typename... E>
  FLAMBEAU_COLD class_& def(const char* name, F&& target, const E&... extras) {
    return add_method(method(name, std::forward<F>(target)), extras...);
  }
  template <typename... A, typename... E>
  FLAMBEAU_COLD class_& def(init_types<A...>, const E&... extras) {
    return add_method(flambeau::make_function<void, Fresh, A...>("__init__", [](Fresh self, A... arguments) {
      construct(self, std::make_shared<T>(std::forward<A>(arguments)...));
    }), extras...);
  }
  template <typename F, typename... E>
  FLAMBEAU_COLD class_& def(init_factory<F> factory, const E&... extras) {
    return add_method(Factory<decltype(&F::operator())>::function(std::move(factory.make)), extras...);
  }
  template <typename F, typename... E>
  FLAMBEAU_COLD class_& def_static(const char* name, F&& target, const E&... extras) {
    auto function = flambeau::to_function(name, std::forward<F>(target));
    apply(*function, 0, extras...);
    Object exposed = flambeau::Function::expose(std::move(function), nullptr);
    flambeau::checked(PyObject_SetAttrString(ptr(), name, flambeau::checked(PyStaticMethod_New(exposed.get())).get()));
    return *this;
  }

  template <typename V, typename... E>
  FLAMBEAU_COLD class_& def_readwrite(const char* name, V T::*member, const E&... extras) {
    return property(name, reader(member), flambeau::make_function<void, T&, V>(name, [member](T& self, V value) {
      self.*member = std::move(value);
    }), extras...);
  }
  template <typename V, typename... E>
  FLAMBEAU_COLD class_& def_readonly(const char* name, V T::*member, const E&... extras) {
    return property(name, reader(member), nullptr, extras...);
  }
  template <typename F, typename... E>
  FLAMBEAU_COLD class_& def_property_readonly(const char* name, F&& get, const E&... extras) {
    return property(name, method(name, std::forward<F>(get)), nullptr, extras...);
  }
  template <typename F, typename G, typename... E>
  FLAMBEAU_COLD class_& def_property(const char* name, F&& get, G&& set, const E&... extras) {
    return property(name, method(name, std::forward<F>(get)), method(name, std::forward<G>(set)), extras...);
  }

 private:
  using FunctionPtr = std::unique_ptr<flambeau::Function>;

  template <typename R, typename C, typename... A>
  FLAMBEAU_COLD static FunctionPtr method(const char* name, R (C::*member)(A...)) {
    return flambeau::make_function<R, T&, A...>(name, [member](T& self, A... a) -> R {
      return (self.*member)(std::forward<A>(a)...);
    });
  }
  template <typename R, typename C, typename... A>
  FLAMBEAU_COLD static FunctionPtr method(const char* name, R (C::*member)(A...) const) {
    return flambeau::make_function<R, const T&, A...>(name, [member](const T& self, A... a) -> R {
      return (self.*member)(std::forward<A>(a)...);
    });
  }
  template <typename F>
  FLAMBEAU_COLD static FunctionPtr method(const char* name, F&& target) {
    return flambeau::to_function(name, std::forward<F>(target));
  }
  template <typename V>
  FLAMBEAU_COLD static FunctionPtr reader(V T::*member) {
    return flambeau::make_function<V, const T&>("get", [member](const T& self) -> V { return self.*member; });
  }

  template <typename F>
  struct Factory;
  template <typename C, typename R, typename... A>
  struct Factory<R (C::*)(A...) const> {
    FLAMBEAU_COLD static FunctionPtr function(C make) {
      return flambeau::make_function<void, Fresh, A...>("__init__", [make](Fresh self, A... arguments) {
        construct(self, to_shared(make(std::forward<A>(arguments)...)));
      });
    }
  };

  static void construct(Fresh self, std::shared_ptr<T> value) { self.instance->value = std::move(value); }

  template <typename... E>
  FLAMBEAU_COLD class_& add_method(FunctionPtr function, const E&... extras) {
    function->parameters[0].name = "self";
    apply(*function, 1, extras...);
    PyTypeObject* type = reinterpret_cast<PyTypeObject*>(ptr());
    add(ptr(), std::move(function), true, nullptr, Object::borrowed(type->tp_dict).get());
    return *this;
  }
  FLAMBEAU_COLD static Object accessor(FunctionPtr function) {
    return function ? flambeau::Function::expose(std::move(function), nullptr) : Object::borrowed(Py_None);
  }
  template <typename... E>
  FLAMBEAU_COLD class_& property(const char* name, FunctionPtr get, FunctionPtr set, const E&... extras) {
    apply(*get, 1, extras...);
    const std::string about = get->about;
    Object pair[] = {accessor(std::move(get)), accessor(std::move(set))};
    Object made = flambeau::checked(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyProperty_Type), "OOOs",
                                                         pair[0].get(), pair[1].get(), Py_None, about.c_str()));
    flambeau::checked(PyObject_SetAttrString(ptr(), name, made.get()));
    return *this;
  }

  static void* upcast(void* value) { return upcast(static_cast<T*>(value), static_cast<Base*>(nullptr)); }
  template <typename B>
  static void* upcast(T* value, B*) {
    return static_cast<B*>(value);
  }
  static void* upcast(T* value, void*) { return value; }

  FLAMBEAU_COLD static Object create(const module_& scope, const char* name, const char* doc = "") {
    using flambeau::Bound;
    flambeau::ClassRecord& record = Bound<T>::record;
    Object module = flambeau::attribute(scope.ptr(), "__name__");
    const std::string full = flambeau::text_of(module.get()) + "." + name;
    const flambeau::ClassRecord* base = std::is_void<Base>::value ? nullptr : &Bound<Base>::record;
    if (base && !base->type) throw flambeau::Error(full + ": bind the base class first.");
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char*>(doc)},
        {Py_tp_new, reinterpret_cast<void*>(allocate)},
        {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
        {0, nullptr},
    };
    static std::vector<std::string> names;  // CPython keeps pointers to them
    names.push_back(full);
    PyType_Spec spec = {names.back().c_str(), int(sizeof(flambeau::Instance)), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    Object bases = base ? flambeau::checked(PyTuple_Pack(1, base->type)) : Object();
    Object type = flambeau::checked(PyType_FromSpecWithBases(&spec, bases.get()));
    record = {reinterpret_cast<PyTypeObject*>(type.get()), base, base ? static_cast<void* (*)(void*)>(upcast) : nullptr};
    Py_INCREF(record.type);
    flambeau::class_records().push_back(&record);
    return type;
  }

  static PyObject* allocate(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* object = type->tp_alloc(type, 0);
    if (object) new (&reinterpret_cast<flambeau::Instance*>(object)->value) std::shared_ptr<void>();
    return object;
  }
  static void deallocate(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    reinterpret_cast<flambeau::Instance*>(object)->value.~shared_ptr<void>();
    type->tp_free(object);
    Py_DECREF(type);
  }
};

// What PyInit_NAME does.
template <typename Define>
PyObject* define_module(PyModuleDef& definition, Define define) noexcept {
  try {
    flambeau::Runtime::get();
    module_ made(flambeau::checked(PyModule_Create(&definition)));
    define(made);
    return Object(made.held()).release();
  } catch (...) {
    flambeau::set_python_error();
    return nullptr;
  }
}

}  // namespace pybind11

namespace flambeau {

template <>
struct Caster<pybind11::object> : ValueCaster<pybind11::object> {
  static std::string name() { return "object"; }
  static bool load(PyObject* from, pybind11::object& value) {
    value = pybind11::object(Object::borrowed(from));
    return true;
  }
  static PyObject* store(const pybind11::object& value) { return Object(value.held()).release(); }
};

template <>
struct Caster<pybind11::Fresh> : ValueCaster<pybind11::Fresh> {
  static std::string name() { return "object"; }
  static bool load(PyObject* from, pybind11::Fresh& self) {
    self.instance = reinterpret_cast<Instance*>(from);
    return record_of(Py_TYPE(from)) != nullptr;
  }
};

}  // namespace flambeau

#define FLAMBEAU_TEXT_(name) #name
#define FLAMBEAU_TEXT(name) FLAMBEAU_TEXT_(name)
#define FLAMBEAU_MODULE_(name, variable)                                                                     \
  FLAMBEAU_COLD static void flambeau_define_##name(::pybind11::module_&);                                                \
  PyMODINIT_FUNC PyInit_##name();                                                                            \
  PyMODINIT_FUNC PyInit_##name() {                                                                           \
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, #name, nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
    return ::pybind11::define_module(definition, flambeau_define_##name);                                     \
  }                                                                                                          \
  static void flambeau_define_##name(::pybind11::module_& variable)
#define FLAMBEAU_MODULE(name, variable) FLAMBEAU_MODULE_(name, variable)
#define PYBIND11_MODULE(name, variable) FLAMBEAU_MODULE(name, variable)

namespace py = pybind11;
