// Small EAGLE-3 heads with random weights, as files, and their computation in fp64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/reference_layer.h"

namespace quire::testing {

struct HeadShape {
  bool is_speculators = false;  // the layout of config.json and of the tensors' names
  int hidden = 16;
  int target_hidden = 16;
  int num_layers = 1;
  int vocab = 20;  // the target's
  int draft_vocab = 12;
  std::vector<int> taps = {};  // empty: the three that every target has
  bool norm_before_residual = false;
  bool norm_before_fc = false;
  bool norm_output = false;
  bool has_bias = false;
  bool has_embeddings = true;
  bool has_lm_head = true;
  bool is_tied = false;
};

std::string head_config_json(const HeadShape& shape);
// All tensors of a head. add_draft_vocabulary() states the draft vocabulary.
StoredTensors random_head(const HeadShape& shape, uint32_t seed = 1);

class Eagle3Reference {
 public:
  using Row = ReferenceTensors::Row;
  struct Output {
    std::vector<Row> states;  // the next pass's hidden states
    std::vector<Row> logits;  // over the draft vocabulary
  };

  // embeddings: [vocab, hidden], lm_head: [draft_vocab, hidden], the head's own or the target's.
  Eagle3Reference(const HeadShape& shape, const StoredTensors& tensors,
                  std::vector<float> embeddings, std::vector<float> lm_head);

  Row combine(const Row& taps) const;
  // Computes a whole sequence: pair i is hidden[i] and tokens[i], at position i.
  Output run(std::span<const int32_t> tokens, std::span<const Row> hidden) const;

 private:
  std::string layer_name(int layer, std::string_view tensor) const;
  std::vector<Row> attend(int layer, const std::vector<Row>& inputs) const;

  HeadShape shape_;
  ReferenceTensors tensors_;
};

}  // namespace quire::testing
