#include "cpu/ops/cpu_latent_ops.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "cpu/ops/activation_rows.h"
#include "cpu/ops/cpu_ops.h"
#include "cpu/ops/rows.h"

namespace quire::cpu {

Result<std::unique_ptr<PerHeadLinear>> CpuLatentOps::make_per_head_linear(
    std::span<const TensorView> matrices) {
  QUIRE_ASSIGN_OR_RETURN(auto linear, CpuPerHeadLinear::make(matrices, products_));
  QUIRE_RETURN_IF_ERROR(
      grow(cpu_head_scratch_bytes(linear->in_features() + linear->out_features()), head_rows_));
  return std::unique_ptr<PerHeadLinear>(std::move(linear));
}

void CpuLatentOps::per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) {
  check_heads(x, w.num_heads(), w.in_features());
  check_heads(out, w.num_heads(), w.out_features());
  QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] per_head_linear: x and out differ in tokens");
  for_head_blocks(w.num_heads(), x.shape[0], [&](const HeadBlock& block) {
    run_head_block(block, static_cast<const CpuPerHeadLinear&>(w), x, out);
  });
}

void CpuLatentOps::run_head_block(const HeadBlock& block, const CpuPerHeadLinear& w,
                                  const TensorView& x, const TensorView& out) {
  struct Rows {
    int64_t first_row = 0;
    int64_t num_rows = 0;
  };
  const int64_t num_in = w.in_features();
  const int64_t num_out = w.out_features();
  auto* const x_rows = static_cast<float*>(head_rows_.data());
  float* const out_rows = x_rows + kMaxGroupedRows * num_in;
  // Calls body(row, head) for the block's heads of `all` and their gathered rows.
  const auto for_heads = [&](const TensorView& all, int64_t width, const auto& body) {
    for_each(products_.pool(), block.num_rows(), block.num_rows() * width, [&](int64_t i) {
      const int64_t h = i / block.num_tokens;
      const int64_t t = i % block.num_tokens;
      const int64_t head = (block.first_token + t) * all.shape[1] + block.first_head + h;
      body(h * block.row_stride() + t, all.as<float>() + head * all.shape[2]);
    });
  };
  for_heads(x, num_in, [&](int64_t at, const float* head) {
    std::copy_n(head, num_in, x_rows + at * num_in);
  });
  std::array<Rows, kMaxGroups> parts;
  for (int64_t h = 0; h < block.num_heads; ++h) {
    parts[static_cast<size_t>(h)] = {h * block.row_stride(), block.num_tokens};
  }
  const auto matrix_of = [&](const Rows& part) -> const Linear& {
    return w.head(block.first_head + part.first_row / block.row_stride());
  };
  products_.multiply_parts(std::span(parts).first(static_cast<size_t>(block.num_heads)), matrix_of,
                           x_rows, out_rows);
  for_heads(out, num_out,
            [&](int64_t at, float* head) { std::copy_n(out_rows + at * num_out, num_out, head); });
}

void CpuLatentOps::latent_rope_and_cache(const LatentRopeAndCache& args) {
  const int64_t rope_dim = args.cos_sin.shape[1];
  check_rows(args.cos_sin, rope_dim);
  check_rows(args.latent, args.latent.shape[1]);
  check_heads(args.q, args.q.shape[1], rope_dim);
  check_heads(args.q_out, args.q.shape[1], rope_dim);
  const int64_t latent_dim = args.latent.shape[1] - rope_dim;
  QUIRE_CHECK(rope_dim % 2 == 0 && rope_dim <= kMaxLatentDim && latent_dim > 0 &&
                  latent_dim <= kMaxLatentDim,
              "[ops] latent_rope_and_cache: latent_dim or rope_dim out of range");
  QUIRE_CHECK(args.cos_sin.shape[0] == args.latent.shape[0] &&
                  args.q.shape[0] == args.latent.shape[0] &&
                  args.q_out.shape[0] == args.latent.shape[0],
              "[ops] latent_rope_and_cache: shapes differ in tokens");
  for_rows(products_.pool(), args.latent, [&](int64_t t) { latent_rope_and_cache_row(args, t); });
}

}  // namespace quire::cpu
