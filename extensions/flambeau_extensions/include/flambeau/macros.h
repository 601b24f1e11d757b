// Checks: an expectation that does not hold becomes a Python exception with file and line.
#pragma once

#include <iosfwd>

#include "types.h"

namespace flambeau {

inline std::string printed(const char* text) { return text; }
inline std::string printed(const std::string& text) { return text; }
inline std::string printed(bool value) { return value ? "true" : "false"; }
inline std::string printed(char value) { return std::string(1, value); }
template <typename T, typename std::enable_if<std::is_integral<T>::value, int>::type = 0>
std::string printed(T value) {
  return std::to_string(value);
}
template <typename T, typename std::enable_if<std::is_floating_point<T>::value, int>::type = 0>
std::string printed(T value) {
  char* text = PyOS_double_to_string(double(value), 'r', 0, 0, nullptr);
  std::string result = text ? text : "?";
  PyMem_Free(text);
  return result;
}
inline std::string printed(at::ScalarType type) { return at::toString(type); }
inline std::string printed(const at::Device& device) { return device.str(); }
template <typename T>
std::string printed(at::ArrayRef<T> values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + printed(values[i]);
  return text + "]";
}
template <typename T>
std::string printed(const std::vector<T>& values) {
  return printed(at::ArrayRef<T>(values));
}

// Anything that has a stream operator, in sources that include <sstream>.
template <typename T, typename Stream = std::ostringstream,
          typename std::enable_if<std::is_class<T>::value, int>::type = 0>
std::string printed(const T& value) {
  Stream stream;
  stream << value;
  return stream.str();
}

// The parts of a message in a row; or, as in printf, one in the place of each conversion of the first.
FLAMBEAU_COLD inline std::string joined(const std::vector<std::string>& parts) {
  if (parts.empty()) return "";
  const std::string& pattern = parts[0];
  std::string text;
  size_t next = 1, i = 0;
  while (i < pattern.size()) {
    const size_t kind = pattern[i] == '%' ? pattern.find_first_not_of("-+#0123456789.lzhj", i + 1) : std::string::npos;
    if (kind != std::string::npos && next < parts.size() && std::strchr("diouxXeEfgGscp", pattern[kind])) {
      text += parts[next++];
      i = kind + 1;
    } else {
      text += pattern[i++];
    }
  }
  for (; next < parts.size(); ++next) text += parts[next];
  return text;
}

[[noreturn]] FLAMBEAU_COLD inline void fail(const char* file, int line, const char* otherwise, const std::vector<std::string>& parts) {
  throw Error(parts.empty() ? otherwise : joined(parts), file, line);
}

template <typename... Parts>
FLAMBEAU_COLD std::vector<std::string> parts(const Parts&... each) {
  return std::vector<std::string>{printed(each)...};
}

}  // namespace flambeau

namespace at {
using flambeau::Error;
template <typename... Parts>
std::string str(const Parts&... each) {
  return flambeau::joined(flambeau::parts(std::string(), each...));
}
}  // namespace at

#define AT_ERROR(...) ::flambeau::fail(__FILE__, __LINE__, "An error was raised.", ::flambeau::parts(__VA_ARGS__))
#define TORCH_CHECK(condition, ...)                                                        \
  do {                                                                                     \
    if (!(condition)) {                                                                    \
      ::flambeau::fail(__FILE__, __LINE__, "Expected " #condition " to be true, but it is false.", \
                       ::flambeau::parts(__VA_ARGS__));                                    \
    }                                                                                      \
  } while (false)
#define AT_CHECK TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ASSERTM TORCH_CHECK
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_WARN(...) PyErr_WarnEx(PyExc_UserWarning, ::flambeau::joined(::flambeau::parts(__VA_ARGS__)).c_str(), 1)
#define C10_UNUSED __attribute__((unused))

// ---------------------------------------------------------------- one body for several element types

#define FLAMBEAU_CASE(type, scalar, ...) \
  case scalar: {                         \
    using scalar_t = type;               \
    (void)sizeof(scalar_t);              \
    return __VA_ARGS__();                \
  }
#define FLAMBEAU_FLOATING(...)                     \
  FLAMBEAU_CASE(double, ::at::kDouble, __VA_ARGS__) \
  FLAMBEAU_CASE(float, ::at::kFloat, __VA_ARGS__)
#define FLAMBEAU_HALF(...) FLAMBEAU_CASE(::at::Half, ::at::kHalf, __VA_ARGS__)
#define FLAMBEAU_INTEGRAL(...)                      \
  FLAMBEAU_CASE(uint8_t, ::at::kByte, __VA_ARGS__)  \
  FLAMBEAU_CASE(int8_t, ::at::kChar, __VA_ARGS__)   \
  FLAMBEAU_CASE(int16_t, ::at::kShort, __VA_ARGS__) \
  FLAMBEAU_CASE(int32_t, ::at::kInt, __VA_ARGS__)   \
  FLAMBEAU_CASE(int64_t, ::at::kLong, __VA_ARGS__)

#define FLAMBEAU_DISPATCH(TYPE, NAME, ...)                                                                  \
  [&] {                                                                                                     \
    const ::at::ScalarType dispatched = ::at::scalar_type(TYPE);                                            \
    switch (dispatched) {                                                                                   \
      __VA_ARGS__                                                                                           \
      default:                                                                                              \
        ::flambeau::fail(__FILE__, __LINE__, "",                                                            \
                         ::flambeau::parts("\"", NAME, "\" not implemented for '", dispatched, "'"));       \
    }                                                                                                       \
  }()

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) FLAMBEAU_DISPATCH(TYPE, NAME, FLAMBEAU_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  FLAMBEAU_DISPATCH(TYPE, NAME, FLAMBEAU_FLOATING(__VA_ARGS__) FLAMBEAU_HALF(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) FLAMBEAU_DISPATCH(TYPE, NAME, FLAMBEAU_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) \
  FLAMBEAU_DISPATCH(TYPE, NAME, FLAMBEAU_FLOATING(__VA_ARGS__) FLAMBEAU_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...)                                        \
  FLAMBEAU_DISPATCH(TYPE, NAME, FLAMBEAU_FLOATING(__VA_ARGS__) FLAMBEAU_INTEGRAL(__VA_ARGS__)  \
                                    FLAMBEAU_HALF(__VA_ARGS__))

#ifdef __CUDACC__
// A call of CUDA's runtime that must succeed.
#define AT_CUDA_CHECK(call)                                                                            \
  do {                                                                                                 \
    const cudaError_t flambeau_error = (call);                                                         \
    if (flambeau_error != cudaSuccess) {                                                               \
      ::flambeau::fail(__FILE__, __LINE__, "", ::flambeau::parts("CUDA: ", cudaGetErrorString(flambeau_error))); \
    }                                                                                                  \
  } while (false)
#define C10_CUDA_CHECK AT_CUDA_CHECK
#endif
