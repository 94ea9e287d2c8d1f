#include "platform/uniform_drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/byte_archive.h"

namespace quire {
namespace {

// The least ratio by which drafts must raise the tokens per second, because costs and rates are
// estimates.
constexpr double kMinGain = 1.01;

// A GPU's drafter states no confidence, so all drafts at one index count alike.
constexpr std::array<float, kMaxDrafts> kEqualConfidences = [] {
  std::array<float, kMaxDrafts> confidences = {};
  confidences.fill(1.0F);
  return confidences;
}();

}  // namespace

double DraftCosts::step_seconds(int num_seqs, size_t choice) const {
  const auto seconds = [&](size_t size) {
    const size_t at = size * num_drafts.size() + choice;
    return verify_seconds[at] + propose_seconds[at];
  };
  const auto above = std::ranges::lower_bound(batch_sizes, num_seqs);
  const auto idx = static_cast<size_t>(above - batch_sizes.begin());
  if (above == batch_sizes.end()) return seconds(idx - 1);
  if (idx == 0) return seconds(0);
  const int below = *std::prev(above);
  const double share = static_cast<double>(num_seqs - below) / (*above - below);
  return seconds(idx - 1) + share * (seconds(idx) - seconds(idx - 1));
}

template <typename Archive, typename Value>
requires std::is_same_v<std::remove_const_t<Value>, DraftCosts>
void fields(Archive& archive, Value& costs) {
  archive(costs.batch_sizes, costs.num_drafts, costs.verify_seconds, costs.propose_seconds);
}

std::string draft_costs_to_bytes(const DraftCosts& costs) {
  ByteWriter writer;
  writer(costs);
  return writer.take();
}

Result<DraftCosts> draft_costs_from_bytes(std::string_view bytes, const DraftCosts& own) {
  DraftCosts costs;
  ByteReader reader(bytes);
  reader(costs);
  const size_t num_times = own.batch_sizes.size() * own.num_drafts.size();
  if (reader.is_complete() && costs.batch_sizes == own.batch_sizes &&
      costs.num_drafts == own.num_drafts && costs.verify_seconds.size() == num_times &&
      costs.propose_seconds.size() == num_times) {
    return costs;
  }
  return internal_error(
      fmt::format("[runner] rank 0 has measured steps of {} batch sizes with {} numbers of drafts, "
                  "expected {} and {} as on this rank",
                  costs.batch_sizes.size(), costs.num_drafts.size(), own.batch_sizes.size(),
                  own.num_drafts.size()));
}

UniformDrafts::UniformDrafts(DraftCosts costs)
    : costs_(std::move(costs)), rates_(costs_.num_drafts.back()) {}

size_t UniformDrafts::last_choice(int most) const {
  const auto above = std::ranges::upper_bound(costs_.num_drafts, most);
  return static_cast<size_t>(above - costs_.num_drafts.begin()) - 1;
}

double UniformDrafts::num_tokens(size_t choice) const {
  double survival = 1;
  double count = 1;
  for (int i = 0; i < costs_.num_drafts[choice]; ++i) {
    survival *= rates_.mean(static_cast<size_t>(i));
    count += survival;
  }
  return count;
}

double UniformDrafts::tokens_per_second(int num_seqs, size_t choice) const {
  return num_tokens(choice) / costs_.step_seconds(num_seqs, choice);
}

size_t UniformDrafts::best_choice(int num_seqs, int most) const {
  size_t best = 0;
  double best_rate = kMinGain * tokens_per_second(num_seqs, 0);
  for (size_t choice = 1; choice <= last_choice(most); ++choice) {
    const double rate = tokens_per_second(num_seqs, choice);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = choice;
  }
  return best;
}

int UniformDrafts::choose(int num_seqs, int most) const {
  return costs_.num_drafts[best_choice(num_seqs, most)];
}

int UniformDrafts::num_verified(int num_decoding, int most) const {
  const int available = std::min(most, num_proposed_);
  return is_probe_ ? costs_.num_drafts[last_choice(available)] : choose(num_decoding, available);
}

int UniformDrafts::plan_proposals(int num_seqs, int most) {
  const size_t best = best_choice(num_seqs, most);
  ++steps_since_probe_;
  seconds_since_probe_ += costs_.step_seconds(num_seqs, best);
  const size_t proposed =
      steps_since_probe_ < kProbePeriod ? best : probe_choice(num_seqs, best, most);
  is_probe_ = proposed != best;
  num_proposed_ = costs_.num_drafts[proposed];
  if (is_probe_) {
    steps_since_probe_ = 0;
    seconds_since_probe_ = 0;
  }
  return num_proposed_;
}

// A probe's loss is its time minus the time in which the best choice gives as many tokens.
size_t UniformDrafts::probe_choice(int num_seqs, size_t best, int most) const {
  const double best_rate = tokens_per_second(num_seqs, best);
  for (size_t choice = last_choice(most); choice > best; --choice) {
    const double loss = costs_.step_seconds(num_seqs, choice) - num_tokens(choice) / best_rate;
    if (loss <= kProbeShare * seconds_since_probe_) return choice;
  }
  return best;
}

void UniformDrafts::observe(std::span<const SpanDrafts> spans) {
  std::vector<VerifiedSpan> verified;
  verified.reserve(spans.size());
  for (const SpanDrafts& span : spans) {
    verified.push_back(
        {.confidences = std::span(kEqualConfidences).first(static_cast<size_t>(span.num_drafts)),
         .num_accepted = span.num_accepted});
  }
  rates_.observe(verified);
}

int StepDrafts::num_verified(int num_decoding, int max_drafts) const {
  return chooser_ ? chooser_->num_verified(num_decoding, max_drafts) : max_drafts;
}

std::shared_ptr<const BatchPlan> StepDrafts::without_missing(
    std::shared_ptr<const BatchPlan> plan) const {
  const auto num_drafts = [&](const SeqSpan& span) {
    return std::min(span.num_drafts, num_proposed_[static_cast<size_t>(span.slot)]);
  };
  const auto has_all = [&](const SeqSpan& span) { return num_drafts(span) == span.num_drafts; };
  if (std::ranges::all_of(plan->spans, has_all)) return plan;
  auto lowered = std::make_shared<BatchPlan>(*plan);
  for (SeqSpan& span : lowered->spans) span.num_drafts = num_drafts(span);
  return lowered;
}

int StepDrafts::plan_proposals(const BatchPlan& plan) {
  const auto num_sampling = std::ranges::count(plan.spans, true, &SeqSpan::samples);
  const int count =
      chooser_ ? chooser_->plan_proposals(static_cast<int>(num_sampling), plan.max_next_drafts)
               : plan.max_next_drafts;
  for (const SeqSpan& span : plan.spans) {
    if (span.samples) num_proposed_[static_cast<size_t>(span.slot)] = count;
  }
  return count;
}

void StepDrafts::observe(const BatchPlan& plan, std::span<const SpanResult> results) {
  if (!chooser_) return;
  std::vector<SpanDrafts> spans;
  auto result = results.begin();
  for (const SeqSpan& span : plan.spans) {
    if (!span.samples) continue;
    const auto num_tokens = static_cast<int>((result++)->tokens.size());
    if (!span.decodes || num_tokens == 0) continue;
    spans.push_back({.num_drafts = plan.decode_q_len - 1, .num_accepted = num_tokens - 1});
  }
  chooser_->observe(spans);
}

}  // namespace quire
