#include "cuda/gemm/dense/cuda_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/machine.h"
#include "base/numbers.h"
#include "cuda/gemm/packed/packed_matrices.h"
#include "tensor/finite.h"

namespace quire::cuda {
namespace {

constexpr size_t kSlotBytes = size_t{16} << 20;
// One core reads page-cached files at about a quarter of the PCIe bandwidth.
constexpr int kNumThreads = 6;
constexpr int64_t kPieceBytes = int64_t{1} << 20;  // bytes that a thread copies at a time
// Bytes of rows that are quantized at a time. They stay in the L2 between the kernel that writes
// them and the kernel that quantizes them.
constexpr int64_t kStagedBytes = int64_t{32} << 20;

TensorView flat_part(const TensorView& view, int64_t first, int64_t count) {
  const TensorView flat = {view.data, view.dtype, {view.shape.num_elements()}};
  return flat.rows(first, count);
}

// With `checks`, returns whether all elements are finite. Otherwise returns true.
bool copy_in_pieces(ThreadPool& threads, const TensorView& from, std::byte* to, bool checks) {
  const auto element_bytes = static_cast<int64_t>(dtype_bytes(from.dtype));
  const int64_t piece_elements = kPieceBytes / element_bytes;
  const int64_t total = from.shape.num_elements();
  std::atomic<bool> is_finite = true;
  threads.parallel_for(ceil_div(total, piece_elements), [&](int64_t piece) {
    const int64_t first = piece * piece_elements;
    const TensorView part = flat_part(from, first, std::min(piece_elements, total - first));
    if (checks && !all_finite(part)) is_finite = false;
    std::memcpy(to + first * element_bytes, part.data, part.num_bytes());
  });
  return is_finite;
}

// The rows of a checkpoint's block that has one scale. Such a block has kScaleColumns columns.
constexpr int64_t kStoredScaleRows = 128;

bool is_fp8(const WeightScheme& scheme) {
  return scheme.values == DType::kF8E4M3;
}

Status check_shape(const Shape& shape, int64_t num_columns) {
  if (shape.rank() == 2 && shape[0] > 0 && shape[1] == num_columns && num_columns > 0) return {};
  return invalid_argument(
      fmt::format("[ops] a block of weights has the wrong shape; got rank {} and {} x {}, "
                  "expected rank 2 and {} columns",
                  shape.rank(), shape[0], shape[1], num_columns));
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

// One block of a source, either in memory or repeated rows.
struct Block {
  const WeightView* memory = nullptr;
  const RepeatedRows* repeated = nullptr;
  std::optional<Slice> quantized_columns = {};  // MatricesToQuantize::columns; absent: as stored

  // The shape in the source.
  const Shape& stored_shape() const {
    return memory != nullptr ? memory->values.shape : repeated->shape;
  }
  WeightScheme stored_scheme() const {
    return memory != nullptr ? memory->scheme : WeightScheme{.values = repeated->pool.dtype};
  }
  // The shape on the device.
  Shape shape() const {
    if (!quantized_columns) return stored_shape();
    return {stored_shape()[0], quantized_columns->count};
  }
  WeightScheme scheme() const {
    if (!quantized_columns) return stored_scheme();
    return {.values = DType::kF8E4M3, .scales = ScaleLayout::kRows};
  }
};

void add_blocks(const StoredMatrices& matrices, const std::optional<Slice>& quantized_columns,
                std::vector<Block>& blocks) {
  for (const WeightView& view : matrices.each) {
    blocks.push_back({.memory = &view, .quantized_columns = quantized_columns});
  }
}

void add_blocks(const RepeatedMatrices& matrices, const std::optional<Slice>& quantized_columns,
                std::vector<Block>& blocks) {
  for (const RepeatedRows& rows : matrices.each) {
    blocks.push_back({.repeated = &rows, .quantized_columns = quantized_columns});
  }
}

// The matrices of a source that does not stay packed.
std::vector<Block> blocks_of(const LinearSource& source) {
  std::vector<Block> blocks;
  if (const auto* stored = std::get_if<StoredMatrices>(&source.numbers)) {
    add_blocks(*stored, {}, blocks);
  } else if (const auto* repeated = std::get_if<RepeatedMatrices>(&source.numbers)) {
    add_blocks(*repeated, {}, blocks);
  } else if (const auto* plain = std::get_if<MatricesToQuantize>(&source.numbers)) {
    std::visit([&](const auto& from) { add_blocks(from, plain->columns, blocks); }, plain->from);
  }
  return blocks;
}

Status check_quantized(const Block& block) {
  if (!block.quantized_columns) return {};
  const Slice& columns = *block.quantized_columns;
  const int64_t num_columns = block.stored_shape()[1];
  const bool fits = columns.first >= 0 && columns.count > 0 && columns.count <= num_columns &&
                    columns.first <= num_columns - columns.count;
  if (fits && block.stored_scheme().scales == ScaleLayout::kNone) return {};
  return invalid_argument(fmt::format(
      "[ops] a block of weights cannot be quantized; got columns {} to {} of {} in {}, "
      "expected columns of values without scales",
      columns.first, columns.first + columns.count, num_columns, describe(block.stored_scheme())));
}

Status check_blocks(std::span<const Block> blocks) {
  const Shape& first = blocks.front().stored_shape();
  const int64_t num_columns = first.rank() == 2 ? first[1] : 0;
  const WeightScheme scheme = blocks.front().scheme();
  for (const Block& block : blocks) {
    QUIRE_RETURN_IF_ERROR(check_scheme(block.stored_scheme()));
    QUIRE_RETURN_IF_ERROR(check_shape(block.stored_shape(), num_columns));
    QUIRE_RETURN_IF_ERROR(check_quantized(block));
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

// Returns the blocks of a source after checking them.
Result<std::vector<Block>> checked_blocks(const LinearSource& source) {
  std::vector<Block> blocks = blocks_of(source);
  if (blocks.empty()) return invalid_argument("[ops] a Linear needs blocks of weights");
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

Status upload_block(const Block& block, const TensorView& rows, WeightUpload& upload) {
  if (block.memory != nullptr) return upload.upload(block.memory->values, rows);
  return upload.fill(*block.repeated, rows);
}

Status quantize_block(const Block& block, const TensorView& rows, const TensorView& scales,
                      WeightUpload& upload) {
  const QuantizedRows device = {rows, scales, *block.quantized_columns};
  if (block.memory != nullptr) return upload.quantize(block.memory->values, device);
  return upload.quantize(*block.repeated, device);
}

// Uploads the blocks to `weights`, and their scales to `scales` unless its data is null.
Status upload_blocks(const LinearSource& source, std::span<const Block> blocks,
                     const TensorView& weights, const TensorView& scales, WeightUpload& upload) {
  const ScalesLayout layout = scales.data == nullptr ? ScalesLayout{} : scales_layout(source);
  QUIRE_CHECK(layout.shape == scales.shape, "[ops] the scales of a matrix have the wrong shape");
  int64_t first = 0;
  for (const Block& block : blocks) {
    const int64_t count = block.shape()[0];
    const TensorView rows = weights.rows(first, count);
    QUIRE_RETURN_IF_ERROR(block.quantized_columns
                              ? quantize_block(block, rows, scales.rows(first, count), upload)
                              : upload_block(block, rows, upload));
    first += count;
  }
  const auto* const stored = std::get_if<StoredMatrices>(&source.numbers);
  if (scales.data == nullptr || stored == nullptr) return {};
  std::vector<float> numbers = stacked_scales(stored->each, layout);
  return upload.upload({numbers.data(), DType::kF32, scales.shape}, scales);
}

// The numbers of rows of the source's matrices.
Result<std::vector<int64_t>> row_counts(const LinearSource& source) {
  std::vector<int64_t> counts;
  if (is_quantized(source)) {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<QuantizedMatrix> matrices, quantized_matrices(source));
    for (const QuantizedMatrix& matrix : matrices) counts.push_back(matrix.num_rows());
  } else {
    QUIRE_ASSIGN_OR_RETURN(const std::vector<Block> blocks, checked_blocks(source));
    for (const Block& block : blocks) counts.push_back(block.shape()[0]);
  }
  return counts;
}

}  // namespace

Status WeightUpload::start() {
  if (staging_.has_value()) return {};
  QUIRE_ASSIGN_OR_RETURN(PinnedRing ring, PinnedRing::create(kSlotBytes));
  staging_.emplace(std::move(ring));
  threads_.emplace(std::min(kNumThreads, num_usable_cpus()));
  return {};
}

Status WeightUpload::upload(const TensorView& host, const TensorView& device) {
  return copy(host, device, Check::kNone);
}

Status WeightUpload::copy(const TensorView& host, const TensorView& device, Check check) {
  QUIRE_RETURN_IF_ERROR(start());
  const auto slot_elements = static_cast<int64_t>(kSlotBytes / dtype_bytes(host.dtype));
  const int64_t total = host.shape.num_elements();
  for (int64_t first = 0; first < total; first += slot_elements) {
    const int64_t count = std::min(slot_elements, total - first);
    const TensorView part = flat_part(host, first, count);
    const TensorView to = flat_part(device, first, count);
    QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, staging_->begin(*context_.stream));
    const bool is_finite = copy_in_pieces(*threads_, part, slot, check == Check::kFinite);
    if (host.dtype == device.dtype) {
      context_.stream->copy_to_device(to.data, slot, part.num_bytes());
    } else {
      run_convert(context_, {slot, host.dtype, part.shape}, to);
    }
    staging_->end(*context_.stream);
    if (is_finite || check == Check::kNone) continue;
    return invalid_argument(
        "[ops] weights cannot be quantized; got an infinity or a NaN, expected finite numbers");
  }
  return {};
}

Status WeightUpload::upload_pool(const TensorView& pool) {
  if (pool_.num_bytes() < pool.num_bytes()) {
    QUIRE_ASSIGN_OR_RETURN(pool_, device_memory(pool.num_bytes()));
  }
  return upload(pool, {pool_.data(), pool.dtype, pool.shape});
}

Status WeightUpload::fill(const RepeatedRows& rows, const TensorView& device) {
  QUIRE_RETURN_IF_ERROR(upload_pool(rows.pool));
  run_fill_repeated(context_, rows, pool_.data(), device);
  return {};
}

template <class Stage>
Status WeightUpload::quantize_staged(const Shape& shape, DType dtype, const QuantizedRows& device,
                                     const Stage& stage) {
  const int64_t row_bytes = shape[1] * static_cast<int64_t>(dtype_bytes(dtype));
  const int64_t max_rows = std::clamp<int64_t>(kStagedBytes / row_bytes, 1, shape[0]);
  if (static_cast<int64_t>(staged_rows_.num_bytes()) < max_rows * row_bytes) {
    const int64_t num_bytes = std::max(kStagedBytes, row_bytes);
    QUIRE_ASSIGN_OR_RETURN(staged_rows_, device_memory(static_cast<size_t>(num_bytes)));
  }
  for (int64_t first = 0; first < shape[0]; first += max_rows) {
    const int64_t count = std::min(max_rows, shape[0] - first);
    const TensorView part = {staged_rows_.data(), dtype, {count, shape[1]}};
    QUIRE_RETURN_IF_ERROR(stage(first, part));
    run_quantize_weights(context_, part, device.columns, device.values.rows(first, count),
                         device.scales.rows(first, count));
  }
  return {};
}

Status WeightUpload::quantize(const TensorView& host, const QuantizedRows& device) {
  return quantize_staged(host.shape, host.dtype, device,
                         [&](int64_t first, const TensorView& part) {
                           return copy(host.rows(first, part.shape[0]), part, Check::kFinite);
                         });
}

Status WeightUpload::quantize(const RepeatedRows& rows, const QuantizedRows& device) {
  QUIRE_RETURN_IF_ERROR(upload_pool(rows.pool));
  return quantize_staged(rows.shape, rows.pool.dtype, device,
                         [&](int64_t first, const TensorView& part) {
                           RepeatedRows numbers = rows;
                           numbers.first += first * rows.row_stride;
                           run_fill_repeated(context_, numbers, pool_.data(), part);
                           return Status();
                         });
}

Status WeightUpload::make(int64_t num_pieces, int64_t piece_bytes, std::byte* device,
                          const std::function<void(int64_t i, std::byte* piece)>& write) {
  QUIRE_RETURN_IF_ERROR(start());
  if (!makers_) makers_.emplace(num_usable_cpus());
  const int64_t in_slot = static_cast<int64_t>(kSlotBytes) / piece_bytes;
  if (in_slot == 0) {
    return unimplemented(
        fmt::format("[ops] 32 rows of a matrix take {} bytes once packed; expected "
                    "at most {}, the staging memory",
                    piece_bytes, kSlotBytes));
  }
  for (int64_t first = 0; first < num_pieces; first += in_slot) {
    const int64_t count = std::min(in_slot, num_pieces - first);
    QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, staging_->begin(*context_.stream));
    makers_->parallel_for(count, [&](int64_t i) {
      std::byte* const piece = slot + i * piece_bytes;
      std::memset(piece, 0, static_cast<size_t>(piece_bytes));
      write(first + i, piece);
    });
    context_.stream->copy_to_device(device + first * piece_bytes, slot,
                                    static_cast<size_t>(count * piece_bytes));
    staging_->end(*context_.stream);
  }
  return {};
}

Status WeightUpload::release() {
  const Status done = context_.stream->synchronize();
  threads_.reset();
  makers_.reset();
  staging_.reset();
  pool_ = Buffer();
  staged_rows_ = Buffer();
  return done;
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

ScalesLayout scales_layout(const LinearSource& source) {
  const auto* const stored = std::get_if<StoredMatrices>(&source.numbers);
  if (stored != nullptr) return scales_layout(stored->each);
  return {{num_rows_of(blocks_of(source))}, 0};
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
                    "128 x 128; use `device` cpu, or another checkpoint of the model",
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
  if (got != weights.shape) {
    return invalid_argument(fmt::format("[ops] a matrix has the wrong shape; got {}, expected {}",
                                        shape_text(got), shape_text(weights.shape)));
  }
  return upload_blocks(source, blocks, weights, scales, upload);
}

Status upload_biases(const LinearSource& source, const TensorView& bias, WeightUpload& upload) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, row_counts(source));
  if (source.biases.size() != counts.size()) {
    return invalid_argument("[ops] a Linear needs as many blocks of bias as of weights, or none");
  }
  int64_t first = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    TensorView block = source.biases[i];
    std::vector<float> zeros;
    if (block.data == nullptr) {
      zeros.resize(static_cast<size_t>(counts[i]));
      block = {zeros.data(), DType::kF32, {counts[i]}};
    }
    if (!is_weight_dtype(block.dtype) || block.shape.num_elements() != counts[i]) {
      return invalid_argument(
          fmt::format("[ops] a block of bias has the wrong size; got {} numbers, expected {}",
                      block.shape.num_elements(), counts[i]));
    }
    QUIRE_RETURN_IF_ERROR(upload.upload(block, bias.rows(first, counts[i])));
    first += counts[i];
  }
  return {};
}

Result<std::unique_ptr<CudaLinear>> CudaLinear::load(const LinearSource& source, DType dtype,
                                                     WeightUpload& upload) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Block> blocks, checked_blocks(source));
  std::unique_ptr<CudaLinear> linear(new CudaLinear());
  const DType kept = kept_dtype(blocks, dtype);
  const int64_t num_rows = num_rows_of(blocks);
  QUIRE_ASSIGN_OR_RETURN(linear->weights_,
                         device_tensor({num_rows, blocks.front().shape()[1]}, kept));
  if (kept == DType::kF8E4M3) {
    const ScalesLayout layout = scales_layout(source);
    QUIRE_ASSIGN_OR_RETURN(linear->scales_, device_tensor(layout.shape, DType::kF32));
    linear->scale_rows_ = layout.scale_rows;
  }
  QUIRE_RETURN_IF_ERROR(
      upload_blocks(source, blocks, linear->weights_.view, linear->scales_.view, upload));
  QUIRE_RETURN_IF_ERROR(linear->load_bias(source, dtype, upload));
  return linear;
}

Result<std::unique_ptr<CudaLinear>> CudaLinear::load_packed(const LinearSource& source, DType dtype,
                                                            WeightUpload& upload) {
  QUIRE_ASSIGN_OR_RETURN(PackedMatrices packed, PackedMatrices::allocate(source));
  QUIRE_RETURN_IF_ERROR(packed.load(0, source, upload));
  std::unique_ptr<CudaLinear> linear(new CudaLinear());
  linear->weights_.view = {nullptr, DType::kI8, {packed.num_rows(), packed.num_columns()}};
  linear->packed_ = std::make_unique<PackedMatrices>(std::move(packed));
  QUIRE_RETURN_IF_ERROR(linear->load_bias(source, dtype, upload));
  return linear;
}

Status CudaLinear::load_bias(const LinearSource& source, DType dtype, WeightUpload& upload) {
  if (source.biases.empty()) return {};
  QUIRE_ASSIGN_OR_RETURN(bias_, device_tensor({out_features()}, dtype));
  return upload_biases(source, bias_.view, upload);
}

CudaLinear::CudaLinear() = default;
CudaLinear::~CudaLinear() = default;

size_t CudaLinear::num_bytes() const {
  return weights_.buffer.num_bytes() + scales_.buffer.num_bytes() + bias_.buffer.num_bytes() +
         (packed_ == nullptr ? 0 : packed_->num_bytes());
}

}  // namespace quire::cuda
