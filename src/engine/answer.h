// Postprocesses one sample of a request: converts tokens to text, detects stops, and decides which
// text may be shown.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/stop.h"
#include "quire/request.h"
#include "sched/batch_plan.h"
#include "tokenizer/tokenizer.h"

namespace quire {

class Answer {
 public:
  // The initial state of the n samples of a request, computed once because the prompt may be long.
  struct Start {
    SharedTokenIds prompt_ids;
    // Already contains the prompt. Absent without a tokenizer or with detokenize off.
    std::optional<IncrementalDetokenizer> detokenizer;
    StopSearch stop_search;
    // Bitmap of the tokens that min_tokens forbids, as in TokenConstraint::allowed_tokens; null:
    // none.
    std::shared_ptr<const std::vector<uint32_t>> forbidden_ends;
  };
  // Without a tokenizer there is no text; otherwise the tokenizer outlives the answers. The seed of
  // `sampling` is not used.
  static Start start_of(const Tokenizer* tokenizer, const SamplingSpec& sampling,
                        std::vector<int32_t> prompt_ids);

  // `index` is the sample's index among the request's n.
  Answer(const Start& start, std::shared_ptr<const SamplingSpec> sampling,
         std::span<const int32_t> eos_ids, int index,
         std::unique_ptr<TokenConstraint> constraint = nullptr);

  int index() const { return index_; }
  // Whether a constraint restricts the next token; allowed_tokens() returns the tokens that it
  // allows.
  bool is_constrained() const { return constraint_ != nullptr; }
  std::vector<uint32_t> allowed_tokens();
  // Set by allowed_tokens() if the answer must end without the next sampled token. kStop: the
  // constraint allows only its end tokens, which min_tokens forbids. kError: the constraint failed
  // or threw.
  struct ForcedEnd {
    FinishReason reason = FinishReason::kStop;
    Status error;
  };
  const std::optional<ForcedEnd>& forced_end() const { return forced_end_; }

  // Appends the span's tokens up to the first that ends the answer; if forced_end() is set, ends
  // without them. The output has a finish_reason if the answer ended, and kError with an error if
  // its constraint rejects a token. The first output reports num_cached_tokens of the prompt.
  // at_max_length: no token may follow the span.
  Output accept(SampledSpan&& span, int num_cached_tokens, bool at_max_length);

  // The last output of an answer that ends without a token, with the text that was still held back.
  Output end(FinishReason reason, Status error);

 private:
  Output end_as_forced(SampledSpan&& span, int num_cached_tokens);
  void carry_prompt(SampledSpan& span, int num_cached_tokens, Output& output);
  void accept_token(SampledToken&& token, bool at_max_length, Output& output);
  Status take(int32_t token_id);
  bool allows_only_forbidden_ends(const std::vector<uint32_t>& mask) const;
  void append_text(int32_t token_id, Output& output);
  void stop_at_string(Output& output);
  void show_text(Output& output);

  std::shared_ptr<const SamplingSpec> sampling_;
  std::optional<IncrementalDetokenizer> detokenizer_;
  std::vector<int32_t> eos_ids_;
  SharedTokenIds prompt_ids_;  // null after the first output
  int index_;
  std::unique_ptr<TokenConstraint> constraint_;
  std::shared_ptr<const std::vector<uint32_t>> forbidden_ends_;
  std::optional<ForcedEnd> forced_end_;
  int num_output_tokens_ = 0;
  std::string text_;  // all text, including text not yet shown
  size_t shown_bytes_ = 0;
  StopSearch stop_search_;  // skips the text of tokens protected by min_tokens
};

}  // namespace quire
