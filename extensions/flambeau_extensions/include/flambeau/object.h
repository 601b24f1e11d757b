// Python objects and errors: references that own, exceptions that cross the border in both directions.
#pragma once

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

// Runs once or when something goes wrong: compiled for size, which takes half of the time.
#if defined(__GNUC__)
#define FLAMBEAU_COLD __attribute__((cold))
#else
#define FLAMBEAU_COLD
#endif

namespace flambeau {

// A strong reference.
class Object {
 public:
  Object() noexcept : p_(nullptr) {}
  // Takes the reference over; use `borrowed` for one that belongs to somebody else.
  explicit Object(PyObject* owned) noexcept : p_(owned) {}
  static Object borrowed(PyObject* p) noexcept {
    Py_XINCREF(p);
    return Object(p);
  }
  Object(const Object& other) noexcept : p_(other.p_) { Py_XINCREF(p_); }
  Object(Object&& other) noexcept : p_(other.p_) { other.p_ = nullptr; }
  Object& operator=(Object other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  // Variables with static storage outlive the interpreter, and with it their objects.
  ~Object() {
    if (p_ && Py_IsInitialized()) Py_DECREF(p_);
  }

  PyObject* get() const noexcept { return p_; }
  PyObject* release() noexcept {
    PyObject* p = p_;
    p_ = nullptr;
    return p;
  }
  explicit operator bool() const noexcept { return p_ != nullptr; }

 private:
  PyObject* p_;
};

FLAMBEAU_COLD inline std::string text_of(PyObject* object) {
  Object text(object ? PyObject_Str(object) : nullptr);
  const char* found = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (found) return found;
  PyErr_Clear();
  return "?";
}

// Sets a Python error.  Texts of C++ may hold anything; what is not UTF-8 is replaced.
FLAMBEAU_COLD inline void set_error(PyObject* type, const std::string& message) {
  Object text(PyUnicode_DecodeUTF8(message.data(), Py_ssize_t(message.size()), "replace"));
  if (text) PyErr_SetObject(type, text.get());
}

// The message of an error, and where in the sources it was raised.
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  FLAMBEAU_COLD Error(const std::string& message, const char* file, int line)
      : message_(message + "\n(at " + file + ":" + std::to_string(line) + ")") {}
  const char* what() const noexcept override { return message_.c_str(); }

 protected:
  std::string message_;
};

// A Python exception on its way through C++; at the border it becomes the same Python exception again.
class PythonError : public Error {
 public:
  FLAMBEAU_COLD PythonError() : Error(std::string()), value_(raised()) {
    message_ = std::string(Py_TYPE(value_.get())->tp_name) + ": " + text_of(value_.get());
  }
  void restore() const { raise(value_); }
  bool matches(PyObject* type) const { return PyErr_GivenExceptionMatches(value_.get(), type) != 0; }

 private:
#if PY_VERSION_HEX >= 0x030C0000
  static Object raised() { return Object(PyErr_GetRaisedException()); }
  static void raise(Object value) { PyErr_SetRaisedException(value.release()); }
#else
  static Object raised() {
    PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return Object(value);
  }
  static void raise(Object value) {
    PyObject* p = value.release();
    Py_INCREF(Py_TYPE(p));
    PyErr_Restore(reinterpret_cast<PyObject*>(Py_TYPE(p)), p, PyException_GetTraceback(p));
  }
#endif
  Object value_;
};

// Sets the Python error that corresponds to the C++ exception being handled.
FLAMBEAU_COLD inline void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::out_of_range& error) {
    set_error(PyExc_IndexError, error.what());
  } catch (const std::invalid_argument& error) {
    set_error(PyExc_ValueError, error.what());
  } catch (const std::domain_error& error) {
    set_error(PyExc_ValueError, error.what());
  } catch (const std::length_error& error) {
    set_error(PyExc_ValueError, error.what());
  } catch (const std::overflow_error& error) {
    set_error(PyExc_OverflowError, error.what());
  } catch (const std::exception& error) {
    set_error(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "a C++ exception that is not a std::exception");
  }
}

// The result of a C API call that returns a new reference, or its error as an exception.
inline Object checked(PyObject* result) {
  if (!result) throw PythonError();
  return Object(result);
}

inline void checked(int result) {
  if (result < 0) throw PythonError();
}

inline Object attribute(PyObject* object, const char* name) { return checked(PyObject_GetAttrString(object, name)); }

// Lets other Python threads run while this one works on memory alone.
class ReleaseGil {
 public:
  ReleaseGil() : state_(PyEval_SaveThread()) {}
  ~ReleaseGil() { PyEval_RestoreThread(state_); }
  ReleaseGil(const ReleaseGil&) = delete;
  ReleaseGil& operator=(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the lock again, on any thread.
class HoldGil {
 public:
  HoldGil() : state_(PyGILState_Ensure()) {}
  ~HoldGil() { PyGILState_Release(state_); }
  HoldGil(const HoldGil&) = delete;
  HoldGil& operator=(const HoldGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace flambeau
