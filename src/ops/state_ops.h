// The operations of layers with a recurrent state per sequence, an optional part of a device
// (Ops::states).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/tensor.h"

namespace quire {

// The states of a layer, and the sequences of a step. A page holds the state of one sequence after
// its last computed token of one block, so the pages have a block table like those of keys and
// values. A step of the tokens [begin, end) reads the page of token begin - 1, and writes the page
// of each block that it touches and that has one: the state after the block's last token of the
// step. At begin 0 the state is zero.
struct StatePages {
  std::byte* first = nullptr;  // page 0 of the layer
  int64_t page_bytes = 0;
  int block_size = 0;  // tokens
  int num_seqs = 0;
  // All on the device.
  const int32_t* query_start = nullptr;  // [num_seqs + 1], index of each sequence's first token
  const int32_t* seq_lens = nullptr;     // [num_seqs], `end`
  const int32_t* page_table = nullptr;   // [num_seqs, max_pages] page ids; 0: a block without page
  int64_t max_pages = 0;
  // [num_tokens], as AttentionBatch::kv_slots: < 0: the token is computed, and no state is written.
  const int64_t* kv_slots = nullptr;
};

// A gated causal convolution of each channel c over the tokens (LFM2):
//   v[p] = b[p] * x[p],  out[p] = g[p] * (sum over i < kernel of w[c, i] * v[p - kernel + 1 + i])
// with v = 0 before the sequence. The state is the newest v, by position: v[p] is in row p modulo
// num_rows of [num_rows, channels], so a later step can replace the rows of drafts that were not
// accepted. num_rows is at least kernel - 1, plus the drafts of a step.
struct ShortConv {
  TensorView bgx;               // [num_tokens, 3 * channels]: b, g, x
  const float* w = nullptr;     // [channels, kernel]
  const float* bias = nullptr;  // [channels], added to the sum; null: none
  int kernel = 0;
  int num_rows = 0;
  StatePages states;
  TensorView out;  // [num_tokens, channels]
};

// Upper bound of ShortConv::kernel.
inline constexpr int kMaxShortConvKernel = 8;

class StateOps {
 public:
  virtual ~StateOps() = default;
  virtual void short_conv(const ShortConv& conv) = 0;
};

}  // namespace quire
