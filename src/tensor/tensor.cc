#include "tensor/tensor.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/json_writer.h"
#include "base/machine.h"

namespace quire {

Shape::Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  QUIRE_CHECK(dims.size() <= kMaxRank, "[tensor] too many axes");
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::num_elements() const {
  int64_t count = 1;
  for (int axis = 0; axis < rank_; ++axis) count *= dims_[static_cast<size_t>(axis)];
  return count;
}

TensorView TensorView::rows(int64_t first, int64_t count) const {
  std::array<int64_t, kMaxRank> dims = {};
  int64_t row_elements = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) {
    dims[static_cast<size_t>(axis)] = shape[axis];
    row_elements *= shape[axis];
  }
  dims[0] = count;
  const auto offset = static_cast<size_t>(first * row_elements) * dtype_bytes(dtype);
  return {static_cast<std::byte*>(data) + offset, dtype,
          Shape(std::span(dims.data(), static_cast<size_t>(shape.rank())))};
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      num_bytes_(std::exchange(other.num_bytes_, 0)),
      release_(std::move(other.release_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(num_bytes_, other.num_bytes_);
  std::swap(release_, other.release_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr && release_) release_(data_, num_bytes_);
}

Result<Buffer> Buffer::host(size_t num_bytes) {
  if (num_bytes == 0) return Buffer();
  void* data =
      ::mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return resource_exhausted(
        fmt::format("[memory] cannot allocate {} bytes of host memory; lower `max_model_len`, "
                    "`max_num_seqs` or `kv_cache_memory`",
                    num_bytes));
  }
  if (num_bytes >= 4 * kHugePage) ::madvise(data, num_bytes, MADV_HUGEPAGE);
  return Buffer(data, num_bytes, [](void* address, size_t bytes) { ::munmap(address, bytes); });
}

Result<Tensor> Tensor::host(const Shape& shape, DType dtype) {
  const auto num_bytes = static_cast<size_t>(shape.num_elements()) * dtype_bytes(dtype);
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, Buffer::host(num_bytes));
  void* data = buffer.data();
  return Tensor{std::move(buffer), {data, dtype, shape}};
}

std::string quote_name(std::string_view name) {
  constexpr size_t kMaxShown = 160;
  JsonWriter writer;
  if (name.size() <= kMaxShown) {
    writer.value(name);
  } else {
    writer.value(std::string(name.substr(0, kMaxShown)) + "…");
  }
  return writer.text();
}

float element_as_f32(const TensorView& view, int64_t i) {
  switch (view.dtype) {
    case DType::kF32:
      return view.as<float>()[i];
    case DType::kF16:
      return f16_to_f32(view.as<uint16_t>()[i]);
    case DType::kBF16:
      return bf16_to_f32(view.as<uint16_t>()[i]);
    default:
      QUIRE_CHECK(false, "[tensor] the type of an element is none of f32, f16 and bf16");
  }
}

}  // namespace quire
