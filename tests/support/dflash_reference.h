// Small block drafters with random weights, as files, and their computation in fp64.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/reference_layer.h"

namespace quire::testing {

struct BlockShape {
  bool is_dspark = false;
  bool is_speculators = false;  // the layout of config.json
  int hidden = 16;
  int target_hidden = 16;
  int num_layers = 2;
  int vocab = 20;       // the target's
  int draft_vocab = 0;  // 0: as the target's
  int num_target_layers = 7;
  std::vector<int> target_layer_ids = {0, 3, 6};
  int block_size = 5;
  int mask_token_id = 18;
  int markov_rank = 0;
  bool has_bias = false;
  bool has_embeddings = false;
  bool has_lm_head = false;

  int num_draft_ids() const { return draft_vocab == 0 ? vocab : draft_vocab; }
};

std::string block_config_json(const BlockShape& shape);
// All tensors of a drafter. add_draft_vocabulary() states its draft vocabulary.
StoredTensors random_block_drafter(const BlockShape& shape, uint32_t seed = 1);

class DFlashReference {
 public:
  using Row = ReferenceTensors::Row;

  // embeddings: [vocab, hidden], lm_head: [draft ids, hidden], the drafter's own or the target's.
  DFlashReference(const BlockShape& shape, const StoredTensors& tensors,
                  std::vector<float> embeddings, std::vector<float> lm_head);

  Row combine(const Row& taps) const;
  // The logits of every token of a block after a context with these combined states.
  std::vector<Row> run(std::span<const Row> context, std::span<const int32_t> block) const;
  // The summands of the logits after a token.
  Row transition(int32_t previous) const;

 private:
  BlockShape shape_;
  ReferenceTensors tensors_;
};

}  // namespace quire::testing
