#include "tensor/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"
#include "tensor/forwarding_source.h"

namespace quire {
namespace {

class SharedSource final : public ForwardingSource {
 public:
  SharedSource(std::unique_ptr<WeightSource> source, int num_readers)
      : ForwardingSource(std::move(source)), num_readers_(num_readers) {}

  // Keeps the source's view, because the source may free it when the tensor is requested again.
  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    const std::lock_guard lock(mutex_);
    Requests& requests = requests_[std::string(name)];
    if (!requests.tensor || requests.tensor->shape != expected) {
      QUIRE_ASSIGN_OR_RETURN(requests.tensor, ForwardingSource::tensor(name, expected));
    }
    ++requests.num_outstanding;
    return *requests.tensor;
  }
  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override {
    const std::lock_guard lock(mutex_);
    QUIRE_ASSIGN_OR_RETURN(const BlockMatrix matrix, ForwardingSource::blocks(name, expected));
    ++requests_[std::string(name)].num_outstanding;
    return matrix;
  }
  void release(std::string_view name) override {
    const std::lock_guard lock(mutex_);
    const auto found = requests_.find(std::string(name));
    if (found == requests_.end()) return;
    Requests& requests = found->second;
    --requests.num_outstanding;
    ++requests.num_released;
    if (requests.num_outstanding > 0 || requests.num_released < num_readers_) return;
    ForwardingSource::release(name);
    requests_.erase(found);
  }
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t count) override {
    const std::lock_guard lock(mutex_);
    return ForwardingSource::integers(name, count);
  }
  Result<std::optional<RepeatedTensor>> repeated(std::string_view name) override {
    const std::lock_guard lock(mutex_);
    return ForwardingSource::repeated(name);
  }

 private:
  struct Requests {  // of one tensor
    std::optional<TensorView> tensor;
    int num_outstanding = 0;  // not released yet
    int num_released = 0;     // by all readers
  };

  int num_readers_;
  std::mutex mutex_;
  std::unordered_map<std::string, Requests> requests_;
};

// Tensors repeat a pool of random numbers, because a copy runs at the speed of memory, unlike a
// generator, and a device can fill a tensor from the pool itself. The pool's length is prime so
// that rows of round lengths do not repeat each other.
constexpr size_t kPoolElements = 524287;
constexpr float kStandardDeviation = 0.02F;
// 4.6 is the standard deviation of uniform 4-bit integers; 8-bit integers deviate 16 times as much.
constexpr float kMeanScale = kStandardDeviation / 4.6F;

uint64_t hash_name(std::string_view name) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mix(hash);
}

// Approximately N(0, 1): the sum of eight uniform bytes, standardized.
float normal_like(uint64_t bits) {
  constexpr float kMean = 8 * 127.5F;
  constexpr float kDeviation = 209.02F;  // sqrt(8 * (256^2 - 1) / 12)
  int sum = 0;
  for (int byte = 0; byte < 8; ++byte) sum += static_cast<int>((bits >> (8 * byte)) & 0xFF);
  return (static_cast<float>(sum) - kMean) / kDeviation;
}

void store(const TensorView& view, size_t i, float value) {
  switch (view.dtype) {
    case DType::kF32:
      view.as<float>()[i] = value;
      break;
    case DType::kF16:
      view.as<uint16_t>()[i] = f32_to_f16(value);
      break;
    case DType::kBF16:
      view.as<uint16_t>()[i] = f32_to_bf16(value);
      break;
    default:
      QUIRE_CHECK(false, "[weights] dummy weights must be f32, f16 or bf16");
  }
}

Result<Tensor> make_pool(DType dtype, float mean, float deviation) {
  QUIRE_ASSIGN_OR_RETURN(Tensor pool, Tensor::host({int64_t{kPoolElements}}, dtype));
  for (size_t i = 0; i < kPoolElements; ++i) {
    store(pool.view, i, mean + deviation * normal_like(mix(i)));
  }
  return pool;
}

Result<Tensor> make_packed_pool() {
  QUIRE_ASSIGN_OR_RETURN(Tensor pool, Tensor::host({int64_t{kPoolElements}}, DType::kI32));
  for (size_t i = 0; i < kPoolElements; ++i) {
    pool.view.as<uint32_t>()[i] = static_cast<uint32_t>(mix(i));
  }
  return pool;
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> suffixes) {
  return std::ranges::any_of(suffixes, [&](std::string_view end) { return name.ends_with(end); });
}

bool is_packed_name(std::string_view name) {
  return ends_with_any(name, {".qweight", ".qzeros", ".weight_packed", ".weight_zero_point"});
}

bool is_scale_name(std::string_view name) {
  return ends_with_any(name, {".scales", ".weight_scale"});
}

void fill(const RepeatedTensor& numbers, const TensorView& out) {
  const size_t pool_bytes = numbers.pool.num_bytes();
  auto* to = out.as<std::byte>();
  size_t from = static_cast<size_t>(numbers.first) * dtype_bytes(numbers.pool.dtype);
  for (size_t left = out.num_bytes(); left > 0; from = 0) {
    const size_t count = std::min(left, pool_bytes - from);
    std::memcpy(to, numbers.pool.as<std::byte>() + from, count);
    to += count;
    left -= count;
  }
}

// The scales of row `row` in F32, and its zero points.
struct RowScales {
  RowScales(const WeightView& matrix, int64_t row)
      : scales(num_scales(matrix)), zeros(scales.size()) {
    const int64_t scale_row = row / scale_block(matrix.scheme, matrix.values.shape)[0];
    const int64_t first = scale_row * matrix.scales.shape[1];
    for (size_t i = 0; i < scales.size(); ++i) {
      const int64_t at = first + static_cast<int64_t>(i);
      scales[i] = element_as_f32(matrix.scales, at);
      if (matrix.zeros.data != nullptr) zeros[i] = matrix.zeros.as<int8_t>()[at];
    }
  }
  static size_t num_scales(const WeightView& matrix) {
    return static_cast<size_t>(matrix.scales.shape[1]);
  }

  std::vector<float> scales;
  std::vector<int> zeros;
};

}  // namespace

std::string shape_text(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

std::vector<const GgufBlockType*> WeightSource::block_types() const {
  std::map<std::string_view, const GgufBlockType*> types;
  for (const std::string& name : names()) {
    if (const GgufBlockType* const type = block_type(name)) types.emplace(type->name, type);
  }
  std::vector<const GgufBlockType*> all;
  for (const auto& entry : types) all.push_back(entry.second);
  return all;
}

Result<BlockMatrix> WeightSource::blocks(std::string_view name, const Shape& /*expected*/) {
  return not_found(
      fmt::format("[weights] tensor {} is not stored in blocks", quote_name(name_in_file(name))));
}

Result<std::vector<int64_t>> WeightSource::integers(std::string_view name, int64_t count) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, tensor(name, {count}));
  std::vector<int64_t> numbers;
  if (view.dtype == DType::kI64) numbers.assign(view.as<int64_t>(), view.as<int64_t>() + count);
  if (view.dtype == DType::kI32) numbers.assign(view.as<int32_t>(), view.as<int32_t>() + count);
  release(name);
  if (view.dtype == DType::kI64 || view.dtype == DType::kI32) return numbers;
  return invalid_argument(
      fmt::format("[weights] tensor {} has the wrong type; got {}, expected i64 or i32",
                  quote_name(name_in_file(name)), dtype_name(view.dtype)));
}

std::unique_ptr<WeightSource> share_weights(std::unique_ptr<WeightSource> source, int num_readers) {
  if (num_readers <= 1) return source;
  return std::make_unique<SharedSource>(std::move(source), num_readers);
}

DummyWeights::DummyWeights(DType dtype) : dtype_(dtype) {}

bool DummyWeights::has(std::string_view name) const {
  return !ends_with_any(name, {".g_idx", ".weight_g_idx", ".weight_shape"});
}

std::optional<DType> DummyWeights::dtype_of(std::string_view name) const {
  return is_packed_name(name) ? DType::kI32 : dtype_;
}

Result<RepeatedTensor> DummyWeights::numbers_of(std::string_view name) {
  const bool is_norm = name.find("norm") != std::string_view::npos;
  Tensor& pool = is_packed_name(name)  ? packed_pool_
                 : is_scale_name(name) ? scale_pool_
                 : is_norm             ? norm_pool_
                                       : pool_;
  if (pool.view.data == nullptr && is_packed_name(name)) {
    QUIRE_ASSIGN_OR_RETURN(pool, make_packed_pool());
  } else if (pool.view.data == nullptr && is_scale_name(name)) {
    QUIRE_ASSIGN_OR_RETURN(pool, make_pool(dtype_, kMeanScale, 0.1F * kMeanScale));
  } else if (pool.view.data == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(pool, make_pool(dtype_, is_norm ? 1.0F : 0.0F, kStandardDeviation));
  }
  return RepeatedTensor{pool.view, static_cast<int64_t>(hash_name(name) % kPoolElements)};
}

Result<std::optional<RepeatedTensor>> DummyWeights::repeated(std::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(const RepeatedTensor numbers, numbers_of(name));
  return std::optional(numbers);
}

Result<TensorView> DummyWeights::tensor(std::string_view name, const Shape& expected) {
  QUIRE_ASSIGN_OR_RETURN(const RepeatedTensor numbers, numbers_of(name));
  QUIRE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::host(expected, numbers.pool.dtype));
  fill(numbers, tensor.view);
  const TensorView view = tensor.view;
  tensors_.insert_or_assign(std::string(name), std::move(tensor));
  return view;
}

Result<std::vector<int64_t>> DummyWeights::integers(std::string_view /*name*/, int64_t count) {
  return std::vector<int64_t>(static_cast<size_t>(count), 0);
}

void DummyWeights::release(std::string_view name) {
  tensors_.erase(std::string(name));
}

std::string_view values_name(const WeightScheme& scheme) {
  return is_integer(scheme) && scheme.bits == 4 ? "i4" : dtype_name(scheme.values);
}

std::string describe(const WeightScheme& scheme) {
  const std::string_view type = dtype_name(scheme.values);
  if (scheme.scales == ScaleLayout::kNone) return fmt::format("{} without scales", type);
  const bool has_integers = is_integer(scheme);
  std::string part = scheme.scales == ScaleLayout::kRows ? "row" : "tensor";
  if (scheme.scales == ScaleLayout::kBlocks) {
    part = has_integers ? fmt::format("group of {}", scheme.block_columns)
                        : fmt::format("block of {} x {}", scheme.block_rows, scheme.block_columns);
  }
  return fmt::format("{} with a scale{} per {}",
                     has_integers ? fmt::format("{}-bit integers", scheme.bits) : std::string(type),
                     scheme.has_zeros ? " and a zero point" : "", part);
}

Shape scale_block(const WeightScheme& scheme, const Shape& matrix) {
  switch (scheme.scales) {
    case ScaleLayout::kNone:
      break;
    case ScaleLayout::kTensor:
      return matrix;
    case ScaleLayout::kRows:
      return {1, matrix[1]};
    case ScaleLayout::kBlocks:
      QUIRE_CHECK(scheme.block_rows > 0 && scheme.block_columns > 0,
                  "[weights] a block of scales has no rows or columns");
      return {scheme.block_rows, scheme.block_columns};
  }
  QUIRE_CHECK(false, "[weights] scale_block() needs a scheme with scales");
}

Shape scales_shape(const WeightScheme& scheme, const Shape& matrix) {
  const Shape block = scale_block(scheme, matrix);
  return {(matrix[0] + block[0] - 1) / block[0], (matrix[1] + block[1] - 1) / block[1]};
}

DType plain_dtype(const WeightScheme& scheme) {
  if (scheme.scales == ScaleLayout::kNone) return scheme.values;
  return scheme.dequantized_dtype == DType::kBF16 ? DType::kBF16 : DType::kF32;
}

void write_plain_row(const WeightView& matrix, int64_t row, std::byte* out) {
  const int64_t num_columns = matrix.values.shape[1];
  if (matrix.scheme.scales == ScaleLayout::kNone) {
    const TensorView numbers = matrix.values.rows(row, 1);
    std::memcpy(out, numbers.data, numbers.num_bytes());
    return;
  }
  const int64_t columns_per_scale = scale_block(matrix.scheme, matrix.values.shape)[1];
  const RowScales row_scales(matrix, row);
  const bool has_integers = is_integer(matrix.scheme);
  const auto* const order = matrix.order.as<int32_t>();
  const uint8_t* values = matrix.values.as<uint8_t>() + row * num_columns;
  const bool is_bf16 = plain_dtype(matrix.scheme) == DType::kBF16;
  for (int64_t i = 0; i < num_columns; ++i) {
    const auto group = static_cast<size_t>(i / columns_per_scale);
    const float value =
        has_integers ? static_cast<float>(static_cast<int8_t>(values[i]) - row_scales.zeros[group])
                     : e4m3_to_f32(values[i]);
    const float product = value * row_scales.scales[group];  // BF16 output is rounded once more
    const int64_t column = order == nullptr ? i : order[i];
    if (is_bf16) {
      reinterpret_cast<uint16_t*>(out)[column] = f32_to_bf16(product);
    } else {
      reinterpret_cast<float*>(out)[column] = product;
    }
  }
}

}  // namespace quire
