// The inputs of one step: how the plan becomes the arrays that the model, attention and sampling
// read.
//
//   BatchPlan -- write_step --> packed step -- copy --> device -- launch_metadata --> StepArrays
//
// The packed step holds all data that changes from step to step. The metadata kernel derives
// everything else from it and from the state that stays on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "model/model.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

struct StepLimits {
  int max_num_seqs = 0;
  int max_num_tokens = 0;
  int max_num_logit_rows = 0;
  int max_kv_len = 0;
  int page_size = 16;
  int decode_q_len = 1;
  std::vector<int> windows = {0};  // window per block table; 0: none
  // The number of new pages that fit into the packed step. overflow_pages() are uploaded before it.
  int max_new_pages = 0;
};

// The shape of a graph's batch: every request has q_len tokens, each with a logits row.
struct GraphBatch {
  int num_reqs = 0;
  int q_len = 1;  // query tokens of every request

  int num_tokens() const { return num_reqs * q_len; }
  bool operator==(const GraphBatch&) const = default;
};

// The sampled logits rows of a span.
struct SampleRange {
  size_t span_idx = 0;
  int first_row = 0;
  int num_rows = 0;
};

// The spans that sample, in the plan's order, with their logits rows. Without a graph, the rows
// have no gaps.
std::vector<SampleRange> sample_ranges(const BatchPlan& plan, const GraphBatch* graph);

// A packed step is [StepHeader][StepSpan × num_spans][StepAppend…][int32 pages…][int32 token
// ids…].
struct StepHeader {
  int32_t num_spans = 0;
  int32_t num_tokens = 0;
  int32_t num_given_tokens = 0;  // the first tokens, which have ids; other padding has id 0
  // Offsets from the start of the packed step, in units of int32.
  int32_t appends_at = 0;
  int32_t pages_at = 0;
  int32_t tokens_at = 0;
};

// New pages in one of a slot's block tables: entries [first_page, first_page + num_pages).
struct StepAppend {
  int32_t table = 0;
  int32_t first_page = 0;
  int32_t num_pages = 0;
  int32_t pages_at = 0;  // index into the packed step's pages
};

struct StepSpan {
  int32_t slot = -1;          // slot of the persistent state; -1: padding
  int32_t num_computed = -1;  // of a prefill chunk; -1: the slot decodes, and the device's count is
                              // used
  int32_t q_len = 1;
  int32_t first_token = 0;
  int32_t token_after = 0;  // SeqSpan::token_after
  // The number of entries in each of the slot's block tables. Keys and values of tokens beyond
  // these pages are not written, and reads beyond them use the padding page.
  int32_t num_pages = 0;
  int32_t first_append = 0;  // index into the packed step's appends
  int32_t num_appends = 0;
  // The span's logits rows are [first_logits_row, first_logits_row + num_logits_rows). They belong
  // to consecutive tokens, of which logits_token (an index into the span) is the first. The rows of
  // tokens [sample_token, sample_token + num_samples) are sampled; the others are padding.
  int32_t first_logits_row = 0;
  int32_t num_logits_rows = 0;
  int32_t logits_token = 0;
  int32_t sample_token = 0;
  int32_t num_samples = 0;
};

// The size of the largest packed step within the limits, in bytes.
size_t max_step_bytes(const StepLimits& limits);

// Writes the packed step into `memory` (of max_step_bytes) and returns the bytes used. ranges: the
// plan's sample_ranges. A graph's requests beyond the plan's spans are padding.
size_t write_step(const BatchPlan& plan, std::span<const SampleRange> ranges,
                  const StepLimits& limits, const GraphBatch* graph, std::byte* memory);

// Entries of one slot's block table that do not fit into the packed step, for example after a long
// prefix hit. They are uploaded before the packed step.
struct OverflowPages {
  static constexpr int kMaxPages = 60;

  int32_t slot = 0;
  int32_t table = 0;
  int32_t first = 0;  // entry of that block table
  int32_t num_pages = 0;
  int32_t page_ids[kMaxPages] = {};
};
static_assert(sizeof(OverflowPages) == 256);
// The plan's entries that do not fit, in the order of its appends.
std::vector<OverflowPages> overflow_pages(const BatchPlan& plan, const StepLimits& limits);

// The arrays of one block table.
struct TableArrays {
  int window = 0;                  // pages before the window are replaced by the padding page; 0:
                                   // no window
  int32_t* slot_pages = nullptr;   // [max_num_seqs, max_pages], persistent
  int32_t* block_table = nullptr;  // [max_num_seqs, max_pages] in the order of the spans
  int64_t* kv_slots = nullptr;     // [max_num_tokens]; -1: padding, and tokens beyond a slot's
                                   // pages
};

// Device pointers and shapes of a step's arrays. platform/batch_inputs.h defines their values, and
// tests compare against it.
struct StepArrays {
  const std::byte* packed_step = nullptr;
  TableArrays tables[kMaxBlockTables];
  int num_tables = 1;
  const int32_t* num_computed = nullptr;  // [max_num_seqs]: progress of each decoding slot
  const int32_t* next_tokens = nullptr;   // [max_num_seqs, max_q_len]: the tokens that replace
                                          // kPlaceholderToken
  int max_q_len = 1;                      // tokens of the longest decoding span
  int64_t max_pages = 0;
  int page_size = 16;

  int32_t* token_ids = nullptr;     // [max_num_tokens]
  int32_t* positions = nullptr;     // [max_num_tokens]
  int32_t* query_start = nullptr;   // [max_num_seqs + 1]
  int32_t* seq_lens = nullptr;      // [max_num_seqs]; 0 for padding
  int32_t* settled_lens = nullptr;  // [max_num_seqs], AttentionBatch::settled_lens
  // Per logits row: its token, the slot whose state it is sampled with (or -1), and the number of
  // drafts of the slot's span before it.
  int32_t* logit_tokens = nullptr;    // [max_num_logit_rows]
  int32_t* sample_slots = nullptr;    // [max_num_logit_rows]
  int32_t* sample_offsets = nullptr;  // [max_num_logit_rows]
  int32_t* span_slots = nullptr;      // [max_num_seqs]: slot of each sampling span, or -1
};

// Derives the arrays with the metadata kernel, one thread block per span.
void launch_metadata(const StepArrays& arrays, int num_spans, CudaStream& stream);

// Writes `pages` (device, [count]) into the slots' persistent block tables.
void launch_append_pages(const StepArrays& arrays, const OverflowPages* pages, int count,
                         CudaStream& stream);

// A step's memory on the device: the uploaded packed step, the persistent state, and the arrays
// derived from both.
class StepBuffers {
 public:
  // The number of OverflowPages per copy; together they hold 61,440 pages.
  static constexpr int kMaxOverflow = 1024;

  // Allocates the memory, and enqueues its initialization.
  static Result<StepBuffers> create(const StepLimits& limits, CudaStream& stream);
  static size_t device_bytes(const StepLimits& limits);

  // Enqueues a copy of the packed step to the device. If there are overflow_pages(), it first
  // enqueues one copy for every kMaxOverflow of them. The kernels that read the packed step are
  // enqueued later. ranges: sample_ranges(plan, graph); graph: the shape of the graph that runs the
  // plan, or null.
  Status upload(const BatchPlan& plan, std::span<const SampleRange> ranges, const GraphBatch* graph,
                CudaStream& stream);
  // Derives the arrays from the uploaded packed step.
  void derive(int num_spans, CudaStream& stream) const;

  StepArrays& arrays() { return parts_.arrays; }
  const StepArrays& arrays() const { return parts_.arrays; }

 private:
  // Parts of the device memory. `packed_step` and `overflow` are used by the next step in the
  // stream.
  struct Parts {
    StepArrays arrays = {};
    std::byte* packed_step = nullptr;
    OverflowPages* overflow = nullptr;  // [kMaxOverflow]
    size_t num_bytes = 0;
  };

  static Parts lay_out(BumpAllocator allocator, const StepLimits& limits);
  Status append_overflow(const BatchPlan& plan, CudaStream& stream);

  StepLimits limits_;
  PinnedRing ring_, overflow_ring_;
  Buffer memory_;
  Parts parts_;
};

// A plan as attention receives it: ranges and upper bounds on the host, arrays on the device.
class AttentionInputs {
 public:
  void describe(const BatchPlan& plan, const StepArrays& arrays);
  // Pads the result of describe() to the graph's batch, whose contexts may grow to max_kv_len. The
  // result must have decoding requests only. The bounds of this step's requests do not change;
  // padding has bounds of 0.
  void pad_to_graph(const GraphBatch& graph, int max_kv_len);

  // One per block table; valid until the next describe().
  std::span<const AttentionBatch* const> batches() const { return views_; }
  // The first batch. Ranges and lengths are the same in all batches.
  const AttentionBatch& batch() const { return batches_.front(); }

 private:
  std::vector<int32_t> query_start_;   // [num_reqs + 1]
  std::vector<int32_t> kv_len_bound_;  // [num_reqs]
  std::vector<AttentionBatch> batches_;
  std::vector<const AttentionBatch*> views_;
};

}  // namespace quire::cuda
