#include "quantize/input_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/text.h"
#include "model/model_loader.h"
#include "ops/ops.h"
#include "ops/weight_store.h"
#include "start/load.h"
#include "start/platform_choice.h"
#include "start/single_sequence.h"
#include "tokenizer/tokenizer.h"

namespace quire {
namespace {

constexpr int kMaxWindow = 512;  // tokens that the model reads at once, the BOS included

// The model in its own types, with one sequence at a time.
EngineConfig calibration_config(const QuantizeSource& source, int num_threads) {
  EngineConfig config;
  config.device = "cpu";
  config.num_threads = num_threads;
  config.kv_cache_dtype = "f32";
  config.max_model_len = std::min(kMaxWindow + 1, source.files.config.longest_model_len);
  config.max_num_seqs = 1;
  config.max_num_batched_tokens = kMaxWindow;
  config.enable_prefix_caching = false;
  return config;
}

Result<LoadedModel> load_recorded(DeviceContext& context, QuantizeSource& source, EnginePlan& plan,
                                  Ops& recorder, const QuantizeHooks& hooks) {
  QUIRE_RETURN_IF_ERROR(context.bind_thread());
  LoadedModel loaded;
  QUIRE_ASSIGN_OR_RETURN(
      loaded.model, load_model(source.files.config, *source.files.weights, recorder,
                               plan.sizes.limits, {.progress = [&](int num_done, int num_layers) {
                                 hooks.on_preparation("load", static_cast<size_t>(num_done),
                                                      static_cast<size_t>(num_layers));
                               }}));
  QUIRE_ASSIGN_OR_RETURN(
      loaded.kv_cache,
      KvCache::allocate(plan.target.attention.kv_groups, plan.target.attention.states,
                        plan.memory_plan.num_blocks, context.ops()));
  loaded.attention = std::move(plan.target.attention);
  return loaded;
}

// The shapes of matrices that are not quantized.
std::vector<Shape> shapes_of(const LinearSource& source) {
  std::vector<Shape> shapes;
  if (const auto* stored = std::get_if<StoredMatrices>(&source.numbers)) {
    for (const WeightView& matrix : stored->each) shapes.push_back(matrix.values.shape);
  } else if (const auto* repeated = std::get_if<RepeatedMatrices>(&source.numbers)) {
    for (const RepeatedRows& rows : repeated->each) shapes.push_back(rows.shape);
  }
  return shapes;
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> calibration_windows(const QuantizeSource& source,
                                                              const CalibrationText& text) {
  const std::shared_ptr<const Tokenizer>& tokenizer = source.files.tokenizer;
  if (tokenizer == nullptr) {
    return invalid_argument(fmt::format(
        "[quantize] model: {} has no tokenizer; expected {}, which the calibration file needs: add "
        "one, or leave the calibration file out",
        source.place, kTokenizerFileList));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::optional<int32_t> bos, find_bos(*tokenizer));
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->encode(text.text, false));
  if (text.max_tokens < kMinCalibrationTokens) {
    return invalid_argument(
        fmt::format("[quantize] calibration_tokens: got {}, expected at least {}", text.max_tokens,
                    kMinCalibrationTokens));
  }
  if (ids.size() < kMinCalibrationTokens) {
    return invalid_argument(
        fmt::format("[quantize] calibration_file: {} has {} tokens; expected at least {}, and "
                    "better some thousand: take a longer text",
                    one_line(text.name), ids.size(), kMinCalibrationTokens));
  }
  ids.resize(std::min(ids.size(), static_cast<size_t>(text.max_tokens)));
  // A window leaves room for the token that the model generates.
  const int longest = std::min(kMaxWindow, source.files.config.longest_model_len - 1);
  const int num_special = bos ? 1 : 0;
  if (longest <= num_special) {
    return invalid_argument(fmt::format(
        "[quantize] model: {} has a context of {} tokens; expected at least {} for a calibration: "
        "leave the calibration file out",
        source.place, source.files.config.longest_model_len, num_special + 2));
  }
  const auto length = static_cast<size_t>(longest - num_special);
  std::vector<std::vector<int32_t>> windows;
  for (size_t begin = 0; begin < ids.size(); begin += length) {
    std::vector<int32_t>& window = windows.emplace_back();
    if (bos) window.push_back(*bos);
    const size_t end = std::min(ids.size(), begin + length);
    window.insert(window.end(), ids.begin() + static_cast<int64_t>(begin),
                  ids.begin() + static_cast<int64_t>(end));
  }
  return windows;
}

namespace {

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
  void gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                         int64_t first_column, TensorView out) override {
    ops_.gated_mul_columns(activation, gate, up, first_column, out);
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
  struct InputSums {
    std::vector<std::string> matrices;
    int64_t num_tokens = 0;
    std::vector<double> magnitudes;
    std::vector<double> squares;
  };

  Ops& ops_;
  WeightStore& store_ = *this;  // weights() is const, but the store that it returns is not
  std::vector<TensorSpec> matrices_;
  size_t num_made_ = 0;                               // of matrices_
  std::vector<InputSums> inputs_;                     // in the order of loading
  std::unordered_map<const Linear*, size_t> places_;  // in inputs_
};

InputRecorder::InputRecorder(Ops& ops, std::span<const TensorSpec> tensors) : ops_(ops) {
  std::ranges::copy_if(tensors, std::back_inserter(matrices_), [](const TensorSpec& tensor) {
    return tensor.matrix() != nullptr && !tensor.matrix()->is_plain;
  });
}

Result<std::unique_ptr<Linear>> InputRecorder::make_linear(const LinearSource& source) {
  InputSums inputs;
  for (const Shape& shape : shapes_of(source)) {
    if (num_made_ == matrices_.size() || shape != matrices_[num_made_].shape) {
      return internal_error("[quantize] the matrices of the model are loaded in another order");
    }
    inputs.matrices.push_back(matrices_[num_made_++].name);
  }
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<Linear> linear, ops_.weights().make_linear(source));
  inputs.magnitudes.resize(static_cast<size_t>(linear->in_features()));
  inputs.squares.resize(inputs.magnitudes.size());
  places_.emplace(linear.get(), inputs_.size());
  inputs_.push_back(std::move(inputs));
  return linear;
}

void InputRecorder::linear(const Linear& w, TensorView x, TensorView out) {
  ops_.linear(w, x, out);
  InputSums& inputs = inputs_[places_.at(&w)];
  inputs.num_tokens += x.shape[0];
  const auto num_channels = x.shape[1];
  for (int64_t token = 0; token < x.shape[0]; ++token) {
    const float* const row = x.as<float>() + token * num_channels;
    for (int64_t c = 0; c < num_channels; ++c) {
      const double value = row[c];
      inputs.magnitudes[static_cast<size_t>(c)] += std::abs(value);
      inputs.squares[static_cast<size_t>(c)] += value * value;
    }
  }
}

Status InputRecorder::check_finite() const {
  for (const InputSums& inputs : inputs_) {
    for (size_t c = 0; c < inputs.squares.size(); ++c) {
      if (std::isfinite(inputs.squares[c])) continue;
      return invalid_argument(fmt::format(
          "[quantize] calibration_file: channel {} of the input of {}; got a sum of squares of {}, "
          "expected a finite number: the checkpoint is damaged, or leave the calibration file out",
          c, quote_name(inputs.matrices.front()), inputs.squares[c]));
    }
  }
  return {};
}

Result<InputStatisticsByMatrix> InputRecorder::statistics() const {
  QUIRE_RETURN_IF_ERROR(check_finite());
  if (num_made_ != matrices_.size()) {
    return internal_error("[quantize] a matrix of the model was not loaded as a matrix");
  }
  InputStatisticsByMatrix by_matrix;
  for (const InputSums& inputs : inputs_) {
    if (inputs.num_tokens == 0) continue;  // the embedding
    auto means = std::make_shared<InputStatistics>();
    const auto num_tokens = static_cast<double>(inputs.num_tokens);
    for (size_t c = 0; c < inputs.squares.size(); ++c) {
      means->mean_magnitude.push_back(inputs.magnitudes[c] / num_tokens);
      means->mean_square.push_back(inputs.squares[c] / num_tokens);
    }
    for (const std::string& matrix : inputs.matrices) by_matrix.emplace(matrix, means);
  }
  return by_matrix;
}

}  // namespace

Result<InputStatisticsByMatrix> collect_input_statistics(
    QuantizeSource& source, std::span<const std::vector<int32_t>> windows, int num_threads,
    const QuantizeHooks& hooks) {
  const EngineConfig config = calibration_config(source, num_threads);
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Platform> platform,
                         make_platform(config, source.files));
  DeviceContext& context = *platform->contexts().front();
  QUIRE_ASSIGN_OR_RETURN(EnginePlan plan, plan_engine(config, source.files, *platform));
  InputRecorder recorder(context.ops(), source.tensors);
  QUIRE_ASSIGN_OR_RETURN(const LoadedModel model,
                         load_recorded(context, source, plan, recorder, hooks));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner,
                         make_runner(context, model, plan, {}));
  for (size_t i = 0; i < windows.size(); ++i) {
    if (hooks.interrupted()) {
      return cancelled("interrupted before the first tensor; the same command begins anew");
    }
    hooks.on_preparation("calibrate", i, windows.size());
    QUIRE_ASSIGN_OR_RETURN(const SpanResult result,
                           run_sequence(*runner, plan.scheduler, windows[i]));
    // Checked before the result, because this error names the first matrix with inputs that are not
    // finite.
    QUIRE_RETURN_IF_ERROR(recorder.check_finite());
    QUIRE_RETURN_IF_ERROR(result.error);
  }
  hooks.on_preparation("calibrate", windows.size(), windows.size());
  return recorder.statistics();
}

}  // namespace quire
