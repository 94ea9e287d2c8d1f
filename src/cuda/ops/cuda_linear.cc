#include "cuda/ops/cuda_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

Status check_block(const Shape& shape, const WeightScheme& scheme, int64_t in_features) {
  if (scheme.scales != ScaleLayout::kNone) {
    return unimplemented(
        fmt::format("[ops] unsupported weight scheme on a GPU; got {}, expected f32, f16 or bf16 "
                    "without scales",
                    describe(scheme)));
  }
  if (!is_weight_dtype(scheme.values)) {
    return invalid_argument(
        fmt::format("[ops] unsupported weight type; got {}, expected f32, f16 or bf16",
                    dtype_name(scheme.values)));
  }
  if (shape.rank() != 2 || shape[0] <= 0 || shape[1] != in_features || in_features <= 0) {
    return invalid_argument(
        fmt::format("[ops] a block of weights has the wrong shape; got rank {} and {} x {}, "
                    "expected rank 2 and {} columns",
                    shape.rank(), shape[0], shape[1], in_features));
  }
  return {};
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

Result<std::unique_ptr<CudaLinear>> CudaLinear::load(const LinearSource& source, DType dtype,
                                                     WeightUpload& upload, CudaStream& stream) {
  const std::vector<Block> blocks = blocks_of(source);
  if (blocks.empty() || (!source.weights.empty() && !source.repeated.empty())) {
    return invalid_argument(
        "[ops] a Linear needs blocks of weights, either all in memory or all repeated");
  }
  const int64_t in_features = blocks.front().shape().rank() == 2 ? blocks.front().shape()[1] : 0;
  int64_t out_features = 0;
  for (const Block& block : blocks) {
    QUIRE_RETURN_IF_ERROR(check_block(block.shape(), block.scheme(), in_features));
    out_features += block.shape()[0];
  }
  std::unique_ptr<CudaLinear> linear(new CudaLinear());
  linear->weights_ = {nullptr, dtype, {out_features, in_features}};
  QUIRE_ASSIGN_OR_RETURN(linear->memory_, device_memory(linear->weights_.num_bytes()));
  linear->weights_.data = linear->memory_.data();
  int64_t first = 0;
  for (const Block& block : blocks) {
    const TensorView rows = linear->weights_.rows(first, block.shape()[0]);
    QUIRE_RETURN_IF_ERROR(block.memory != nullptr ? upload.upload(block.memory->values, rows)
                                                  : upload.fill(*block.repeated, rows));
    first += block.shape()[0];
  }
  if (source.biases.empty()) return linear;

  linear->bias_ = {nullptr, dtype, {out_features}};
  QUIRE_ASSIGN_OR_RETURN(linear->bias_memory_, device_memory(linear->bias_.num_bytes()));
  linear->bias_.data = linear->bias_memory_.data();
  stream.set_zero(linear->bias_.data, linear->bias_.num_bytes());
  if (source.biases.size() != blocks.size()) {
    return invalid_argument("[ops] a Linear needs as many blocks of bias as of weights, or none");
  }
  first = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const TensorView& bias = source.biases[i];
    const int64_t count = blocks[i].shape()[0];
    if (!is_weight_dtype(bias.dtype) || bias.shape.num_elements() != count) {
      return invalid_argument(
          fmt::format("[ops] a block of bias has the wrong size; got {} numbers, expected {}",
                      bias.shape.num_elements(), count));
    }
    if (bias.data != nullptr) {
      QUIRE_RETURN_IF_ERROR(upload.upload(bias, linear->bias_.rows(first, count)));
    }
    first += count;
  }
  return linear;
}

}  // namespace quire::cuda
