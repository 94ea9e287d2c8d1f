#include "cuda/sample/device_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "cuda/base/carver.h"

namespace quire::cuda {
namespace {

RowLimits row_limits_of(const DeviceSamplerLimits& limits) {
  return {.vocab_size = limits.vocab_size, .max_tokens_per_seq = limits.max_tokens_per_seq};
}

constexpr size_t kFlushBytes = size_t{1} << 20;

// Rows are appended to a block until it holds kFlushBytes.
size_t block_bytes(const RowLimits& limits) {
  return kFlushBytes + limits.max_row_bytes();
}

// Of the masks of a step, in words: which one a row has, then the masks.
size_t mask_block_words(const DeviceSamplerLimits& limits, size_t num_masks) {
  return static_cast<size_t>(limits.max_rows) +
         num_masks * static_cast<size_t>(row_limits_of(limits).bitmap_words());
}

struct Parts {
  RowTables tables = {};
  RowResult* results = nullptr;
  SlicePick* picks = nullptr;
  SliceLogprobs* slice_logprobs = nullptr;
  uint32_t* arrivals = nullptr;
  std::byte* block = nullptr;
  uint32_t* masks = nullptr;
  size_t num_bytes = 0;
};

RowTables carve_tables(const DeviceSamplerLimits& limits, Carver& carver) {
  const RowLimits row = row_limits_of(limits);
  const auto rows = static_cast<size_t>(limits.max_num_seqs);
  const size_t bitmap = rows * static_cast<size_t>(row.bitmap_words());
  RowTables tables = {};
  tables.states = carver.take<RowState>(rows);
  tables.last_tokens = carver.take<int32_t>(rows);
  tables.seen = carver.take<uint32_t>(rows * static_cast<size_t>(row.vocab_stride()));
  tables.allowed = carver.take<uint32_t>(bitmap);
  tables.stops = carver.take<uint32_t>(bitmap);
  tables.biased = carver.take<uint32_t>(bitmap);
  tables.forbidden = carver.take<uint32_t>(bitmap);
  tables.bias_ids = carver.take<int32_t>(rows * kMaxBiases);
  tables.bias_values = carver.take<float>(rows * kMaxBiases);
  tables.bad_word_ends = carver.take<int32_t>(rows * kMaxBadWords);
  tables.bad_word_ids = carver.take<int32_t>(rows * kMaxBadWordIds);
  tables.output_tail = carver.take<int32_t>(rows * static_cast<size_t>(row.tail_size()));
  tables.vocab_size = limits.vocab_size;
  tables.vocab_stride = row.vocab_stride();
  tables.bitmap_words = row.bitmap_words();
  tables.tail_size = row.tail_size();
  return tables;
}

Parts carve(const DeviceSamplerLimits& limits, void* base) {
  Carver carver(base);
  const auto rows = static_cast<size_t>(limits.max_rows);
  const auto slices = rows * static_cast<size_t>(num_slices(limits.vocab_size));
  Parts parts;
  parts.tables = carve_tables(limits, carver);
  parts.results = reinterpret_cast<RowResult*>(
      carver.take<std::byte>(rows * (sizeof(RowResult) + sizeof(LogprobsResult))));
  parts.picks = carver.take<SlicePick>(slices);
  parts.slice_logprobs = carver.take<SliceLogprobs>(slices);
  parts.arrivals = carver.take<uint32_t>(rows);
  parts.block = carver.take<std::byte>(block_bytes(row_limits_of(limits)));
  parts.masks = carver.take<uint32_t>(mask_block_words(limits, rows));
  parts.num_bytes = carver.num_bytes();
  return parts;
}

bool is_filtered(const SamplingParams& params) {
  return params.top_k >= 1 || params.top_p < 1.0F || params.min_p > 0.0F;
}

SampleKind kind_of_row(const SamplingParams& params, uint32_t flags) {
  if (flags != 0 || params.logprobs) return SampleKind::kFull;
  if (params.temperature < kGreedyBelow) return SampleKind::kGreedy;
  return is_filtered(params) ? SampleKind::kFiltered : SampleKind::kRandom;
}

}  // namespace

DeviceSampler::DeviceSampler(const DeviceSamplerLimits& limits)
    : limits_(limits),
      row_limits_(row_limits_of(limits)),
      upload_(row_limits_),
      kinds_(static_cast<size_t>(limits.max_num_seqs), SampleKind::kGreedy) {}

size_t DeviceSampler::device_bytes(const DeviceSamplerLimits& limits) {
  return carve(limits, nullptr).num_bytes;
}

Result<std::unique_ptr<DeviceSampler>> DeviceSampler::create(const DeviceSamplerLimits& limits,
                                                             CudaStream& stream) {
  QUIRE_CHECK(limits.max_num_seqs > 0 && limits.max_rows > 0 && limits.vocab_size > 0 &&
                  limits.max_tokens_per_seq > 0,
              "[sample] a sampler's limits are positive");
  if (num_slices(limits.vocab_size) > kMaxSlices) {
    return unimplemented(fmt::format("[sample] vocabulary; got {} tokens, expected at most {}",
                                     limits.vocab_size, kMaxSlices * kSliceSize));
  }
  std::unique_ptr<DeviceSampler> sampler(new DeviceSampler(limits));
  QUIRE_ASSIGN_OR_RETURN(sampler->memory_, device_memory(device_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(sampler->ring_, PinnedRing::create(block_bytes(sampler->row_limits_)));
  QUIRE_ASSIGN_OR_RETURN(
      sampler->mask_ring_,
      PinnedRing::create(mask_block_words(limits, static_cast<size_t>(limits.max_rows)) *
                         sizeof(uint32_t)));
  const Parts parts = carve(limits, sampler->memory_.data());
  sampler->tables_ = parts.tables;
  sampler->results_ = parts.results;
  sampler->picks_ = parts.picks;
  sampler->slice_logprobs_ = parts.slice_logprobs;
  sampler->arrivals_ = parts.arrivals;
  sampler->block_ = parts.block;
  sampler->masks_ = parts.masks;
  const auto rows = static_cast<size_t>(limits.max_num_seqs);
  stream.set_zero(parts.tables.states, rows * sizeof(RowState));
  stream.set_zero(parts.tables.last_tokens, rows * sizeof(int32_t));
  stream.set_zero(parts.arrivals, static_cast<size_t>(limits.max_rows) * sizeof(uint32_t));
  return sampler;
}

Status DeviceSampler::add_rows(std::span<const RowAdded> added, CudaStream& stream) {
  for (const RowAdded& row : added) QUIRE_RETURN_IF_ERROR(check(*row.sampling));
  for (const RowAdded& row : added) {
    QUIRE_CHECK(row.row >= 0 && row.row < limits_.max_num_seqs, "[sample] a row of the sampler");
    QUIRE_CHECK(row.token_ids.size() <= static_cast<size_t>(limits_.max_tokens_per_seq),
                "[sample] a sequence is within the model's length");
    upload_.append(row);
    kinds_[static_cast<size_t>(row.row)] = kind_of_row(*row.sampling->params, upload_.last_flags());
    if (upload_.num_bytes() > kFlushBytes) QUIRE_RETURN_IF_ERROR(flush(stream));
  }
  return flush(stream);
}

Status DeviceSampler::flush(CudaStream& stream) {
  if (upload_.num_rows() == 0) return {};
  QUIRE_ASSIGN_OR_RETURN(std::byte * slot, ring_.begin(stream));
  upload_.write(slot);
  stream.copy_to_device(block_, slot, upload_.num_bytes());
  ring_.end(stream);
  launch_add_rows(tables_, block_, upload_.num_rows(), stream);
  upload_.clear();
  return {};
}

Status DeviceSampler::upload_masks(std::span<const std::vector<uint32_t>> masks,
                                   std::span<const int32_t> mask_idx, CudaStream& stream) {
  const auto max_rows = static_cast<size_t>(limits_.max_rows);
  const auto mask_words = static_cast<size_t>(row_limits_.bitmap_words());
  QUIRE_CHECK(
      masks.size() <= max_rows && mask_idx.size() <= max_rows &&
          std::ranges::all_of(mask_idx, [&](int32_t idx) { return idx < std::ssize(masks); }),
      "[sample] at most a mask for each row of a call");
  QUIRE_ASSIGN_OR_RETURN(std::byte* const slot, mask_ring_.begin(stream));
  auto* words = reinterpret_cast<uint32_t*>(slot);
  std::memcpy(words, mask_idx.data(), mask_idx.size_bytes());
  uint32_t* to = words + max_rows;
  for (const std::vector<uint32_t>& mask : masks) {
    const size_t count = std::min(mask.size(), mask_words);
    std::copy_n(mask.begin(), count, to);
    std::fill_n(to + count, mask_words - count, 0U);  // beyond its last word nothing may come
    to += mask_words;
  }
  stream.copy_to_device(masks_, slot, mask_block_words(limits_, masks.size()) * sizeof(uint32_t));
  mask_ring_.end(stream);
  return {};
}

SampleKind DeviceSampler::kind_of(std::span<const int> rows) const {
  SampleKind kind = SampleKind::kGreedy;
  for (const int row : rows) kind = std::max(kind, kinds_[static_cast<size_t>(row)]);
  return kind;
}

const float* DeviceSampler::check_logits(const TensorView& logits, int num_rows) const {
  QUIRE_CHECK(logits.dtype == DType::kF32 && logits.shape.rank() == 2 &&
                  logits.shape[0] >= num_rows && logits.shape[1] == limits_.vocab_size &&
                  num_rows <= limits_.max_rows,
              "[sample] logits are F32 [num_rows, vocab_size] within the sampler's limits");
  return logits.as<const float>();
}

void DeviceSampler::sample(SampleKind kind, const TensorView& logits, const int32_t* row_ids,
                           int num_rows, CudaStream& stream) {
  const bool is_masked = kind == SampleKind::kMasked;
  const SampleCall call = {
      .logits = check_logits(logits, num_rows),
      .row_ids = row_ids,
      .num_rows = num_rows,
      .results = results_,
      .mask_idx = is_masked ? reinterpret_cast<const int32_t*>(masks_) : nullptr,
      .masks = masks_ + limits_.max_rows};
  if (kind <= SampleKind::kRandom) {
    const bool random = kind == SampleKind::kRandom;
    return launch_one_pass(tables_, call, random, picks_, arrivals_, stream);
  }
  const bool is_full = kind >= SampleKind::kFull;
  if (is_full) launch_forbid(tables_, call, stream);
  launch_filter(tables_, call, is_full, stream);
  if (is_full) {
    launch_sampled_logprobs(tables_, call, slice_logprobs_, arrivals_, logprobs_results(num_rows),
                            stream);
  }
}

LogprobsResult* DeviceSampler::logprobs_results(int num_rows) const {
  return reinterpret_cast<LogprobsResult*>(results_ + num_rows);
}

size_t DeviceSampler::results_bytes(SampleKind kind, int num_rows) {
  const size_t of_row =
      sizeof(RowResult) + (kind >= SampleKind::kFull ? sizeof(LogprobsResult) : 0);
  return static_cast<size_t>(num_rows) * of_row;
}

void DeviceSampler::copy_results(SampleKind kind, int num_rows, void* host,
                                 CudaStream& stream) const {
  stream.copy_to_host(host, results_, results_bytes(kind, num_rows));
}

std::vector<SampledToken> DeviceSampler::read_results(SampleKind kind, int num_rows,
                                                      const void* host) {
  const auto* results = static_cast<const RowResult*>(host);
  const auto* logprobs = reinterpret_cast<const LogprobsResult*>(results + num_rows);
  std::vector<SampledToken> sampled;
  sampled.reserve(static_cast<size_t>(num_rows));
  for (int i = 0; i < num_rows; ++i) {
    sampled.push_back(
        to_sampled_token(results[i], kind >= SampleKind::kFull ? &logprobs[i] : nullptr));
  }
  return sampled;
}

void DeviceSampler::prompt_logprobs(const TensorView& logits, const int32_t* targets, int num_rows,
                                    int num_top, LogprobsResult* results, CudaStream& stream) {
  QUIRE_CHECK(num_top >= 0 && num_top <= kMaxTopLogprobs, "[sample] num_top is 0 to 20");
  launch_target_logprobs(check_logits(logits, num_rows), limits_.vocab_size, targets, num_rows,
                         num_top, slice_logprobs_, arrivals_, results, stream);
}

}  // namespace quire::cuda
