#include "cuda/platform/prompt_logprobs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace quire::cuda {
namespace {

size_t target_bytes(const ModelLimits& limits) {
  return 2 * static_cast<size_t>(limits.max_num_tokens) * sizeof(int32_t);
}

size_t logprobs_bytes(int num_rows) {
  return static_cast<size_t>(num_rows) * sizeof(LogprobsResult);
}

PromptChunk chunk_of(const SeqSpan& span, std::shared_ptr<Prompt> prompt, int span_idx) {
  const int last = static_cast<int>(prompt->token_ids.size()) - 1;  // nothing follows it
  const int end = std::min(span.num_computed + span.num_tokens, last);
  return {.prompt = std::move(prompt),
          .num_top = span.num_prompt_logprobs,
          .first = span.num_computed,
          .first_token = span.first_token,
          .count = std::max(0, end - span.num_computed),
          .span_idx = span_idx};
}

}  // namespace

Result<PromptLogprobs> PromptLogprobs::create(const ModelLimits& limits, int max_num_seqs) {
  PromptLogprobs made;
  made.prompts_.resize(static_cast<size_t>(max_num_seqs));
  QUIRE_ASSIGN_OR_RETURN(made.ring_, PinnedRing::create(target_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(made.targets_, device_memory(target_bytes(limits)));
  QUIRE_ASSIGN_OR_RETURN(made.results_, device_memory(logprobs_bytes(limits.max_num_logit_rows)));
  return made;
}

size_t PromptLogprobs::device_bytes(const ModelLimits& limits) {
  return target_bytes(limits) + logprobs_bytes(limits.max_num_logit_rows);
}

size_t PromptLogprobs::results_bytes(const ModelLimits& limits) {
  return logprobs_bytes(limits.max_num_tokens);
}

std::vector<PromptChunk> PromptLogprobs::update(const BatchPlan& plan) {
  for (const int slot : plan.slots_removed) prompts_[static_cast<size_t>(slot)].reset();
  for (const SlotAdded& added : plan.slots_added) {
    std::shared_ptr<Prompt>& prompt = prompts_[static_cast<size_t>(added.slot)];
    prompt.reset();
    if (!added.sampling->params->prompt_logprobs) continue;
    prompt = std::make_shared<Prompt>();
    prompt->token_ids.assign(added.token_ids.begin(),
                             added.token_ids.begin() + added.num_prompt_tokens);
    prompt->logprobs.resize(1);  // nothing predicts the first token
  }
  std::vector<PromptChunk> chunks;
  int num_sampling = 0;
  for (const SeqSpan& span : plan.spans) {
    const int span_idx = span.samples ? num_sampling++ : -1;
    if (span.num_prompt_logprobs < 0) continue;
    chunks.push_back(chunk_of(span, prompts_[static_cast<size_t>(span.slot)], span_idx));
  }
  return chunks;
}

// The logits of position p predict the token at p + 1.
Status PromptLogprobs::upload(std::span<const PromptChunk> chunks, int num_rows,
                              CudaStream& stream) {
  QUIRE_ASSIGN_OR_RETURN(std::byte* const staging, ring_.begin(stream));
  auto* rows = reinterpret_cast<int32_t*>(staging);
  int32_t* targets = rows + num_rows;
  for (const PromptChunk& chunk : chunks) {
    std::iota(rows, rows + chunk.count, chunk.first_token);
    std::copy_n(chunk.prompt->token_ids.begin() + chunk.first + 1, chunk.count, targets);
    rows += chunk.count;
    targets += chunk.count;
  }
  stream.copy_to_device(targets_.data(), staging,
                        2 * static_cast<size_t>(num_rows) * sizeof(int32_t));
  ring_.end(stream);
  return {};
}

Status PromptLogprobs::enqueue(std::span<const PromptChunk> chunks, Model& model,
                               DeviceSampler& sampler, const TensorView& logits, void* host,
                               CudaStream& stream) {
  int num_rows = 0;
  for (const PromptChunk& chunk : chunks) num_rows += chunk.count;
  if (num_rows == 0) return {};
  QUIRE_RETURN_IF_ERROR(upload(chunks, num_rows, stream));
  const auto* rows = static_cast<const int32_t*>(targets_.data());
  const int32_t* targets = rows + num_rows;
  auto* results = static_cast<LogprobsResult*>(results_.data());
  const auto max_rows = static_cast<int>(logits.shape[0]);
  for (const PromptChunk& chunk : chunks) {
    for (int i = 0; i < chunk.count; i += max_rows) {
      const int count = std::min(max_rows, chunk.count - i);
      const TensorView part = logits.rows(0, count);
      QUIRE_RETURN_IF_ERROR(model.compute_logits(rows, count, part));
      sampler.prompt_logprobs(part, targets, count, chunk.num_top, results, stream);
      stream.copy_to_host(static_cast<LogprobsResult*>(host) + chunk.first_token + i, results,
                          logprobs_bytes(count));
      rows += count;
      targets += count;
    }
  }
  return {};
}

void PromptLogprobs::read(std::span<const PromptChunk> chunks, const void* host,
                          std::span<SpanResult> spans) {
  for (const PromptChunk& chunk : chunks) {
    const auto* results = static_cast<const LogprobsResult*>(host) + chunk.first_token;
    Prompt& prompt = *chunk.prompt;
    for (int i = 0; i < chunk.count; ++i) {
      const LogprobsResult& result = results[i];
      if (prompt.error.ok()) {
        prompt.error = to_status(result.status, chunk.first + i + 1, result.detail);
      }
      const bool is_sound = result.status == RowStatus::kOk;
      prompt.logprobs.push_back(is_sound ? to_position_logprobs(result) : PositionLogprobs());
    }
    if (chunk.span_idx < 0) continue;
    SpanResult& span = spans[static_cast<size_t>(chunk.span_idx)];
    span.prompt_logprobs = std::move(prompt.logprobs);
    if (!prompt.error.ok()) span.error = prompt.error;
  }
}

}  // namespace quire::cuda
