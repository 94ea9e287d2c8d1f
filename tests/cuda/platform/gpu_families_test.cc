// Families of decoders on a GPU in BF16, with the widths of heads, latent vectors and experts for
// which its kernels are written. A CPU computes the same weights in F32. A CPU that computes
// another value of a trait has other logits, so a GPU that ignores the trait would fail.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cuda/platform/gpu_engine.h"
#include "engine/engine_case.h"
#include "model/config.h"
#include "model/decoder_config.h"
#include "model/model_loader.h"
#include "parity/golden_families.h"
#include "support/scratch_directory.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

// The error of a position is the root mean square of the differences of its log probabilities,
// relative to the spread of all log probabilities. On a CPU that rounds the inputs of
// products and the KV cache to BF16, the median is at most 0.013, and the worst position of a model
// without experts has 0.043. A GPU also rounds the results of all operations: on an H200 the
// largest median is 0.037 and the largest error 0.117.
constexpr double kMedianBar = 0.05;
constexpr double kWorstBar = 0.15;
// A token may go to another expert in BF16 if two are nearly equal, which changes few positions
// much. This share of a mixture's positions keeps kWorstBar.
constexpr double kShareOfMixtures = 0.8;
// The median of another value of a trait, in multiples of kMedianBar. A weak trait changes less.
constexpr double kMutationFactor = 4.0;
constexpr double kWeakMutationFactor = 2.5;
// The bars with FP8, in multiples. A CPU quantizes the same weights, but not the inputs of
// products. The largest median on an H200 is 0.287; unrelated logits would have about 1.4.
constexpr double kFp8Factor = 6.0;
// The bars with an FP8 KV cache on both devices, in multiples. The largest median on an H200 is
// 0.055.
constexpr double kFp8CacheFactor = 1.5;

constexpr int kVocabSize = 24;  // of which a request gets nearly all log probabilities
constexpr int kNumLogprobs = 20;
constexpr int kNumDecoded = 16;

struct Mutation {
  const char* trait;
  std::string config;  // of the same model, but for the trait
  double factor = kMutationFactor;
};

struct FamilyCase {
  const char* name;
  std::string config;  // the text of config.json
  std::vector<Mutation> mutations;
  bool has_experts = false;
  bool is_quantized = false;
};

void PrintTo(const FamilyCase& one, std::ostream* out) {
  *out << one.name;
}

std::string sizes(int num_kv_heads, std::string_view own) {
  return fmt::format(
      R"("hidden_size":256,"intermediate_size":256,"num_hidden_layers":4,"num_attention_heads":4,)"
      R"("num_key_value_heads":{},"vocab_size":{},"max_position_embeddings":256,)"
      R"("rms_norm_eps":1e-5,"bos_token_id":1,"eos_token_id":2,{})",
      num_kv_heads, kVocabSize, own);
}

std::string config_of(std::string_view architecture, std::string_view own, int num_kv_heads = 2) {
  return fmt::format(
      R"({{"architectures":["{}"],"torch_dtype":"bfloat16","tie_word_embeddings":false,{}}})",
      architecture, sizes(num_kv_heads, own));
}

// The decoder of a model that also takes images.
std::string config_within(std::string_view architecture, std::string_view text_type,
                          std::string_view own) {
  return fmt::format(R"({{"architectures":["{}"],"torch_dtype":"bfloat16",)"
                     R"("tie_word_embeddings":false,"text_config":{{"model_type":"{}",{}}}}})",
                     architecture, text_type, sizes(2, own));
}

// The configuration with another value of a field.
Mutation with(const char* trait, std::string config, std::string_view from, std::string_view to,
              double factor = kMutationFactor) {
  const size_t at = config.find(from);
  QUIRE_CHECK(at != std::string::npos, "[test] the configuration lacks the field of a mutation");
  return {trait, config.replace(at, from.size(), to), factor};
}

// longrope's lists for this many frequencies, which grow from 1.
std::string long_rope(int num_frequencies) {
  std::vector<double> short_factors;
  std::vector<double> long_factors;
  for (int i = 0; i < num_frequencies; ++i) {
    short_factors.push_back(1.0 + 0.02 * i);
    long_factors.push_back(1.0 + 0.2 * i);
  }
  return fmt::format(
      R"("rope_scaling":{{"type":"longrope","short_factor":[{}],"long_factor":[{}]}})",
      fmt::join(short_factors, ","), fmt::join(long_factors, ","));
}

FamilyCase qwen3_vl() {
  const std::string config = config_within(
      "Qwen3VLForConditionalGeneration", "qwen3_vl_text",
      R"("head_dim":128,"rope_theta":5000000.0,"rope_scaling":{"rope_type":"default",)"
      R"("mrope_interleaved":true,"mrope_section":[24,20,20]})");
  return {
      "qwen3_vl",
      config,
      {with("base of the rotation", config, "5000000.0", "100.0"),
       {"norms of queries and keys", config_within("Mistral3ForConditionalGeneration", "mistral",
                                                   R"("head_dim":128,"rope_theta":5000000.0)")}}};
}

FamilyCase qwen3_vl_moe() {
  const std::string config = config_within(
      "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe_text",
      R"("head_dim":128,"rope_theta":5000000.0,"num_experts":8,"num_experts_per_tok":2,)"
      R"("moe_intermediate_size":128,"mlp_only_layers":[1],"rope_scaling":{)"
      R"("rope_type":"default","mrope_interleaved":true,"mrope_section":[24,20,20]})");
  return {"qwen3_vl_moe",
          config,
          {with("base of the rotation", config, "5000000.0", "100.0"),
           with("experts per token", config, R"("num_experts_per_tok":2)",
                R"("num_experts_per_tok":1)"),
           with("layers without experts", config, "[1]", "[2]")},
          true};
}

FamilyCase ministral3() {
  const std::string config =
      config_within("Mistral3ForConditionalGeneration", "ministral3",
                    R"("head_dim":128,"sliding_window":null,"rope_parameters":{"rope_type":"yarn",)"
                    R"("rope_theta":10000.0,"factor":16.0,"original_max_position_embeddings":16,)"
                    R"("beta_fast":4.0,"beta_slow":1.0,"mscale":1.0,"mscale_all_dim":1.0,)"
                    R"("llama_4_scaling_beta":0.6})");
  return {"ministral3",
          config,
          {with("scales of queries by position", config, R"("llama_4_scaling_beta":0.6)",
                R"("llama_4_scaling_beta":0.0)"),
           with("YaRN", config, R"("factor":16.0)", R"("factor":2.0)")}};
}

FamilyCase phi3() {
  const auto fields = [](std::string_view part, int num_frequencies) {
    return fmt::format(R"("head_dim":128,"sliding_window":24,"partial_rotary_factor":{},)"
                       R"("original_max_position_embeddings":64,{})",
                       part, long_rope(num_frequencies));
  };
  const std::string config = config_of("Phi3ForCausalLM", fields("0.75", 48));
  return {"phi3",
          config,
          {{"rotated part", config_of("Phi3ForCausalLM", fields("1.0", 64))},
           with("longrope", config, R"("original_max_position_embeddings":64)",
                R"("original_max_position_embeddings":256)"),
           with("window", config, R"("sliding_window":24)", R"("sliding_window":8)")}};
}

FamilyCase glm4_moe() {
  const std::string config = config_of(
      "Glm4MoeForCausalLM",
      R"("head_dim":128,"partial_rotary_factor":0.5,"use_qk_norm":true,"attention_bias":true,)"
      R"("rope_theta":1000000.0,"n_routed_experts":16,"n_shared_experts":1,)"
      R"("num_experts_per_tok":4,"moe_intermediate_size":128,"n_group":4,"topk_group":1,)"
      R"("norm_topk_prob":true,"routed_scaling_factor":2.5,"first_k_dense_replace":1)");
  return {
      "glm4_moe",
      config,
      {with("rotated part", config, R"("partial_rotary_factor":0.5)",
            R"("partial_rotary_factor":1.0)"),
       with("norms of queries and keys", config, R"("use_qk_norm":true)", R"("use_qk_norm":false)"),
       with("biases", config, R"("attention_bias":true)", R"("attention_bias":false)"),
       with("groups of experts", config, R"("topk_group":1)", R"("topk_group":4)"),
       with("scale of experts", config, R"("routed_scaling_factor":2.5)",
            R"("routed_scaling_factor":1.0)"),
       with("shared experts", config, R"("n_shared_experts":1)", R"("n_shared_experts":0)")},
      true};
}

constexpr std::string_view kLatentExperts =
    R"("q_lora_rank":128,"kv_lora_rank":512,"qk_rope_head_dim":64,"n_routed_experts":8,)"
    R"("n_shared_experts":1,"num_experts_per_tok":2,"moe_intermediate_size":128,)"
    R"("first_k_dense_replace":1,"scoring_func":"sigmoid","topk_method":"noaux_tc",)"
    R"("n_group":1,"topk_group":1,"norm_topk_prob":true)";

FamilyCase glm4_moe_lite() {
  const std::string config =
      config_of("Glm4MoeLiteForCausalLM",
                fmt::format(R"("qk_nope_head_dim":192,"v_head_dim":256,"rope_theta":1000000.0,)"
                            R"("routed_scaling_factor":1.8,"rope_interleave":true,{})",
                            kLatentExperts),
                4);
  return {"glm4_moe_lite",
          config,
          {with("rotated pairs", config, R"("rope_interleave":true)", R"("rope_interleave":false)"),
           with("base of the rotation", config, "1000000.0", "100.0"),
           with("scale of experts", config, R"("routed_scaling_factor":1.8)",
                R"("routed_scaling_factor":1.0)")},
          true};
}

FamilyCase kimi_k2() {
  const std::string config = config_of(
      "DeepseekV3ForCausalLM",
      fmt::format(R"("qk_nope_head_dim":128,"v_head_dim":128,"rope_theta":50000.0,)"
                  R"("routed_scaling_factor":2.827,"num_nextn_predict_layers":0,{},)"
                  R"("rope_scaling":{{"type":"yarn","factor":32.0,"beta_fast":1.0,"beta_slow":1.0,)"
                  R"("original_max_position_embeddings":8,"mscale":1.0,"mscale_all_dim":1.0}})",
                  kLatentExperts),
      4);
  return {"kimi_k2",
          config,
          {with("magnitude of YaRN", config, R"("mscale":1.0,"mscale_all_dim":1.0)",
                R"("mscale":0.0,"mscale_all_dim":0.0)"),
           with("YaRN", config, R"("factor":32.0)", R"("factor":1.0)"),
           with("scale of experts", config, R"("routed_scaling_factor":2.827)",
                R"("routed_scaling_factor":1.0)")},
          true};
}

FamilyCase minimax_m2() {
  const std::string config =
      config_of("MiniMaxM2ForCausalLM",
                R"("head_dim":128,"rotary_dim":64,"rope_theta":5000000.0,"num_local_experts":16,)"
                R"("num_experts_per_tok":4,"scoring_func":"sigmoid","use_routing_bias":true)");
  // The architecture has the same layers otherwise.
  const std::string per_head = config_of(
      "Glm4MoeForCausalLM",
      R"("head_dim":128,"partial_rotary_factor":0.5,"use_qk_norm":true,"rope_theta":5000000.0,)"
      R"("n_routed_experts":16,"n_shared_experts":0,"num_experts_per_tok":4,)"
      R"("moe_intermediate_size":256,"norm_topk_prob":true,"routed_scaling_factor":1.0,)"
      R"("first_k_dense_replace":0)");
  return {"minimax_m2",
          config,
          {with("rotated part", config, R"("rotary_dim":64)", R"("rotary_dim":128)"),
           {"norm over all heads", per_head}},
          true};
}

FamilyCase olmo2() {
  const std::string_view fields = R"("head_dim":128,"rope_theta":500000.0)";
  return {"olmo2",
          config_of("Olmo2ForCausalLM", fields),
          {{"norm over all heads",
            config_of("Exaone4ForCausalLM", fmt::format(R"({},"sliding_window":null)", fields))},
           {"base of the rotation",
            config_of("Olmo2ForCausalLM", R"("head_dim":128,"rope_theta":100.0)")}}};
}

constexpr std::string_view kLayerTypes =
    R"("layer_types":["sliding_attention","sliding_attention","sliding_attention",)"
    R"("full_attention"])";

FamilyCase olmo3() {
  const std::string config =
      config_of("Olmo3ForCausalLM",
                fmt::format(R"("head_dim":128,"rope_theta":500000.0,"sliding_window":24,{},)"
                            R"("rope_scaling":{{"rope_type":"yarn","factor":8.0,"beta_fast":4.0,)"
                            R"("beta_slow":1.0,"original_max_position_embeddings":32,)"
                            R"("attention_factor":1.2079441541679836}})",
                            kLayerTypes));
  return {"olmo3",
          config,
          {with("window", config, R"("sliding_window":24)", R"("sliding_window":8)"),
           with("layers with a window", config, R"("sliding_attention","sliding_attention",)",
                R"("sliding_attention","full_attention",)"),
           {"norm over all heads, rotation of layers",
            config_of("Exaone4ForCausalLM",
                      fmt::format(R"("head_dim":128,"rope_theta":500000.0,"sliding_window":24,{})",
                                  kLayerTypes))}}};
}

FamilyCase smollm3() {
  const std::string config = config_of(
      "SmolLM3ForCausalLM", R"("head_dim":128,"no_rope_layers":[0,1,0,1],"rope_theta":5000000.0)");
  return {"smollm3", config, {with("layers without rotation", config, "[0,1,0,1]", "[1,1,1,1]")}};
}

FamilyCase seed_oss() {
  const std::string config = config_of(
      "SeedOssForCausalLM",
      R"("head_dim":128,"attention_bias":true,"attention_out_bias":true,"mlp_bias":true)");
  return {"seed_oss",
          config,
          {with("biases of queries, keys and values", config, R"("attention_bias":true)",
                R"("attention_bias":false)"),
           with("bias of attention's output", config, R"("attention_out_bias":true)",
                R"("attention_out_bias":false)"),
           with("biases of the MLP", config, R"("mlp_bias":true)", R"("mlp_bias":false)")}};
}

FamilyCase granite() {
  const std::string config =
      config_of("GraniteForCausalLM",
                R"("head_dim":128,"embedding_multiplier":3.0,"residual_multiplier":0.4,)"
                R"("attention_multiplier":0.05,"logits_scaling":3.0)");
  return {"granite",
          config,
          {with("scale of embeddings", config, R"("embedding_multiplier":3.0)",
                R"("embedding_multiplier":1.0)"),
           with("scale of sub-layers", config, R"("residual_multiplier":0.4)",
                R"("residual_multiplier":1.0)"),
           with("scale of attention", config, R"("attention_multiplier":0.05)",
                R"("attention_multiplier":0.5)"),
           with("scale of logits", config, R"("logits_scaling":3.0)", R"("logits_scaling":1.0)")}};
}

FamilyCase glm4() {
  const std::string config = config_of(
      "Glm4ForCausalLM", R"("head_dim":128,"partial_rotary_factor":0.5,"attention_bias":true)");
  return {"glm4",
          config,
          {with("rotated part", config, R"("partial_rotary_factor":0.5)",
                R"("partial_rotary_factor":1.0)"),
           with("biases", config, R"("attention_bias":true)", R"("attention_bias":false)")}};
}

FamilyCase hunyuan() {
  const std::string_view fields =
      R"("head_dim":128,"rope_theta":100.0,"rope_scaling":{"type":"dynamic","alpha":50.0,)"
      R"("factor":1.0})";
  const std::string config = config_of("HunYuanDenseV1ForCausalLM", fields);
  return {"hunyuan_v1_dense",
          config,
          {{"norms after the rotation", config_of("Qwen3ForCausalLM", fields)},
           with("base of the rotation", config, R"("alpha":50.0)", R"("alpha":1.0)")}};
}

FamilyCase hy_v3() {
  const std::string config = config_of(
      "HYV3ForCausalLM",
      R"("head_dim":128,"num_experts":8,"num_experts_per_tok":2,"num_shared_experts":1,)"
      R"("moe_intermediate_size":128,"router_scaling_factor":2.826,"first_k_dense_replace":1,)"
      R"("rope_parameters":{"rope_theta":11158840.0,"rope_type":"default"})");
  return {
      "hy_v3",
      config,
      {with("base of the rotation", config, "11158840.0", "100.0"),
       with("scale of experts", config, R"("router_scaling_factor":2.826)",
            R"("router_scaling_factor":1.0)"),
       with("shared experts", config, R"("num_shared_experts":1)", R"("num_shared_experts":0)")},
      true};
}

FamilyCase ernie4_5() {
  const std::string_view fields = R"("head_dim":128,"rope_theta":500000.0)";
  return {"ernie4_5",
          config_of("Ernie4_5ForCausalLM", fields),
          {{"rotated pairs", config_of("LlamaForCausalLM", fields)}}};
}

FamilyCase exaone4() {
  const std::string fields =
      fmt::format(R"("head_dim":128,"rope_theta":1000000.0,"sliding_window":24,{})", kLayerTypes);
  const std::string config = config_of("Exaone4ForCausalLM", fields);
  return {"exaone4",
          config,
          {with("window", config, R"("sliding_window":24)", R"("sliding_window":8)"),
           with("windows and rotations", config, R"("sliding_attention","full_attention")",
                R"("full_attention","sliding_attention")"),
           {"norms of outputs",
            config_of("Qwen3ForCausalLM",
                      fields + R"(,"use_sliding_window":true,"max_window_layers":0)")}}};
}

FamilyCase ernie4_5_moe() {
  const std::string config = config_of(
      "Ernie4_5_MoeForCausalLM",
      R"("rope_theta":500000.0,"moe_num_experts":8,"moe_k":2,"moe_intermediate_size":128,)"
      R"("moe_num_shared_experts":2,"moe_layer_start_index":1)");
  return {"ernie4_5_moe",
          config,
          {with("base of the rotation", config, "500000.0", "100.0"),
           with("experts per token", config, R"("moe_k":2)", R"("moe_k":1)"),
           with("shared experts", config, R"("moe_num_shared_experts":2)",
                R"("moe_num_shared_experts":0)")},
          true};
}

FamilyCase mistral4() {
  const std::string config = config_within(
      "Mistral3ForConditionalGeneration", "mistral4",
      R"("q_lora_rank":128,"kv_lora_rank":256,"qk_nope_head_dim":64,"qk_rope_head_dim":64,)"
      R"("v_head_dim":128,"n_routed_experts":8,"n_shared_experts":1,"num_experts_per_tok":2,)"
      R"("moe_intermediate_size":128,"first_k_dense_replace":1,"rope_parameters":{)"
      R"("rope_type":"yarn","rope_theta":10000.0,"factor":16.0,"mscale":1.0,)"
      R"("original_max_position_embeddings":16,"beta_fast":4.0,"beta_slow":1.0,)"
      R"("mscale_all_dim":1.0,"llama_4_scaling_beta":0.6})");
  return {"mistral4",
          config,
          {with("scales of queries by position", config, R"("llama_4_scaling_beta":0.6)",
                R"("llama_4_scaling_beta":0.0)"),
           with("YaRN", config, R"("factor":16.0)", R"("factor":1.0)"),
           with("shared experts", config, R"("n_shared_experts":1)", R"("n_shared_experts":0)")},
          true};
}

FamilyCase laguna() {
  const std::string config = config_of(
      "LagunaForCausalLM",
      R"("head_dim":128,"num_attention_heads_per_layer":[4,8,8,4],"gating":true,)"
      R"("layer_types":["full_attention","sliding_attention","sliding_attention",)"
      R"("full_attention"],"sliding_window":24,"num_experts":8,"num_experts_per_tok":2,)"
      R"("moe_intermediate_size":128,"shared_expert_intermediate_size":128,)"
      R"("moe_routed_scaling_factor":2.5,"rope_parameters":{"full_attention":{)"
      R"("rope_type":"yarn","rope_theta":1000.0,"partial_rotary_factor":0.5,"factor":8.0,)"
      R"("original_max_position_embeddings":32,"beta_fast":4.0,"beta_slow":1.0,)"
      R"("attention_factor":1.0},"sliding_attention":{"rope_theta":10000.0,)"
      R"("partial_rotary_factor":1.0}})");
  return {"laguna",
          config,
          {with("width of gates", config, R"("gating":true)", R"("gating":"per-element")"),
           with("heads by layer", config, "[4,8,8,4]", "[4,4,4,4]"),
           with("window", config, R"("sliding_window":24)", R"("sliding_window":8)"),
           with("rotated part", config, R"("partial_rotary_factor":0.5)",
                R"("partial_rotary_factor":1.0)"),
           with("scale of experts", config, R"("moe_routed_scaling_factor":2.5)",
                R"("moe_routed_scaling_factor":1.0)")},
          true};
}

FamilyCase mimo_v2() {
  const std::string config = config_of(
      "MiMoV2FlashForCausalLM",
      R"("head_dim":192,"v_head_dim":128,"swa_num_key_value_heads":4,)"
      R"("hybrid_layer_pattern":[0,1,1,1],"moe_layer_freq":[0,0,1,1],"sliding_window":24,)"
      R"("rope_theta":5000000,"swa_rope_theta":10000,"partial_rotary_factor":0.334,)"
      R"("add_swa_attention_sink_bias":true,"attention_value_scale":3.0,)"
      R"("moe_intermediate_size":128,"n_routed_experts":8,"num_experts_per_tok":2)");
  return {"mimo_v2",
          config,
          {with("sinks", config, R"("add_swa_attention_sink_bias":true)",
                R"("add_swa_attention_sink_bias":false)"),
           with("scale of values", config, R"("attention_value_scale":3.0)",
                R"("attention_value_scale":1.0)"),
           with("window", config, R"("sliding_window":24)", R"("sliding_window":4)"),
           with("rotated part", config, R"("partial_rotary_factor":0.334)",
                R"("partial_rotary_factor":1.0)")},
          true};
}

FamilyCase muse_glimmer() {
  const std::string config = config_within(
      "MuseGlimmerForConditionalGeneration", "muse_glimmer_text",
      fmt::format(R"("head_dim":128,"sliding_window":24,"qk_scale_factor":3.87,)"
                  R"("output_multiplier":0.4,"layer_rope_theta":[10000.0,10000.0,10000.0,0],)"
                  R"("post_norm_eps":1e-8,{})",
                  kLayerTypes));
  return {
      "muse_glimmer",
      config,
      {with("factor of queries", config, R"("qk_scale_factor":3.87)", R"("qk_scale_factor":0.2)"),
       with("scale of logits", config, R"("output_multiplier":0.4)", R"("output_multiplier":0.8)"),
       with("layers without rotation", config, "[10000.0,10000.0,10000.0,0]", "[0,0,0,10000.0]"),
       with("epsilon of outputs' norms", config, R"("post_norm_eps":1e-8)",
            R"("post_norm_eps":1.0)"),
       with("window", config, R"("sliding_window":24)", R"("sliding_window":8)")}};
}

FamilyCase llama4() {
  const std::string config = config_within(
      "Llama4ForConditionalGeneration", "llama4_text",
      R"("head_dim":128,"intermediate_size_mlp":256,"num_local_experts":4,)"
      R"("num_experts_per_tok":1,"interleave_moe_layer_step":2,"attention_chunk_size":24,)"
      R"("no_rope_layers":[1,1,0,1],"use_qk_norm":true,"attn_temperature_tuning":true,)"
      R"("floor_scale":8,"attn_scale":3.0)");
  return {
      "llama4",
      config,
      {with("chunks", config, R"("attention_chunk_size":24)", R"("attention_chunk_size":8)"),
       with("norms of queries and keys", config, R"("use_qk_norm":true)", R"("use_qk_norm":false)"),
       with("layers without rotation", config, "[1,1,0,1]", "[0,1,1,1]"),
       with("scales of queries by position", config, R"("attn_scale":3.0)", R"("attn_scale":0.0)")},
      true};
}

FamilyCase lfm2() {
  const std::string config =
      config_of("Lfm2ForCausalLM", R"("norm_eps":1e-5,"conv_L_cache":3,"conv_bias":false,)"
                                   R"("rope_theta":1000000.0,"block_auto_adjust_ff_dim":false,)"
                                   R"("full_attn_idxs":[1,3])");
  return {"lfm2",
          config,
          {with("layers with a state", config, "[1,3]", "[2,3]"),
           with("base of the rotation", config, "1000000.0", "100.0")}};
}

FamilyCase lfm2_moe() {
  const std::string config = config_of(
      "Lfm2MoeForCausalLM",
      R"("norm_eps":1e-5,"conv_L_cache":3,"conv_bias":false,"rope_theta":1000000.0,)"
      R"("layer_types":["conv","full_attention","conv","full_attention"],"num_dense_layers":1,)"
      R"("num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":128,)"
      R"("use_expert_bias":true,"routed_scaling_factor":1.0,"norm_topk_prob":true)");
  return {"lfm2_moe",
          config,
          {with("experts per token", config, R"("num_experts_per_tok":2)",
                R"("num_experts_per_tok":1)"),
           with("base of the rotation", config, "1000000.0", "100.0")},
          true};
}

constexpr std::string_view kDeltaNets =
    R"("head_dim":128,"linear_num_key_heads":2,"linear_num_value_heads":4,)"
    R"("linear_key_head_dim":128,"linear_value_head_dim":128,"linear_conv_kernel_dim":4,)"
    R"("layer_types":["linear_attention","linear_attention","linear_attention",)"
    R"("full_attention"],"rope_parameters":{"rope_type":"default","rope_theta":10000000.0,)"
    R"("partial_rotary_factor":0.25})";

FamilyCase qwen3_5() {
  const std::string config = config_of("Qwen3_5ForCausalLM", kDeltaNets);
  return {"qwen3_5",
          config,
          {with("key heads of delta nets", config, R"("linear_num_key_heads":2)",
                R"("linear_num_key_heads":4)"),
           with("layers with a state", config, R"("linear_attention","full_attention")",
                R"("full_attention","linear_attention")")}};
}

// Heads of delta nets of another size, which other kernels compute.
FamilyCase qwen3_5_moe() {
  std::string config = config_within(
      "Qwen3_5MoeForConditionalGeneration", "qwen3_5_moe_text",
      fmt::format(R"({},"num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":128,)"
                  R"("shared_expert_intermediate_size":128)",
                  kDeltaNets));
  config =
      with("", config, R"("linear_value_head_dim":128)", R"("linear_value_head_dim":64)").config;
  return {"qwen3_5_moe",
          config,
          {with("experts per token", config, R"("num_experts_per_tok":2)",
                R"("num_experts_per_tok":1)"),
           with("value heads of delta nets", config, R"("linear_num_value_heads":4)",
                R"("linear_num_value_heads":2)")},
          true};
}

// The heads have the published widths.
std::string gemma4_config(std::string_view own) {
  return config_of(
      "Gemma4ForCausalLM",
      fmt::format(R"("head_dim":256,"global_head_dim":512,"sliding_window":24,{},)"
                  R"("final_logit_softcapping":20.0,"rope_parameters":{{"full_attention":{{)"
                  R"("rope_type":"proportional","partial_rotary_factor":0.25,"rope_theta":100.0}},)"
                  R"("sliding_attention":{{"rope_type":"default","rope_theta":100.0}}}})",
                  own));
}

FamilyCase gemma4() {
  const std::string config =
      gemma4_config(fmt::format(R"("hidden_size_per_layer_input":0,"attention_k_eq_v":true,)"
                                R"("num_global_key_value_heads":1,{})",
                                kLayerTypes));
  return {"gemma4",
          config,
          {with("window", config, R"("sliding_window":24)", R"("sliding_window":8)"),
           with("rotated part", config, R"("partial_rotary_factor":0.25)",
                R"("partial_rotary_factor":1.0)", kWeakMutationFactor),
           with("values of the keys", config, R"("attention_k_eq_v":true)",
                R"("attention_k_eq_v":false)")}};
}

FamilyCase gemma4_moe() {
  const std::string config = gemma4_config(
      fmt::format(R"("hidden_size_per_layer_input":0,"attention_k_eq_v":true,)"
                  R"("num_global_key_value_heads":1,"enable_moe_block":true,"num_experts":8,)"
                  R"("top_k_experts":2,"moe_intermediate_size":176,{})",
                  kLayerTypes));
  return {"gemma4_moe",
          config,
          {with("experts per token", config, R"("top_k_experts":2)", R"("top_k_experts":1)",
                kWeakMutationFactor),
           with("experts", config, R"("enable_moe_block":true)", R"("enable_moe_block":false)")},
          true};
}

FamilyCase gemma4_shared() {
  const std::string config = gemma4_config(
      fmt::format(R"("hidden_size_per_layer_input":64,"vocab_size_per_layer_input":{},)"
                  R"("num_kv_shared_layers":2,"use_double_wide_mlp":true,"layer_types":)"
                  R"(["sliding_attention","full_attention","sliding_attention","full_attention"])",
                  kVocabSize));
  return {"gemma4_shared",
          config,
          {with("layers that share keys and values", config, R"("num_kv_shared_layers":2)",
                R"("num_kv_shared_layers":0)"),
           with("inputs of layers", config, R"("hidden_size_per_layer_input":64)",
                R"("hidden_size_per_layer_input":0)")}};
}

// With plain experts, or with experts in MXFP4, as published.
FamilyCase gpt_oss(bool has_mxfp4) {
  const std::string config = config_of(
      "GptOssForCausalLM",
      fmt::format(R"("head_dim":64,"attention_bias":true,"sliding_window":24,"layer_types":)"
                  R"(["sliding_attention","full_attention","sliding_attention","full_attention"],)"
                  R"("num_local_experts":8,"num_experts_per_tok":2,"rope_theta":150000.0,)"
                  R"("rope_scaling":{{"rope_type":"yarn","factor":8.0,"beta_fast":4.0,)"
                  R"("beta_slow":1.0,"truncate":false,"original_max_position_embeddings":32}}{})",
                  has_mxfp4 ? R"(,"quantization_config":{"quant_method":"mxfp4"})" : ""));
  return {has_mxfp4 ? "gpt_oss_mxfp4" : "gpt_oss",
          config,
          {with("window", config, R"("sliding_window":24)", R"("sliding_window":8)"),
           with("YaRN", config, R"("factor":8.0)", R"("factor":1.0)"),
           with("biases", config, R"("attention_bias":true)", R"("attention_bias":false)"),
           with("experts per token", config, R"("num_experts_per_tok":2)",
                R"("num_experts_per_tok":1)")},
          true,
          has_mxfp4};
}

std::vector<FamilyCase> family_cases() {
  return {qwen3_vl(),      qwen3_vl_moe(), ministral3(),  phi3(),         glm4_moe(),
          glm4_moe_lite(), minimax_m2(),   olmo2(),       olmo3(),        smollm3(),
          seed_oss(),      granite(),      glm4(),        hunyuan(),      hy_v3(),
          ernie4_5(),      exaone4(),      kimi_k2(),     mistral4(),     laguna(),
          ernie4_5_moe(),  mimo_v2(),      llama4(),      muse_glimmer(), lfm2(),
          lfm2_moe(),      qwen3_5(),      qwen3_5_moe(), gemma4(),       gemma4_moe(),
          gemma4_shared(), gpt_oss(false), gpt_oss(true)};
}

bool has_part(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

// Numbers by which every part of a layer shows in the logits: attention is neither even nor on one
// token, and biases and norms differ between elements.
GoldenTensor numbers_of(const TensorSpec& spec) {
  GoldenTensor tensor;
  for (int i = 0; i < spec.shape.rank(); ++i) tensor.shape.push_back(spec.shape[i]);
  if (has_part(spec.name, "e_score_correction_bias")) {
    tensor.mean = 0.5;
    tensor.deviation = 0.5;
  } else if (spec.name.ends_with(".bias")) {
    tensor.deviation = 0.5;
  } else if (spec.name.ends_with(".sinks")) {
    tensor.mean = 5.0;
    tensor.deviation = 1.0;
  } else if (spec.name.ends_with("scale") || spec.name.ends_with("layer_scalar")) {
    tensor.mean = 1.0;
    tensor.deviation = 0.3;
  } else if (has_part(spec.name, "norm")) {
    tensor.mean = has_part(spec.name, "q_norm") || has_part(spec.name, "k_norm") ? 1.5 : 1.0;
    tensor.deviation = 0.4;
  } else if (!has_part(spec.name, "embed_tokens")) {
    const double gain = has_part(spec.name, "mlp.gate.") ? 3.0 : 1.0;
    tensor.deviation = gain / std::sqrt(static_cast<double>(tensor.shape.back()));
  }
  return tensor;
}

// The factor of a row of queries or keys, from 0.5 to 2. Without it, a norm over all heads would be
// close to norms of the heads.
float row_factor(std::string_view name, int64_t row, int64_t num_rows) {
  if (!has_part(name, "q_proj.weight") && !has_part(name, "k_proj.weight")) return 1.0F;
  return 0.5F + 1.5F * static_cast<float>(row) / static_cast<float>(num_rows);
}

StoredTensor stored_bf16(const GoldenTensor& tensor, std::string_view name, const float* numbers,
                         int64_t count) {
  StoredTensor stored = {"BF16", tensor.shape, std::vector<std::byte>(2 * count)};
  const int64_t num_rows = tensor.shape.front();
  const int64_t row_size = count / num_rows;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = f32_to_bf16(numbers[i] * row_factor(name, i / row_size, num_rows));
    std::memcpy(stored.bytes.data() + 2 * i, &bits, 2);
  }
  return stored;
}

// The code of the number of MXFP4 next to x, which is at most 6.
uint8_t mxfp4_code(float x) {
  constexpr float kValues[] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const auto distance = [&](float value) { return std::abs(std::abs(x) - value); };
  const auto code = std::ranges::min_element(kValues, {}, distance) - std::begin(kValues);
  return static_cast<uint8_t>(code + (x < 0 ? 8 : 0));
}

// Replaces the experts' matrices by MXFP4 (model/mxfp4_weights.h).
void round_experts(StoredTensors& stored) {
  constexpr int64_t kGroup = 32;
  constexpr std::string_view kWeight = ".weight";
  StoredTensors rounded;
  for (const auto& [name, tensor] : stored) {
    if (!has_part(name, ".mlp.experts.") || !name.ends_with(kWeight)) continue;
    const int64_t rows = tensor.shape[0];
    const int64_t groups = tensor.shape[1] / kGroup;
    StoredTensor blocks = {"U8", {rows, groups, kGroup / 2}, {}};
    StoredTensor scales = {"U8", {rows, groups}, {}};
    for (int64_t group = 0; group < rows * groups; ++group) {
      std::array<float, kGroup> numbers = {};
      float largest = 0.0F;
      for (size_t i = 0; i < numbers.size(); ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, tensor.bytes.data() + 2 * (group * kGroup + static_cast<int64_t>(i)), 2);
        numbers[i] = bf16_to_f32(bits);
        largest = std::max(largest, std::abs(numbers[i]));
      }
      const int exponent = std::ilogb(largest) - 2;
      scales.bytes.push_back(static_cast<std::byte>(exponent + 127));
      for (size_t i = 0; i < numbers.size(); i += 2) {
        const int low = mxfp4_code(std::ldexp(numbers[i], -exponent));
        const int high = mxfp4_code(std::ldexp(numbers[i + 1], -exponent));
        blocks.bytes.push_back(static_cast<std::byte>(low | high << 4));
      }
    }
    rounded[name + "_blocks"] = std::move(blocks);
    rounded[name + "_scales"] = std::move(scales);
  }
  std::erase_if(stored,
                [&](const auto& entry) { return rounded.contains(entry.first + "_blocks"); });
  stored.merge(rounded);
}

// Qwen3.5 stores the queries and gates of each head in turn, as one matrix.
void join_gates(int head_dim, StoredTensors& stored) {
  constexpr std::string_view kGates = "gate_proj.weight";
  StoredTensors joined;
  for (auto& [name, tensor] : stored) {
    if (!name.ends_with("self_attn.gate_proj.weight")) continue;
    const std::string queries = name.substr(0, name.size() - kGates.size()) + "q_proj.weight";
    StoredTensor both = stored.at(queries);
    const auto head_bytes = static_cast<ptrdiff_t>(2 * head_dim * both.shape.back());
    std::vector<std::byte> bytes;
    for (ptrdiff_t at = 0; at < std::ssize(both.bytes); at += head_bytes) {
      for (const std::vector<std::byte>* part : {&both.bytes, &tensor.bytes}) {
        bytes.insert(bytes.end(), part->begin() + at, part->begin() + at + head_bytes);
      }
    }
    both.shape.front() *= 2;
    both.bytes = std::move(bytes);
    joined[queries] = std::move(both);
  }
  for (auto& [name, tensor] : joined) {
    stored.erase(name.substr(0, name.size() - std::string_view("q_proj.weight").size()) +
                 std::string(kGates));
    stored[name] = std::move(tensor);
  }
}

// The weights of a configuration under the decoder's names. Tensors of two configurations begin
// with the same numbers, if their names are the same.
StoredTensors weights_of(const std::string& config_json) {
  const ModelConfig config = value_of(parse_model_config(config_json, "config.json"));
  GoldenFamily family;
  family.name = "random weights";
  family.seed = 44;
  const std::vector<TensorSpec> specs = list_tensors(config);
  for (const TensorSpec& spec : specs) family.tensors[spec.name] = numbers_of(spec);
  GeneratedWeights source(family);
  StoredTensors stored;
  for (const TensorSpec& spec : specs) {
    const TensorView view = value_of(source.tensor(spec.name, spec.shape));
    stored[spec.name] = stored_bf16(family.tensors.at(spec.name), spec.name, view.as<float>(),
                                    spec.shape.num_elements());
    source.release(spec.name);
  }
  if (config.architecture.starts_with("Qwen3_5")) {
    join_gates(decoder_config(config).head_dim, stored);
  }
  if (config.layout.has_mxfp4_experts) round_experts(stored);
  return stored;
}

// An engine on a CPU, and the files of its model, which other engines may load too.
class Computed {
 public:
  explicit Computed(const std::string& config_json, std::string_view quantization = "none",
                    std::string_view kv_cache_dtype = "auto")
      : config_(write_checkpoint(files_, config_json, weights_of(config_json))) {
    config_.quantization = quantization;
    config_.kv_cache_dtype = kv_cache_dtype;
    config_.max_num_seqs = 4;
    config_.kv_cache_memory = int64_t{64} << 20;
  }

  const EngineConfig& config() const { return config_; }

  // Computes the sequences as prompts: all tokens that the other engine had, but for the last one.
  std::vector<Collected> score(const std::vector<Request>& requests,
                               const std::vector<Collected>& outputs) {
    if (engine_ == nullptr) engine_ = make_engine(config_);
    std::vector<Request> prompts;
    for (size_t i = 0; i < requests.size(); ++i) {
      std::vector<int32_t> ids = requests[i].prompt_token_ids;
      ids.insert(ids.end(), outputs.at(i).token_ids.begin(), outputs.at(i).token_ids.end());
      prompts.push_back(greedy(std::move(ids), 1));
      prompts.back().sampling.prompt_logprobs = kNumLogprobs;
    }
    return run_all(*engine_, prompts);
  }

 private:
  ScratchDirectory files_;
  EngineConfig config_;
  std::unique_ptr<Engine> engine_;
};

EngineConfig on_gpu(EngineConfig config) {
  config.device = "cuda";
  config.kv_cache_dtype = "auto";
  config.max_num_batched_tokens = 256;  // of all prompts
  config.measure = "off";               // fixed rules choose the same kernels in every run
  return config;
}

// The first prompt is longer than every window and than the contexts before YaRN and longrope.
std::vector<Request> requests() {
  std::mt19937 random(44);
  std::vector<Request> all;
  for (const int length : {70, 39, 5}) {
    std::vector<int32_t> ids;
    for (int i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(random() % kVocabSize));
    all.push_back(greedy(std::move(ids), kNumDecoded));
    all.back().sampling.logprobs = kNumLogprobs;
    all.back().sampling.prompt_logprobs = kNumLogprobs;
  }
  return all;
}

// By position from the second one of a sequence, the log probabilities of tokens.
using Rows = std::vector<std::map<int32_t, double>>;

void append(const std::vector<PositionLogprobs>& positions, Rows& rows) {
  for (const PositionLogprobs& position : positions) {
    if (position.empty()) continue;  // a prompt's first token has none
    rows.emplace_back();
    for (const TokenLogprob& token : position) rows.back()[token.token_id] = token.logprob;
  }
}

Rows rows_of(const std::vector<Collected>& outputs) {
  Rows rows;
  for (const Collected& output : outputs) {
    EXPECT_EQ(output.error.message(), "");
    append(output.prompt_logprobs, rows);
    append(output.logprobs, rows);
  }
  return rows;
}

// The scores of the tokens that were generated: the last positions of each sequence.
std::vector<Collected> generated_part(std::vector<Collected> scores,
                                      const std::vector<Collected>& outputs) {
  for (size_t i = 0; i < scores.size(); ++i) {
    auto& positions = scores[i].prompt_logprobs;
    positions.erase(positions.begin(),
                    positions.end() - static_cast<ptrdiff_t>(outputs[i].token_ids.size()));
  }
  return scores;
}

double mean_square_around_mean(const Rows& rows) {
  double sum = 0.0;
  size_t count = 0;
  for (const auto& row : rows) {
    double mean = 0.0;
    for (const auto& token : row) mean += token.second / static_cast<double>(row.size());
    for (const auto& token : row) sum += (token.second - mean) * (token.second - mean);
    count += row.size();
  }
  return sum / static_cast<double>(count);
}

// The errors of all positions, ascending. What is not a number counts as infinite.
std::vector<double> errors_of(const Rows& got, const Rows& expected) {
  EXPECT_EQ(got.size(), expected.size());
  const double scale = mean_square_around_mean(expected);
  std::vector<double> errors;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    double sum = 0.0;
    int count = 0;
    for (const auto& token : got[i]) {
      const auto other = expected[i].find(token.first);
      if (other == expected[i].end()) continue;
      sum += (token.second - other->second) * (token.second - other->second);
      ++count;
    }
    const double error = std::sqrt(sum / count / scale);
    errors.push_back(std::isnan(error) ? INFINITY : error);
  }
  std::ranges::sort(errors);
  return errors;
}

double quantile(const std::vector<double>& ascending, double share) {
  QUIRE_CHECK(!ascending.empty(), "[test] no position was compared");
  return ascending[static_cast<size_t>(share * static_cast<double>(ascending.size() - 1))];
}

struct GpuRun {
  std::string name;
  EngineConfig config;
};

// Graphs with every backend, and eager steps of fewer tokens than the prompts.
std::vector<GpuRun> runs_of(const EngineConfig& config) {
  std::vector<GpuRun> runs;
  for (const std::string& backend : served_backends(config)) {
    runs.push_back({backend, config});
    runs.back().config.attention_backend = backend;
  }
  runs.push_back({"eager_chunks", config});
  runs.back().config.enforce_eager = true;
  runs.back().config.max_num_batched_tokens = 33;
  return runs;
}

class GpuFamilies : public GpuTest, public ::testing::WithParamInterface<FamilyCase> {
 protected:
  // Expects errors up to the bars, times a factor.
  void expect_near(const Rows& got, const Rows& expected, double factor = 1.0) const {
    const auto errors = errors_of(got, expected);
    EXPECT_LE(quantile(errors, 0.5), factor * kMedianBar);
    EXPECT_LE(quantile(errors, GetParam().has_experts ? kShareOfMixtures : 1.0),
              factor * kWorstBar);
  }
};

// The CPU scores the tokens that the GPU generated, so that both compute the same sequences.
TEST_P(GpuFamilies, LogitsAreNearTheCpusByEveryTrait) {
  const FamilyCase& family = GetParam();
  Computed cpu(family.config);
  std::vector<Collected> outputs;
  for (const GpuRun& run : runs_of(on_gpu(cpu.config()))) {
    SCOPED_TRACE(run.name);
    outputs = run_all(*make_engine(run.config), requests());
    expect_near(rows_of(outputs), rows_of(cpu.score(requests(), outputs)));
  }
  for (const Mutation& mutation : family.mutations) {
    SCOPED_TRACE(mutation.trait);
    Computed mutated(mutation.config);
    const auto errors = errors_of(rows_of(outputs), rows_of(mutated.score(requests(), outputs)));
    EXPECT_GE(quantile(errors, 0.5), mutation.factor * kMedianBar);
  }
}

TEST_P(GpuFamilies, LookupDraftsKeepTheLogits) {
  Computed cpu(GetParam().config);
  EngineConfig config = on_gpu(cpu.config());
  config.speculative_config =
      R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_min": 1})";
  const auto engine = make_engine(config);
  const auto outputs = run_all(*engine, requests());
  EXPECT_GT(engine->stats().speculation.num_drafts, 0);
  expect_near(rows_of(outputs), rows_of(cpu.score(requests(), outputs)));
}

// Log probabilities of a prompt need all its positions, so the requests that may hit have none.
TEST_P(GpuFamilies, PrefixHitsKeepTheLogits) {
  Computed cpu(GetParam().config);
  const auto engine = make_engine(on_gpu(cpu.config()));
  run_all(*engine, requests());
  std::vector<Request> again = requests();
  for (Request& request : again) request.sampling.prompt_logprobs.reset();
  const auto outputs = run_all(*engine, again);
  EXPECT_GT(outputs[0].num_cached_tokens, 0);
  EXPECT_GT(outputs[1].num_cached_tokens, 0);
  expect_near(rows_of(outputs), rows_of(generated_part(cpu.score(again, outputs), outputs)));
}

TEST_P(GpuFamilies, WeightsInFp8KeepTheLogits) {
  if (GetParam().is_quantized) GTEST_SKIP() << "the checkpoint is quantized";
  Computed cpu(GetParam().config, "fp8");
  const auto outputs = run_all(*make_engine(on_gpu(cpu.config())), requests());
  expect_near(rows_of(outputs), rows_of(cpu.score(requests(), outputs)), kFp8Factor);
}

INSTANTIATE_TEST_SUITE_P(All, GpuFamilies, ::testing::ValuesIn(family_cases()),
                         [](const auto& test) { return std::string(test.param.name); });

using GpuFp8Caches = GpuFamilies;

TEST_P(GpuFp8Caches, KeepTheLogits) {
  Computed cpu(GetParam().config, "none", "fp8");
  EngineConfig config = on_gpu(cpu.config());
  config.kv_cache_dtype = "fp8";
  for (const GpuRun& run : runs_of(config)) {
    SCOPED_TRACE(run.name);
    const auto outputs = run_all(*make_engine(run.config), requests());
    expect_near(rows_of(outputs), rows_of(cpu.score(requests(), outputs)), kFp8CacheFactor);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, GpuFp8Caches,
                         ::testing::Values(gemma4(), gemma4_moe(), gemma4_shared(), gpt_oss(false)),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace quire::testing
