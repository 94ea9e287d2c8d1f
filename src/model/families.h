// The model families, as data: what a config.json of an architecture leaves unsaid.
#pragma once

#include <string>
#include <string_view>

namespace quire {

// A yes or no that an architecture fixes, or that one of its config fields decides.
enum class Trait { kNo, kYes, kFromConfig };

// Which layers look back only a window's length.
enum class WindowRule {
  kNone,         // the field is ignored
  kEveryLayer,   // sliding_window holds for all layers
  kFromLayerUp,  // with use_sliding_window, layers from max_window_layers up, or layer_types
};

// All families are the same decoder (pre-norm, gated SiLU MLP, rotary positions) with differences.
struct FamilyTraits {
  std::string_view architecture;  // in config.json's "architectures"
  Trait qkv_bias = Trait::kNo;    // kFromConfig: attention_bias
  Trait o_bias = Trait::kNo;      // kFromConfig: attention_bias
  Trait mlp_bias = Trait::kNo;    // kFromConfig: mlp_bias
  bool qk_norm = false;           // RMSNorm of each query and key head
  WindowRule window = WindowRule::kNone;
  int default_window = 0;    // where the config has no sliding_window at all
  int default_head_dim = 0;  // where it has no head_dim; 0: hidden_size / num_attention_heads
};

// Null: not supported.
const FamilyTraits* find_family(std::string_view architecture);
// "LlamaForCausalLM, MistralForCausalLM, …"
std::string supported_architectures();

}  // namespace quire
