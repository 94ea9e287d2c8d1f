// The engine's interface to a model of any family: its KV groups, and one step of it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "base/check.h"
#include "base/numbers.h"
#include "model/config.h"
#include "ops/ops.h"
#include "quire/status.h"

namespace quire {

// Layers that share a cache layout, the shapes of attention over it, and a block table.
struct KvGroup {
  KvLayout layout;
  AttentionShape decode;
  AttentionShape prefill;
  std::vector<int> layers = {};  // layer indices, ascending
  int table = 0;                 // index of its block table
  // Of a drafter, by layer: the target's layer whose cache it reads. Empty: the group has memory of
  // its own.
  std::vector<int> target_layers = {};
};

// The layers that keep a recurrent state per sequence instead of keys and values. Their states
// share a block table: StatePages (ops/state_ops.h).
struct StateGroup {
  std::vector<int> layers = {};  // layer indices, ascending; empty: the model has no states
  int64_t page_bytes = 0;        // one sequence's state of one layer, a multiple of 64
  int table = 0;                 // index of its block table, the last one
};

// Upper bounds of a sequence's block tables: of keys and values, and in total. One is of states.
inline constexpr int kMaxKvTables = 4;
inline constexpr int kMaxBlockTables = kMaxKvTables + 1;

// Gives each distinct window its own block table, so that blocks outside the window can be freed
// while layers with a longer window keep theirs. Groups beyond kMaxKvTables share the last table.
void assign_tables(std::span<KvGroup> groups);

// Per block table: the longest window of its groups, in positions; 0: a group has no window.
std::vector<int> table_windows(std::span<const KvGroup> groups);

// The rank of this process, and the number of ranks that share the model. The ranks divide the
// heads of attention, the inner size of each MLP and of each expert, and the vocabulary. Each rank
// has the whole latent vectors of multi-head latent attention.
struct Parallel {
  int rank = 0;
  int size = 1;
};

// Sizes that determine a model's buffers, fixed at load.
struct ModelLimits {
  int max_num_tokens = 0;      // in one step
  int max_num_logit_rows = 0;  // in one call of compute_logits or hidden_states
  int max_model_len = 0;
  int num_drafts = 0;  // draft tokens that a step verifies per sequence
  int page_size = 16;
  DType kv_dtype = DType::kBF16;
  Parallel parallel = {};
  // Layers whose input Model::taps() keeps, ascending; num_layers stands for the output of the last
  // layer.
  std::vector<int> tapped_layers = {};

  // Query tokens of a decoding sequence in one step.
  int decode_q_len() const { return 1 + num_drafts; }
  // The longest context that attention processes: drafts may exceed the sequence's last page.
  int max_kv_len() const {
    if (num_drafts == 0) return max_model_len;
    return round_up(max_model_len, page_size) + num_drafts;
  }
};

// One KV group's part of a step. The plans are chosen and updated before the model runs.
struct KvGroupStep {
  const AttentionBatch* batch = nullptr;
  AttentionPlan* decode = nullptr;  // null: the step has no such range
  AttentionPlan* prefill = nullptr;
  std::span<const KvCacheView> caches;  // one per layer, in the order of KvGroup::layers
  std::span<std::byte> workspace;
};

// The states of a step: a StatePages per layer, without its first page.
struct StateStep {
  const AttentionBatch* batch = nullptr;  // its block table has the pages of states
  std::span<std::byte* const> pages;  // page 0 of each layer, in the order of StateGroup::layers
};

struct StepInput {
  int num_tokens = 0;
  const int32_t* token_ids = nullptr;      // device, [num_tokens]
  const int32_t* positions = nullptr;      // device, [num_tokens]
  std::span<const KvGroupStep> kv_groups;  // as Model::kv_groups()
  TensorView hidden = {};                  // [num_tokens, TapReader::state_width()], for it alone
  StateStep states = {};                   // of a model that has states
};

// The logits of one rank's part of the vocabulary: tokens [first_id, first_id + tokens of the
// rank).
struct LogitsPart {
  TensorView logits;  // F32 [num_rows, tokens of the rank]
  int32_t first_id = 0;
};

// The scales of one layer's keys and values in an FP8 KV cache: stored = x / scale.
struct KvScaleValues {
  float k = 1.0F;
  float v = 1.0F;
};

class DraftHead;
class BlockHead;
struct KvScales;

// Enqueues its work into the stream of the operations with which it was loaded.
class Model {
 public:
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const std::vector<KvGroup>& kv_groups() const = 0;
  // Enqueues one step. The model keeps the last layer's output of every token until the next step.
  virtual Status forward(const StepInput& input) = 0;
  // Final norm and lm_head for tokens `rows` (device, [num_rows] token indices of the last step;
  // num_rows <= max_num_logit_rows); logits: F32 [num_rows, vocab_size]. May be called repeatedly.
  virtual Status compute_logits(const int32_t* rows, int num_rows, TensorView logits) = 0;
  // Whether each rank computes the logits of a part of the vocabulary. Then compute_logits() has
  // two steps, which may be called instead. compute_logits_part() writes this rank's part to
  // logits_part(num_rows). gather_logits() is a collective, which may be left out if the part is
  // enough; no call of compute_logits() may come between the two. Drafters call compute_logits()
  // only.
  virtual bool divides_logits() const { return false; }
  virtual Status compute_logits_part(const int32_t* /*rows*/, int /*num_rows*/) {
    QUIRE_CHECK(false, "[model] the logits of this model are not divided among ranks");
  }
  virtual LogitsPart logits_part(int /*num_rows*/) const {
    QUIRE_CHECK(false, "[model] the logits of this model are not divided among ranks");
  }
  virtual void gather_logits(int /*num_rows*/, TensorView /*logits*/) {
    QUIRE_CHECK(false, "[model] the logits of this model are not divided among ranks");
  }
  // compute_logits() without lm_head. out: [num_rows, hidden_size] in the type of the activations.
  virtual Status hidden_states(const int32_t* rows, int num_rows, TensorView out) = 0;
  // The inputs of ModelLimits::tapped_layers side by side, [max_num_tokens, number of tapped layers
  // * hidden_size] in the type of the activations. A layer's input is the sum of the embeddings and
  // of the outputs of all layers before it. The first num_tokens rows are the last step's. Empty if
  // no layer is tapped.
  virtual TensorView taps() const { return {}; }
  // The matrices that a draft head uses if its checkpoint lacks them, valid as long as the model;
  // null: not shared. Both are [vocab_size, hidden_size].
  virtual const Linear* embeddings() const { return nullptr; }
  virtual const Linear* lm_head() const { return nullptr; }
  // For a drafter that reads the model's caches: the weights of the final norm, [hidden_size], and
  // the scales of a layer's cache. Both are valid as long as the model; null: not shared.
  virtual const float* final_norm() const { return nullptr; }
  virtual const KvScales* kv_scales(int /*layer*/) const { return nullptr; }
  // Gives each layer that has no scales for an FP8 KV cache the scales in `by_layer`. Returns the
  // number of these layers. Called before the first step.
  virtual Result<int> add_kv_scales(std::span<const KvScaleValues> /*by_layer*/) {
    return unimplemented("[model] the layers of this model take no scales for an FP8 KV cache");
  }
  // The further interface of a model that drafts from its target's taps, valid as long as the
  // model; null: the model is not such a drafter.
  virtual DraftHead* draft_head() { return nullptr; }
  virtual BlockHead* block_head() { return nullptr; }
};

// The calls that draft heads and block drafters have in common: both read their target's taps. The
// same object is the drafter's Model, to which forward(), config() and kv_groups() belong.
class TapReader {
 public:
  virtual ~TapReader() = default;

  // The columns of StepInput::hidden.
  virtual int state_width() const = 0;
  // Computes the hidden state of each token, for StepInput::hidden. taps: at most max_num_tokens
  // rows of the target's taps(); out: [number of these rows, state_width()]. `out` may be `taps` if
  // the head reads the target's cache.
  virtual void combine(TensorView taps, TensorView out) = 0;
  // Writes the keys and values of the input's positions for later passes, in less time than
  // forward(). Reads `hidden`; a draft head also reads the tokens. Attention plans are read only if
  // context_attends().
  virtual Status write_context(const StepInput& input) = 0;
  virtual bool context_attends() const { return false; }
  // By draft id, the target's token id; empty: the two vocabularies are the same. The logits are
  // over the draft vocabulary, whose size is config().vocab_size; token_ids are always the
  // target's.
  virtual std::span<const int32_t> target_ids() const = 0;
};

// A drafter that continues the hidden states of its target: the step input's `hidden` of position p
// and the token of p + 1 give the logits of p + 2. The pair has the position p in `positions` and
// in the KV cache. In the first pass over a token, `hidden` is combine() of the target's taps; a
// later pass continues its own output_states().
class DraftHead : public TapReader {
 public:
  // Whether the head has no cache, and its layers attend to the target's. All drafts of a sequence
  // are then made at one place: a pass is one token per sequence, which attends up to p and is
  // rotated for p + 1. There is no context to write.
  virtual bool reads_target_cache() const { return false; }
  // The states of tokens `rows` of the last step (as for compute_logits), which the next pass reads
  // as `hidden`. out: [num_rows, state_width()].
  virtual Status output_states(const int32_t* rows, int num_rows, TensorView out) = 0;
};

// The tokens that a block drafter reads in one pass: a sequence's newest token, and then mask
// tokens in the places of its drafts.
struct BlockLayout {
  int size = 0;  // the largest block that the drafter was trained for, the newest token included
  int32_t mask_token_id = 0;
  // Whether the logits of a token predict the next one. Otherwise a mask token's logits predict the
  // token in its own place, and the newest token's logits are not used.
  bool predicts_next = false;

  // The index in the block of the token whose logits predict the first draft.
  int num_before_drafts() const { return predicts_next ? 0 : 1; }
  int max_drafts() const { return size - num_before_drafts(); }
  int num_tokens(int num_drafts) const { return num_before_drafts() + num_drafts; }
};

// A drafter that computes the logits of a whole block of drafts in one forward(). Every token of
// the block attends to the whole block and to the context: keys and values of the positions before
// it, which write_context() writes. The keys and values of the block itself are provisional. In a
// pass of forward(), one request is one block, and the shapes of kv_groups() are not causal.
class BlockHead : public TapReader {
 public:
  virtual const BlockLayout& block() const = 0;
  // Whether the logits of a draft also depend on the token before it, by transitions().
  virtual bool has_transitions() const { return false; }
  // Writes the summands that the tokens `previous` (device, [num_rows], the target's ids; num_rows
  // <= max_num_logit_rows) add to the logits of the tokens after them. out: F32 [num_rows,
  // vocab_size].
  virtual void transitions(const int32_t* previous, int num_rows, TensorView out) = 0;
};

}  // namespace quire
