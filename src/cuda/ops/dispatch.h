// Dispatch from a DType to the device's type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "base/check.h"
#include "tensor/dtype.h"

namespace quire::cuda {

// Calls body(std::type_identity<T>()) for F32, F16 or BF16.
template <typename Body>
void with_float_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kF32:
      return body(std::type_identity<float>());
    case DType::kF16:
      return body(std::type_identity<__half>());
    case DType::kBF16:
      return body(std::type_identity<__nv_bfloat16>());
    default:
      QUIRE_CHECK(false, "[ops] the type is none of f32, f16 and bf16");
  }
}

// Calls body(std::bool_constant<…>()).
template <typename Body>
void with_bool(bool value, const Body& body) {
  return value ? body(std::true_type()) : body(std::false_type());
}

inline bool is_aligned(std::initializer_list<const void*> addresses, size_t alignment) {
  for (const void* address : addresses) {
    if (reinterpret_cast<uintptr_t>(address) % alignment != 0) return false;
  }
  return true;
}

template <typename T>
constexpr T divide_up(T x, T y) {
  return (x + y - 1) / y;
}

}  // namespace quire::cuda
