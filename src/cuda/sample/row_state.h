// Data that the host and the sampling kernels share, with one layout on both sides.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire::cuda {

// DeviceSampler::check refuses a request that exceeds these limits.
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int kMaxBiases = 4096;
inline constexpr int kMaxBadWords = 2048;
inline constexpr int kMaxBadWordIds = 16384;  // in all words of a row
inline constexpr int kMaxOutputTail = 8192;   // the longest bad word

enum RowFlag : uint32_t {
  kHasAllowed = 1,
  kHasStops = 2,
  kHasBadWords = 4,
  kHasBias = 8,
  kHasPenalties = 16,
};

// Sampling state of one sequence; the device advances `position` and `num_output`.
struct RowState {
  uint64_t seed;
  int64_t position;   // of the next token
  float temperature;  // below kGreedyBelow: greedy
  float top_p;        // 1: off
  float min_p;        // 0: off
  int32_t top_k;      // 0: off; below the vocabulary's size
  float repetition_penalty;
  float presence_penalty;
  float frequency_penalty;
  int32_t num_logprobs;  // -1: none
  int32_t num_output;
  int32_t min_tokens;
  int32_t num_biases;
  int32_t num_bad_words;
  uint32_t flags;
  int32_t table;  // index of its rule table; -1: none
};

inline constexpr float kGreedyBelow = 1e-5F;  // vLLM's threshold between greedy and random
inline constexpr uint32_t kInPrompt = uint32_t{1} << 31;

// Device memory. The rule tables are a pool: only sequences with a flag own one, and
// RowState::table is its index. Bitmaps have one bit per token.
struct RowTables {
  RowState* states;       // [rows]
  int32_t* num_computed;  // [rows]: tokens in the KV cache once the row decodes
  int32_t* next_tokens;   // [rows, q_len]: the newest token, then the drafts that follow it
  uint32_t* forbidden;    // [logits rows, bitmap_words]: scratch memory of a step
  // [tables, ...]
  uint32_t* seen;          // [vocab_stride]: output count, and kInPrompt
  uint32_t* allowed;       // [bitmap_words]
  uint32_t* stops;         // [bitmap_words]
  uint32_t* biased;        // [bitmap_words]
  int32_t* bias_ids;       // [kMaxBiases], ascending; equal ids in the request's order
  float* bias_values;      // [kMaxBiases]
  int32_t* bad_word_ends;  // [kMaxBadWords], into bad_word_ids
  int32_t* bad_word_ids;   // [kMaxBadWordIds]
  int32_t* output_tail;    // [tail_size]: output token n at n % tail_size
  int32_t vocab_size;
  int32_t vocab_stride;  // vocab_size, rounded up to a multiple of 4
  int32_t bitmap_words;
  int32_t tail_size;
  int32_t q_len;  // 1 and the number of drafts
};

// The kernels that choose a row's token. Each also supports everything that the passes before it
// do.
enum class SamplePass : int32_t {
  kOnePass,  // greedy, and random over the whole vocabulary: one read of the logits
  kFilter,   // top-k, top-p, min-p
  kRules,    // penalties, bias, allowed ids, bad words, min_tokens, the step's token mask
};
inline constexpr int kNumSamplePasses = 3;

// Pass and mask of one logits row.
struct SampleRow {
  SamplePass pass;
  int32_t mask_idx;  // < 0: every token may be sampled
};

enum class RowStatus : int32_t {
  kOk,
  kPadding,     // row id < 0: the other fields have no meaning
  kNan,         // detail: id of the first NaN logit
  kInfinite,    // a logit is +infinity
  kNoneFinite,  // every logit is -infinity
  kNoneAllowed  // every logit is -infinity once the rules are applied
};

// Result of a sampled logits row.
struct RowResult {
  int32_t token_id;
  RowStatus status;
  int64_t position;  // of the token
  int32_t detail;
  int32_t
      num_tokens;  // at a span's first row: how many of the span's tokens, from here on, are kept
  int32_t pad[2];
};

// Log probabilities at one position.
struct LogprobsResult {
  int32_t num_top;   // -1: not requested
  RowStatus status;  // not kOk: the logits are invalid, and the other fields have no meaning
  int32_t detail;    // with kNan: id of the first NaN logit
  int32_t token_id;
  int32_t rank;
  float logprob;
  int32_t top_ids[kMaxTopLogprobs];
  float top_logprobs[kMaxTopLogprobs];
};

// A row that is being uploaded. Its lists are in the block's words, from word `first` on.
struct WordSpan {
  int32_t first;
  int32_t count;
};
struct AddedRow {
  RowState state;
  int32_t row;
  int32_t last_token;
  WordSpan prompt_ids;   // with penalties
  WordSpan output_ids;   // with penalties
  WordSpan output_tail;  // with bad words: in the ring's own order
  WordSpan allowed;      // bitmaps
  WordSpan stops;
  WordSpan biased;
  WordSpan bias_ids;
  WordSpan bias_values;
  WordSpan bad_word_ends;
  WordSpan bad_word_ids;
};

}  // namespace quire::cuda
