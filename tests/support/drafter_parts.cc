#include "support/drafter_parts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "model/model_loader.h"

namespace quire::testing {

using Row = ReferenceTensors::Row;

ModelLimits drafter_limits() {
  ModelLimits limits;
  limits.max_num_tokens = 16;
  limits.max_num_logit_rows = 16;
  limits.max_model_len = 32;
  limits.kv_dtype = DType::kF32;
  return limits;
}

ModelConfig target_config(int hidden, int vocab, int num_layers) {
  const std::string json = fmt::format(
      R"({{"architectures":["LlamaForCausalLM"],"hidden_size":{},"intermediate_size":24,)"
      R"("num_hidden_layers":{},"num_attention_heads":4,"head_dim":8,"vocab_size":{},)"
      R"("max_position_embeddings":64}})",
      hidden, num_layers, vocab);
  return parse_model_config(json, "target").value();
}

DrafterWithTarget::DrafterWithTarget(const ModelConfig& target, const StoredTensors& tensors,
                                     Ops& ops)
    : tensors_(tensors),
      file_(tensors),
      ops_(ops),
      target_(load_model(target, target_weights_, ops, limits_).value()) {}

std::vector<float> DrafterWithTarget::own_or_shared(const std::string& name, const Shape& shape) {
  if (const auto own = tensors_.find(name); own != tensors_.end()) return floats_of(own->second);
  const std::string shared = name.starts_with("embed") ? "model." + name : name;
  const TensorView view = target_weights_.tensor(shared, shape).value();
  return {view.as<float>(), view.as<float>() + view.shape.num_elements()};
}

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> numbers;
  std::vector<float> values(count);
  for (float& value : values) value = numbers(generator);
  return values;
}

std::vector<Row> rows_of(std::span<const float> values, size_t width) {
  std::vector<Row> rows;
  for (size_t i = 0; i < values.size(); i += width) {
    rows.emplace_back(values.begin() + static_cast<int64_t>(i),
                      values.begin() + static_cast<int64_t>(i + width));
  }
  return rows;
}

void expect_near_rows(std::span<const float> got, std::span<const Row> expected, double tolerance,
                      const std::string& what) {
  size_t at = 0;
  for (const Row& row : expected) {
    for (const double value : row) {
      ASSERT_LT(at, got.size()) << what;
      ASSERT_NEAR(got[at], value, tolerance * (1.0 + std::fabs(value))) << what << ", " << at;
      ++at;
    }
  }
  EXPECT_EQ(at, got.size()) << what;
}

std::vector<float> output_states(Model& model, int first, int count) {
  std::vector<int32_t> rows;
  for (int i = 0; i < count; ++i) rows.push_back(first + i);
  const int64_t hidden = model.config().hidden_size;
  std::vector<float> states(static_cast<size_t>(count * hidden));
  EXPECT_TRUE(model.draft_head()
                  ->output_states(rows.data(), count, {states.data(), DType::kF32, {count, hidden}})
                  .ok());
  return states;
}

}  // namespace quire::testing
