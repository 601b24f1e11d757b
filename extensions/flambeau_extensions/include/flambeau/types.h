// Element types, devices, numbers and lists: the small values that tensors are described with.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <vector>

#include "object.h"
#include "tensor.h"

namespace at {

// ---------------------------------------------------------------- element types

// A 16-bit floating-point number; arithmetic converts to float.
struct Half {
  uint16_t x;

  Half() = default;
  Half(float value) : x(encode(value)) {}
  operator float() const { return decode(x); }

  static float decode(uint16_t bits) {
    uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
    float result;
    if (rest >= 0x7c00) {
      rest = (rest << 13) | 0x7f800000;  // infinity, NaN
    } else if (rest >= 0x0400) {
      rest = (rest << 13) + 0x38000000;
    } else {
      float small = float(rest) * 5.9604644775390625e-8f;  // subnormal: multiples of 2**-24
      std::memcpy(&rest, &small, 4);
    }
    rest |= sign;
    std::memcpy(&result, &rest, 4);
    return result;
  }

  static uint16_t encode(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint16_t sign = uint16_t((bits >> 16) & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return sign | 0x7e00;   // NaN
    if (bits >= 0x477ff000) return sign | 0x7c00;  // 65520 and more round to infinity
    if (bits < 0x38800000) {                       // subnormal: let the float unit round
      float small;
      std::memcpy(&small, &bits, 4);
      small += 0.5f;
      std::memcpy(&bits, &small, 4);
      return uint16_t(sign | (bits - 0x3f000000));
    }
    bits += 0xc8000fff + ((bits >> 13) & 1);  // to nearest, ties to even
    return uint16_t(sign | (bits >> 13));
  }
};

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, BFloat16 = 15,
  Undefined = 127
};
constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char, kShort = ScalarType::Short,
                     kInt = ScalarType::Int, kLong = ScalarType::Long, kHalf = ScalarType::Half,
                     kFloat = ScalarType::Float, kDouble = ScalarType::Double, kBool = ScalarType::Bool,
                     kComplexFloat = ScalarType::ComplexFloat, kComplexDouble = ScalarType::ComplexDouble,
                     kBFloat16 = ScalarType::BFloat16;
constexpr ScalarType kUInt8 = kByte, kInt8 = kChar, kInt16 = kShort, kInt32 = kInt, kInt64 = kLong, kFloat16 = kHalf,
                     kFloat32 = kFloat, kFloat64 = kDouble;

struct ScalarTypeInfo {
  ScalarType type;
  const char* name;    // the core's
  const char* legacy;  // that of the type's tensors
  int size;
  FlambeauDtype code;
};

inline const ScalarTypeInfo& info(ScalarType type) {
  static const ScalarTypeInfo table[] = {
      {kByte, "uint8", "Byte", 1, {FLAMBEAU_UINT, 8, 1}},
      {kChar, "int8", "Char", 1, {FLAMBEAU_INT, 8, 1}},
      {kShort, "int16", "Short", 2, {FLAMBEAU_INT, 16, 1}},
      {kInt, "int32", "Int", 4, {FLAMBEAU_INT, 32, 1}},
      {kLong, "int64", "Long", 8, {FLAMBEAU_INT, 64, 1}},
      {kHalf, "float16", "Half", 2, {FLAMBEAU_FLOAT, 16, 1}},
      {kFloat, "float32", "Float", 4, {FLAMBEAU_FLOAT, 32, 1}},
      {kDouble, "float64", "Double", 8, {FLAMBEAU_FLOAT, 64, 1}},
      {kComplexFloat, "complex64", "ComplexFloat", 8, {FLAMBEAU_COMPLEX, 64, 1}},
      {kComplexDouble, "complex128", "ComplexDouble", 16, {FLAMBEAU_COMPLEX, 128, 1}},
      {kBool, "bool", "Bool", 1, {FLAMBEAU_BOOL, 8, 1}},
      {kBFloat16, "bfloat16", "BFloat16", 2, {FLAMBEAU_BFLOAT, 16, 1}},
      {ScalarType::Undefined, "undefined", "Undefined", 0, {0, 0, 0}},
  };
  const ScalarTypeInfo* each = table;
  while (each->type != type && each->size) ++each;
  return *each;
}

inline const char* toString(ScalarType type) { return info(type).legacy; }
inline int64_t elementSize(ScalarType type) { return info(type).size; }
inline bool isFloatingType(ScalarType t) { return t == kHalf || t == kFloat || t == kDouble || t == kBFloat16; }
inline bool isIntegralType(ScalarType t, bool with_bool = false) { return t <= kLong || (with_bool && t == kBool); }

// The ScalarType of a C++ type.
template <typename T>
struct CppType;
#define FLAMBEAU_CPP_TYPE(type, scalar) \
  template <>                           \
  struct CppType<type> {                \
    static constexpr ScalarType value = scalar; \
  };
FLAMBEAU_CPP_TYPE(uint8_t, kByte)
FLAMBEAU_CPP_TYPE(int8_t, kChar)
FLAMBEAU_CPP_TYPE(int16_t, kShort)
FLAMBEAU_CPP_TYPE(int32_t, kInt)
FLAMBEAU_CPP_TYPE(long, sizeof(long) == 8 ? kLong : kInt)
FLAMBEAU_CPP_TYPE(long long, kLong)
FLAMBEAU_CPP_TYPE(Half, kHalf)
FLAMBEAU_CPP_TYPE(float, kFloat)
FLAMBEAU_CPP_TYPE(double, kDouble)
FLAMBEAU_CPP_TYPE(bool, kBool)
#undef FLAMBEAU_CPP_TYPE

// ---------------------------------------------------------------- devices

enum class DeviceType : int16_t { CPU, CUDA, Other };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;

class Device {
 public:
  Device(DeviceType type = kCPU, int index = -1) : type_(type), index_(index), name_(type == kCUDA ? "cuda" : "cpu") {}
  // As the core writes it: "cpu", "cuda:1", or the device of any plug-in.
  Device(const std::string& text) : type_(DeviceType::Other), index_(-1), name_(text.substr(0, text.find(':'))) {
    if (name_.size() < text.size()) index_ = std::stoi(text.substr(name_.size() + 1));
    if (name_ == "cpu") type_ = kCPU;
    if (name_ == "cuda") type_ = kCUDA;
  }
  Device(const char* text) : Device(std::string(text)) {}

  DeviceType type() const { return type_; }
  int index() const { return index_; }
  bool has_index() const { return index_ >= 0; }
  bool is_cpu() const { return type_ == kCPU; }
  bool is_cuda() const { return type_ == kCUDA; }
  std::string str() const { return index_ < 0 ? name_ : name_ + ":" + std::to_string(index_); }
  bool operator==(const Device& other) const { return index_ == other.index_ && name_ == other.name_; }
  bool operator!=(const Device& other) const { return !(*this == other); }

 private:
  DeviceType type_;
  int index_;
  std::string name_;
};

// ---------------------------------------------------------------- numbers

// One number of any kind.
class Scalar {
 public:
  Scalar() : kind_('i'), integer_(0) {}
  template <typename T, typename std::enable_if<std::is_integral<T>::value, int>::type = 0>
  Scalar(T value) : kind_(std::is_same<T, bool>::value ? 'b' : 'i'), integer_(static_cast<int64_t>(value)) {}
  Scalar(double value) : kind_('f'), real_(value) {}
  Scalar(float value) : kind_('f'), real_(value) {}
  Scalar(Half value) : kind_('f'), real_(float(value)) {}

  bool isFloatingPoint() const { return kind_ == 'f'; }
  bool isIntegral(bool with_bool = false) const { return kind_ == 'i' || (with_bool && kind_ == 'b'); }
  bool isBoolean() const { return kind_ == 'b'; }
  ScalarType type() const { return kind_ == 'f' ? kDouble : kind_ == 'i' ? kLong : kBool; }

  template <typename T>
  T to() const {
    return kind_ == 'f' ? static_cast<T>(real_) : static_cast<T>(integer_);
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return kind_ == 'f' ? real_ != 0 : integer_ != 0; }
  double toCDouble() const { return to<double>(); }
  float toCFloat() const { return to<float>(); }
  int64_t toCLong() const { return to<int64_t>(); }
  int toCInt() const { return to<int>(); }
  Scalar operator-() const { return kind_ == 'f' ? Scalar(-real_) : Scalar(-integer_); }

 private:
  char kind_;
  union {
    int64_t integer_;
    double real_;
  };
};

// ---------------------------------------------------------------- lists and optional values

// Consecutive values that somebody else owns.
template <typename T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;

  ArrayRef() : data_(nullptr), size_(0) {}
  ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  ArrayRef(const T* begin, const T* end) : data_(begin), size_(size_t(end - begin)) {}
  template <typename A>
  ArrayRef(const std::vector<T, A>& values) : data_(values.data()), size_(values.size()) {}
  template <size_t N>
  ArrayRef(const T (&values)[N]) : data_(values), size_(N) {}
  // Valid until the end of the full expression, which is what a call needs.
  ArrayRef(const std::initializer_list<T>& values) : data_(nullptr), size_(values.size()) { data_ = values.begin(); }

  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& front() const { return at(0); }
  const T& back() const { return at(size_ - 1); }
  const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const {
    if (i >= size_) {
      throw std::out_of_range("ArrayRef: index " + std::to_string(i) + " of " + std::to_string(size_) + " values");
    }
    return data_[i];
  }
  ArrayRef slice(size_t first, size_t count) const {
    if (count) at(first + count - 1);
    return ArrayRef(data_ + first, count);
  }
  ArrayRef slice(size_t first) const { return slice(first, size_ - first); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  operator std::vector<T>() const { return vec(); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }
  friend bool operator==(ArrayRef a, ArrayRef b) { return a.equals(b); }
  friend bool operator!=(ArrayRef a, ArrayRef b) { return !a.equals(b); }

 private:
  const T* data_;
  size_t size_;
};

using IntArrayRef = ArrayRef<int64_t>;
using IntList = IntArrayRef;

struct nullopt_t {
  constexpr explicit nullopt_t(int) {}
};
constexpr nullopt_t nullopt{0};

// A value or none.
template <typename T>
class optional {
 public:
  optional() : given_(false), value_() {}
  optional(nullopt_t) : optional() {}
  optional(T value) : given_(true), value_(std::move(value)) {}
  template <typename U, typename std::enable_if<std::is_arithmetic<U>::value && std::is_convertible<U, T>::value &&
                                                    !std::is_same<U, T>::value, int>::type = 0>
  optional(U value) : given_(true), value_(static_cast<T>(value)) {}

  template <typename... A>
  T& emplace(A&&... arguments) {
    given_ = true;
    return value_ = T(std::forward<A>(arguments)...);
  }
  void reset() { *this = optional(); }

  bool has_value() const { return given_; }
  explicit operator bool() const { return given_; }
  const T& value() const {
    if (!given_) throw flambeau::Error("optional: there is no value.\nAsk has_value() first.");
    return value_;
  }
  T value_or(T otherwise) const { return given_ ? value_ : otherwise; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  bool given_;
  T value_;
};

}  // namespace at
