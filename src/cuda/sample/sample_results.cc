#include "cuda/sample/sample_results.h"

#include "sample/logits_error.h"

namespace quire::cuda {

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
  return internal_error("[sample] a result of the device is unreadable");
}

SampledSpan to_sampled_span(const RowResult* results, const LogprobsResult* logprobs) {
  SampledSpan span;
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

}  // namespace quire::cuda
