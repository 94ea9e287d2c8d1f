// A request and its outputs.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/status.h"

namespace quire {

// The fields have vLLM's names and definitions.
struct SamplingParams {
  int n = 1;                 // independent sequences for the same prompt
  float temperature = 1.0F;  // 0: greedy
  float top_p = 1.0F;        // (0, 1]
  int top_k = 0;             // 0 or -1: off
  float min_p = 0.0F;        // [0, 1]; fraction of the most likely token's probability
  std::optional<uint64_t> seed;
  float repetition_penalty = 1.0F;                    // > 0; over prompt and output
  float presence_penalty = 0.0F;                      // [-2, 2]; over output
  float frequency_penalty = 0.0F;                     // [-2, 2]; over output
  std::vector<std::pair<int32_t, float>> logit_bias;  // token id (each once), added to its logit
  std::vector<int32_t> allowed_token_ids;             // empty: all
  std::vector<std::string> bad_words;                 // the output never contains one of these

  int max_tokens = 16;
  int min_tokens = 0;  // end-of-sequence and stop ids are forbidden before this many, unless a
                       // constraint allows nothing else
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos = false;

  std::optional<int> logprobs;         // of the sampled token and this many most likely tokens
  std::optional<int> prompt_logprobs;  // the same for each token of the prompt

  bool skip_special_tokens = true;
  bool detokenize = true;
};

// Restricts one sequence token by token, for example by a grammar. Only the engine's thread uses
// the object. If the object throws, its sequence ends with FinishReason::kError.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Bit i % 32 of word i / 32 is set if token i may come next. Tokens beyond the last word are
  // forbidden.
  virtual std::vector<uint32_t> allowed_tokens() = 0;
  // Called with the chosen token. Returns false if the constraint rejects it; the sequence then
  // fails.
  virtual bool accept(int32_t token_id) = 0;
  // Returns whether rollback() could undo the tokens that accept() gets from now on. Speculative
  // decoding asks this before each draft, because it calls accept() for drafts on trial. A
  // constraint may refuse drafts for a while, for example if they take too long.
  virtual bool can_roll_back() const { return false; }
  // Undoes the newest `num_tokens` accepted tokens. Returns false if the constraint cannot undo
  // them; the sequence then fails.
  virtual bool rollback(int /*num_tokens*/) { return false; }
  // Not ok if an error has left no allowed token. The sequence then ends with that error.
  virtual Status status() const { return {}; }
};

// Makes the constraint of a sequence. The factory owns everything that it needs.
using ConstraintFactory = std::function<std::unique_ptr<TokenConstraint>()>;

// Asks an embedding model for the prompt's embedding instead of text.
struct EmbeddingParams {
  // The embedding is cut to this length, for models with Matryoshka embeddings; 0: not cut.
  int dimensions = 0;
};

struct Request {
  std::string prompt;                     // used when prompt_token_ids is empty
  std::vector<int32_t> prompt_token_ids;  // used as given
  bool add_special_tokens = true;         // when `prompt` is tokenized
  SamplingParams sampling;
  int priority = 0;        // lower is served first; ties by arrival
  std::string cache_salt;  // requests share cached prefixes only under the same salt
  // Tokens of the prompt before its last message; 0: unknown. A later prompt most likely repeats
  // them, so a model with recurrent states keeps the state after their last full block.
  int num_history_tokens = 0;
  // Called once per sample, before the request is scheduled. Empty: any token is allowed.
  ConstraintFactory make_constraint;
  // Required for embedding models, refused for other models. An embedding model does not use
  // `sampling` and `make_constraint`.
  std::optional<EmbeddingParams> embedding = {};
  // The replica that must serve the request; absent: the engine chooses one.
  std::optional<int> data_parallel_rank = {};
  // Requests of one session prefer the replica that served the session last; empty: no session.
  // Sessions of different `cache_salt` are different.
  std::string session_id = {};
};

struct TokenLogprob {
  int32_t token_id = 0;
  float logprob = 0.0F;
  int rank = 0;  // 1: the most likely
};

// The chosen token, followed by the most likely tokens in descending order.
using PositionLogprobs = std::vector<TokenLogprob>;

enum class FinishReason { kStop, kLength, kCancelled, kError };
constexpr std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

// Why the prefix cache does not have all full blocks of a prompt.
enum class CacheMiss {
  kNone,      // all of them are cached
  kDisabled,  // not looked up: prefix caching is off, or the request asks for prompt_logprobs
  kTooShort,  // the prompt has no full block before its last token
  // Its first block was never cached under this salt. No cause names another salt, because it would
  // tell one tenant what another has sent.
  kFirstUse,
  kChangedPrompt,  // its first blocks are cached; the next one never was
  kEvicted,        // its next block was cached and has been evicted
  kNoSnapshot,     // its next block is cached, but not the recurrent state after it
};
inline constexpr size_t kNumCacheMisses = 7;
using CacheMissCounts = std::array<int64_t, kNumCacheMisses>;  // sequences, by CacheMiss
// The name of the cause in responses and metrics.
constexpr std::string_view cache_miss_name(CacheMiss miss) {
  switch (miss) {
    case CacheMiss::kNone:
      return "";
    case CacheMiss::kDisabled:
      return "disabled";
    case CacheMiss::kTooShort:
      return "too_short";
    case CacheMiss::kFirstUse:
      return "first_use";
    case CacheMiss::kChangedPrompt:
      return "changed_prompt";
    case CacheMiss::kEvicted:
      return "evicted";
    case CacheMiss::kNoSnapshot:
      return "no_snapshot";
  }
  return "";
}

// Token ids that several samples share.
using SharedTokenIds = std::shared_ptr<const std::vector<int32_t>>;

// The place of an added token in the output text. An added token may be a marker of a tool call.
// Text that is only spelled like an added token has no such entry.
struct AddedTokenPlace {
  int32_t token_id = 0;
  size_t begin = 0;  // byte offsets in Output::text
  size_t end = 0;    // equal to `begin` for a special token that the text omits
};

// New output of one sample (`index` of n).
struct Output {
  int index = 0;
  std::string text;                               // new text, whole code points
  std::vector<AddedTokenPlace> added_tokens;      // in the order of the text
  std::vector<int32_t> token_ids;                 // new tokens
  std::vector<PositionLogprobs> logprobs;         // one per new token, when requested
  std::vector<PositionLogprobs> prompt_logprobs;  // once, with the first output; [0] is empty
  SharedTokenIds prompt_token_ids;                // once, with the first output; otherwise null
  int num_cached_tokens = 0;                      // prompt tokens found in the prefix cache
  CacheMiss cache_miss = CacheMiss::kNone;        // why the cache has no more of them
  // An embedding model's only output, with FinishReason::kStop. Its length is 1 if the model
  // normalizes embeddings.
  std::vector<float> embedding;
  int data_parallel_rank = 0;  // the replica that serves the request
  // The time when a step first included the sample; absent: no step has.
  std::optional<std::chrono::steady_clock::time_point> first_scheduled;
  std::optional<FinishReason> finish_reason;  // set on a sequence's last output
  std::string stop_reason;                    // the stop string or id that ended the sample, if any
  Status error;                               // with FinishReason::kError
};

}  // namespace quire
