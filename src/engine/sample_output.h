// Postprocesses one sample of a request: converts tokens to text, detects stops, and holds back
// text that may be the beginning of a stop string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/embedding.h"
#include "quire/request.h"
#include "sched/batch_plan.h"
#include "tokenizer/tokenizer.h"

namespace quire {

struct StopDecision {
  FinishReason reason;
  std::string stop_reason;  // the stop string or id; empty for end-of-sequence and length
};

// Checks the newest token: end-of-sequence, a stop id, or no room for another token.
// num_output_tokens includes the newest one. params.stop_token_ids must be sorted (InputProcessor
// sorts them), because the check runs for every token and the list may be as long as the
// vocabulary.
std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length);

struct StopStringMatch {
  size_t begin = 0;  // byte offset in the text
  size_t end = 0;
  size_t stop_idx = 0;
};

// Searches a growing text for stop strings (Knuth, Morris and Pratt). Each byte is read once, so
// that the cost of a token does not depend on the length of the stop strings. A copy continues from
// the same position and shares the tables.
class StopSearch {
 public:
  explicit StopSearch(std::span<const std::string> stops);

  // Ignores matches that begin before `position`. Call it before the first read().
  void skip_to(size_t position) { position_ = position; }
  // Reads the part of `text` that follows the text of the last call; `text` must begin with that
  // text. Returns the stop string that ends first; of several that end together, the longest. A
  // match ends the search.
  std::optional<StopStringMatch> read(std::string_view text);
  // Bytes at the end of the text read so far that could begin a stop string.
  size_t num_held_back() const;

 private:
  struct Stop {
    std::string text;
    // Entry i is the length of the longest proper prefix of text[0, i] that is also its suffix.
    std::vector<size_t> borders;
  };
  static size_t extend(const Stop& stop, size_t num_matched, char next);

  std::shared_ptr<const std::vector<Stop>> stops_;
  std::vector<size_t> num_matched_;  // by stop string: bytes of it at the end of the text
  size_t position_ = 0;              // of the next byte to read
};

// The state of one sample, from its prompt to its last output.
class SampleOutput {
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
    std::optional<EmbeddingSpec> embedding = {};  // the only output, instead of tokens
  };
  // Without a tokenizer there is no text. A tokenizer must outlive the sample. The seed of
  // `sampling` is not used.
  static Start start_of(const Tokenizer* tokenizer, const SamplingSpec& sampling,
                        std::vector<int32_t> prompt_ids);

  // `index` is the sample's index among the request's n.
  SampleOutput(const Start& start, std::shared_ptr<const SamplingSpec> sampling,
               std::span<const int32_t> eos_ids, int index,
               std::unique_ptr<TokenConstraint> constraint = nullptr);

  int index() const { return index_; }
  int num_output_tokens() const { return num_output_tokens_; }
  // Whether a constraint restricts the next tokens.
  bool is_constrained() const { return constraint_ != nullptr; }
  // Returns the number of drafts that may be verified: all drafts before the first forbidden one.
  // Adds the mask of the next token, and of the token after each of these drafts. Restores the
  // state of the constraint.
  int add_masks(std::span<const int32_t> drafts, std::vector<std::vector<uint32_t>>& masks);
  // Whether the next step may have drafts of this sample.
  bool can_have_drafts() const;
  // Set by add_masks() if the sample must end once the first num_tokens drafts are accepted. kStop:
  // the constraint then allows only end tokens, which min_tokens forbids. kError: the constraint
  // failed or threw.
  struct ForcedEnd {
    FinishReason reason = FinishReason::kStop;
    Status error;
    size_t num_tokens = 0;
  };
  const std::optional<ForcedEnd>& forced_end() const { return forced_end_; }
  bool must_end_now() const { return forced_end_ && forced_end_->num_tokens == 0; }

  // Appends the span's tokens up to the first token that ends the sample, or up to forced_end().
  // The output has a finish_reason if the sample has ended: kError if its constraint rejects a
  // token. The first output reports num_cached_tokens of the prompt. at_max_length: no token may
  // follow the span. A span with a hidden state ends the sample with its embedding.
  Output accept(SpanResult&& span, int num_cached_tokens, bool at_max_length);

  // Returns the last output of a sample that ends without a token, with the text held back so far.
  Output end(FinishReason reason, Status error);

 private:
  Output embed(SpanResult&& span, int num_cached_tokens);
  void attach_prompt(SpanResult& span, int num_cached_tokens, Output& output);
  void accept_token(SampledToken&& token, bool at_max_length, Output& output);
  Status accept_by_constraint(int32_t token_id);
  // The mask of the token after `num_drafts` drafts, which the constraint has accepted on trial.
  std::vector<uint32_t> allowed_after(size_t num_drafts);
  // Removes the end tokens that min_tokens forbids after num_output tokens. Returns false if only
  // these were allowed.
  bool remove_forbidden_ends(int num_output, std::vector<uint32_t>& mask) const;
  void roll_back(int num_drafts);
  void end_text(Output& output);
  void append_text(int32_t token_id, Output& output);
  void push_token(int32_t token_id);
  void stop_at_string(Output& output);
  void emit_text(Output& output);
  void emit_added_tokens(size_t end, Output& output);

  std::shared_ptr<const SamplingSpec> sampling_;
  std::optional<IncrementalDetokenizer> detokenizer_;
  std::vector<int32_t> eos_ids_;
  SharedTokenIds prompt_ids_;  // null after the first output
  int index_;
  std::unique_ptr<TokenConstraint> constraint_;
  std::shared_ptr<const std::vector<uint32_t>> forbidden_ends_;
  std::optional<EmbeddingSpec> embedding_;
  std::optional<ForcedEnd> forced_end_;
  int num_output_tokens_ = 0;
  std::string text_;  // all text, including text held back
  size_t emitted_bytes_ = 0;
  std::vector<AddedTokenPlace> added_tokens_;  // not emitted yet; offsets in text_
  StopSearch stop_search_;  // does not search the text of the first min_tokens tokens
};

}  // namespace quire
