#include "cuda/ops/cuda_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/numbers.h"

namespace quire::cuda {
namespace {

constexpr size_t kSlotBytes = size_t{16} << 20;
// One core reads page-cached files at about a quarter of the PCIe bandwidth.
constexpr int kNumThreads = 6;
constexpr int64_t kPieceBytes = int64_t{1} << 20;  // bytes that a thread copies at a time

void copy_in_pieces(ThreadPool& threads, const void* from, void* to, int64_t num_bytes) {
  threads.parallel_for(ceil_div(num_bytes, kPieceBytes), [&](int64_t piece) {
    const int64_t at = piece * kPieceBytes;
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
                static_cast<size_t>(std::min(kPieceBytes, num_bytes - at)));
  });
}

TensorView flat_part(const TensorView& view, int64_t first, int64_t count) {
  const TensorView flat = {view.data, view.dtype, {view.shape.num_elements()}};
  return flat.rows(first, count);
}

// Rows of a checkpoint's blocks with one scale; their columns are kScaleColumns.
constexpr int64_t kStoredScaleRows = 128;

bool is_fp8(const WeightScheme& scheme) {
  return scheme.values == DType::kF8E4M3;
}

Status check_shape(const Shape& shape, int64_t in_features) {
  if (shape.rank() == 2 && shape[0] > 0 && shape[1] == in_features && in_features > 0) return {};
  return invalid_argument(
      fmt::format("[ops] a block of weights has the wrong shape; got rank {} and {} x {}, "
                  "expected rank 2 and {} columns",
                  shape.rank(), shape[0], shape[1], in_features));
}

Status check_scale_shape(const WeightView& matrix) {
  if (matrix.scheme.scales == ScaleLayout::kNone) return {};
  const Shape expected = scales_shape(matrix.scheme, matrix.values.shape);
  const TensorView& scales = matrix.scales;
  if (scales.data != nullptr && is_weight_dtype(scales.dtype) && scales.shape == expected) {
    return {};
  }
  return invalid_argument(
      fmt::format("[ops] the scales of a block of weights do not fit; got {} of shape {}, expected "
                  "f32, f16 or bf16 of shape {}",
                  dtype_name(scales.dtype), shape_text(scales.shape), shape_text(expected)));
}

// One block of a source, in one of its two forms.
struct Block {
  const WeightView* memory = nullptr;
  const RepeatedRows* repeated = nullptr;

  const Shape& shape() const { return memory != nullptr ? memory->values.shape : repeated->shape; }
  WeightScheme scheme() const {
    return memory != nullptr ? memory->scheme : WeightScheme{.values = repeated->pool.dtype};
  }
};

std::vector<Block> blocks_of(const LinearSource& source) {
  std::vector<Block> blocks;
  for (const WeightView& view : source.weights) blocks.push_back({.memory = &view});
  for (const RepeatedRows& rows : source.repeated) blocks.push_back({.repeated = &rows});
  return blocks;
}

Status check_blocks(std::span<const Block> blocks) {
  const Shape& first = blocks.front().shape();
  const int64_t in_features = first.rank() == 2 ? first[1] : 0;
  const WeightScheme scheme = blocks.front().scheme();
  for (const Block& block : blocks) {
    QUIRE_RETURN_IF_ERROR(check_scheme(block.scheme()));
    QUIRE_RETURN_IF_ERROR(check_shape(block.shape(), in_features));
    if (block.memory != nullptr) QUIRE_RETURN_IF_ERROR(check_scale_shape(*block.memory));
    // Values without scales may differ in type, because all are converted to one.
    const bool has_scales = is_fp8(scheme) || is_fp8(block.scheme());
    if (has_scales && block.scheme() != scheme) {
      return invalid_argument(
          fmt::format("[ops] the matrices of a Linear have different schemes; got {} and {}",
                      describe(scheme), describe(block.scheme())));
    }
  }
  return {};
}

// The checked blocks of a source.
Result<std::vector<Block>> checked_blocks(const LinearSource& source) {
  std::vector<Block> blocks = blocks_of(source);
  if (blocks.empty() || (!source.weights.empty() && !source.repeated.empty())) {
    return invalid_argument(
        "[ops] a Linear needs blocks of weights, either all in memory or all repeated");
  }
  QUIRE_RETURN_IF_ERROR(check_blocks(blocks));
  return blocks;
}

DType kept_dtype(std::span<const Block> blocks, DType dtype) {
  return is_fp8(blocks.front().scheme()) ? DType::kF8E4M3 : dtype;
}

int64_t num_rows_of(std::span<const Block> blocks) {
  int64_t num_rows = 0;
  for (const Block& block : blocks) num_rows += block.shape()[0];
  return num_rows;
}

// Uploads the blocks to `weights`, and their scales to `scales` unless its data is null.
Status upload_blocks(const LinearSource& source, std::span<const Block> blocks,
                     const TensorView& weights, const TensorView& scales, WeightUpload& upload) {
  int64_t first = 0;
  for (const Block& block : blocks) {
    const TensorView rows = weights.rows(first, block.shape()[0]);
    QUIRE_RETURN_IF_ERROR(block.memory != nullptr ? upload.upload(block.memory->values, rows)
                                                  : upload.fill(*block.repeated, rows));
    first += block.shape()[0];
  }
  if (scales.data == nullptr) return {};
  const ScalesLayout layout = scales_layout(source.weights);
  QUIRE_CHECK(layout.shape == scales.shape, "[ops] the scales of a matrix have the wrong shape");
  std::vector<float> numbers = stacked_scales(source.weights, layout);
  return upload.upload({numbers.data(), DType::kF32, scales.shape}, scales);
}

Result<Tensor> load_bias(std::span<const TensorView> biases, std::span<const Block> blocks,
                         const TensorView& weights, DType dtype, WeightUpload& upload,
                         CudaStream& stream) {
  if (biases.size() != blocks.size()) {
    return invalid_argument("[ops] a Linear needs as many blocks of bias as of weights, or none");
  }
  QUIRE_ASSIGN_OR_RETURN(Tensor device, device_tensor({weights.shape[0]}, dtype));
  stream.set_zero(device.view.data, device.view.num_bytes());
  int64_t first = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const TensorView& bias = biases[i];
    const int64_t count = blocks[i].shape()[0];
    if (!is_weight_dtype(bias.dtype) || bias.shape.num_elements() != count) {
      return invalid_argument(
          fmt::format("[ops] a block of bias has the wrong size; got {} numbers, expected {}",
                      bias.shape.num_elements(), count));
    }
    if (bias.data != nullptr) {
      QUIRE_RETURN_IF_ERROR(upload.upload(bias, device.view.rows(first, count)));
    }
    first += count;
  }
  return device;
}

}  // namespace

Status WeightUpload::start() {
  if (staging_.has_value()) return {};
  QUIRE_ASSIGN_OR_RETURN(PinnedRing ring, PinnedRing::create(kSlotBytes));
  staging_.emplace(std::move(ring));
  threads_.emplace(std::min(kNumThreads, static_cast<int>(std::thread::hardware_concurrency())));
  return {};
}

Status WeightUpload::upload(const TensorView& host, const TensorView& device) {
  QUIRE_RETURN_IF_ERROR(start());
  const auto slot_elements = static_cast<int64_t>(kSlotBytes / dtype_bytes(host.dtype));
  const int64_t total = host.shape.num_elements();
  for (int64_t first = 0; first < total; first += slot_elements) {
    const int64_t count = std::min(slot_elements, total - first);
    const TensorView part = flat_part(host, first, count);
    const TensorView to = flat_part(device, first, count);
    QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, staging_->begin(*context_.stream));
    copy_in_pieces(*threads_, part.data, slot, static_cast<int64_t>(part.num_bytes()));
    if (host.dtype == device.dtype) {
      context_.stream->copy_to_device(to.data, slot, part.num_bytes());
    } else {
      run_convert(context_, {slot, host.dtype, part.shape}, to);
    }
    staging_->end(*context_.stream);
  }
  return {};
}

Status WeightUpload::fill(const RepeatedRows& rows, const TensorView& device) {
  if (pool_.num_bytes() < rows.pool.num_bytes()) {
    QUIRE_ASSIGN_OR_RETURN(pool_, device_memory(rows.pool.num_bytes()));
  }
  QUIRE_RETURN_IF_ERROR(upload(rows.pool, {pool_.data(), rows.pool.dtype, rows.pool.shape}));
  run_fill_repeated(context_, rows, pool_.data(), device);
  return {};
}

Status WeightUpload::release() {
  const Status done = context_.stream->synchronize();
  threads_.reset();
  staging_.reset();
  pool_ = Buffer();
  return done;
}

Result<Tensor> device_tensor(const Shape& shape, DType dtype) {
  const auto num_bytes = static_cast<size_t>(shape.num_elements()) * dtype_bytes(dtype);
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(num_bytes));
  void* data = buffer.data();
  return Tensor{std::move(buffer), {data, dtype, shape}};
}

ScalesLayout scales_layout(std::span<const WeightView> matrices) {
  const bool has_blocks = matrices.front().scheme.scales == ScaleLayout::kBlocks;
  int64_t num_rows = 0;
  int64_t scale_rows = kStoredScaleRows;
  for (const WeightView& matrix : matrices) {
    scale_rows = std::gcd(scale_rows, num_rows);
    num_rows += matrix.values.shape[0];
  }
  if (!has_blocks) return {{num_rows}, 0};
  const int64_t columns = num_scale_columns(matrices.front().values.shape[1]);
  return {{ceil_div(num_rows, scale_rows), columns}, scale_rows};
}

std::vector<float> stacked_scales(std::span<const WeightView> matrices,
                                  const ScalesLayout& layout) {
  const int64_t step = std::max<int64_t>(layout.scale_rows, 1);
  std::vector<float> scales;
  for (const WeightView& matrix : matrices) {
    const Shape& shape = matrix.values.shape;
    const int64_t rows_per_scale = scale_block(matrix.scheme, shape)[0];
    const int64_t columns = matrix.scales.shape[1];
    for (int64_t row = 0; row < shape[0]; row += step) {
      for (int64_t column = 0; column < columns; ++column) {
        scales.push_back(element_as_f32(matrix.scales, row / rows_per_scale * columns + column));
      }
    }
  }
  return scales;
}

Status check_scheme(const WeightScheme& scheme) {
  const bool has_row_scales =
      scheme.scales == ScaleLayout::kTensor || scheme.scales == ScaleLayout::kRows;
  const bool has_block_scales = scheme.scales == ScaleLayout::kBlocks &&
                                scheme.block_rows == kStoredScaleRows &&
                                scheme.block_columns == kScaleColumns;
  if (is_fp8(scheme) && (has_row_scales || has_block_scales)) return {};
  if (scheme.scales != ScaleLayout::kNone) {
    return unimplemented(
        fmt::format("[ops] unsupported weight scheme on a GPU; got {}, expected f32, f16 or bf16 "
                    "without scales, or fp8_e4m3 with a scale per tensor, per row or per block of "
                    "128 x 128; use --device cpu, or another checkpoint of the model",
                    describe(scheme)));
  }
  if (is_weight_dtype(scheme.values)) return {};
  return invalid_argument(
      fmt::format("[ops] unsupported weight type; got {}, expected f32, f16 or bf16",
                  dtype_name(scheme.values)));
}

Result<DType> kept_dtype(const LinearSource& source, DType dtype) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Block> blocks, checked_blocks(source));
  return kept_dtype(blocks, dtype);
}

Status upload_matrix(const LinearSource& source, const TensorView& weights,
                     const TensorView& scales, WeightUpload& upload) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Block> blocks, checked_blocks(source));
  const Shape got = {num_rows_of(blocks), blocks.front().shape()[1]};
  if (got != weights.shape || !source.biases.empty()) {
    return invalid_argument(fmt::format(
        "[ops] a matrix has the wrong shape, or a bias; got {}, expected {} without a bias",
        shape_text(got), shape_text(weights.shape)));
  }
  return upload_blocks(source, blocks, weights, scales, upload);
}

Result<std::unique_ptr<CudaLinear>> CudaLinear::load(const LinearSource& source, DType dtype,
                                                     WeightUpload& upload, CudaStream& stream) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Block> blocks, checked_blocks(source));
  std::unique_ptr<CudaLinear> linear(new CudaLinear());
  const DType kept = kept_dtype(blocks, dtype);
  const int64_t num_rows = num_rows_of(blocks);
  QUIRE_ASSIGN_OR_RETURN(linear->weights_,
                         device_tensor({num_rows, blocks.front().shape()[1]}, kept));
  if (kept == DType::kF8E4M3) {
    const ScalesLayout layout = scales_layout(source.weights);
    QUIRE_ASSIGN_OR_RETURN(linear->scales_, device_tensor(layout.shape, DType::kF32));
    linear->scale_rows_ = layout.scale_rows;
  }
  QUIRE_RETURN_IF_ERROR(
      upload_blocks(source, blocks, linear->weights_.view, linear->scales_.view, upload));
  if (source.biases.empty()) return linear;
  QUIRE_ASSIGN_OR_RETURN(linear->bias_, load_bias(source.biases, blocks, linear->weights_.view,
                                                  dtype, upload, stream));
  return linear;
}

}  // namespace quire::cuda
