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

SampledToken to_sampled_token(const RowResult& result, const LogprobsResult* logprobs) {
  SampledToken sampled;
  sampled.token_id = result.token_id;
  sampled.error = to_status(result.status, result.position, result.detail);
  if (logprobs != nullptr && result.status == RowStatus::kOk) {
    sampled.logprobs = to_position_logprobs(*logprobs);
  }
  return sampled;
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
