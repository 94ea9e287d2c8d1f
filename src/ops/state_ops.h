// The operations of layers with a recurrent state per sequence, an optional part of a device
// (Ops::states).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "quire/status.h"
#include "tensor/tensor.h"

namespace quire {

// The states of a layer, and the sequences of a step. A page belongs to a block of one sequence,
// and holds the state after the block's last computed token. So the pages have a block table like
// the pages of keys and values. A step of the tokens [begin, end) reads the page of the token
// before `begin`; without one, the state is zero. It writes the page of each block that it
// touches, if the block has one: the state after the block's last token of the step.
struct StatePages {
  std::byte* first = nullptr;  // page 0 of the layer
  int64_t page_bytes = 0;
  int block_size = 0;  // tokens
  int num_seqs = 0;
  // The first num_decode_seqs sequences decode: each has one token, and its drafts.
  int num_decode_seqs = 0;
  // All on the device.
  const int32_t* query_start = nullptr;  // [num_seqs + 1], index of each sequence's first token
  const int32_t* seq_lens = nullptr;     // [num_seqs], `end`
  const int32_t* page_table = nullptr;   // [num_seqs, max_pages] page ids; 0: a block without page
  int64_t max_pages = 0;
  // [num_tokens], as AttentionBatch::kv_slots. < 0: the token is computed, but no state is written.
  // Only the last tokens of a sequence may have this.
  const int64_t* kv_slots = nullptr;
};

// A gated causal convolution of each channel c over the tokens (LFM2):
//   v[p] = b[p] * x[p],  out[p] = g[p] * (sum over i < kernel of w[c, i] * v[p - kernel + 1 + i])
// with v = 0 before the sequence. The state is the newest values of v: v[p] is in row p % num_rows
// of [num_rows, channels], so a later step can replace the rows of drafts that were not accepted.
// num_rows is at least kernel - 1, plus the drafts of a step.
struct ShortConv {
  TensorView bgx;            // [num_tokens, 3 * channels]: b, g, x
  const float* w = nullptr;  // [kernel, channels]
  int kernel = 0;
  int num_rows = 0;
  StatePages states;
  TensorView out;  // [num_tokens, channels]
};

// Upper bound of ShortConv::kernel.
inline constexpr int kMaxShortConvKernel = 8;

// The sizes of a gated delta net, of one rank. Each key head has group() value heads.
struct DeltaNetShape {
  int num_k_heads = 0;
  int num_v_heads = 0;  // a multiple of num_k_heads
  int k_dim = 0;        // of a head's queries and keys
  int v_dim = 0;        // of a head's values
  int kernel = 0;       // of the convolution
  // The value heads of key head k are k, k + num_k_heads, …, as GGUF files of Qwen3.5 have them.
  // Otherwise they are the k-th group of group() heads, as in checkpoints.
  bool is_tiled = false;

  constexpr int group() const { return num_v_heads / num_k_heads; }
  constexpr int k_head(int v_head) const {
    return is_tiled ? v_head % num_k_heads : v_head / group();
  }
  // The i-th value head of a key head, 0 <= i < group().
  constexpr int v_head(int k_head, int i) const {
    return is_tiled ? i * num_k_heads + k_head : k_head * group() + i;
  }
  // Whether the value head is the first of its key head.
  constexpr bool is_first(int v_head) const {
    return is_tiled ? v_head < num_k_heads : v_head % group() == 0;
  }
  // The channels of the convolution: queries, keys and values.
  constexpr int64_t num_channels() const { return int64_t{2} * num_k_heads * k_dim + width(); }
  constexpr int64_t width() const { return int64_t{num_v_heads} * v_dim; }  // of the output
};

// A gated delta net (Yang et al., https://arxiv.org/abs/2412.06464), as in Qwen3-Next and Qwen3.5.
// A causal convolution and SiLU of each channel give the queries, keys and values of a token.
// A query or key x is divided by sqrt(|x|^2 + 1e-6), and queries by sqrt(k_dim). Then, for each
// value head, with decay = exp(-exp(a_log) * softplus(a + dt_bias)) and beta = sigmoid(b):
//   S = decay * S,  S += k (beta * (v - S^T k))^T,  o = S^T q
// where S is [k_dim, v_dim]. The output is norm(o) * SiLU(z), with an RMSNorm of each head.
//
// A page of the state has, in F32:
// - the newest inputs of the convolution, in rows p % (kernel + 2 * num_drafts) for positions p;
// - b and a of the newest num_drafts tokens, in rows p % num_drafts for positions p;
// - S of each head, and the number of tokens that S contains, which is the same for all heads.
// S contains no draft. The tokens after S are computed again once the next step shows which of them
// were accepted.
struct DeltaNet {
  DeltaNetShape shape;
  // [num_tokens, num_channels + num_v_heads * v_dim]: queries, keys and values before the
  // convolution, and z.
  TensorView x;
  TensorView ba;                   // [num_tokens, 2 * num_v_heads]: b, a
  const float* conv = nullptr;     // [kernel, num_channels]
  const float* a_log = nullptr;    // [num_v_heads]
  const float* dt_bias = nullptr;  // [num_v_heads]
  const float* norm = nullptr;     // [v_dim]
  float norm_eps = 1e-6F;
  // With num_drafts > 0, all tokens of a decoding sequence except its first may be drafts, so S
  // does not include them yet. Other sequences have no drafts.
  int num_drafts = 0;
  StatePages states;
  TensorView out;  // [num_tokens, num_v_heads * v_dim]
  // At least workspace_bytes() for the step; undefined afterwards.
  std::span<std::byte> workspace;
};

// The offsets of the parts of a page of a DeltaNet, in floats.
struct DeltaNetPage {
  constexpr DeltaNetPage(const DeltaNetShape& shape, int num_drafts)
      : num_rows(shape.kernel + 2 * num_drafts),
        gates(num_rows * shape.num_channels()),
        states(gates + int64_t{2} * num_drafts * shape.num_v_heads),
        lengths(states + int64_t{shape.num_v_heads} * shape.k_dim * shape.v_dim),
        size(lengths + shape.num_v_heads) {}

  // Rows of inputs of the convolution. A step reads at most kernel - 1 + num_drafts of them, and
  // writes 1 + num_drafts others, so that a thread block can write new inputs while others still
  // read old ones.
  int num_rows;
  int64_t gates;
  int64_t states;  // [num_v_heads, k_dim, v_dim]
  // [num_v_heads] int32. A thread block of a GPU reads and writes its head's number alone; a CPU
  // uses the first.
  int64_t lengths;
  int64_t size;
};

class StateOps {
 public:
  virtual ~StateOps() = default;
  virtual void short_conv(const ShortConv& conv) = 0;
  virtual void delta_net(const DeltaNet& net) = 0;
  // Fails if the device does not compute nets of this shape.
  virtual Status supports(const DeltaNetShape& /*shape*/) const { return {}; }
  // The bytes of DeltaNet::workspace for steps of up to max_num_tokens and max_num_seqs.
  virtual int64_t workspace_bytes(const DeltaNetShape& /*shape*/, int /*num_drafts*/,
                                  int64_t /*max_num_tokens*/, int64_t /*max_num_seqs*/) const {
    return 0;
  }
};

}  // namespace quire
