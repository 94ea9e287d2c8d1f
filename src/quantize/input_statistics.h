// Runs the unquantized model over a calibration text, and collects statistics of the inputs of its
// matrices.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/ops.h"
#include "ops/weight_store.h"
#include "quantize/channel_scales.h"
#include "quantize/quantize.h"
#include "quantize/source.h"
#include "quire/status.h"

namespace quire {

// The windows that the model reads, each after a BOS if the tokenizer puts one before a text.
// Fails if the model has no tokenizer, if the text or text.max_tokens has fewer tokens than
// kMinCalibrationTokens, or if the model's context is too short for a window.
Result<std::vector<std::vector<int32_t>>> calibration_windows(const QuantizeSource& source,
                                                              const CalibrationText& text);

// Returns the statistics of the input of each matrix that a product reads. They do not depend on
// num_threads (0: one per physical core, within the quota). The model is in memory, as an engine on
// a CPU keeps it, until the function returns. Fails if an input is not finite.
Result<InputStatisticsByMatrix> collect_input_statistics(
    QuantizeSource& source, std::span<const std::vector<int32_t>> windows, int num_threads,
    const QuantizeHooks& hooks);

// Computes with the operations of a CPU, and sums |x| and x^2 of the inputs of all products, by
// channel. Does not override fused operations such as gated_mlp(), whose defaults call linear() for
// each product. Has only the operations of dense decoders.
class InputRecorder final : public Ops, private WeightStore {
 public:
  // `tensors`: the model's tensors, whose matrices are in the order in which they are loaded.
  InputRecorder(Ops& ops, std::span<const TensorSpec> tensors);

  // Fails, naming the matrix, if an input so far is not finite.
  Status check_finite() const;
  // The means over all tokens so far. Fails if one is not finite.
  Result<InputStatisticsByMatrix> statistics() const;

  // See ops.h.
  Stream& stream() override { return ops_.stream(); }
  WeightStore& weights() const override { return store_; }
  DType activation_dtype() const override { return ops_.activation_dtype(); }
  Result<Tensor> allocate(const Shape& shape, DType dtype) override {
    return ops_.allocate(shape, dtype);
  }
  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out) override {
    ops_.embed(table, ids, scale, out);
  }
  void residual_norm(const ResidualNorm& norm, TensorView out) override {
    ops_.residual_norm(norm, out);
  }
  void linear(const Linear& w, TensorView x, TensorView out) override;
  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin) override {
    ops_.rope_angles(inv_freq, attention_factor, positions, cos_sin);
  }
  void position_scales(const PositionScale& scale, const int32_t* positions,
                       TensorView out) override {
    ops_.position_scales(scale, positions, out);
  }
  void wide_norm(const WideNorm& norm) override { ops_.wide_norm(norm); }
  void rope_and_cache(const RopeAndCache& args) override { ops_.rope_and_cache(args); }
  void gate(const Gating& gating) override { ops_.gate(gating); }
  void gated_mul(Activation activation, TensorView gate_up, TensorView out) override {
    ops_.gated_mul(activation, gate_up, out);
  }
  void soft_cap(float cap, TensorView x) override { ops_.soft_cap(cap, x); }
  void gather_rows(TensorView x, const int32_t* rows, TensorView out) override {
    ops_.gather_rows(x, rows, out);
  }
  void write_columns(TensorView x, TensorView out, int64_t first_column) override {
    ops_.write_columns(x, out, first_column);
  }

 private:
  // See weight_store.h.
  int64_t quantized_bytes(const QuantizedForm& /*matrix*/) const override { return 0; }
  Result<DType> linear_dtype(const WeightScheme& scheme) const override {
    return ops_.weights().linear_dtype(scheme);
  }
  bool needs_whole_blocks() const override { return ops_.weights().needs_whole_blocks(); }
  bool mixes_experts() const override { return ops_.weights().mixes_experts(); }
  bool merges_shared_experts(const ExpertsShape& shape) const override {
    return ops_.weights().merges_shared_experts(shape);
  }
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override;
  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override {
    return ops_.weights().make_per_head_linear(matrices);
  }
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override {
    return ops_.weights().make_experts(source);
  }
  Result<Tensor> make_vector(const TensorView& source) override {
    return ops_.weights().make_vector(source);
  }
  Status finish() override { return ops_.weights().finish(); }

  // The sums over all tokens of |x| and x^2 of one product's input, by channel. The product's
  // matrices are stacked.
  struct Inputs {
    std::vector<std::string> matrices;
    int64_t num_tokens = 0;
    std::vector<double> magnitudes;
    std::vector<double> squares;
  };

  Ops& ops_;
  WeightStore& store_ = *this;  // weights() is const, but the store that it returns is not
  std::vector<TensorSpec> matrices_;
  size_t num_made_ = 0;                               // of matrices_
  std::vector<Inputs> inputs_;                        // in the order of loading
  std::unordered_map<const Linear*, size_t> places_;  // in inputs_
};

}  // namespace quire
