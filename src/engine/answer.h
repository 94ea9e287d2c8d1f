// `postprocess` of one answer: text from tokens, stops, and what may be shown so far.
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
  // The state in which the n answers of a request begin, computed once: its prompt may be long.
  struct Start {
    SharedTokenIds prompt_ids;
    // Primed with the prompt. Absent without a tokenizer or with detokenize off.
    std::optional<IncrementalDetokenizer> detokenizer;
    StopSearch stop_search;
    // The tokens that min_tokens forbids, as TokenConstraint::allowed_tokens; null: none.
    std::shared_ptr<const std::vector<uint32_t>> forbidden_ends;
  };
  // Without a tokenizer there is no text; otherwise it outlives the answers. The seed of `sampling`
  // is not used.
  static Start start_of(const Tokenizer* tokenizer, const SamplingSpec& sampling,
                        std::vector<int32_t> prompt_ids);

  // `index` of n.
  Answer(const Start& start, std::shared_ptr<const SamplingSpec> sampling,
         std::span<const int32_t> eos_ids, int index,
         std::unique_ptr<TokenConstraint> constraint = nullptr);

  int index() const { return index_; }
  // Whether a constraint restricts the next token, and the tokens that it allows.
  bool is_constrained() const { return constraint_ != nullptr; }
  std::vector<uint32_t> allowed_tokens();
  // Set by allowed_tokens() where the answer must end as it is: the token that is sampled for it is
  // none of its own. kStop: min_tokens forbids all that the constraint allows, its end. kError: the
  // constraint has failed or thrown.
  struct ForcedEnd {
    FinishReason reason = FinishReason::kStop;
    Status error;
  };
  const std::optional<ForcedEnd>& forced_end() const { return forced_end_; }

  // Takes the span's tokens up to the first that ends the answer, or, where forced_end() says so,
  // ends in their place. The output has a finish_reason when the answer ended with it; kError with
  // an error where its constraint refuses a token. num_cached_tokens: of the prompt; part of the
  // first output. at_max_length: no token may follow the span.
  Output accept(SampledSpan&& span, int num_cached_tokens, bool at_max_length);

  // The last output of an answer that ends without a token: whatever text was still held back.
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
  SharedTokenIds prompt_ids_;  // until the first output
  int index_;
  std::unique_ptr<TokenConstraint> constraint_;
  std::shared_ptr<const std::vector<uint32_t>> forbidden_ends_;
  std::optional<ForcedEnd> forced_end_;
  int num_output_tokens_ = 0;
  std::string text_;  // all of it, shown or not
  size_t shown_bytes_ = 0;
  StopSearch stop_search_;  // leaves out the text of tokens that min_tokens protects
};

}  // namespace quire
