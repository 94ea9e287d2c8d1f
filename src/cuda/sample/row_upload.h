// Packs the rows of added sequences for upload: headers, then one list of words.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/numbers.h"
#include "cuda/sample/row_state.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

// Limits of a row's tables, besides the constants of row_state.h.
struct RowLimits {
  int vocab_size;
  int max_tokens_per_seq;

  int bitmap_words() const { return ceil_div(vocab_size, 32); }
  int vocab_stride() const { return round_up(vocab_size, 4); }
  int tail_size() const;
  // Upper bound of one row's bytes in a block.
  size_t max_row_bytes() const;
};

// Fails with kInvalidArgument if a request's lists exceed the device's tables.
Status check_row(const SamplingSpec& spec, const RowLimits& limits);

class RowUpload {
 public:
  explicit RowUpload(const RowLimits& limits) : limits_(limits) {}

  // `added` has passed check_row. The caller sets the returned state's table if the state has
  // flags. The reference is valid until the next append.
  RowState& append(const SlotAdded& added);
  int num_rows() const { return static_cast<int>(headers_.size()); }
  size_t num_bytes() const;
  void write(std::byte* block) const;
  void clear();

 private:
  void append_lists(const SlotAdded& added, AddedRow& row);
  void append_biases(const SamplingParams& params, AddedRow& row);
  void append_bad_words(const SlotAdded& added, AddedRow& row);
  WordSpan append_words(std::span<const int32_t> words);
  WordSpan append_bitmap(std::span<const int32_t> ids);

  RowLimits limits_;
  std::vector<AddedRow> headers_;
  std::vector<int32_t> words_;
  std::vector<int32_t> scratch_;
};

}  // namespace quire::cuda
