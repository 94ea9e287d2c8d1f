#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "cpu/ops/activation_rows.h"
#include "cpu/ops/cpu_state_ops.h"
#include "cpu/ops/delta_state.h"
#include "cpu/ops/rows.h"
#include "cpu/ops/seq_tokens.h"

namespace quire::cpu {
namespace {

// x /= sqrt(|x|^2 + 1e-6)
void normalize(float* x, int size) {
  const float scale = 1.0F / std::sqrt(sum_of_squares_row(x, size) + 1e-6F);
  for (int i = 0; i < size; ++i) x[i] *= scale;
}

// The tokens of a sequence in a step, and the positions that its states cover.
struct DeltaTokens {
  SeqTokens seq;
  int first = 0;      // S of the page that the step reads contains the tokens before it
  int committed = 0;  // S of the page that the step writes will contain the tokens before it
  int kept_end = 0;   // the first token without a kept state
};

// One key head of a sequence, with its value heads.
class DeltaTask {
 public:
  DeltaTask(const DeltaNet& net, const DeltaTokens& tokens, int k_head)
      : net_(net),
        shape_(net.shape),
        page_(net.shape, net.num_drafts),
        tokens_(tokens),
        seq_(tokens.seq),
        k_head_(k_head),
        group_(net.shape.group()),
        width_(2 * shape_.k_dim + group_ * shape_.v_dim),
        state_size_(size_t{1} * shape_.k_dim * shape_.v_dim),
        history_(static_cast<size_t>(page_.num_rows * width_)),
        window_(static_cast<size_t>(shape_.kernel * width_)),
        ones_(static_cast<size_t>(width_), 1.0F),
        inputs_(static_cast<size_t>(width_)),
        qkv_(static_cast<size_t>(net.states.block_size * width_)),
        decay_(static_cast<size_t>(net.states.block_size)),
        beta_(static_cast<size_t>(net.states.block_size)),
        head_out_(static_cast<size_t>(net.states.block_size * shape_.v_dim)),
        gates_(static_cast<size_t>(net.num_drafts * 2 * group_)),
        states_(state_size_ * static_cast<size_t>(group_), 0.0F) {}

  void run() {
    read_page();
    for (int p = std::max(tokens_.first - shape_.kernel + 1, 0); p < tokens_.first; ++p) {
      std::copy_n(conv_inputs(p), width_, window(p));
    }
    // Divides the tokens at the ends of blocks and after the committed tokens, because S is written
    // there.
    const int block_size = net_.states.block_size;
    for (int begin = tokens_.first, end = 0; begin < seq_.end; begin = end) {
      end = std::min((begin / block_size + 1) * block_size, seq_.end);
      if (begin < tokens_.committed) end = std::min(end, tokens_.committed);
      for (int p = begin; p < end; ++p) convolve(p, qkv_.data() + (p - begin) * width_);
      for (int h = 0; h < group_; ++h) run_head(begin, end, h);
      if (end <= tokens_.committed) write_states(end);
    }
    write_rows();
  }

 private:
  int v_head(int h) const { return shape_.v_head(k_head_, h); }
  float* page(int32_t id) const {
    return reinterpret_cast<float*>(net_.states.first + id * net_.states.page_bytes);
  }
  int block_of(int p) const { return p / net_.states.block_size; }
  // Returns the end of the tokens in the block whose state is kept.
  int end_in(int block) const {
    return std::min((block + 1) * net_.states.block_size, tokens_.kept_end);
  }
  float* state(int h) { return states_.data() + state_size_ * static_cast<size_t>(h); }
  // Returns the offset of a head's state in a page, in floats.
  int64_t state_place(int h) const {
    return page_.states + static_cast<int64_t>(state_size_) * v_head(h);
  }
  // Calls visit(first channel, offset in width_, width) for the queries, the keys, and the values
  // of each head.
  template <typename Visit>
  void for_parts(const Visit& visit) const {
    const int keys = shape_.num_k_heads * shape_.k_dim;
    visit(int64_t{k_head_} * shape_.k_dim, 0, shape_.k_dim);
    visit(int64_t{keys} + k_head_ * shape_.k_dim, shape_.k_dim, shape_.k_dim);
    for (int h = 0; h < group_; ++h) {
      visit(int64_t{2} * keys + v_head(h) * shape_.v_dim, 2 * shape_.k_dim + h * shape_.v_dim,
            shape_.v_dim);
    }
  }
  float* window(int p) { return window_.data() + p % shape_.kernel * width_; }
  float* history(int p) { return history_.data() + p % page_.num_rows * width_; }

  // Copies the parts of the page that the task needs, because the step may write the same page.
  void read_page() {
    if (seq_.begin == 0) return;
    const int32_t id = seq_.pages[block_of(seq_.begin - 1)];
    const float* const from = page(id);
    for (int p = std::max(tokens_.first - shape_.kernel + 1, 0); p < seq_.begin; ++p) {
      const float* const row = from + p % page_.num_rows * shape_.num_channels();
      for_parts([&](int64_t channel, int at, int count) {
        std::copy_n(row + channel, count, history(p) + at);
      });
    }
    for (int p = tokens_.first; p < seq_.begin; ++p) {
      const int row = p % net_.num_drafts;
      const float* const gates = from + page_.gates + int64_t{2} * row * shape_.num_v_heads;
      for (int h = 0; h < group_; ++h) {
        gates_[static_cast<size_t>((row * group_ + h) * 2)] = gates[v_head(h)];
        gates_[static_cast<size_t>((row * group_ + h) * 2 + 1)] =
            gates[shape_.num_v_heads + v_head(h)];
      }
    }
    for (int h = 0; h < group_; ++h) std::copy_n(from + state_place(h), state_size_, state(h));
  }

  const float* x_row(int p) const { return net_.x.as<float>() + seq_.row_of(p) * net_.x.shape[1]; }

  // The inputs of the convolution at a position, valid until the next call.
  const float* conv_inputs(int p) {
    if (p < seq_.begin) return history(p);
    const float* const row = x_row(p);
    for_parts([&](int64_t channel, int at, int count) {
      std::copy_n(row + channel, count, inputs_.data() + at);
    });
    return inputs_.data();
  }

  // Writes the queries, keys and values of a token.
  void convolve(int p, float* qkv) {
    std::copy_n(conv_inputs(p), width_, window(p));
    std::fill_n(qkv, width_, 0.0F);
    for (int i = 0; i < shape_.kernel; ++i) {
      const int past = p - shape_.kernel + 1 + i;
      if (past < 0) continue;
      const float* const x = window(past);
      for_parts([&](int64_t channel, int at, int count) {
        const float* const w = net_.conv + i * shape_.num_channels() + channel;
        for (int c = 0; c < count; ++c) qkv[at + c] += w[c] * x[at + c];
      });
    }
    gated_mul_row(Activation::kSilu, qkv, ones_.data(), width_, qkv);
    normalize(qkv, shape_.k_dim);
    normalize(qkv + shape_.k_dim, shape_.k_dim);
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape_.k_dim));
    for (int i = 0; i < shape_.k_dim; ++i) qkv[i] *= scale;
  }

  void run_head(int begin, int end, int h) {
    for (int p = begin; p < end; ++p) read_gates(p, h, static_cast<size_t>(p - begin));
    run_delta_head({.num_tokens = end - begin,
                    .k_dim = shape_.k_dim,
                    .v_dim = shape_.v_dim,
                    .stride = width_,
                    .q = qkv_.data(),
                    .k = qkv_.data() + shape_.k_dim,
                    .v = qkv_.data() + 2 * shape_.k_dim + h * shape_.v_dim,
                    .decay = decay_.data(),
                    .beta = beta_.data(),
                    .state = state(h),
                    .out = head_out_.data()});
    for (int p = std::max(begin, seq_.begin); p < end; ++p) {
      write_output(p, h, head_out_.data() + (p - begin) * shape_.v_dim);
    }
  }

  void read_gates(int p, int h, size_t idx) {
    float b = 0.0F;
    float a = 0.0F;
    if (p < seq_.begin) {
      const auto at = static_cast<size_t>((p % net_.num_drafts * group_ + h) * 2);
      b = gates_[at];
      a = gates_[at + 1];
    } else {
      const float* const row = net_.ba.as<float>() + seq_.row_of(p) * 2 * shape_.num_v_heads;
      b = row[v_head(h)];
      a = row[shape_.num_v_heads + v_head(h)];
    }
    const float rate = std::exp(net_.a_log[v_head(h)]);
    decay_[idx] = std::exp(-rate * open_gate(GateFunction::kSoftplus, a + net_.dt_bias[v_head(h)]));
    beta_[idx] = open_gate(GateFunction::kSigmoid, b);
  }

  void write_output(int p, int h, const float* head_out) {
    const int v_dim = shape_.v_dim;
    const int64_t at = seq_.row_of(p) * shape_.num_v_heads * v_dim + int64_t{v_head(h)} * v_dim;
    const float* const z = x_row(p) + shape_.num_channels() + int64_t{v_head(h)} * v_dim;
    float* const out = net_.out.as<float>() + at;
    rms_norm_row(head_out, net_.norm, net_.norm_eps, v_dim, out);
    gated_mul_row(Activation::kSilu, z, out, v_dim, out);
  }

  // Writes S, which contains `length` tokens, to each page that keeps the state after these tokens.
  void write_states(int length) {
    const int last =
        length == tokens_.committed ? block_of(tokens_.kept_end - 1) : block_of(length - 1);
    for (int block = block_of(length - 1); block <= last; ++block) {
      const bool is_whole = length == end_in(block);
      if (seq_.pages[block] == 0 || (!is_whole && length != tokens_.committed)) continue;
      if (end_in(block) <= seq_.begin) continue;  // the step has no token in it
      float* const to = page(seq_.pages[block]);
      for (int h = 0; h < group_; ++h) std::copy_n(state(h), state_size_, to + state_place(h));
    }
  }

  // Writes the inputs of the newest tokens of each block's page.
  void write_rows() {
    if (tokens_.kept_end <= seq_.begin) return;
    for (int block = block_of(seq_.begin); block <= block_of(tokens_.kept_end - 1); ++block) {
      if (seq_.pages[block] == 0) continue;
      float* const to = page(seq_.pages[block]);
      const int end = end_in(block);
      const int oldest = tokens_.first - shape_.kernel + 1;
      for (int p = std::max({end - page_.num_rows, oldest, 0}); p < end; ++p) {
        const float* const from = conv_inputs(p);
        float* const row = to + p % page_.num_rows * shape_.num_channels();
        for_parts([&](int64_t channel, int at, int count) {
          std::copy_n(from + at, count, row + channel);
        });
      }
      for (int p = tokens_.committed; p < end; ++p) {
        const float* const from = net_.ba.as<float>() + seq_.row_of(p) * 2 * shape_.num_v_heads;
        float* const row =
            to + page_.gates + int64_t{2} * (p % net_.num_drafts) * shape_.num_v_heads;
        for (int h = 0; h < group_; ++h) {
          row[v_head(h)] = from[v_head(h)];
          row[shape_.num_v_heads + v_head(h)] = from[shape_.num_v_heads + v_head(h)];
        }
      }
    }
  }

  const DeltaNet& net_;
  const DeltaNetShape& shape_;
  const DeltaNetPage page_;
  const DeltaTokens& tokens_;
  const SeqTokens& seq_;
  const int k_head_;
  const int group_;      // value heads of the key head
  const int64_t width_;  // channels of the task
  const size_t state_size_;
  std::vector<float> history_;  // [num_rows, width_]: inputs before the step, by position
  std::vector<float> window_;   // [kernel, width_]: the newest inputs, by position
  std::vector<float> ones_;     // [width_]
  std::vector<float> inputs_;   // [width_] of one token
  // For the tokens between two divisions:
  std::vector<float> qkv_;       // [block_size, width_]: queries, keys, values
  std::vector<float> decay_;     // [block_size], of one head
  std::vector<float> beta_;      // [block_size]
  std::vector<float> head_out_;  // [block_size, v_dim]
  std::vector<float> gates_;     // [num_drafts, group_, 2]: b and a before the step, by position
  std::vector<float> states_;    // [group_, k_dim, v_dim]
};

int32_t* length_of(const DeltaNet& net, const DeltaNetPage& page, int32_t id) {
  auto* const floats = reinterpret_cast<float*>(net.states.first + id * net.states.page_bytes);
  return reinterpret_cast<int32_t*>(floats + page.lengths);
}

DeltaTokens delta_tokens_of(const DeltaNet& net, const DeltaNetPage& page, int seq_idx) {
  DeltaTokens tokens;
  tokens.seq = tokens_of(net.states, seq_idx);
  const SeqTokens& seq = tokens.seq;
  tokens.kept_end = seq.begin;
  while (tokens.kept_end < seq.end && net.states.kv_slots[seq.row_of(tokens.kept_end)] >= 0) {
    ++tokens.kept_end;
  }
  const bool has_drafts = net.num_drafts > 0 && seq_idx < net.states.num_decode_seqs;
  tokens.committed = has_drafts ? std::min(seq.begin + 1, tokens.kept_end) : tokens.kept_end;
  if (seq.begin > 0) {
    const int32_t id = seq.pages[(seq.begin - 1) / net.states.block_size];
    QUIRE_CHECK(id != 0, "[ops] a sequence continues without its state");
    // A sequence that has ended may begin before the tokens that its state contains.
    tokens.first = std::min(*length_of(net, page, id), seq.begin);
    QUIRE_CHECK(tokens.first >= 0 && seq.begin - tokens.first <= net.num_drafts,
                "[ops] a state is older than the drafts of a step");
  }
  return tokens;
}

}  // namespace

void CpuStateOps::delta_net(const DeltaNet& net) {
  const DeltaNetShape& shape = net.shape;
  const DeltaNetPage page(shape, net.num_drafts);
  std::vector<DeltaTokens> tokens;
  for (int i = 0; i < net.states.num_seqs; ++i) tokens.push_back(delta_tokens_of(net, page, i));
  const int64_t num_tasks = int64_t{net.states.num_seqs} * shape.num_k_heads;
  for_each(pool_, num_tasks, net.out.shape[0] * net.out.shape[1] * shape.k_dim, [&](int64_t i) {
    const auto seq = static_cast<size_t>(i / shape.num_k_heads);
    DeltaTask(net, tokens[seq], static_cast<int>(i % shape.num_k_heads)).run();
  });
  for (const DeltaTokens& one : tokens) {
    const int block_size = net.states.block_size;
    for (int block = one.seq.begin / block_size; block * block_size < one.kept_end; ++block) {
      if (one.kept_end <= one.seq.begin || one.seq.pages[block] == 0) continue;
      *length_of(net, page, one.seq.pages[block]) =
          std::min({(block + 1) * block_size, one.kept_end, one.committed});
    }
  }
}

}  // namespace quire::cpu
