// The flags that say which attention to measure: a model's, or any heads.
#pragma once

#include <string>

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

}  // namespace quire::cli
