// Small MiMo models with a layer for multi-token prediction and random weights, as files, and their
// computation in fp64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/reference_layer.h"

namespace quire::testing {

struct MimoShape {
  int hidden = 16;
  int num_layers = 2;
  int vocab = 20;
  int num_mtp_layers = 1;
};

std::string mimo_config_json(const MimoShape& shape);
StoredTensors random_mimo(const MimoShape& shape, uint32_t seed = 1);

class MtpReference {
 public:
  using Row = ReferenceTensors::Row;
  struct Output {
    std::vector<Row> states;  // the next pass's hidden states
    std::vector<Row> logits;
  };

  MtpReference(const MimoShape& shape, const StoredTensors& tensors)
      : shape_(shape), tensors_(tensors) {}

  // The output of the target's last layer, before the final norm, for a whole sequence.
  std::vector<Row> target_states(std::span<const int32_t> tokens) const;
  // Computes a whole sequence by the head: pair i is hidden[i] and tokens[i], at position i.
  Output run(std::span<const int32_t> tokens, std::span<const Row> hidden) const;

 private:
  // One pre-norm decoder layer with causal attention.
  std::vector<Row> layer(const std::string& prefix, std::vector<Row> residuals) const;

  MimoShape shape_;
  ReferenceTensors tensors_;
};

}  // namespace quire::testing
