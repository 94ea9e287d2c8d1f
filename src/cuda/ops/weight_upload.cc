#include "cuda/ops/weight_upload.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace quire::cuda {
namespace {

constexpr size_t kSlotBytes = size_t{16} << 20;
// One core reads page-cached files at about a quarter of the PCIe bandwidth.
constexpr int kNumThreads = 6;
constexpr int64_t kPieceBytes = int64_t{1} << 20;  // that a thread copies at a time

void copy_in_pieces(ThreadPool& threads, const void* from, void* to, int64_t num_bytes) {
  threads.parallel_for((num_bytes + kPieceBytes - 1) / kPieceBytes, [&](int64_t piece) {
    const int64_t at = piece * kPieceBytes;
    std::memcpy(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
                static_cast<size_t>(std::min(kPieceBytes, num_bytes - at)));
  });
}

TensorView flat_part(const TensorView& view, int64_t first, int64_t count) {
  const TensorView flat = {view.data, view.dtype, {view.shape.num_elements()}};
  return flat.rows(first, count);
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

}  // namespace quire::cuda
