// Small Qwen3.5 models with a layer for multi-token prediction and random weights, as files, and
// their computation in fp64. All layers have attention: tests of the families compare delta nets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/reference_layer.h"

namespace quire::testing {

struct QwenShape {
  int hidden = 16;
  int num_layers = 2;
  int vocab = 20;
  int num_experts = 0;  // 0: dense layers
};

// more: further fields of config.json, each after a comma.
std::string qwen_config_json(const QwenShape& shape, std::string_view more = "");
// Each expert has tensors of its own, as in Qwen3-Next.
StoredTensors random_qwen(const QwenShape& shape, uint32_t seed = 1);
// Puts the experts of each layer into two stacks, as Qwen3.5 is published.
StoredTensors stack_experts(const QwenShape& shape, StoredTensors tensors);

class QwenMtpReference {
 public:
  using Row = ReferenceTensors::Row;
  struct Output {
    std::vector<Row> states;  // the next pass's hidden states
    std::vector<Row> logits;
  };

  // Takes the tensors of random_qwen().
  QwenMtpReference(const QwenShape& shape, const StoredTensors& tensors)
      : shape_(shape), tensors_(tensors) {}

  // The output of the target's final norm for a whole sequence.
  std::vector<Row> target_states(std::span<const int32_t> tokens) const;
  // Computes a whole sequence by the head: pair i is hidden[i] and tokens[i], at position i.
  Output run(std::span<const int32_t> tokens, std::span<const Row> hidden) const;

 private:
  struct KeysValues {
    std::vector<Row> keys;
    std::vector<Row> values;
  };

  // The norm multiplies by 1 + w.
  Row norm(const std::string& name, const Row& x) const;
  std::vector<Row> layer(const std::string& prefix, std::vector<Row> residuals) const;
  // Adds the keys and values of the next position, whose layer input is x, to each KV head.
  void add_keys_values(const std::string& prefix, const Row& x,
                       std::vector<KeysValues>& heads) const;
  // The attention of the newest of these positions, through o_proj.
  Row attend(const std::string& prefix, const Row& x, const std::vector<KeysValues>& heads) const;
  Row experts(const std::string& prefix, const Row& x) const;

  QwenShape shape_;
  ReferenceTensors tensors_;
};

}  // namespace quire::testing
