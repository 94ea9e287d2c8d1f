// The operations of ops/ops.h on a GPU. Activations are BF16, F16 or F32; sums are F32. All
// operations can be captured in a graph, and keep errors in the stream. Within a process the same
// input gives the same bits on every call. A row's bits may depend on the number of rows (linear),
// and on the kernels that tune_linears() chose. With FP8 weights, steps of more than 8 rows, and
// experts from 2 rows on, may also round activations to FP8. With experts a row's bits may also
// depend on the experts of the other rows. With packed weights the bits of a row's product are the
// same for up to 8 rows (packed_method), except in a fused layer tail.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cuda/base/nccl.h"
#include "cuda/base/stream.h"
#include "cuda/ops/cuda_collectives.h"
#include "cuda/ops/cuda_latent_ops.h"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/operand_checks.h"
#include "cuda/ops/peer_sums.h"
#include "measure/agreement.h"
#include "measure/choices.h"
#include "ops/layer_tail_ops.h"
#include "ops/ops.h"

namespace quire::cuda {

class PackedGemm;
class CudaExpertOps;
class CudaStateOps;
class CudaWeightStore;
class MeasuredProducts;
class ProductRunner;
struct GemmCall;
struct PackedProduct;

struct CudaOpsOptions {
  bool overlap_kernels = true;  // programmatic dependent launch, if the device has it
  int layer_tail_blocks = 0;    // thread blocks of the fused layer tail; 0: one per SM
  int expert_blocks = 0;        // thread blocks of the experts' grouped products; 0: one per SM
  // The ranks that share a model (null: a single rank), and the index of this rank.
  std::shared_ptr<NcclRanks> ranks = nullptr;
  int rank = 0;
  std::shared_ptr<PeerSums> peer_sums = nullptr;       // null: NCCL computes all sums
  std::shared_ptr<MeasuredChoices> choices = nullptr;  // null: measures, and keeps nothing
};

// The order of use is: make weights, WeightStore::finish(), allocate the activations,
// tune_linears(), then steps. Without tune_linears(), fixed rules choose the kernels. A graph keeps
// the kernels that were chosen when it was captured, so tuning precedes capture.
class CudaOps final : public Ops, public LayerTailOps {
 public:
  // `stream` must outlive the object. The workspaces of the products and the counters of the fused
  // tail serve this stream alone. activation: BF16, F16 or F32. Fails with kUnavailable without
  // cuBLASLt.
  static Result<std::unique_ptr<CudaOps>> create(CudaStream& stream, DType activation,
                                                 CudaOpsOptions options = {});
  ~CudaOps() override;

  // Calls `run_step`, which enqueues one step with the largest number of rows, and records its
  // products. Then chooses the fastest kernel for them at each of these numbers of rows (ascending;
  // at most as many as the step had), by kept choices or by measurement. Cannot be captured; waits,
  // and overwrites the outputs of the recorded products, so their tensors must still exist. If the
  // step fails, nothing is measured.
  Status tune_linears(std::span<const int> row_counts, const std::function<Status()>& run_step);
  // The agreement of the ranks that share a model.
  Agreement agreement() const;
  MeasuredChoices& choices() const { return *choices_; }

  // Computes gated_mul of linear(gate_up, x). A fused kernel does not write the linear's output.
  // `scratch` [num_tokens, 2 n] is undefined afterwards.
  void linear_gated_mul(Activation activation, const Linear& gate_up, TensorView x,
                        TensorView scratch, TensorView out);

  // See ops.h.
  CudaStream& stream() override { return *context_.stream; }
  WeightStore& weights() const override;
  ExpertOps* experts() const override;
  CudaLatentOps* latents() const override;
  StateOps* states() const override;
  CudaCollectives* collectives() const override;
  LayerTailOps* layer_tails() const override { return layer_tails_; }
  DType activation_dtype() const override { return activation_; }
  Result<Tensor> allocate(const Shape& shape, DType dtype) override;
  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out) override;
  void residual_norm(const ResidualNorm& norm, TensorView out) override;
  void linear(const Linear& w, TensorView x, TensorView out) override;
  void norm_linear(const ResidualNorm& norm, const Linear& w, TensorView scratch,
                   TensorView out) override;
  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin) override;
  void position_scales(const PositionScale& scale, const int32_t* positions,
                       TensorView out) override;
  void wide_norm(const WideNorm& norm) override;
  void rope_and_cache(const RopeAndCache& args) override;
  void gated_mul(Activation activation, TensorView gate_up, TensorView out) override;
  void gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                         int64_t first_column, TensorView out) override;
  void gated_mlp(const GatedMlp& mlp) override;
  void gate(const Gating& gating) override;
  void soft_cap(float cap, TensorView x) override;
  void gather_rows(TensorView x, const int32_t* rows, TensorView out) override;
  void write_columns(TensorView x, TensorView out, int64_t first_column) override;
  bool try_layer_tail(const LayerTail& layer) override;
  bool try_router(const RouterCall& call) override;

 private:
  friend class StartingRank;

  CudaOps(const LaunchContext& context, DType activation,
          std::unique_ptr<MeasuredProducts> products, std::unique_ptr<PackedGemm> packed_gemm,
          CudaOpsOptions options, Tensor part_rows);

  bool is_collective(const ResidualNorm& norm) const;
  // Whether a product's kernel may compute the norm too.
  bool is_fusible(const ResidualNorm& norm) const;
  void embed_rows(const Linear& table, const int32_t* ids, float scale, const TensorView& out);
  void check_product(const Linear& w, const TensorView& x, const TensorView& out) const;
  PackedProduct packed_product_of(const Linear& w, const TensorView& x,
                                  const TensorView& out) const;
  GemmCall product_of(const Linear& w, const TensorView& x, const TensorView& out) const;
  void run_products_by(ProductRunner& runner);
  void check_norm(const ResidualNorm& norm, const TensorView& out) const;
  void check_gated(const TensorView& gate_up, const TensorView& out) const;

  LaunchContext context_;
  DType activation_;
  OperandChecks check_;
  LayerTailOps* const layer_tails_ = this;
  std::unique_ptr<MeasuredProducts> measured_;
  ProductRunner* products_;                  // measured_, or the recorder of a step
  std::unique_ptr<PackedGemm> packed_gemm_;  // null: quantized weights are expanded at load
  std::unique_ptr<CudaExpertOps> experts_;
  std::unique_ptr<CudaLatentOps> latents_;
  std::unique_ptr<CudaStateOps> states_;
  std::shared_ptr<NcclRanks> ranks_;  // null: a single rank
  int rank_;
  std::unique_ptr<CudaCollectives> collectives_;  // null: a single rank
  std::shared_ptr<MeasuredChoices> choices_;
  Tensor part_rows_;  // I32, one per token of a step; empty: a single rank
  std::unique_ptr<CudaWeightStore> weights_;
};

// Gives the rank of `ops` its StartingCollectives, and its usual collectives back at the end.
class StartingRank {
 public:
  explicit StartingRank(CudaOps& ops);
  ~StartingRank();
  StartingRank(const StartingRank&) = delete;
  StartingRank& operator=(const StartingRank&) = delete;

 private:
  CudaOps& ops_;
  std::unique_ptr<CudaCollectives> usual_;  // null: a single rank
};

}  // namespace quire::cuda
