// The sequences of a step over recurrent states, for tests that divide tokens among steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/state_ops.h"

namespace quire::testing {

inline constexpr int kBlockSize = 16;
inline constexpr int kNumPages = 48;
inline constexpr int kNever = 1 << 20;

// The pages of most tests.
inline const std::vector<int32_t> kPages = {3, 9, 4, 7};

// A sequence's part of a step: its tokens [begin, end), whose values depend on their positions and
// on `salt`; the pages of its blocks; the first token that is not kept; the first that is a wrong
// draft; and whether it decodes: its tokens after the first are
// drafts.
struct StatePart {
  int begin = 0;
  int end = 0;
  uint32_t salt = 0;
  std::vector<int32_t> pages;
  int kept_end = kNever;
  int right_end = kNever;
  bool decodes = false;
};

class StateBatch {
 public:
  // Parts that decode come first.
  explicit StateBatch(const std::vector<StatePart>& parts)
      : num_decode_seqs_(static_cast<int>(std::ranges::count(parts, true, &StatePart::decodes))) {
    for (const StatePart& part : parts) max_pages_ = std::max(max_pages_, part.pages.size());
    for (const StatePart& part : parts) {
      for (int p = part.begin; p < part.end; ++p) {
        const uint32_t salt = p < part.right_end ? part.salt : part.salt + 100;
        seeds_.push_back(salt * 1000 + static_cast<uint32_t>(p));
        kv_slots_.push_back(p < part.kept_end ? p : -1);
      }
      query_start_.push_back(query_start_.back() + part.end - part.begin);
      seq_lens_.push_back(part.end);
      std::vector<int32_t> row = part.pages;
      row.resize(max_pages_, 0);
      page_table_.insert(page_table_.end(), row.begin(), row.end());
    }
  }

  // By token, of its values.
  const std::vector<uint32_t>& seeds() const { return seeds_; }
  int64_t num_tokens() const { return query_start_.back(); }
  // `memory` has kNumPages pages.
  StatePages states(std::vector<float>& memory) const {
    return {.first = reinterpret_cast<std::byte*>(memory.data()),
            .page_bytes = static_cast<int64_t>(memory.size() / kNumPages * sizeof(float)),
            .block_size = kBlockSize,
            .num_seqs = static_cast<int>(seq_lens_.size()),
            .num_decode_seqs = num_decode_seqs_,
            .query_start = query_start_.data(),
            .seq_lens = seq_lens_.data(),
            .page_table = page_table_.data(),
            .max_pages = static_cast<int64_t>(max_pages_),
            .kv_slots = kv_slots_.data()};
  }

 private:
  int num_decode_seqs_;
  size_t max_pages_ = 1;
  std::vector<uint32_t> seeds_;
  std::vector<int32_t> query_start_ = {0};
  std::vector<int32_t> seq_lens_;
  std::vector<int32_t> page_table_;
  std::vector<int64_t> kv_slots_;
};

inline std::vector<float> append(std::vector<float> all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace quire::testing
