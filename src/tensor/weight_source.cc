#include "tensor/weight_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/numbers.h"

namespace quire {
namespace {

class PrefixedSource final : public WeightSource {
 public:
  PrefixedSource(std::unique_ptr<WeightSource> source, std::string prefix)
      : source_(std::move(source)), prefix_(std::move(prefix)) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    return source_->tensor(stored_name(name), expected);
  }
  bool has(std::string_view name) const override { return source_->has(stored_name(name)); }
  std::optional<DType> dtype_of(std::string_view name) const override {
    return source_->dtype_of(stored_name(name));
  }
  std::string file_of(std::string_view name) const override {
    return source_->file_of(stored_name(name));
  }
  const GgufBlockType* block_type(std::string_view name) const override {
    return source_->block_type(stored_name(name));
  }
  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override {
    return source_->blocks(stored_name(name), expected);
  }
  void release(std::string_view name) override { source_->release(stored_name(name)); }
  std::vector<std::string> names() const override {
    std::vector<std::string> all = source_->names();
    for (std::string& name : all) name.insert(0, prefix_);
    return all;
  }

 private:
  std::string_view stored_name(std::string_view name) const {
    return name.starts_with(prefix_) ? name.substr(prefix_.size()) : name;
  }

  std::unique_ptr<WeightSource> source_;
  std::string prefix_;
};

// Tensors repeat one pool, because copying is the only way to fill gigabytes at the speed of
// memory, and a device can fill them from the pool alone. The pool's length is prime so that rows
// of round lengths do not repeat each other.
constexpr size_t kPoolElements = 524287;
constexpr float kStandardDeviation = 0.02F;

uint64_t hash_name(std::string_view name) {  // FNV-1a
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return mix(hash);
}

// Approximately normal: the sum of eight uniform bytes.
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
      QUIRE_CHECK(false, "[weights] the type of dummy weights is none of f32, f16 and bf16");
  }
}

Result<Tensor> make_pool(DType dtype, float mean) {
  QUIRE_ASSIGN_OR_RETURN(Tensor pool, Tensor::host({int64_t{kPoolElements}}, dtype));
  for (size_t i = 0; i < kPoolElements; ++i) {
    store(pool.view, i, mean + kStandardDeviation * normal_like(mix(i)));
  }
  return pool;
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

}  // namespace

std::string shape_text(const Shape& shape) {
  std::vector<int64_t> dims;
  for (int axis = 0; axis < shape.rank(); ++axis) dims.push_back(shape[axis]);
  return fmt::format("[{}]", fmt::join(dims, ", "));
}

Result<BlockMatrix> WeightSource::blocks(std::string_view name, const Shape& /*expected*/) {
  return not_found(fmt::format("[model] tensor {} is not stored in blocks", quote_name(name)));
}

Result<std::vector<int64_t>> WeightSource::integers(std::string_view name, int64_t count) {
  QUIRE_ASSIGN_OR_RETURN(const TensorView view, tensor(name, {count}));
  std::vector<int64_t> numbers;
  if (view.dtype == DType::kI64) numbers.assign(view.as<int64_t>(), view.as<int64_t>() + count);
  if (view.dtype == DType::kI32) numbers.assign(view.as<int32_t>(), view.as<int32_t>() + count);
  release(name);
  if (view.dtype == DType::kI64 || view.dtype == DType::kI32) return numbers;
  return invalid_argument(
      fmt::format("[weights] tensor {} has another type than whole numbers; got "
                  "{}, expected i64 or i32",
                  quote_name(name), dtype_name(view.dtype)));
}

std::unique_ptr<WeightSource> add_name_prefix(std::unique_ptr<WeightSource> source,
                                              std::string prefix) {
  return std::make_unique<PrefixedSource>(std::move(source), std::move(prefix));
}

DummyWeights::DummyWeights(DType dtype) : dtype_(dtype) {}

Result<RepeatedTensor> DummyWeights::numbers_of(std::string_view name) {
  const bool is_norm = name.find("norm") != std::string_view::npos;
  Tensor& pool = is_norm ? norm_pool_ : pool_;
  if (pool.view.data == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(pool, make_pool(dtype_, is_norm ? 1.0F : 0.0F));
  }
  return RepeatedTensor{pool.view, static_cast<int64_t>(hash_name(name) % kPoolElements)};
}

Result<std::optional<RepeatedTensor>> DummyWeights::repeated(std::string_view name) {
  QUIRE_ASSIGN_OR_RETURN(const RepeatedTensor numbers, numbers_of(name));
  return std::optional(numbers);
}

Result<TensorView> DummyWeights::tensor(std::string_view name, const Shape& expected) {
  QUIRE_ASSIGN_OR_RETURN(const RepeatedTensor numbers, numbers_of(name));
  QUIRE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::host(expected, dtype_));
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

std::string describe(const WeightScheme& scheme) {
  const std::string_view values = dtype_name(scheme.values);
  switch (scheme.scales) {
    case ScaleLayout::kNone:
      return fmt::format("{} without scales", values);
    case ScaleLayout::kTensor:
      return fmt::format("{} with a scale per tensor", values);
    case ScaleLayout::kRows:
      return fmt::format("{} with a scale per row", values);
    case ScaleLayout::kBlocks:
      return fmt::format("{} with a scale per block of {} x {}", values, scheme.block_rows,
                         scheme.block_columns);
  }
  return std::string(values);
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
  QUIRE_CHECK(false, "[weights] a matrix has no scales, so no blocks that share one");
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
  const Shape block = scale_block(matrix.scheme, matrix.values.shape);
  std::vector<float> scales(static_cast<size_t>(matrix.scales.shape[1]));
  const TensorView scales_row = matrix.scales.rows(row / block[0], 1);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = element_as_f32(scales_row, static_cast<int64_t>(i));
  }
  const uint8_t* values = matrix.values.as<uint8_t>() + row * num_columns;
  const bool is_bf16 = plain_dtype(matrix.scheme) == DType::kBF16;
  for (int64_t column = 0; column < num_columns; ++column) {
    const float scale = scales[static_cast<size_t>(column / block[1])];
    const float product = e4m3_to_f32(values[column]) * scale;  // rounded once
    if (is_bf16) {
      reinterpret_cast<uint16_t*>(out)[column] = f32_to_bf16(product);
    } else {
      reinterpret_cast<float*>(out)[column] = product;
    }
  }
}

}  // namespace quire
