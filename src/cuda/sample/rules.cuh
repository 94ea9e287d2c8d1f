// Applies a sequence's rules to logits as they are read; the logits in memory do not change.
#pragma once

#include "cuda/sample/logits.cuh"

namespace quire::cuda {

// The step's mask of logits row i; null: the row has none.
__device__ __forceinline__ const uint32_t* mask_of(const SlotTables& tables, const SampleCall& call,
                                                   int i) {
  if (call.rows == nullptr || call.rows[i].mask_idx < 0) return nullptr;
  return call.masks + static_cast<int64_t>(call.rows[i].mask_idx) * tables.bitmap_words;
}

// The drafts of the span that contains logits row i; call.offsets[i] of them precede the row.
__device__ __forceinline__ const int32_t* drafts_of(const SlotTables& tables,
                                                    const SampleCall& call, int i) {
  return tables.next_tokens + static_cast<int64_t>(call.slots[i]) * tables.q_len + 1;
}

// Applies rules in the order of LogitsRules::apply, with the same rounding. The mask may come
// first, because no later rule changes -infinity.
class Rules {
 public:
  // `state` belongs to logits row i. With may_forbid, launch_forbid() must have run earlier in the
  // step.
  __device__ Rules(const SlotTables& tables, const SampleCall& call, const SlotState& state, int i,
                   bool may_forbid) {
    const int64_t table = state.table;
    const uint32_t flags = state.flags;
    const bool is_masked = may_forbid && mask_of(tables, call, i) != nullptr;
    if (is_masked || (flags & (kHasAllowed | kHasStops | kHasBadWords)) != 0) {
      forbidden_ = tables.forbidden + static_cast<int64_t>(i) * tables.bitmap_words;
    }
    if ((flags & kHasBias) != 0) {
      biased_ = tables.biased + table * tables.bitmap_words;
      bias_ids_ = tables.bias_ids + table * kMaxBiases;
      bias_values_ = tables.bias_values + table * kMaxBiases;
    }
    if ((flags & kHasPenalties) != 0) seen_ = tables.seen + table * tables.vocab_stride;
    drafts_ = drafts_of(tables, call, i);
    num_drafts_ = call.offsets[i];
    num_biases_ = state.num_biases;
    repetition_ = state.repetition_penalty;
    presence_ = state.presence_penalty;
    frequency_ = state.frequency_penalty;
  }

  __device__ void apply(int32_t q, Quad& quad) const {
    if (forbidden_ != nullptr) {
      const uint32_t bits = nibble(forbidden_, q);
      for (int j = 0; j < 4; ++j) quad.x[j] = (bits >> j & 1) != 0 ? minus_infinity() : quad.x[j];
    }
    if (biased_ != nullptr) {
      const uint32_t bits = nibble(biased_, q);
      for (int j = 0; j < 4; ++j) {
        if ((bits >> j & 1) != 0) quad.x[j] = add_bias(q * 4 + j, quad.x[j]);
      }
    }
    if (seen_ != nullptr) {
      uint4 seen = reinterpret_cast<const uint4*>(seen_)[q];
      for (int k = 0; k < num_drafts_; ++k) count_draft(drafts_[k] - q * 4, seen);
      quad.x[0] = penalize(seen.x, quad.x[0]);
      quad.x[1] = penalize(seen.y, quad.x[1]);
      quad.x[2] = penalize(seen.z, quad.x[2]);
      quad.x[3] = penalize(seen.w, quad.x[3]);
    }
  }

 private:
  __device__ static uint32_t nibble(const uint32_t* bitmap, int32_t q) {
    return bitmap[q / 8] >> (q % 8 * 4) & 0xF;
  }

  // The drafts before this row count as output.
  __device__ static void count_draft(int32_t idx, uint4& seen) {
    seen.x += idx == 0 ? 1 : 0;
    seen.y += idx == 1 ? 1 : 0;
    seen.z += idx == 2 ? 1 : 0;
    seen.w += idx == 3 ? 1 : 0;
  }

  __device__ float add_bias(int32_t id, float x) const {
    int first = 0;
    for (int last = num_biases_; first < last;) {
      const int middle = (first + last) / 2;
      if (bias_ids_[middle] < id) {
        first = middle + 1;
      } else {
        last = middle;
      }
    }
    for (; first < num_biases_ && bias_ids_[first] == id; ++first) {
      x = __fadd_rn(x, bias_values_[first]);
    }
    return x;
  }

  __device__ __forceinline__ float penalize(uint32_t seen, float x) const {
    if (seen == 0) return x;
    x = x > 0 ? __fdiv_rn(x, repetition_) : __fmul_rn(x, repetition_);
    const uint32_t num_output = seen & ~kInPrompt;
    x = __fsub_rn(x, __fmul_rn(frequency_, static_cast<float>(num_output)));
    return num_output > 0 ? __fsub_rn(x, presence_) : x;
  }

  const uint32_t* forbidden_ = nullptr;
  const uint32_t* biased_ = nullptr;
  const uint32_t* seen_ = nullptr;
  const int32_t* drafts_;
  int num_drafts_;
  const int32_t* bias_ids_ = nullptr;
  const float* bias_values_ = nullptr;
  int num_biases_;
  float repetition_, presence_, frequency_;
};

// Reads a row's logits with its sequence's rules applied.
template <bool kRules>
struct RowReader {
  LogitsRow row;
  Rules rules;

  __device__ __forceinline__ void change(int32_t q, Quad& quad) const {
    if constexpr (kRules) rules.apply(q, quad);
  }
  // Calls use(logit, id) for this thread's share of the row's tokens. The last quad may also have
  // ids beyond the vocabulary, with the logit -infinity.
  template <typename Use>
  __device__ __forceinline__ void for_each(Use use) const {
    for_each_quad(row, 0, row.end_quad(), [&](int32_t q, Quad quad) {
      change(q, quad);
#pragma unroll
      for (int j = 0; j < 4; ++j) use(quad.x[j], q * 4 + j);
    });
  }
};

// The reader of logits row i, whose state is `state`.
template <bool kRules>
__device__ RowReader<kRules> reader_of(const SlotTables& tables, const SampleCall& call,
                                       const SlotState& state, int i) {
  return {LogitsRow(call.logits, tables.vocab_size, i), Rules(tables, call, state, i, kRules)};
}

}  // namespace quire::cuda
