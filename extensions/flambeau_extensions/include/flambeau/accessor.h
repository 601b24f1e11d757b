// Elements of a tensor by index, for loops written by hand.
#pragma once

#include "types.h"

#ifdef __CUDACC__
#define FLAMBEAU_HOST_DEVICE __host__ __device__
#else
#define FLAMBEAU_HOST_DEVICE
#endif

namespace at {

template <typename T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

// A view of N dimensions of T.  Sizes and strides belong to the tensor, which must stay alive and keep its shape.
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;

  FLAMBEAU_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  FLAMBEAU_HOST_DEVICE TensorAccessor<T, N - 1, Traits, Index> operator[](Index i) const {
    return TensorAccessor<T, N - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1, strides_ + 1);
  }
  FLAMBEAU_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  FLAMBEAU_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  FLAMBEAU_HOST_DEVICE PtrType data() const { return data_; }
  ArrayRef<Index> sizes() const { return ArrayRef<Index>(sizes_, N); }
  ArrayRef<Index> strides() const { return ArrayRef<Index>(strides_, N); }

 private:
  PtrType data_;
  const Index *sizes_, *strides_;
};

template <typename T, template <typename> class Traits, typename Index>
class TensorAccessor<T, 1, Traits, Index> {
 public:
  using PtrType = typename Traits<T>::PtrType;

  FLAMBEAU_HOST_DEVICE TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  FLAMBEAU_HOST_DEVICE T& operator[](Index i) const { return data_[strides_[0] * i]; }
  FLAMBEAU_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  FLAMBEAU_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  FLAMBEAU_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  const Index *sizes_, *strides_;
};

// The same with its own copy of sizes and strides, so that it can be passed to a kernel on a device.
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits, typename Index = int64_t>
class PackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  using Accessor = TensorAccessor<T, N, Traits, Index>;

  PackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides) : data_(data) {
    for (size_t i = 0; i < N; ++i) {
      sizes_[i] = Index(sizes[i]);
      strides_[i] = Index(strides[i]);
    }
  }
  FLAMBEAU_HOST_DEVICE auto operator[](Index i) const -> decltype(std::declval<Accessor>()[i]) {
    return Accessor(data_, sizes_, strides_)[i];
  }
  FLAMBEAU_HOST_DEVICE Index size(Index i) const { return sizes_[i]; }
  FLAMBEAU_HOST_DEVICE Index stride(Index i) const { return strides_[i]; }
  FLAMBEAU_HOST_DEVICE PtrType data() const { return data_; }

 private:
  PtrType data_;
  Index sizes_[N], strides_[N];
};

template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = PackedTensorAccessor<T, N, Traits, int32_t>;
template <typename T, size_t N, template <typename> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = PackedTensorAccessor<T, N, Traits, int64_t>;

}  // namespace at
