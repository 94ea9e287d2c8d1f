// Flags that select the attention to measure (a model's, or any numbers of heads) and its sizes.
#pragma once

#include <string>
#include <vector>

#include "attn/backend.h"
#include "cli/flags.h"
#include "quire/config.h"

namespace quire::cli {

struct AttentionShapeOptions {
  EngineConfig engine;  // --model and the flags of add_attention_flags
  int num_heads = 0;    // 0: the model's
  int num_kv_heads = 0;
  int head_dim = 0;
};

// `options` must outlive the parse.
void add_attention_shape_flags(FlagSet& flags, AttentionShapeOptions* options);

// Rejects an incomplete set of head flags, and head flags given together with a model.
Status check_attention_shape(const AttentionShapeOptions& options);

// Without head flags, reads the model's files and returns its shape.
Result<AttentionShape> attention_shape(const AttentionShapeOptions& options);

std::string describe(const AttentionShape& shape);

// A flag for a list of integers in [1, max], such as 1,8,64. The list is sorted in ascending order.
void add_sizes(FlagSet& flags, std::string name, std::vector<int>* target, int max,
               std::string help, std::string default_text);

}  // namespace quire::cli
