// Memory with a shape. A TensorView does not own its memory; a Tensor owns it and frees it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire {

inline constexpr int kMaxRank = 4;

// Up to four extents, row-major, contiguous.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[static_cast<size_t>(axis)]; }
  int64_t num_elements() const;
  bool operator==(const Shape& other) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_ = {};
  int rank_ = 0;
};

struct TensorView {
  void* data = nullptr;  // host or device memory; the owner defines which
  DType dtype = DType::kF32;
  Shape shape;

  size_t num_bytes() const {
    return static_cast<size_t>(shape.num_elements()) * dtype_bytes(dtype);
  }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  // Rows [first, first + count) of the outermost axis.
  TensorView rows(int64_t first, int64_t count) const;
};

// Element i of an F32, F16 or BF16 tensor in host memory.
float element_as_f32(const TensorView& view, int64_t i);

// Owned memory with its own deleter. Move-only.
class Buffer {
 public:
  using Release = std::function<void(void* data, size_t num_bytes)>;

  Buffer() = default;
  Buffer(void* data, size_t num_bytes, Release release)
      : data_(data), num_bytes_(num_bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // Allocates zeroed, page-aligned host memory, and requests huge pages if they are worthwhile. The
  // kernel allocates pages on first touch, so an untouched part costs nothing.
  static Result<Buffer> host(size_t num_bytes);

  void* data() const { return data_; }
  size_t num_bytes() const { return num_bytes_; }

 private:
  void* data_ = nullptr;
  size_t num_bytes_ = 0;
  Release release_;
};

struct Tensor {
  Buffer buffer;
  TensorView view;

  static Result<Tensor> host(const Shape& shape, DType dtype);
};

// Makes a name from a file safe for one line of an error: quoted, escaped, and shortened if it is
// long.
std::string quote_name(std::string_view name);

enum class DeviceKind { kCpu, kCuda };

// The properties of a device that a backend may query.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  int compute_capability = 0;  // CUDA: 90 for sm_90; 0 on a CPU
  std::string name;
};

// Transfers from a device to the host, and the host's waits. A CPU has none.
struct DeviceTraffic {
  int64_t num_copies = 0;  // device to host
  int64_t num_waits = 0;   // of the host for the device
};

// An ordered queue of device work. Operations are enqueued; a CPU runs them at once. The first
// failure of enqueued work is kept; the thread that waits for the work reads it once per step.
class Stream {
 public:
  virtual ~Stream() = default;
};

}  // namespace quire
