#include "cpu/ops/cpu_state_ops.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/numbers.h"
#include "cpu/ops/activation_rows.h"
#include "cpu/ops/seq_tokens.h"

namespace quire::cpu {
namespace {

constexpr int64_t kChannels = 64;  // of one task

// Some channels of a convolution, in one sequence.
class ConvTask {
 public:
  ConvTask(const ShortConv& conv, const SeqTokens& seq, int64_t first_channel)
      : conv_(conv),
        seq_(seq),
        channels_(conv.out.shape[1]),
        first_(first_channel),
        count_(std::min(kChannels, channels_ - first_channel)) {}

  void run() {
    if (seq_.begin > 0) read_state();
    for (int p = seq_.begin; p < seq_.end; ++p) {
      compute(p);
      const bool is_last = p + 1 == seq_.end || !is_kept(p + 1);
      const bool ends_block = (p + 1) % conv_.states.block_size == 0;
      if (is_kept(p) && (is_last || ends_block)) write_state(p);
    }
  }

 private:
  bool is_kept(int p) const { return conv_.states.kv_slots[seq_.row_of(p)] >= 0; }

  using Row = std::array<float, kChannels>;

  // Returns v of position p, one of the newest `kernel` positions.
  Row& v(int p) { return v_[static_cast<size_t>(p % conv_.kernel)]; }
  // Returns v of position p, one of the kernel - 1 positions before the step.
  Row& before(int p) { return before_[static_cast<size_t>(p % (conv_.kernel - 1))]; }

  // The state's row of position p in the page of a block; null if the block has no page.
  float* state_row(int block, int p) const {
    const int32_t page = seq_.pages[block];
    if (page == 0) return nullptr;
    auto* const rows =
        reinterpret_cast<float*>(conv_.states.first + page * conv_.states.page_bytes);
    return rows + p % conv_.num_rows * channels_ + first_;
  }

  // Reads v of the positions before the step into v(), and into before(), from which the step
  // writes states.
  void read_state() {
    const int block = (seq_.begin - 1) / conv_.states.block_size;
    for (int p = std::max(seq_.begin - conv_.kernel + 1, 0); p < seq_.begin; ++p) {
      const float* const row = state_row(block, p);
      QUIRE_CHECK(row != nullptr, "[ops] a sequence continues without its state");
      std::copy_n(row, count_, v(p).begin());
      before(p) = v(p);
    }
  }

  // Writes the state after token p.
  void write_state(int p) {
    const int block = p / conv_.states.block_size;
    if (seq_.pages[block] == 0) return;
    const int first_before = seq_.begin - conv_.kernel + 1;
    for (int q = std::max({p - conv_.num_rows + 1, first_before, 0}); q <= p; ++q) {
      float* const row = state_row(block, q);
      if (q > p - conv_.kernel) {
        std::copy_n(v(q).begin(), count_, row);
      } else if (q >= seq_.begin) {
        input(q, row);
      } else {
        std::copy_n(before(q).begin(), count_, row);
      }
    }
  }

  const float* row_of(int p) const {
    return conv_.bgx.as<float>() + seq_.row_of(p) * 3 * channels_ + first_;
  }

  // Computes b * x of a token of this step.
  void input(int p, float* out) const {
    const float* const b = row_of(p);
    const float* const x = b + 2 * channels_;
    for (int64_t c = 0; c < count_; ++c) out[c] = b[c] * x[c];
  }

  void compute(int p) {
    input(p, v(p).data());
    Row sum{};
    for (int i = 0; i < conv_.kernel; ++i) {
      const int q = p - conv_.kernel + 1 + i;
      if (q < 0) continue;
      const Row& past = v(q);
      const float* const w = conv_.w + i * channels_ + first_;
      for (int64_t c = 0; c < count_; ++c) {
        const auto at = static_cast<size_t>(c);
        sum[at] += w[c] * past[at];
      }
    }
    const float* const g = row_of(p) + channels_;
    float* const out = conv_.out.as<float>() + seq_.row_of(p) * channels_ + first_;
    for (int64_t c = 0; c < count_; ++c) out[c] = g[c] * sum[static_cast<size_t>(c)];
  }

  const ShortConv& conv_;
  const SeqTokens seq_;
  const int64_t channels_;
  const int64_t first_;
  const int64_t count_;
  std::array<Row, kMaxShortConvKernel> v_{};
  std::array<Row, kMaxShortConvKernel - 1> before_{};
};

}  // namespace

void CpuStateOps::short_conv(const ShortConv& conv) {
  const int64_t num_tokens = conv.out.shape[0];
  const int64_t channels = conv.out.shape[1];
  QUIRE_CHECK(conv.bgx.shape[0] == num_tokens && conv.bgx.shape[1] == 3 * channels,
              "[ops] short_conv: the shapes do not match");
  QUIRE_CHECK(
      conv.kernel >= 2 && conv.kernel <= kMaxShortConvKernel && conv.num_rows >= conv.kernel - 1,
      "[ops] short_conv: the kernel is too wide, or the state too small");
  const int64_t num_parts = ceil_div(channels, kChannels);
  for_each(pool_, conv.states.num_seqs * num_parts, num_tokens * channels, [&](int64_t i) {
    const SeqTokens seq = tokens_of(conv.states, static_cast<int>(i / num_parts));
    ConvTask(conv, seq, i % num_parts * kChannels).run();
  });
}

}  // namespace quire::cpu
