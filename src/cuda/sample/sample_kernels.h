// The sampler's device arrays, as the host and the kernels share them, and the launch functions of
// its kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/numbers.h"
#include "cuda/base/stream.h"
#include "cuda/sample/verdict.h"
#include "sample/random_choice.h"

#ifdef __CUDACC__
#define QUIRE_BOTH_SIDES __host__ __device__
#else
#define QUIRE_BOTH_SIDES
#endif

namespace quire::cuda {

// check_sampling_spec() refuses a request that exceeds these limits.
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr int kMaxBiases = 4096;
inline constexpr int kMaxBadWords = 2048;
inline constexpr int kMaxBadWordIds = 16384;  // in all words of a slot
inline constexpr int kMaxOutputTail = 8192;   // the longest bad word

enum RuleFlag : uint32_t {
  kHasAllowed = 1,
  kHasStops = 2,
  kHasBadWords = 4,
  kHasBias = 8,
  kHasPenalties = 16,
};

// Sampling state of the sequence in a slot; the device advances `position` and `num_output`.
struct SlotState {
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

inline constexpr uint32_t kInPrompt = uint32_t{1} << 31;

// A list within an upload's block of words, from word `first` on.
struct WordSpan {
  int32_t first;
  int32_t count;
};
// The header of a slot that is being uploaded.
struct UploadedSlot {
  SlotState state;
  int32_t slot;
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

// Device memory. The rule tables are a pool: only sequences with a flag own one, and
// SlotState::table is its index. Bitmaps have one bit per token.
struct SlotTables {
  SlotState* states;      // [slots]
  int32_t* num_computed;  // [slots]: tokens of a decoding sequence in the KV cache
  int32_t* next_tokens;   // [slots, q_len]: the newest token, then the drafts that follow it
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
  int32_t vocab_stride;  // vocab_size rounded up to a multiple of 4
  int32_t bitmap_words;
  int32_t tail_size;
  int32_t q_len;  // 1 + the number of drafts

  // Calls visit(array, words per rule table, list) for each array that an upload fills from a list.
  template <typename Tables, typename Visit>
  QUIRE_BOTH_SIDES static void for_each_list(Tables& t, Visit visit) {
    visit(t.allowed, t.bitmap_words, &UploadedSlot::allowed);
    visit(t.stops, t.bitmap_words, &UploadedSlot::stops);
    visit(t.biased, t.bitmap_words, &UploadedSlot::biased);
    visit(t.bias_ids, kMaxBiases, &UploadedSlot::bias_ids);
    visit(t.bias_values, kMaxBiases, &UploadedSlot::bias_values);
    visit(t.bad_word_ends, kMaxBadWords, &UploadedSlot::bad_word_ends);
    visit(t.bad_word_ids, kMaxBadWordIds, &UploadedSlot::bad_word_ids);
    visit(t.output_tail, t.tail_size, &UploadedSlot::output_tail);
  }
};

// The kernels that choose a logits row's token. Each also supports everything that the kernels
// before it support.
enum class SamplePass : int32_t {
  kOnePass,  // greedy, and random over the whole vocabulary: one read of the logits
  kFilter,   // top-k, top-p, min-p
  kRules,    // penalties, bias, allowed ids, bad words, min_tokens, the step's token mask
};
inline constexpr int kNumSamplePasses = 3;

// The sampling of one logits row in a step.
struct RowSampling {
  SamplePass pass;
  int32_t mask_idx;  // < 0: every token may be sampled
};

enum class RowStatus : int32_t {
  kOk,
  kPadding,     // slot < 0: the other fields have no meaning
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
  int32_t num_tokens;  // at a span's first row: the number of kept tokens of the span
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

// The number of logits in a slice: the part of a logits row that one thread block reads, in kernels
// that read a row only once.
inline constexpr int kSliceSize = 8192;
inline constexpr int kMaxSlices = 64;
inline constexpr int num_slices(int vocab_size) {
  return ceil_div(vocab_size, kSliceSize);
}
// Rows are grid.x: the other axes are limited to 65,535.
inline dim3 slices_grid(int num_rows, int vocab_size) {
  return {static_cast<unsigned>(num_rows), static_cast<unsigned>(num_slices(vocab_size))};
}
// Slices consist of aligned groups of 4 ids, so a part of the vocabulary may span up to 6 more ids.
inline constexpr int num_part_slices(int width) {
  return num_slices(width + 6);
}

struct SlicePick {
  double score;  // of the best token of the slice
  float largest;
  int32_t token_id;
  int32_t nan_id;  // INT32_MAX: none
  int32_t pad;
};

// The tokens of the vocabulary whose logits a rank has.
struct VocabularyPart {
  int32_t first_id;
  int32_t width;
};

struct SliceLogprobs {
  double sum;  // of exp(logit - largest)
  float largest;
  int32_t nan_id;        // INT32_MAX: none
  int32_t num_at_least;  // tokens at least as likely as the target
  int32_t pad;
  uint64_t top_keys[kMaxTopLogprobs];  // descending
};

// The distribution of a logits row after its rules, temperature and filters, without a list of its
// tokens. Tokens whose token_key() (logits.cuh) is at least `key` have the weight exp((logit -
// largest) * inverse), all other tokens 0.
struct RowCut {
  uint64_t key;
  double inverse;    // of the temperature; 0 if greedy: then only one token has a weight
  float largest;     // logit
  RowStatus status;  // not kOk: no distribution
  int32_t nan_id;    // with kNan
  int32_t pad;
};

// Arguments of one sample(), per logits row; all pointers are device pointers.
struct SampleCall {
  const float* logits;     // [num_rows, vocab_size]
  const int32_t* slots;    // [num_rows]; < 0: padding
  const int32_t* offsets;  // [num_rows]: drafts of its span before the row
  int num_rows;
  RowResult* results;  // [num_rows]
  // [num_rows]: the pass that samples each row, and its mask. Null: one pass samples all rows,
  // without masks.
  const RowSampling* rows;
  const uint32_t* masks;  // [.., bitmap_words]: the tokens that a row may sample in this step
  // [num_rows], at a span's first row: the number of accepted drafts. Null: a draft is accepted if
  // it equals the sampled token.
  int32_t* num_accepted;
};

// Arguments of the verification by probabilities, besides SampleCall.
struct VerifyCall {
  bool is_block;       // block verification; otherwise standard rejection sampling
  const RowCut* cuts;  // [num_rows]: the target's distributions
  const float* probs;  // [slots, num_drafts, vocab_size]: the drafts' distributions
  VerifiedRow* rows;   // [num_rows]: scratch memory
};

enum class VerifyStage { kCompare, kResidual, kSettle };

// The logits of one draft per span.
struct DraftLogits {
  const float* logits = nullptr;   // device, F32 [num_spans, width]
  int width = 0;                   // size of the draft vocabulary
  const int32_t* slots = nullptr;  // device, [num_spans]; < 0: padding
  int num_spans = 0;
  int draft_idx = 0;                    // 0 to num_drafts - 1
  const int32_t* target_ids = nullptr;  // device, [width]: the target's id by draft id; null: the
                                        // ids are equal
};

// Copies uploaded slots from their block into the tables. The block holds `num_slots` headers, then
// words.
void launch_add_slots(const SlotTables& tables, const void* block, int num_slots,
                      CudaStream& stream);
// launch_forbid, launch_one_pass and launch_filter skip rows of other passes. launch_forbid must
// precede launch_filter for kRules: it computes, per row, the bitmap of tokens that may not be
// sampled in this step.
void launch_forbid(const SlotTables& tables, const SampleCall& call, CudaStream& stream);
// Samples the rows of kOnePass; `random`: at least one row is not greedy. picks: [num_rows,
// num_slices]; arrivals: [num_rows] zeros, which the kernel leaves zero.
void launch_one_pass(const SlotTables& tables, const SampleCall& call, bool random,
                     SlicePick* picks, uint32_t* arrivals, CudaStream& stream);
// Like launch_one_pass(), but writes the best token of each row's part to best [num_rows].
// call.logits are the logits of the part, [num_rows, part.width]. picks: [num_rows,
// num_part_slices(part.width)].
void launch_find_best(const SlotTables& tables, const SampleCall& call, const VocabularyPart& part,
                      bool random, SlicePick* picks, uint32_t* arrivals, SlicePick* best,
                      CudaStream& stream);
// Samples each row from the best tokens of all ranks' parts, best [num_ranks, num_rows].
void launch_choose_best(const SlotTables& tables, const SampleCall& call, const SlicePick* best,
                        int num_ranks, CudaStream& stream);
// Samples the rows of kFilter or kRules. num_pass_rows: how many of the call's rows the pass has;
// num_sms: SMs of the stream's device.
void launch_filter(const SlotTables& tables, const SampleCall& call, SamplePass pass,
                   int num_pass_rows, int num_sms, CudaStream& stream);
// Like launch_filter(), but writes the rows' distributions to cuts [num_rows], and no results.
void launch_cut(const SlotTables& tables, const SampleCall& call, SamplePass pass,
                int num_pass_rows, int num_sms, RowCut* cuts, CudaStream& stream);
// Writes each row's most likely token to its slot's next_tokens. picks: [num_spans,
// num_slices(width)]; arrivals: [num_spans] zeros, which the kernel leaves zero.
void launch_most_likely_drafts(const SlotTables& tables, const DraftLogits& call, SlicePick* picks,
                               uint32_t* arrivals, CudaStream& stream);
// Samples each row's draft by its slot's temperature and filters. Writes the draft to next_tokens
// and its distribution to probs [slots, num_drafts, vocab_size]; a row without a distribution gets
// 0 for every token. cuts: [num_spans], of the drafter's logits.
void launch_sample_drafts(const SlotTables& tables, const DraftLogits& call, const RowCut* cuts,
                          float* probs, CudaStream& stream);
// Verifies the drafts of each span, as verify_drafts() does: writes the results, with the accepted
// drafts as tokens, and num_accepted. One launch handles the rows of kFilter or of kRules. The
// stages are kCompare, kResidual (only if is_block) and kSettle; each stage is launched for all
// passes before the next stage.
void launch_verify(const SlotTables& tables, const SampleCall& call, const VerifyCall& verify,
                   VerifyStage stage, SamplePass pass, CudaStream& stream);
// Accepts count_synthetic() drafts of each span, regardless of the sampled tokens. Writes them to
// the results, and their number to num_accepted. rates: device, [num_drafts].
void launch_accept_synthetic(const SlotTables& tables, const SampleCall& call, const double* rates,
                             CudaStream& stream);
// Keeps each span's accepted drafts and the token after them, and advances its slot.
void launch_commit(const SlotTables& tables, const SampleCall& call, CudaStream& stream);
// Computes log probabilities of the tokens in call.results, for the rows of any pass that request
// them.
void launch_sampled_logprobs(const SlotTables& tables, const SampleCall& call,
                             SliceLogprobs* slices, uint32_t* arrivals, LogprobsResult* results,
                             CudaStream& stream);
// Computes log probabilities of targets [num_rows]; < 0: none.
void launch_target_logprobs(const float* logits, int vocab_size, const int32_t* targets,
                            int num_rows, int num_top, SliceLogprobs* slices, uint32_t* arrivals,
                            LogprobsResult* results, CudaStream& stream);

}  // namespace quire::cuda

#undef QUIRE_BOTH_SIDES
