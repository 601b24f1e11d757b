// The Python side as compiled code sees it: where a tensor keeps things, and how an operator is called.
#pragma once

#include <structmember.h>

#include "types.h"

namespace flambeau {

// A slot of a Python class, read without asking Python.
class Slot {
 public:
  Slot() : offset_(0) {}
  FLAMBEAU_COLD Slot(const Object& type, const char* name) {
    Object found = attribute(type.get(), name);
    if (Py_TYPE(found.get()) != &PyMemberDescr_Type) {
      throw Error(std::string("flambeau keeps ") + name + " elsewhere than this extension expects.\nBuild it again.");
    }
    offset_ = reinterpret_cast<PyMemberDescrObject*>(found.get())->d_member->offset;
  }
  PyObject*& of(PyObject* object) const {
    return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset_);
  }

 private:
  Py_ssize_t offset_;
};

// What the key of a tensor says, in C++.
struct Kind {
  Object key;
  void* (*address)(PyObject* handle, PyObject* context);
  Object context;
  at::ScalarType type;
  at::Device device;
  bool host, strided;
};

class Runtime {
 public:
  // The one of this extension.  Needs the GIL.
  static Runtime& get() {
    static Runtime* runtime = new Runtime;  // lives as long as the interpreter, like the module itself
    return *runtime;
  }

  Object torch, tensor, device_class;
  Slot key, geometry, memory, node, shape, strides, packed, numel, contiguous;

  bool is_tensor(PyObject* object) const {
    PyTypeObject* type = reinterpret_cast<PyTypeObject*>(tensor.get());
    return Py_TYPE(object) == type || PyType_IsSubtype(Py_TYPE(object), type);
  }

  const Kind& kind(PyObject* key) {
    if (last_ && last_->key.get() == key) return *last_;
    for (Kind* each : kinds_) {
      if (each->key.get() == key) return *(last_ = each);
    }
    return *(last_ = read_kind(key));
  }

  FLAMBEAU_COLD Kind* read_kind(PyObject* key) {
    Object dtype = attribute(key, "dtype"), device = attribute(key, "device");
    Object layout = attribute(attribute(key, "layout").get(), "name"), memory = attribute(key, "memory");
    Kind kind = {Object::borrowed(key), address_by_python, attribute(key, "address"), scalar_type(dtype.get()),
                 at::Device(text_of(device.get())), attribute(memory.get(), "host").get() == Py_True,
                 text_of(layout.get()) == "strided"};
    if (PyObject_HasAttrString(memory.get(), "compiled_address")) {
      Object pair = checked(PyObject_CallMethod(memory.get(), "compiled_address", nullptr));
      kind.address = reinterpret_cast<void* (*)(PyObject*, PyObject*)>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(pair.get(), 0)));
      kind.context = Object::borrowed(PyTuple_GET_ITEM(pair.get(), 1));
    }
    kinds_.push_back(new Kind(std::move(kind)));
    return kinds_.back();
  }

  FLAMBEAU_COLD at::ScalarType scalar_type(PyObject* dtype) {
    const std::string name = text_of(attribute(dtype, "name").get());
    for (int i = 0; i < 16; ++i) {
      if (name == at::info(at::ScalarType(i)).name) return at::ScalarType(i);
    }
    throw Error("The element type " + name + " has no counterpart in C++.");
  }

  Object dtype(at::ScalarType type) { return attribute(torch.get(), at::info(type).name); }

  Object device(const at::Device& device) {
    return checked(PyObject_CallFunction(device_class.get(), "s", device.str().c_str()));
  }

 private:
  static void* address_by_python(PyObject* handle, PyObject* function) {
    Object address(PyObject_CallOneArg(function, handle));
    return address ? PyLong_AsVoidPtr(address.get()) : nullptr;
  }

  FLAMBEAU_COLD Runtime() {
    torch = checked(PyImport_ImportModule("flambeau"));
    Object module = checked(PyImport_ImportModule("flambeau.tensor"));
    Object version = attribute(module.get(), "ABI_VERSION");
    if (PyLong_AsLong(version.get()) != FLAMBEAU_ABI_VERSION) {
      throw Error("This extension was built for version " + std::to_string(FLAMBEAU_ABI_VERSION) +
                  " of flambeau's binary interface; the installed flambeau has version " + text_of(version.get()) +
                  ".\nBuild the extension again (load() does so by itself; reinstall a packaged one).");
    }
    tensor = attribute(torch.get(), "Tensor");
    device_class = attribute(torch.get(), "device");
    key = Slot(tensor, "key");
    geometry = Slot(tensor, "geometry");
    memory = Slot(tensor, "memory");
    node = Slot(tensor, "node");
    Object shapes = attribute(checked(PyImport_ImportModule("flambeau.geometry")).get(), "Geometry");
    shape = Slot(shapes, "shape");
    strides = Slot(shapes, "strides");
    packed = Slot(shapes, "packed");
    numel = Slot(shapes, "numel");
    contiguous = Slot(shapes, "contiguous");
  }

  std::vector<Kind*> kinds_;
  Kind* last_ = nullptr;
};

inline void require_gil() {
  if (!PyGILState_Check()) {
    throw Error("A tensor operator was called on a thread that does not hold Python's lock (the GIL).\n"
                "Call operators outside of ReleaseGil, or hold the lock again with flambeau::HoldGil.");
  }
}

// A geometry's sizes, and after them its strides; they live as long as the geometry.
inline const int64_t* packed_geometry(PyObject* geometry) {
  Runtime& runtime = Runtime::get();
  PyObject*& kept = runtime.packed.of(geometry);
  if (!kept) {
    PyObject *shape = runtime.shape.of(geometry), *strides = runtime.strides.of(geometry);
    const Py_ssize_t ndim = PyTuple_GET_SIZE(shape);
    Object bytes = checked(PyBytes_FromStringAndSize(nullptr, 2 * ndim * Py_ssize_t(sizeof(int64_t))));
    int64_t* numbers = reinterpret_cast<int64_t*>(PyBytes_AS_STRING(bytes.get()));
    for (Py_ssize_t i = 0; i < ndim; ++i) {
      numbers[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i));
      numbers[ndim + i] = PyLong_AsLongLong(PyTuple_GET_ITEM(strides, i));
    }
    kept = bytes.release();
  }
  return reinterpret_cast<const int64_t*>(PyBytes_AS_STRING(kept));
}

// An argument on its way: a borrowed reference, or a null pointer for one that is left out.
struct Passed {
  PyObject* object;
  Passed(PyObject* p) : object(p) {}
  template <typename T>
  Passed(const T& holder) : object(holder.get()) {}
};

// One operator of the core.  Parameters from `required` on may be left out (a null pointer); from `ordered` on
// they are passed by name.  `names` holds the names of those that may be left out, each ended by a blank.
struct Operator {
  const char* name;
  char where;  // 't': flambeau, 'f': flambeau.nn.functional, 'm': a method
  short required, ordered;
  const char* names;
  PyObject* function;

  Object operator()(std::initializer_list<Passed> arguments) {
    require_gil();
    if (!function) function = find();
    enum { kMost = 32 };
    PyObject* given[kMost + 1];
    PyObject* keywords[kMost];
    size_t ordered_given = 0, named = 0;
    bool gap = false;
    const char* name = names;
    for (short i = 0; i < short(arguments.size()) && i < kMost; ++i) {
      PyObject* value = arguments.begin()[i].object;
      if (!value && i < required) value = Py_None;
      const char* end = name;
      if (i >= required) {
        while (*end != ' ') ++end;
      }
      if (value) {
        given[1 + ordered_given + named] = value;
        if (i < ordered && !gap) {
          ++ordered_given;
        } else {
          keywords[named++] = PyUnicode_FromStringAndSize(name, end - name);
        }
      } else {
        gap = true;
      }
      name = i >= required ? end + 1 : name;
    }
    Object names_given;
    if (named) {
      names_given = checked(PyTuple_New(Py_ssize_t(named)));
      for (size_t i = 0; i < named; ++i) {
        PyUnicode_InternInPlace(&keywords[i]);
        PyTuple_SET_ITEM(names_given.get(), Py_ssize_t(i), keywords[i]);
      }
    }
    return checked(PyObject_Vectorcall(function, given + 1, ordered_given | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                       names_given.get()));
  }

 private:
  FLAMBEAU_COLD PyObject* find() const {
    Runtime& runtime = Runtime::get();
    const Object place = where == 't'   ? runtime.torch
                         : where == 'm' ? runtime.tensor
                                        : checked(PyImport_ImportModule("flambeau.nn.functional"));
    return attribute(place.get(), name).release();
  }
};

}  // namespace flambeau
