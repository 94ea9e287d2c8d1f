#include "cuda/ops/cuda_latent_ops.h"

#include "base/check.h"

namespace quire::cuda {

void CudaLatentOps::per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) {
  check_.heads(x, w.num_heads(), w.in_features());
  check_.heads(out, w.num_heads(), w.out_features());
  QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] per_head_linear: x and out differ in tokens");
  products_->run(PerHeadGemmCall{x, as_cuda(w).weights(), out});
}

void CudaLatentOps::shared_linear(const PerHeadLinear& w, TensorView x, TensorView out) {
  run_shared(w, x, w.in_features(), out, w.out_features(), false);
}

void CudaLatentOps::shared_linear_transposed(const PerHeadLinear& w, TensorView x, TensorView out) {
  run_shared(w, x, w.out_features(), out, w.in_features(), true);
}

void CudaLatentOps::run_shared(const PerHeadLinear& w, const TensorView& x, int64_t x_width,
                               const TensorView& out, int64_t out_width, bool transposed) {
  check_.rows(x, x_width);
  check_.heads(out, w.num_heads(), out_width);
  QUIRE_CHECK(x.shape[0] == out.shape[0], "[ops] shared_linear: x and out differ in tokens");
  shared_.run_shared({x, as_cuda(w).weights(), out}, transposed);
}

void CudaLatentOps::latent_rope_and_cache(const LatentRopeAndCache& args) {
  check_angles(args.cos_sin);
  check_.rows(args.latent, args.latent.shape[1]);
  const int64_t rope_dim = args.cos_sin.shape[1];
  const int64_t latent_width = args.latent.shape[1];
  check_.heads(args.q, args.q.shape[1], rope_dim);
  check_.heads(args.q_out, args.q.shape[1], rope_dim);
  QUIRE_CHECK(rope_dim < latent_width && args.page_size > 0,
              "[ops] latent_rope_and_cache: rope_dim or page_size out of range");
  QUIRE_CHECK(args.cos_sin.shape[0] == args.latent.shape[0] &&
                  args.q.shape[0] == args.latent.shape[0] &&
                  args.q_out.shape[0] == args.latent.shape[0],
              "[ops] latent_rope_and_cache: shapes differ in tokens");
  run_latent_rope_and_cache(context_, args);
}

}  // namespace quire::cuda
