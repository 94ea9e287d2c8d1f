#include "cuda/sample/device_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "cuda/base/memory.h"
#include "sample/sampler.h"

namespace quire::cuda {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

// Slots are appended to a block until it holds more than kFlushBytes.
size_t block_bytes(const DeviceSamplerLimits& limits) {
  return kFlushBytes + limits.max_slot_bytes();
}

// Bytes of a step's plan on the device: the pass and mask index of each row, then the masks.
size_t plan_bytes(const DeviceSamplerLimits& limits, size_t num_rows, size_t num_masks) {
  return num_rows * sizeof(RowSampling) +
         num_masks * static_cast<size_t>(limits.bitmap_words()) * sizeof(uint32_t);
}

size_t max_plan_bytes(const DeviceSamplerLimits& limits) {
  const auto rows = static_cast<size_t>(limits.max_rows);
  return plan_bytes(limits, rows, rows);
}

size_t draft_probs_bytes(const DeviceSamplerLimits& limits) {
  return static_cast<size_t>(limits.max_num_seqs) * static_cast<size_t>(limits.num_drafts) *
         static_cast<size_t>(limits.vocab_size) * sizeof(float);
}

SlotTables lay_out_tables(const DeviceSamplerLimits& limits, BumpAllocator& allocator) {
  const auto num_slots = static_cast<size_t>(limits.max_num_seqs);
  const auto num_tables = static_cast<size_t>(limits.max_rule_seqs);
  SlotTables tables = limits.sizes();
  tables.q_len = 1 + limits.num_drafts;
  tables.states = allocator.allocate<SlotState>(num_slots);
  tables.num_computed = allocator.allocate<int32_t>(num_slots);
  tables.next_tokens = allocator.allocate<int32_t>(num_slots * static_cast<size_t>(tables.q_len));
  tables.forbidden = allocator.allocate<uint32_t>(static_cast<size_t>(limits.max_rows) *
                                                  static_cast<size_t>(tables.bitmap_words));
  tables.seen = allocator.allocate<uint32_t>(num_tables * static_cast<size_t>(tables.vocab_stride));
  SlotTables::for_each_list(tables, [&](auto*& array, int32_t words, auto /*list*/) {
    using T = std::remove_reference_t<decltype(*array)>;
    array = allocator.allocate<T>(num_tables * static_cast<size_t>(words));
  });
  return tables;
}

}  // namespace

Status to_status(RowStatus status, int64_t position, int32_t detail) {
  switch (status) {
    case RowStatus::kOk:
    case RowStatus::kPadding:
      return {};
    case RowStatus::kNan:
      return nan_logit(position, detail);
    case RowStatus::kInfinite:
      return infinite_logit(position);
    case RowStatus::kNoneFinite:
      return no_finite_logit(position);
    case RowStatus::kNoneAllowed:
      return no_token_allowed(position);
  }
  return internal_error("[sample] a result from the device has an unknown status");
}

SpanResult to_span_result(const RowResult* results, const LogprobsResult* logprobs) {
  SpanResult span;
  span.error = to_status(results->status, results->position, results->detail);
  span.tokens.resize(static_cast<size_t>(results->num_tokens));
  for (size_t i = 0; i < span.tokens.size(); ++i) {
    span.tokens[i].token_id = results[i].token_id;
    if (logprobs != nullptr) span.tokens[i].logprobs = to_position_logprobs(logprobs[i]);
  }
  return span;
}

PositionLogprobs to_position_logprobs(const LogprobsResult& result) {
  PositionLogprobs all;
  if (result.num_top < 0) return all;
  all.reserve(static_cast<size_t>(result.num_top) + 1);
  all.push_back({result.token_id, result.logprob, result.rank});
  for (int i = 0; i < result.num_top; ++i) {
    all.push_back({result.top_ids[i], result.top_logprobs[i], i + 1});
  }
  return all;
}

DeviceSampler::DeviceSampler(const DeviceSamplerLimits& limits)
    : limits_(limits),
      upload_(limits),
      slots_(limits.max_num_seqs, limits.max_rule_seqs,
             limits.verification.compares_probs() ? SamplePass::kFilter : SamplePass::kOnePass) {}

DeviceSampler::Parts DeviceSampler::lay_out(const DeviceSamplerLimits& limits, void* base) {
  BumpAllocator allocator(base);
  const auto rows = static_cast<size_t>(limits.max_rows);
  const auto slices = rows * static_cast<size_t>(num_slices(limits.vocab_size));
  Parts parts;
  parts.tables = lay_out_tables(limits, allocator);
  parts.results = reinterpret_cast<RowResult*>(
      allocator.allocate<std::byte>(rows * (sizeof(RowResult) + sizeof(LogprobsResult))));
  parts.picks = allocator.allocate<SlicePick>(slices);
  if (limits.num_ranks > 1) {
    parts.best = allocator.allocate<SlicePick>(rows * static_cast<size_t>(limits.num_ranks));
  }
  parts.slice_logprobs = allocator.allocate<SliceLogprobs>(slices);
  parts.arrivals = allocator.allocate<uint32_t>(rows);
  const auto slots = static_cast<size_t>(limits.max_num_seqs);
  parts.cuts = allocator.allocate<RowCut>(rows);
  parts.verified = allocator.allocate<VerifiedRow>(rows);
  parts.num_accepted = allocator.allocate<int32_t>(rows);
  parts.synthetic_rates = allocator.allocate<double>(static_cast<size_t>(limits.num_drafts));
  parts.draft_cuts = allocator.allocate<RowCut>(slots);
  parts.draft_offsets = allocator.allocate<int32_t>(slots);
  parts.draft_picks =
      allocator.allocate<SlicePick>(slots * static_cast<size_t>(num_slices(limits.vocab_size)));
  parts.draft_arrivals = allocator.allocate<uint32_t>(slots);
  parts.block = allocator.allocate<std::byte>(block_bytes(limits));
  parts.plan = allocator.allocate<std::byte>(max_plan_bytes(limits));
  parts.num_bytes = allocator.num_bytes();
  return parts;
}

size_t DeviceSampler::device_bytes(const DeviceSamplerLimits& limits) {
  return lay_out(limits, nullptr).num_bytes;
}

Result<std::unique_ptr<DeviceSampler>> DeviceSampler::create(const DeviceSamplerLimits& limits,
                                                             CudaStream& stream) {
  QUIRE_CHECK(limits.max_num_seqs > 0 && limits.max_rule_seqs > 0 && limits.max_rows > 0 &&
                  limits.num_drafts >= 0 && limits.vocab_size > 0 && limits.max_tokens_per_seq > 0,
              "[sample] a sampler's limit is not positive");
  const Verification& verification = limits.verification;
  QUIRE_CHECK(
      !verification.is_synthetic() || std::ssize(verification.synthetic_rates) == limits.num_drafts,
      "[sample] synthetic acceptance needs one rate per draft");
  QUIRE_CHECK(!verification.samples_drafts || limits.num_drafts > 0,
              "[sample] a sampler without drafts cannot compare them");
  if (num_slices(limits.vocab_size) > kMaxSlices) {
    return unimplemented(
        fmt::format("[sample] the vocabulary is too large to sample from on a GPU; got {} tokens, "
                    "expected at most {}",
                    limits.vocab_size, kMaxSlices * kSliceSize));
  }
  std::unique_ptr<DeviceSampler> sampler(new DeviceSampler(limits));
  sampler->num_sms_ = stream.limits().num_sms;
  QUIRE_ASSIGN_OR_RETURN(sampler->memory_, device_memory(device_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(sampler->ring_, PinnedRing::create(block_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(sampler->plan_ring_, PinnedRing::create(max_plan_bytes(limits)));
  sampler->parts_ = lay_out(limits, sampler->memory_.data());
  if (limits.verification.samples_drafts) {
    QUIRE_ASSIGN_OR_RETURN(sampler->draft_probs_, device_memory(draft_probs_bytes(limits)));
  }
  sampler->initialize(stream);
  return sampler;
}

void DeviceSampler::initialize(CudaStream& stream) {
  const SlotTables& tables = parts_.tables;
  const auto num_slots = static_cast<size_t>(limits_.max_num_seqs);
  stream.set_zero(tables.states, num_slots * sizeof(SlotState));
  stream.set_zero(tables.num_computed, num_slots * sizeof(int32_t));
  stream.set_zero(tables.next_tokens,
                  num_slots * static_cast<size_t>(tables.q_len) * sizeof(int32_t));
  stream.set_zero(parts_.arrivals, static_cast<size_t>(limits_.max_rows) * sizeof(uint32_t));
  stream.set_zero(parts_.draft_arrivals, num_slots * sizeof(uint32_t));
  stream.set_zero(parts_.draft_offsets, num_slots * sizeof(int32_t));
  // A distribution of zeros means that it is not written yet. Then the draft is not compared.
  if (draft_probs() != nullptr) stream.set_zero(draft_probs(), draft_probs_bytes(limits_));
  const std::vector<double>& rates = limits_.verification.synthetic_rates;
  if (!rates.empty()) {
    stream.copy_to_device(parts_.synthetic_rates, rates.data(), rates.size() * sizeof(double));
  }
}

Status DeviceSampler::add_slots(std::span<const SlotAdded> added, CudaStream& stream) {
  for (const SlotAdded& slot : added) QUIRE_RETURN_IF_ERROR(check(*slot.sampling));
  for (const SlotAdded& slot : added) {
    QUIRE_CHECK(slot.slot >= 0 && slot.slot < limits_.max_num_seqs,
                "[sample] a slot is not below max_num_seqs");
    QUIRE_CHECK(slot.token_ids.size() <= static_cast<size_t>(limits_.max_tokens_per_seq),
                "[sample] a sequence is longer than max_tokens_per_seq");
    SlotState& state = upload_.append(slot);
    state.table = slots_.add(slot.slot, state);
    if (upload_.num_bytes() > kFlushBytes) QUIRE_RETURN_IF_ERROR(upload_slots(stream));
  }
  return upload_slots(stream);
}

Status DeviceSampler::upload_slots(CudaStream& stream) {
  if (upload_.num_slots() == 0) return {};
  QUIRE_ASSIGN_OR_RETURN(std::byte * staging, ring_.begin(stream));
  upload_.write(staging);
  stream.copy_to_device(parts_.block, staging, upload_.num_bytes());
  ring_.end(stream);
  launch_add_slots(parts_.tables, parts_.block, upload_.num_slots(), stream);
  upload_.clear();
  return {};
}

void DeviceSampler::remove_slots(std::span<const int> slots) {
  for (const int slot : slots) slots_.remove(slot);
}

Result<SamplePlan> DeviceSampler::plan(std::span<const LogitsRowUse> rows,
                                       std::span<const std::vector<uint32_t>> masks,
                                       CudaStream& stream) {
  const auto max_rows = static_cast<size_t>(limits_.max_rows);
  QUIRE_CHECK(
      masks.size() <= max_rows && rows.size() <= max_rows &&
          std::ranges::all_of(
              rows, [&](const LogitsRowUse& use) { return use.mask_idx < std::ssize(masks); }),
      "[sample] a step has too many logits rows or masks, or a row's mask index is too large");
  SamplePlan plan = slots_.plan(rows);
  if (plan.is_mixed()) QUIRE_RETURN_IF_ERROR(upload_plan(plan, masks, stream));
  return plan;
}

Status DeviceSampler::upload_plan(const SamplePlan& plan,
                                  std::span<const std::vector<uint32_t>> masks,
                                  CudaStream& stream) {
  QUIRE_ASSIGN_OR_RETURN(std::byte* const staging, plan_ring_.begin(stream));
  std::memcpy(staging, plan.rows.data(), plan.rows.size() * sizeof(RowSampling));
  const auto mask_words = static_cast<size_t>(limits_.bitmap_words());
  auto* to = reinterpret_cast<uint32_t*>(staging + plan.rows.size() * sizeof(RowSampling));
  for (const std::vector<uint32_t>& mask : masks) {
    const size_t count = std::min(mask.size(), mask_words);
    std::copy_n(mask.begin(), count, to);
    std::fill_n(to + count, mask_words - count, 0U);  // a short mask allows no token beyond its end
    to += mask_words;
  }
  stream.copy_to_device(parts_.plan, staging, plan_bytes(limits_, plan.rows.size(), masks.size()));
  plan_ring_.end(stream);
  return {};
}

const float* DeviceSampler::check_logits(const TensorView& logits, int num_rows) const {
  QUIRE_CHECK(logits.dtype == DType::kF32 && logits.shape.rank() == 2 &&
                  logits.shape[0] >= num_rows && logits.shape[1] == limits_.vocab_size &&
                  num_rows <= limits_.max_rows,
              "[sample] logits are not F32 [num_rows, vocab_size] within the sampler's limits");
  return logits.as<const float>();
}

SampleCall DeviceSampler::make_call(const SamplePlan& plan, const float* logits,
                                    const int32_t* slots, const int32_t* offsets) const {
  const int num_rows = plan.num_rows();
  const auto* rows = reinterpret_cast<const RowSampling*>(parts_.plan);
  const Verification& verification = limits_.verification;
  const bool has_counts = verification.is_synthetic() || verification.compares_probs();
  return {.logits = logits,
          .slots = slots,
          .offsets = offsets,
          .num_rows = num_rows,
          .results = parts_.results,
          .rows = plan.is_mixed() ? rows : nullptr,
          .masks = reinterpret_cast<const uint32_t*>(rows + num_rows),
          .num_accepted = has_counts ? parts_.num_accepted : nullptr};
}

void DeviceSampler::sample(const SamplePlan& plan, const TensorView& logits, const int32_t* slots,
                           const int32_t* offsets, CudaStream& stream) {
  const SampleCall call = make_call(plan, check_logits(logits, plan.num_rows()), slots, offsets);
  if (limits_.verification.compares_probs()) {
    verify_drafts(plan, call, stream);
  } else {
    sample_rows(plan, call, stream);
  }
  commit(plan, call, stream);
}

std::span<std::byte> DeviceSampler::best_of_ranks(int num_rows) const {
  const auto num_picks = static_cast<size_t>(limits_.num_ranks) * static_cast<size_t>(num_rows);
  return {reinterpret_cast<std::byte*>(parts_.best), num_picks * sizeof(SlicePick)};
}

void DeviceSampler::find_best(const SamplePlan& plan, const TensorView& logits, int32_t first_id,
                              const int32_t* slots, const int32_t* offsets, CudaStream& stream) {
  const int num_rows = plan.num_rows();
  const VocabularyPart part = {.first_id = first_id,
                               .width = static_cast<int32_t>(logits.shape[1])};
  QUIRE_CHECK(limits_.num_ranks > 1 && plan.chooses_from_parts() && logits.dtype == DType::kF32 &&
                  logits.shape[0] >= num_rows && num_rows <= limits_.max_rows && first_id >= 0 &&
                  part.width <= limits_.vocab_size - first_id &&
                  num_part_slices(part.width) <= num_slices(limits_.vocab_size),
              "[sample] these logits rows need whole rows, or exceed the limits");
  launch_find_best(parts_.tables, make_call(plan, logits.as<const float>(), slots, offsets), part,
                   plan.is_random, parts_.picks, parts_.arrivals,
                   parts_.best + int64_t{limits_.rank} * num_rows, stream);
}

void DeviceSampler::sample_best(const SamplePlan& plan, const int32_t* slots,
                                const int32_t* offsets, CudaStream& stream) {
  const SampleCall call = make_call(plan, nullptr, slots, offsets);
  launch_choose_best(parts_.tables, call, parts_.best, limits_.num_ranks, stream);
  commit(plan, call, stream);
}

void DeviceSampler::commit(const SamplePlan& plan, const SampleCall& call, CudaStream& stream) {
  if (limits_.verification.is_synthetic()) {
    launch_accept_synthetic(parts_.tables, call, parts_.synthetic_rates, stream);
  }
  if (plan.has_logprobs) {
    launch_sampled_logprobs(parts_.tables, call, parts_.slice_logprobs, parts_.arrivals,
                            logprobs_results(plan.num_rows()), stream);
  }
  launch_commit(parts_.tables, call, stream);
}

void DeviceSampler::sample_rows(const SamplePlan& plan, const SampleCall& call,
                                CudaStream& stream) {
  if (plan.num_rows_of(SamplePass::kOnePass) > 0) {
    launch_one_pass(parts_.tables, call, plan.is_random, parts_.picks, parts_.arrivals, stream);
  }
  if (const int count = plan.num_rows_of(SamplePass::kFilter); count > 0) {
    launch_filter(parts_.tables, call, SamplePass::kFilter, count, num_sms_, stream);
  }
  if (const int count = plan.num_rows_of(SamplePass::kRules); count > 0) {
    launch_forbid(parts_.tables, call, stream);
    launch_filter(parts_.tables, call, SamplePass::kRules, count, num_sms_, stream);
  }
}

void DeviceSampler::verify_drafts(const SamplePlan& plan, const SampleCall& call,
                                  CudaStream& stream) {
  const bool is_block = limits_.verification.method == RejectionMethod::kBlock;
  const VerifyCall verify = {
      .is_block = is_block, .cuts = parts_.cuts, .probs = draft_probs(), .rows = parts_.verified};
  const auto for_each_pass = [&](auto launch) {
    for (const SamplePass pass : {SamplePass::kFilter, SamplePass::kRules}) {
      if (const int count = plan.num_rows_of(pass); count > 0) launch(pass, count);
    }
  };
  for_each_pass([&](SamplePass pass, int count) {
    if (pass == SamplePass::kRules) launch_forbid(parts_.tables, call, stream);
    launch_cut(parts_.tables, call, pass, count, num_sms_, parts_.cuts, stream);
  });
  for (const VerifyStage stage :
       {VerifyStage::kCompare, VerifyStage::kResidual, VerifyStage::kSettle}) {
    if (stage == VerifyStage::kResidual && !is_block) continue;
    for_each_pass([&](SamplePass pass, int /*count*/) {
      launch_verify(parts_.tables, call, verify, stage, pass, stream);
    });
  }
}

void DeviceSampler::choose_drafts(const DraftLogits& call, CudaStream& stream) {
  QUIRE_CHECK(call.num_spans > 0 && call.num_spans <= limits_.max_num_seqs && call.width > 0 &&
                  call.width <= limits_.vocab_size && call.draft_idx >= 0 &&
                  call.draft_idx < limits_.num_drafts,
              "[sample] the drafts of a call exceed the sampler's limits");
  if (!limits_.verification.samples_drafts) {
    launch_most_likely_drafts(parts_.tables, call, parts_.draft_picks, parts_.draft_arrivals,
                              stream);
    return;
  }
  // The filters read a row of the draft vocabulary like a row of the target's vocabulary.
  SlotTables tables = parts_.tables;
  tables.vocab_size = call.width;
  const SampleCall rows = {.logits = call.logits,
                           .slots = call.slots,
                           .offsets = parts_.draft_offsets,
                           .num_rows = call.num_spans,
                           .results = nullptr,
                           .rows = nullptr,
                           .masks = nullptr,
                           .num_accepted = nullptr};
  launch_cut(tables, rows, SamplePass::kFilter, call.num_spans, num_sms_, parts_.draft_cuts,
             stream);
  launch_sample_drafts(parts_.tables, call, parts_.draft_cuts, draft_probs(), stream);
}

LogprobsResult* DeviceSampler::logprobs_results(int num_rows) const {
  return reinterpret_cast<LogprobsResult*>(parts_.results + num_rows);
}

size_t DeviceSampler::results_bytes(int num_rows, bool has_logprobs) {
  const size_t row_bytes = sizeof(RowResult) + (has_logprobs ? sizeof(LogprobsResult) : 0);
  return static_cast<size_t>(num_rows) * row_bytes;
}

void DeviceSampler::copy_results(const SamplePlan& plan, void* host, CudaStream& stream) const {
  stream.copy_to_host(host, parts_.results, results_bytes(plan.num_rows(), plan.has_logprobs));
}

SpanResult DeviceSampler::read_span(const void* host, int num_rows, bool has_logprobs, int row) {
  const auto* results = static_cast<const RowResult*>(host);
  const auto* logprobs = reinterpret_cast<const LogprobsResult*>(results + num_rows);
  return to_span_result(results + row, has_logprobs ? logprobs + row : nullptr);
}

void DeviceSampler::prompt_logprobs(const TensorView& logits, const int32_t* targets, int num_rows,
                                    int num_top, LogprobsResult* results, CudaStream& stream) {
  QUIRE_CHECK(num_top >= 0 && num_top <= kMaxTopLogprobs, "[sample] num_top is not 0 to 20");
  launch_target_logprobs(check_logits(logits, num_rows), limits_.vocab_size, targets, num_rows,
                         num_top, parts_.slice_logprobs, parts_.arrivals, results, stream);
}

}  // namespace quire::cuda
