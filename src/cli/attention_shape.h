// The flags that say which attention to measure: a model's, or any heads; and in which sizes.
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

// `options` outlives the parse.
void add_attention_shape_flags(FlagSet& flags, AttentionShapeOptions* options);

// Wrong usage: some heads and not all, or a model and heads.
Status check_attention_shape(const AttentionShapeOptions& options);

// Without heads, the model's, whose files are read.
Result<AttentionShape> attention_shape(const AttentionShapeOptions& options);

std::string describe(const AttentionShape& shape);

// A flag for a list of integers in [1, max], such as 1,8,64, which is kept ascending.
void add_sizes(FlagSet& flags, std::string name, std::vector<int>* target, int max,
               std::string help, std::string default_text);

}  // namespace quire::cli
