#include "cpu/platform/host_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/guarded.h"
#include "base/wall_timer.h"
#include "cpu/ops/cpu_ops.h"

namespace quire {

HostDevice::HostDevice(int num_threads, const CpuOpsOptions& options)
    : HostDevice(std::vector<ThreadPlace>(static_cast<size_t>(num_threads)), {}, options) {}

HostDevice::HostDevice(std::vector<ThreadPlace> places, const StepThreads& threads,
                       const CpuOpsOptions& options)
    : pool(std::move(places)),
      step_threads(threads),
      ops(make_cpu_ops(pool, options)),
      ranks(options.ranks),
      rank(options.rank) {}

int HostDevice::num_threads_for(int64_t num_rows) const {
  const int wanted = num_rows <= kMaxDecodeRows ? step_threads.decode : step_threads.prefill;
  return wanted > 0 ? wanted : pool.num_threads();
}

Result<std::unique_ptr<Runner>> HostRunner::create(const RunnerParts& parts, HostDevice& device) {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<HostDrafter> drafter,
                         make_drafter(parts.drafts, drafter_limits(parts.sizes), device));
  const ModelConfig& model = parts.target().model->config();
  const int width = model.embeds ? model.hidden_size : parts.sizes.vocab_size;
  QUIRE_ASSIGN_OR_RETURN(
      Tensor outputs,
      device.ops->allocate({parts.sizes.limits.max_num_logit_rows, width}, DType::kF32));
  Tensor draft_probs;
  if (parts.verification.samples_drafts) {
    const int64_t num_drafts = int64_t{parts.sizes.max_num_seqs} * parts.sizes.limits.num_drafts;
    QUIRE_ASSIGN_OR_RETURN(draft_probs,
                           device.ops->allocate({num_drafts, parts.sizes.vocab_size}, DType::kF32));
  }
  return std::unique_ptr<Runner>(new HostRunner(parts, device, std::move(drafter),
                                                std::move(outputs), std::move(draft_probs)));
}

HostRunner::HostRunner(const RunnerParts& parts, HostDevice& device,
                       std::shared_ptr<HostDrafter> drafter, Tensor outputs, Tensor draft_probs)
    : parts_(parts),
      device_(device),
      drafter_(std::move(drafter)),
      outputs_(std::move(outputs)),
      draft_probs_(std::move(draft_probs)),
      slots_(static_cast<size_t>(parts.sizes.max_num_seqs)),
      num_computed_(slots_.size()),
      next_tokens_(slots_.size() * static_cast<size_t>(parts.sizes.limits.decode_q_len())),
      num_proposed_(slots_.size()),
      confidences_(slots_.size() * static_cast<size_t>(parts.sizes.limits.num_drafts)) {
  if (parts.verification.is_adaptive && device.rank == 0) {
    adaptive_.emplace(parts.sizes.limits.num_drafts, !parts.verification.samples_drafts);
  }
  thread_ = std::thread([this] { device_loop(); });
}

HostRunner::~HostRunner() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HostRunner::enqueue(std::shared_ptr<const BatchPlan> plan) {
  std::list<Step> step;
  step.push_back({.plan = std::move(plan), .result = {}});
  {
    const std::lock_guard lock(mutex_);
    queued_.splice(queued_.end(), step);
  }
  changed_.notify_all();
}

StepResult HostRunner::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !finished_.empty(); });
  StepResult result = std::move(finished_.front().result);
  finished_.pop_front();
  return result;
}

// An exception that leaves this thread would end the process. So run_step() is noexcept, and the
// rest of this function does not allocate.
void HostRunner::device_loop() {
  const BoundThread bound = device_.pool.bind_caller();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !queued_.empty(); });
    if (stopping_) return;
    std::list<Step> step;
    step.splice(step.end(), queued_, queued_.begin());
    lock.unlock();
    step.front().result = run_step(*step.front().plan);
    step.front().plan.reset();
    lock.lock();
    finished_.splice(finished_.end(), step);
    changed_.notify_all();
  }
}

StepResult HostRunner::run_step(const BatchPlan& plan) noexcept {
  const std::lock_guard turn(device_.step_mutex);
  StepResult result;
  const Status thrown = guarded_status("[cpu] a step failed", [&] {
    result = run_step_unguarded(plan);
    return Status();
  });
  if (!thrown.ok()) result.error = thrown;
  if (device_.ranks != nullptr) result.error = device_.ranks->join(result.error);
  return result;
}

StepResult HostRunner::run_step_unguarded(const BatchPlan& plan) {
  StepResult result;
  update_slots(plan);
  if (drafter_ != nullptr) result.error = drafter_->update_slots(plan);
  if (result.error.ok()) result.error = verify_step(plan, result);
  if (result.error.ok() && drafter_ != nullptr) {
    result.error = propose_drafts(plan, result.draft_seconds);
    report_drafts(result.spans);
  }
  return result;
}

Status HostRunner::verify_step(const BatchPlan& plan, StepResult& result) {
  const WallTimer watch;
  if (adaptive_) drop_unprofitable_drafts(plan);
  broadcast_from_rank0(num_proposed_);
  spans_ = cut_drafts(plan, num_proposed_);
  QUIRE_RETURN_IF_ERROR(run_model(plan));
  QUIRE_RETURN_IF_ERROR(collect_prompt_logprobs());
  QUIRE_RETURN_IF_ERROR(sample(plan, result.spans));
  result.verify_seconds = watch.seconds();
  if (adaptive_) observe_step(result);
  return {};
}

void HostRunner::update_slots(const BatchPlan& plan) {
  for (const int slot : plan.slots_removed) slots_[slot] = Slot();
  for (const SlotAdded& added : plan.slots_added) add_slot(added);
  for (const BlockTableAppend& append : plan.block_appends) {
    std::vector<int32_t>& block_ids = slots_[append.slot].block_ids[append.table];
    block_ids.resize(static_cast<size_t>(append.first));
    block_ids.insert(block_ids.end(), append.block_ids.begin(), append.block_ids.end());
  }
}

void HostRunner::add_slot(const SlotAdded& added) {
  Slot& slot = slots_[added.slot];
  slot = Slot();
  const SamplingSpec& spec = *added.sampling;
  slot.block_ids.resize(parts_.sizes.windows.size());
  slot.sampler.emplace(spec.params, spec.seed, added.token_ids.get(), added.num_prompt_tokens,
                       spec.end_token_ids, spec.bad_words_ids, parts_.sizes.vocab_size);
  if (spec.params->prompt_logprobs) {
    slot.prompt_ids.assign(added.token_ids.begin(),
                           added.token_ids.begin() + added.num_prompt_tokens);
    slot.prompt_logprobs.resize(1);  // the first token has no prediction
  }
  update_progress(added.slot);
}

Status HostRunner::run_model(const BatchPlan& plan) {
  slot_views_.clear();
  for (const SeqSpan& span : spans_) {
    slot_views_.push_back({.block_ids = slots_[span.slot].block_ids,
                           .num_computed = num_computed_[static_cast<size_t>(span.slot)],
                           .next_tokens = next_tokens(span.slot)});
  }
  inputs_.build(plan, spans_, slot_views_, parts_.sizes.limits.page_size, parts_.sizes.windows);
  std::vector<const AttentionBatch*> batches;
  for (const TableInputs& table : inputs_.tables) batches.push_back(&table.attention);
  QUIRE_ASSIGN_OR_RETURN(
      const std::span<const KvGroupStep> steps,
      attention_.update(batches, attention_.choose(*batches[0]), device_.ops->stream()));
  const StepInput input = {.num_tokens = static_cast<int>(inputs_.token_ids.size()),
                           .token_ids = inputs_.token_ids.data(),
                           .positions = inputs_.positions.data(),
                           .kv_groups = steps,
                           .states = parts_.target().states(batches)};
  device_.pool.use_threads(device_.num_threads_for(input.num_tokens));
  return model().forward(input);
}

std::span<const float> HostRunner::logits_row(int64_t i) const {
  const int64_t vocab_size = parts_.sizes.vocab_size;
  return {outputs_.view.as<float>() + i * vocab_size, static_cast<size_t>(vocab_size)};
}

std::span<float> HostRunner::draft_probs(int slot_idx, size_t draft_idx) {
  const auto vocab_size = static_cast<size_t>(parts_.sizes.vocab_size);
  const auto num_drafts = static_cast<size_t>(parts_.sizes.limits.num_drafts);
  const size_t row = static_cast<size_t>(slot_idx) * num_drafts + draft_idx;
  return {draft_probs_.view.as<float>() + row * vocab_size, vocab_size};
}

Status HostRunner::collect_prompt_logprobs() {
  for (const SeqSpan& span : spans_) {
    if (span.num_prompt_logprobs < 0) continue;
    QUIRE_RETURN_IF_ERROR(collect_prompt_logprobs(span, slots_[span.slot]));
  }
  return {};
}

Status HostRunner::collect_prompt_logprobs(const SeqSpan& span, Slot& slot) {
  // The logits of position p predict the token at p + 1; the last prompt position predicts output.
  const int num_prompt = static_cast<int>(slot.prompt_ids.size());
  const int end = std::min(span.num_computed + span.num_tokens, num_prompt - 1);
  for (int begin = span.num_computed; begin < end;
       begin += parts_.sizes.limits.max_num_logit_rows) {
    const int count = std::min(parts_.sizes.limits.max_num_logit_rows, end - begin);
    std::vector<int32_t> token_rows(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      token_rows[i] = span.first_token + begin - span.num_computed + i;
    }
    QUIRE_RETURN_IF_ERROR(
        model().compute_logits(token_rows.data(), count, outputs_.view.rows(0, count)));
    const size_t first = slot.prompt_logprobs.size();
    slot.prompt_logprobs.resize(first + static_cast<size_t>(count));
    std::vector<Status> errors(static_cast<size_t>(count));
    device_.pool.parallel_for(count, [&](int64_t i) {
      errors[static_cast<size_t>(i)] = check_logits(logits_row(i), begin + i + 1);
      if (!errors[static_cast<size_t>(i)].ok()) return;
      slot.prompt_logprobs[first + static_cast<size_t>(i)] =
          compute_logprobs(logits_row(i), slot.prompt_ids[begin + i + 1], span.num_prompt_logprobs);
    });
    const auto broken = std::ranges::find_if_not(errors, &Status::ok);
    if (slot.prompt_error.ok() && broken != errors.end()) slot.prompt_error = *broken;
  }
  return {};
}

Status HostRunner::sample(const BatchPlan& plan, std::vector<SpanResult>& results) {
  std::vector<const SeqSpan*> spans;
  for (const SeqSpan& span : spans_) {
    if (span.samples) spans.push_back(&span);
  }
  results.resize(spans.size());
  for (size_t begin = 0; begin < spans.size();) {
    size_t end = begin;
    for (int num_rows = 0; end < spans.size(); ++end) {
      num_rows += spans[end]->max_sampled();
      if (num_rows > parts_.sizes.limits.max_num_logit_rows) break;
    }
    QUIRE_CHECK(end > begin, "[cpu] a token of a span has no logits row");
    const size_t count = end - begin;
    QUIRE_RETURN_IF_ERROR(sample_together(plan, std::span(spans).subspan(begin, count),
                                          std::span(results).subspan(begin, count)));
    begin = end;
  }
  return {};
}

Status HostRunner::sample_together(const BatchPlan& plan, std::span<const SeqSpan* const> spans,
                                   std::span<SpanResult> results) {
  std::vector<int32_t> token_rows;
  std::vector<int64_t> first_rows;
  for (const SeqSpan* span : spans) {
    first_rows.push_back(std::ssize(token_rows));
    const int first = span->decodes ? 0 : span->num_tokens - 1;
    for (int i = 0; i < span->max_sampled(); ++i) {
      token_rows.push_back(span->first_token + first + i);
    }
  }
  if (model().config().embeds) return read_hidden_states(token_rows, spans, results);
  const auto num_rows = static_cast<int>(token_rows.size());
  std::vector<RowBest> best;
  if (choose_from_parts(spans)) {
    QUIRE_RETURN_IF_ERROR(model().compute_logits_part(token_rows.data(), num_rows));
    best = find_best(spans, num_rows);
  } else {
    QUIRE_RETURN_IF_ERROR(
        model().compute_logits(token_rows.data(), num_rows, outputs_.view.rows(0, num_rows)));
  }
  device_.pool.parallel_for(std::ssize(spans), [&](int64_t i) {
    const std::span from_first = std::span(best).subspan(best.empty() ? 0 : first_rows[i]);
    sample_span(plan, *spans[i], {.first_row = first_rows[i], .best = from_first}, results[i]);
  });
  return {};
}

bool HostRunner::choose_from_parts(std::span<const SeqSpan* const> spans) const {
  if (!model().divides_logits() || parts_.verification.compares_probs()) return false;
  return std::ranges::all_of(spans, [&](const SeqSpan* span) {
    return span->mask_idx < 0 && slots_[span->slot].sampler->chooses_from_parts();
  });
}

std::vector<HostRunner::RowBest> HostRunner::find_best(std::span<const SeqSpan* const> spans,
                                                       int num_rows) {
  struct Row {
    const SamplerState* sampler;
    int num_drafts;  // the number of drafts of its span before the row
  };
  std::vector<Row> rows;
  for (const SeqSpan* span : spans) {
    for (int i = 0; i < span->max_sampled(); ++i) rows.push_back({&*slots_[span->slot].sampler, i});
  }
  const LogitsPart part = model().logits_part(num_rows);
  const int64_t width = part.logits.shape[1];
  // Calls find(row, its logits) for every row of this part, and keep(row, found) for all parts.
  const auto for_all_parts = [&](auto find, auto keep) {
    using Found = decltype(find(size_t{}, std::span<const float>()));
    static_assert(std::is_trivially_copyable_v<Found>, "the ranks exchange its bytes");
    std::vector<Found> own(rows.size());
    device_.pool.parallel_for(num_rows, [&](int64_t i) {
      const float* const logits = part.logits.as<float>() + i * width;
      own[i] = find(static_cast<size_t>(i), std::span(logits, static_cast<size_t>(width)));
    });
    std::vector<Found> all(own.size() * static_cast<size_t>(device_.ranks->size()));
    device_.ranks->all_gather(device_.rank, std::as_writable_bytes(std::span(own)),
                              std::as_writable_bytes(std::span(all)));
    for (size_t i = 0; i < all.size(); ++i) keep(i % own.size(), all[i]);
  };
  std::vector<RowBest> best(rows.size());
  for_all_parts(
      [&](size_t, std::span<const float> logits) { return largest_logit(logits, part.first_id); },
      [&](size_t i, const LargestLogit& largest) { best[i].largest.add(largest); });
  const auto is_random = [](const Row& row) { return row.sampler->is_random(); };
  if (std::ranges::none_of(rows, is_random)) return best;
  // A token's score is exp((logit - largest) / temperature) / -log(u). Because the largest logit is
  // over all parts, the score has the same bits as with whole rows.
  for_all_parts(
      [&](size_t i, std::span<const float> logits) {
        if (!is_random(rows[i])) return ScoredToken();
        return rows[i].sampler->best_of_part(logits, part.first_id, best[i].largest,
                                             rows[i].num_drafts);
      },
      [&](size_t i, const ScoredToken& drawn) { best[i].drawn.add(drawn); });
  return best;
}

Status HostRunner::read_hidden_states(std::span<const int32_t> token_rows,
                                      std::span<const SeqSpan* const> spans,
                                      std::span<SpanResult> results) {
  const auto num_rows = static_cast<int>(token_rows.size());
  const TensorView rows = outputs_.view.rows(0, num_rows);
  QUIRE_RETURN_IF_ERROR(model().hidden_states(token_rows.data(), num_rows, rows));
  const int64_t width = rows.shape[1];
  for (size_t i = 0; i < spans.size(); ++i) {
    const float* row = rows.as<float>() + static_cast<int64_t>(i) * width;
    results[i].seq_id = spans[i]->seq_id;
    results[i].hidden_state.assign(row, row + width);
  }
  return {};
}

void HostRunner::sample_span(const BatchPlan& plan, const SeqSpan& span, SpanLogits logits,
                             SpanResult& sampled) {
  Slot& slot = slots_[span.slot];
  if (span.mask_idx >= 0) {
    logits.masks =
        std::span(plan.token_masks)
            .subspan(static_cast<size_t>(span.mask_idx), 1 + static_cast<size_t>(span.num_drafts));
  }
  sampled.seq_id = span.seq_id;
  sampled.num_drafts = span.num_drafts;
  sampled.prompt_logprobs = std::exchange(slot.prompt_logprobs, {});
  const Status status = parts_.verification.compares_probs()
                            ? verify_sampled_drafts(span, logits, sampled.tokens)
                            : match_drafts(span, logits, sampled.tokens);
  // After accepted drafts the next step reports the error, because it samples from the same logits.
  if (sampled.tokens.empty()) sampled.error = status;
  if (!slot.prompt_error.ok()) sampled.error = slot.prompt_error;
  update_progress(span.slot);
}

// Samples the span's tokens in order, and stops at the first that differs from its draft: the
// logits after it are not valid. Synthetic acceptance also samples, so that it takes the same time,
// but its rates decide how many drafts are accepted.
Status HostRunner::match_drafts(const SeqSpan& span, const SpanLogits& logits,
                                std::vector<SampledToken>& tokens) {
  SamplerState& sampler = *slots_[span.slot].sampler;
  const Verification& verification = parts_.verification;
  const auto num_drafts = static_cast<size_t>(span.num_drafts);
  const std::span drafts = next_tokens(span.slot).subspan(1, num_drafts);
  std::optional<size_t> num_synthetic;
  if (verification.is_synthetic()) {
    num_synthetic = count_synthetic(std::span(verification.synthetic_rates).first(num_drafts),
                                    sampler.draft_noise().synthetic_acceptance());
  }
  for (size_t i = 0; i <= num_drafts; ++i) {
    const std::span row = logits_row(logits.first_row + static_cast<int64_t>(i));
    int32_t token_id = 0;
    QUIRE_RETURN_IF_ERROR(logits.best.empty() ? sampler.choose(row, logits.mask(i), token_id)
                                              : sampler.choose(logits.best[i].largest,
                                                               logits.best[i].drawn, token_id));
    const bool is_accepted =
        i < num_drafts && (num_synthetic ? i < *num_synthetic : token_id == drafts[i]);
    if (is_accepted) token_id = drafts[i];
    sampler.append(token_id);
    tokens.push_back({.token_id = token_id, .logprobs = sampler.logprobs(row, token_id)});
    if (!is_accepted) break;
  }
  return {};
}

Status HostRunner::verify_sampled_drafts(const SeqSpan& span, const SpanLogits& logits,
                                         std::vector<SampledToken>& tokens) {
  SamplerState& sampler = *slots_[span.slot].sampler;
  const auto row = [&](size_t i) { return logits_row(logits.first_row + static_cast<int64_t>(i)); };
  std::vector<Draft> drafts;
  for (size_t i = 0; i < static_cast<size_t>(span.num_drafts); ++i) {
    const std::span<float> probs = draft_probs(span.slot, i);
    if (const auto mask = logits.mask(i)) keep_allowed(*mask, probs);
    drafts.push_back({.token_id = next_tokens(span.slot)[i + 1], .probs = probs});
  }
  thread_local TokenDistribution target;
  Status status;
  const TargetAt target_at = [&](size_t i) -> const TokenDistribution* {
    if (i > 0) sampler.assume(drafts[i - 1].token_id);
    status = sampler.distribution(row(i), logits.mask(i), target);
    return status.ok() ? &target : nullptr;
  };
  const auto [num_accepted, next_token] =
      verify_drafts(parts_.verification.method, drafts, target_at, sampler.draft_noise());
  sampler.settle(num_accepted);
  const auto report = [&](size_t i, int32_t token_id) {
    tokens.push_back({.token_id = token_id, .logprobs = sampler.logprobs(row(i), token_id)});
  };
  for (size_t i = 0; i < num_accepted; ++i) report(i, drafts[i].token_id);
  if (next_token >= 0) {
    sampler.append(next_token);
    report(num_accepted, next_token);
  }
  return status;
}

// Updates the slot's length and next token. The newest token is not counted, because it is not
// computed yet.
void HostRunner::update_progress(int slot_idx) {
  const SamplerState& sampler = *slots_[slot_idx].sampler;
  num_computed_[static_cast<size_t>(slot_idx)] = sampler.num_tokens() - 1;
  next_tokens(slot_idx).front() = sampler.last_token();
}

std::span<int32_t> HostRunner::next_tokens(int slot_idx) {
  const auto q_len = static_cast<size_t>(parts_.sizes.limits.decode_q_len());
  return std::span(next_tokens_).subspan(static_cast<size_t>(slot_idx) * q_len, q_len);
}

std::span<const float> HostRunner::confidences(int slot_idx, int num_drafts) const {
  const auto most = static_cast<size_t>(parts_.sizes.limits.num_drafts);
  return std::span(confidences_)
      .subspan(static_cast<size_t>(slot_idx) * most, static_cast<size_t>(num_drafts));
}

void HostRunner::broadcast_from_rank0(std::span<int32_t> values) {
  if (device_.ranks == nullptr || !parts_.verification.is_adaptive) return;
  device_.ranks->broadcast(device_.rank, values);
}

void HostRunner::drop_unprofitable_drafts(const BatchPlan& plan) {
  std::vector<AdaptiveDrafts::Proposal> proposals;
  int num_other_rows = 0;
  for (const SeqSpan& span : plan.spans) {
    num_other_rows += span.decodes ? 1 : span.num_tokens;
    if (!span.decodes) continue;
    const int num_drafts = std::min(span.num_drafts, num_proposed(span.slot));
    proposals.push_back({.confidences = confidences(span.slot, num_drafts)});
  }
  if (proposals.empty()) return;
  adaptive_->choose(proposals, num_other_rows);
  auto proposal = proposals.begin();
  for (const SeqSpan& span : plan.spans) {
    if (span.decodes) num_proposed(span.slot) = proposal++->num_kept;
  }
}

void HostRunner::observe_step(const StepResult& result) {
  std::vector<VerifiedSpan> verified;
  auto sampled = result.spans.begin();
  for (const SeqSpan& span : spans_) {
    if (!span.samples) continue;
    const auto num_tokens = static_cast<int>(sampled++->tokens.size());
    if (span.num_drafts == 0) continue;
    verified.push_back({.confidences = confidences(span.slot, span.num_drafts),
                        .num_accepted = std::max(num_tokens - 1, 0)});
  }
  const auto num_rows = static_cast<int>(inputs_.token_ids.size());
  adaptive_->observe_step(num_rows, result.verify_seconds, verified);
}

// The next step is not planned yet. It probably verifies as many drafts per sequence as this step,
// which is none while too many sequences decode. This does not hold for a sequence under a
// constraint, because the constraint may have cut its drafts. It gets proposals only if its result
// reports them.
Status HostRunner::propose_drafts(const BatchPlan& plan, double& seconds) {
  const WallTimer watch;
  std::vector<int32_t> slots;
  std::vector<int32_t> num_wanted;
  for (const SeqSpan& span : plan.spans) {
    slots.push_back(span.samples ? span.slot : -1);
    const int if_free = span.decodes ? span.num_drafts : plan.decode_q_len - 1;
    const int if_constrained = span.reports_drafts ? plan.decode_q_len - 1 : 0;
    const int most = span.mask_idx >= 0 ? if_constrained : if_free;
    num_wanted.push_back(span.samples ? most : 0);
  }
  if (adaptive_) adaptive_->lower_wanted(num_wanted);
  broadcast_from_rank0(num_wanted);
  const HostDraftCall call = {.slots = slots.data(),
                              .num_spans = static_cast<int>(slots.size()),
                              .num_wanted = num_wanted.data(),
                              .num_computed = num_computed_.data(),
                              .next_tokens = next_tokens_.data(),
                              .num_proposed = num_proposed_.data(),
                              .confidences = confidences_.data(),
                              .spans = spans_,
                              .slot_views = slot_views_,
                              .probs = draft_probs_.view.as<float>()};
  const Status status = drafter_->propose(call);
  seconds = watch.seconds();
  if (adaptive_) {
    const int most = std::ranges::max(num_wanted);
    const auto num_seqs = static_cast<int>(std::ranges::count(num_wanted, most));
    adaptive_->observe_proposal(most, num_seqs, seconds);
  }
  return status;
}

void HostRunner::report_drafts(std::span<SpanResult> results) {
  auto result = results.begin();
  for (const SeqSpan& span : spans_) {
    if (!span.samples) continue;
    SpanResult& reported = *result++;
    if (!span.reports_drafts) continue;
    const auto count = static_cast<size_t>(num_proposed(span.slot));
    const std::span drafts = next_tokens(span.slot).subspan(1, count);
    reported.next_drafts.assign(drafts.begin(), drafts.end());
  }
}

}  // namespace quire
