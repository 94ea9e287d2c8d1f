#include "model/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "base/json.h"
#include "model/config_fields.h"
#include "model/decoder.h"
#include "model/model_loader.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::pair<std::string_view, std::string_view> kLlama[] = {
    {"hidden_size", "64"},
    {"intermediate_size", "128"},
    {"num_hidden_layers", "4"},
    {"num_attention_heads", "8"},
    {"num_key_value_heads", "2"},
    {"vocab_size", "100"},
    {"max_position_embeddings", "256"}};

// A valid configuration of this architecture, with `fields` replaced.
std::string with(std::string_view fields, std::string_view architecture = "LlamaForCausalLM") {
  std::string json = "{" + std::string(fields);
  const auto add = [&](std::string_view name, std::string_view value) {
    if (fields.find(fmt::format("\"{}\":", name)) != std::string_view::npos) return;
    json += fmt::format("{}\"{}\":{}", json.size() > 1 ? "," : "", name, value);
  };
  add("architectures", fmt::format("[\"{}\"]", architecture));
  for (const auto& [name, value] : kLlama) add(name, value);
  return json + "}";
}

Result<ModelConfig> parse(std::string_view fields,
                          std::string_view architecture = "LlamaForCausalLM") {
  return parse_model_config(with(fields, architecture), "config.json");
}

std::string error_of(std::string_view fields, std::string_view architecture = "LlamaForCausalLM") {
  const auto config = parse(fields, architecture);
  return config.ok() ? "" : config.status().message();
}

DecoderConfig decoder(std::string_view fields, std::string_view architecture = "LlamaForCausalLM") {
  return decoder_config(parse(fields, architecture).value());
}

TEST(ModelConfig, ReadsAPlainLlama) {
  const ModelConfig config =
      parse(R"("rms_norm_eps":1e-5,"torch_dtype":"bfloat16","eos_token_id":[7,9],"bos_token_id":1)")
          .value();
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  const DecoderConfig& decoder = decoder_config(config);
  EXPECT_EQ(decoder.head_dim, 8);
  EXPECT_EQ(decoder.num_kv_heads, 2);
  EXPECT_FLOAT_EQ(decoder.rms_norm_eps, 1e-5F);
  EXPECT_EQ(config.longest_model_len, 256);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(7, 9));
  EXPECT_EQ(config.bos_token_id, 1);
  ASSERT_EQ(decoder.ropes.size(), 1U);
  EXPECT_EQ(decoder.ropes[0].type, RopeType::kDefault);
  EXPECT_EQ(decoder.ropes[0].theta, 10000.0);
  EXPECT_FALSE(decoder.tie_word_embeddings || decoder.qkv_bias || decoder.o_bias ||
               decoder.mlp_bias);
  EXPECT_EQ(decoder.qk_norm, QkNorm::kNone);
  EXPECT_THAT(decoder.layer_windows, AllOf(Each(0), ::testing::SizeIs(4)));
}

TEST(ModelConfig, BiasesAndNormsAreTheFamilys) {
  const auto flags = [](const DecoderConfig& c) {
    return std::vector<bool>{c.qkv_bias, c.o_bias, c.mlp_bias, c.qk_norm == QkNorm::kPerHead};
  };
  const char* asked = R"("attention_bias":true,"mlp_bias":true)";
  EXPECT_THAT(flags(decoder(asked)), ElementsAre(true, true, true, false));
  EXPECT_THAT(flags(decoder(asked, "MistralForCausalLM")), Each(false));
  EXPECT_THAT(flags(decoder("", "Qwen2ForCausalLM")), ElementsAre(true, false, false, false));
  EXPECT_THAT(flags(decoder("", "Qwen3ForCausalLM")), ElementsAre(false, false, false, true));
  EXPECT_THAT(flags(decoder(asked, "Qwen3ForCausalLM")), ElementsAre(true, true, false, true));
  EXPECT_EQ(decoder("", "Qwen3ForCausalLM").head_dim, 128);
}

// The fields of MiMo-7B.
TEST(ModelConfig, MiMoIsAQwen2WithLayersForPrediction) {
  constexpr std::string_view kJson = R"({"architectures":["MiMoForCausalLM"],
      "auto_map":{"AutoConfig":"configuration_mimo.MiMoConfig",
                  "AutoModelForCausalLM":"modeling_mimo.MiMoForCausalLM"},
      "attention_bias":true,"attention_dropout":0.0,"bos_token_id":151643,"eos_token_id":151645,
      "head_dim":128,"hidden_act":"silu","hidden_size":4096,"initializer_range":0.02,
      "intermediate_size":11008,"max_position_embeddings":32768,"max_window_layers":36,
      "model_type":"mimo","num_attention_heads":32,"num_hidden_layers":36,
      "num_key_value_heads":8,"num_nextn_predict_layers":1,"rms_norm_eps":1e-05,
      "rope_scaling":null,"rope_theta":640000,"sliding_window":null,"tie_word_embeddings":false,
      "torch_dtype":"bfloat16","use_cache":true,"use_mrope":false,"use_sliding_window":false,
      "vocab_size":151680})";
  const auto config = value_of(parse_model_config(kJson, "MiMo-7B"));
  EXPECT_EQ(config.num_layers, 36);
  EXPECT_EQ(config.longest_model_len, 32768);
  const DecoderConfig& mimo = decoder_config(config);
  EXPECT_TRUE(mimo.qkv_bias);
  EXPECT_FALSE(mimo.o_bias || mimo.mlp_bias);
  EXPECT_EQ(mimo.qk_norm, QkNorm::kNone);
  EXPECT_EQ(mimo.num_mtp_layers, 1);
  EXPECT_EQ(mimo.ropes[0].theta, 640000.0);
  EXPECT_EQ(decoder("", "MiMoForCausalLM").num_mtp_layers, 0);
  EXPECT_THAT(parse(R"("num_nextn_predict_layers":-1)", "MiMoForCausalLM").status().message(),
              HasSubstr("num_nextn_predict_layers"));
}

TEST(ModelConfig, EverySpellingOfRopeScalingIsOne) {
  for (
      const char* fields :
      {R"("rope_theta":500000,"rope_scaling":{"type":"linear","factor":4})",
       R"("rope_theta":500000.0,"rope_scaling":{"rope_type":"linear","type":"linear","factor":4.0})",
       R"("rope_parameters":{"rope_type":"linear","factor":4.0,"rope_theta":500000.0})",
       R"("rope_theta":5e5,"rope_scaling":null,"rope_parameters":{"type":"linear","factor":4})"}) {
    const auto config = value_of(parse(fields));
    const RopeConfig rope = decoder_config(config).ropes.at(0);
    EXPECT_EQ(rope.type, RopeType::kLinear) << fields;
    EXPECT_EQ(rope.factor, 4.0) << fields;
    EXPECT_EQ(rope.theta, 500000.0) << fields;
    EXPECT_EQ(config.longest_model_len, 1024) << fields;
  }
  EXPECT_EQ(decoder(R"("rope_scaling":{"rope_type":"default"})").ropes[0].type, RopeType::kDefault);
  // YaRN's factor may be given as the ratio of the lengths.
  EXPECT_EQ(decoder(R"("rope_scaling":{"type":"yarn","original_max_position_embeddings":64})")
                .ropes[0]
                .factor,
            4.0);
}

TEST(ModelConfig, QueriesAreScaledByPositionBesideAPlainRotation) {
  const RopeConfig rope =
      decoder(R"("rope_parameters":{"rope_type":"default","llama_4_scaling_beta":0.1,)"
              R"("original_max_position_embeddings":64})")
          .ropes.at(0);
  EXPECT_EQ(rope.query_scale.beta, 0.1);
  EXPECT_EQ(rope.query_scale.period, 64.0);
}

TEST(ModelConfig, WindowsAreTheFamilys) {
  const char* window = R"("sliding_window":32)";
  EXPECT_THAT(decoder(window).layer_windows, Each(0)) << "Llama has no windows";
  EXPECT_THAT(decoder(window, "MistralForCausalLM").layer_windows, Each(32));
  EXPECT_THAT(decoder(R"("sliding_window":null)", "MistralForCausalLM").layer_windows, Each(0));
  EXPECT_THAT(decoder("", "MistralForCausalLM").layer_windows, Each(4096));
  EXPECT_THAT(decoder(window, "Qwen2ForCausalLM").layer_windows, Each(0))
      << "use_sliding_window is not set";
  EXPECT_THAT(decoder(R"("sliding_window":32,"use_sliding_window":true,"max_window_layers":3)",
                      "Qwen2ForCausalLM")
                  .layer_windows,
              ElementsAre(0, 0, 0, 32));
  EXPECT_THAT(
      decoder(R"("sliding_window":32,"use_sliding_window":true,"layer_types":["sliding_attention",)"
              R"("full_attention","full_attention","sliding_attention"])",
              "Qwen3ForCausalLM")
          .layer_windows,
      ElementsAre(32, 0, 0, 32));
}

TEST(ModelConfig, ReadsAGemma2) {
  const ModelConfig config =
      parse(
          R"("sliding_window":32,"head_dim":16,"query_pre_attn_scalar":4,"torch_dtype":"bfloat16")",
          "Gemma2ForCausalLM")
          .value();
  const DecoderConfig& gemma = decoder_config(config);
  EXPECT_EQ(gemma.activation, Activation::kGeluTanh);
  EXPECT_EQ(gemma.head_dim, 16);
  EXPECT_EQ(gemma.attention_scale, 0.5F);
  EXPECT_EQ(gemma.attention_softcap, 50.0F) << "the default of its configuration class";
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_FALSE(gemma.qkv_bias);
  EXPECT_EQ(gemma.qk_norm, QkNorm::kNone);
  EXPECT_THAT(gemma.layer_windows, ElementsAre(32, 0, 32, 0));
  EXPECT_THAT(gemma.layer_ropes, Each(0));
  EXPECT_EQ(decoder(R"("attn_logit_softcapping":null)", "Gemma2ForCausalLM").attention_softcap,
            0.0F);
  EXPECT_EQ(decoder(R"("attn_logit_softcapping":20.0)", "Gemma2ForCausalLM").attention_softcap,
            20.0F);
  EXPECT_EQ(decoder("", "Gemma2ForCausalLM").head_dim, 256);
}

TEST(ModelConfig, ReadsAGemma3) {
  const char* window =
      R"("sliding_window":32,"sliding_window_pattern":2,"rope_theta":5e5,)"
      R"("rope_local_base_freq":7000,"rope_scaling":{"rope_type":"linear","factor":8})";
  const ModelConfig config = parse(window, "Gemma3ForCausalLM").value();
  const DecoderConfig& gemma = decoder_config(config);
  EXPECT_EQ(gemma.attention_softcap, 0.0F);
  EXPECT_EQ(gemma.qk_norm, QkNorm::kPerHead);
  EXPECT_THAT(gemma.layer_windows, ElementsAre(32, 0, 32, 0));
  EXPECT_THAT(gemma.layer_ropes, ElementsAre(1, 0, 1, 0));
  ASSERT_EQ(gemma.ropes.size(), 2U);
  EXPECT_EQ(gemma.ropes[0].type, RopeType::kLinear);
  EXPECT_EQ(gemma.ropes[0].theta, 5e5);
  EXPECT_EQ(gemma.ropes[1].type, RopeType::kDefault);
  EXPECT_EQ(gemma.ropes[1].theta, 7000.0);
  EXPECT_EQ(config.longest_model_len, 256) << "its positions already count the scaling";
  // transformers 5 has one rotation per type of layer.
  const DecoderConfig fifth = decoder(
      R"("layer_types":["full_attention","sliding_attention","full_attention","full_attention"],)"
      R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":5e5},)"
      R"("sliding_attention":{"rope_type":"default","rope_theta":7000}})",
      "Gemma3ForCausalLM");
  EXPECT_THAT(fifth.layer_ropes, ElementsAre(0, 1, 0, 0));
  EXPECT_EQ(fifth.ropes.at(0).factor, 8.0);
  EXPECT_EQ(fifth.ropes.at(0).theta, 5e5);
  EXPECT_EQ(fifth.ropes.at(1).theta, 7000.0);
}

TEST(ModelConfig, ReadsTheTextModelOfAMultimodalGemma3) {
  const std::string json =
      R"({"architectures":["Gemma3ForConditionalGeneration"],"eos_token_id":[1,106],)"
      R"("torch_dtype":"bfloat16","vision_config":{"hidden_size":1152},"text_config":{)"
      R"("hidden_size":64,"intermediate_size":128,"num_hidden_layers":7,"sliding_window":1024,)"
      R"("rope_scaling":{"factor":8.0,"rope_type":"linear"}}})";
  const auto config = value_of(parse_model_config(json, "config.json"));
  EXPECT_EQ(config.vocab_size, 262208) << "the class's default, which published files omit";
  EXPECT_EQ(config.longest_model_len, 131072);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(1, 106));
  const DecoderConfig& gemma = decoder_config(config);
  EXPECT_EQ(gemma.num_heads, 8);
  EXPECT_EQ(gemma.num_kv_heads, 4);
  EXPECT_THAT(gemma.layer_windows, ElementsAre(1024, 1024, 1024, 1024, 1024, 0, 1024));
  EXPECT_THAT(parse_model_config(R"({"architectures":["Gemma3ForConditionalGeneration"]})", "x")
                  .status()
                  .message(),
              HasSubstr("text_config; got nothing"));
  EXPECT_THAT(parse_model_config(R"({"architectures":["Gemma3ForConditionalGeneration"],)"
                                 R"("text_config":{"hidden_size":0}})",
                                 "x")
                  .status()
                  .message(),
              HasSubstr("text_config.hidden_size"));
}

TEST(ModelConfig, AMultimodalGemma3IsCheckedOnBothLevels) {
  const auto error = [](const std::string& top, const std::string& text) {
    return parse_model_config(R"({"architectures":["Gemma3ForConditionalGeneration"],)" + top +
                                  R"("text_config":{"hidden_size":64,"intermediate_size":128,)" +
                                  text + R"("num_hidden_layers":2}})",
                              "config.json")
        .status()
        .message();
  };
  EXPECT_EQ(error("", ""), "");
  EXPECT_THAT(error("", R"("quantization_config":{"quant_method":"gptq"},)"),
              HasSubstr("text_config.quantization_config"));
  const char* fp8 = R"("quantization_config":{"quant_method":"fp8"},)";
  const char* blocks = R"("quantization_config":{"quant_method":"fp8","weight_block_size":[8,8]},)";
  EXPECT_EQ(error(fp8, fp8), "");
  EXPECT_THAT(error(fp8, blocks),
              HasSubstr("quantization_config; got another scheme than in text_config"));
}

// transformers reads the outer field alone.
TEST(ModelConfig, TheOuterObjectSaysWhetherTheHeadIsTied) {
  const auto ties = [](std::string_view top, std::string_view text) {
    const std::string json =
        fmt::format(R"({{"architectures":["Gemma3ForConditionalGeneration"],{}"text_config":)"
                    R"({{"hidden_size":64,"intermediate_size":128,{}"num_hidden_layers":2}}}})",
                    top, text);
    const ModelConfig config = value_of(parse_model_config(json, "config.json"));
    return std::pair(decoder_config(config).tie_word_embeddings,
                     decoder_config(config).assumes_tie);
  };
  constexpr std::string_view kFalse = R"("tie_word_embeddings":false,)";
  EXPECT_EQ(ties("", ""), std::pair(true, true));
  EXPECT_EQ(ties("", kFalse), std::pair(true, true));
  EXPECT_EQ(ties(kFalse, ""), std::pair(false, false));
  EXPECT_EQ(ties(R"("tie_word_embeddings":true,)", kFalse), std::pair(true, false));
}

TEST(ModelConfig, GemmasFaultsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"("hidden_activation":"gelu")", "hidden_activation; got \"gelu\""},
      {R"("query_pre_attn_scalar":0)", "query_pre_attn_scalar"},
      {R"("attn_logit_softcapping":-1)", "attn_logit_softcapping"},
      {R"("final_logit_softcapping":"30")", "final_logit_softcapping"},
      {R"("sliding_window_pattern":0)", "sliding_window_pattern"},
      {R"("sliding_window":0)", "sliding_window"},
      {R"("use_bidirectional_attention":true)", "use_bidirectional_attention"},
      {R"("rope_local_base_freq":0)", "rope_local_base_freq"},
      {R"("layer_types":["full_attention"])", "layer_types; got 1 entries"},
      {R"("rope_parameters":{"full_attention":{"rope_type":"default"}})",
       "rope_parameters.sliding_attention; got nothing"},
      {R"("rope_parameters":{"sliding_attention":{"rope_type":"default"}})",
       "rope_parameters.full_attention; got nothing"},
      {R"("rope_parameters":{"full_attention":null,"sliding_attention":null})",
       "rope_parameters.full_attention; got nothing"},
      {R"("quantization_config":{"quant_method":"mxfp4"})", "is quantized (\"mxfp4\")"},
  };
  for (const auto& [fields, expected] : faults) {
    EXPECT_THAT(error_of(fields, "Gemma3ForCausalLM"), HasSubstr(expected)) << fields;
  }
}

TEST(ModelConfig, EachFaultNamesItsFieldAndTheExpectedValue) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"("hidden_size":0)", "hidden_size; got \"0\", expected a whole number from 1"},
      {R"("hidden_size":-1)", "hidden_size"},
      {R"("hidden_size":1e300)", "hidden_size"},
      {R"("hidden_size":64.5)", "hidden_size"},
      {R"("hidden_size":"64")", "hidden_size"},
      {R"("hidden_size":99999999999999999999)", "hidden_size"},
      {R"("hidden_size":65)", "a multiple of num_attention_heads"},
      {R"("hidden_size":null)", "hidden_size; got nothing"},
      {R"("num_hidden_layers":1000000)", "num_hidden_layers"},
      {R"("num_key_value_heads":3)", "num_key_value_heads; got 3, expected a divisor"},
      {R"("vocab_size":1000000000)", "vocab_size"},
      {R"("head_dim":7)", "head_dim; got 7, expected an even number"},
      {R"("head_dim":100000)", "head_dim"},
      {R"("rms_norm_eps":-1)", "rms_norm_eps"},
      {R"("hidden_act":"gelu")", "hidden_act; got \"gelu\", expected \"silu\""},
      {R"("torch_dtype":"float8_e4m3fn")", "torch_dtype"},
      {R"("dtype":"int64")", "dtype"},
      {R"("rope_theta":0)", "rope_theta"},
      {R"("rope_scaling":7)", "rope_scaling; got"},
      {R"("rope_scaling":{"rope_type":"longrope"})",
       "rope_scaling.short_factor; got 0 numbers, expected one per frequency, 4"},
      {R"("rope_parameters":{"rope_type":"linear"})", "rope_parameters.factor; got nothing"},
      {R"("rope_scaling":{"type":"yarn","rope_type":"linear","factor":4})",
       "rope_scaling.rope_type; got \"linear\" beside type \"yarn\", expected the same type"},
      {R"("rope_scaling":{"factor":8.0})", "rope_scaling.rope_type; got nothing"},
      {R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":4}})",
       "rope_parameters; got parameters per type of layer"},
      {R"("rope_scaling":{"type":"dynamic","factor":0.5})", "rope_scaling.factor"},
      {R"("rope_scaling":{"type":"llama3","factor":8})", "rope_scaling.low_freq_factor"},
      {R"("rope_scaling":{"type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4})",
       "rope_scaling.high_freq_factor"},
      {R"("rope_scaling":{"type":"yarn","factor":8,"original_max_position_embeddings":0})",
       "original_max_position_embeddings"},
      {R"("rope_scaling":{"type":"longrope","factor":2,"original_max_position_embeddings":1})",
       "original_max_position_embeddings; got 1, expected at least 2"},
      {R"("original_max_position_embeddings":1,"rope_scaling":{"type":"longrope"})",
       "original_max_position_embeddings; got 1, expected at least 2"},
      {R"("rope_parameters":{"rope_type":"default"},"rope_scaling":{"type":"yarn","factor":4})",
       "rope_scaling; got"},
      {R"("rope_theta":5e5,"rope_parameters":{"rope_type":"default","rope_theta":1e4})",
       "rope_theta; got 500000 beside 10000 in rope_parameters, expected the same value in both"},
      {R"("rotary_dim":4,"partial_rotary_factor":1.0)",
       "partial_rotary_factor; got 1 beside rotary_dim 4, expected 0.5, the same part of a head's "
       "8 elements"},
      {R"("rope_parameters":{"rope_type":"default","llama_4_scaling_beta":0.1})",
       "rope_parameters.original_max_position_embeddings; got nothing"},
      {R"("partial_rotary_factor":0.4)",
       "partial_rotary_factor; got 0.4, expected an even number of a head's 8 elements"},
      {R"("tie_word_embeddings":"yes")", "tie_word_embeddings"},
      {R"("eos_token_id":[1,-2])", "eos_token_id"},
      {R"("eos_token_id":"</s>")", "eos_token_id"},
      {R"("quantization_config":{"quant_method":"mxfp4"})", "is quantized (\"mxfp4\")"},
      {R"("quantization_config":{"quant_method":"gptq","bits":3,"group_size":128})",
       "is quantized (\"gptq\", 3 bits, groups of 128)"},
      {R"("quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true})",
       "is quantized (\"bitsandbytes\", 4 bits)"},
      {R"("quantization_config":{"quant_method":3,"bits":"four"})",
       "quantization_config.quant_method; got \"3\", expected a string"},
      {R"("quantization_config":"awq")", "quantization_config; got the string \"awq\""},
  };
  for (const auto& [fields, expected] : faults) {
    const std::string message = error_of(fields);
    EXPECT_THAT(message, HasSubstr(expected)) << fields;
    EXPECT_THAT(message, AllOf(HasSubstr("config.json"), Not(HasSubstr("\n")))) << fields;
  }
  EXPECT_THAT(error_of(R"("use_sliding_window":true,"sliding_window":8,"layer_types":["full"])",
                       "Qwen2ForCausalLM"),
              HasSubstr("layer_types; got 1 entries, expected one per layer, 4"));
  EXPECT_THAT(error_of(R"("sliding_window":0)", "MistralForCausalLM"), HasSubstr("sliding_window"));
}

TEST(ModelConfig, AnUnreadFieldIsRefusedIfItChangesTheComputation) {
  EXPECT_THAT(error_of(R"("logit_scale":0.0625)"), HasSubstr("logit_scale; got \"0.0625\""));
  EXPECT_THAT(error_of(R"("attention_multiplier":2)"), HasSubstr("attention_multiplier"));
  EXPECT_THAT(error_of(R"("clip_qkv":8.0)"), HasSubstr("clip_qkv"));
  EXPECT_EQ(error_of(R"("logit_scale":1,"residual_multiplier":1.0,"alibi":false)"), "");
  EXPECT_EQ(error_of(R"("attention_multiplier":2)", "GraniteForCausalLM"), "");
  EXPECT_THAT(parse(R"("colour":"blue","use_cache":true,"clip_qkv":null)").value().unread_fields,
              ElementsAre("colour"));
  EXPECT_THAT(parse(R"("rms_norm_eps":1e-6,"norm_eps":1e-6)").value().unread_fields, IsEmpty())
      << "another spelling of a field that is read";
}

TEST(ModelConfig, VariantsOfAFamilyThatAreNotComputedAreRefused) {
  const std::pair<const char*, const char*> faults[] = {
      {"Phi3ForCausalLM", R"("attention_bias":true)"},
      {"Phi3ForCausalLM", R"("lm_head_bias":true)"},
      {"HunYuanDenseV1ForCausalLM", R"("use_qk_norm":false)"},
      {"HunYuanDenseV1ForCausalLM", R"("use_cla":true)"},
      {"MiniMaxM2ForCausalLM", R"("use_qk_norm":false)"},
      {"MiniMaxM2ForCausalLM", R"("shared_intermediate_size":64)"},
      {"HYV3ForCausalLM", R"("route_norm":false)"},
      {"SmolLM3ForCausalLM", R"("use_sliding_window":true)"},
      {"Ernie4_5_MoeForCausalLM", R"("moe_norm_min":0.01)"},
      {"LagunaForCausalLM", R"("gating":false)"},
      {"LagunaForCausalLM", R"("gating":"per-layer")"},
      {"LagunaForCausalLM", R"("moe_router_logit_softcapping":30.0)"},
      {"LagunaForCausalLM", R"("moe_apply_router_weight_on_input":true)"},
      {"LagunaForCausalLM", R"("swa_attention_sink_enabled":true)"},
      {"LagunaForCausalLM", R"("num_attention_heads_per_layer":[4])"},
      {"LagunaForCausalLM", R"("num_attention_heads_per_layer":[4,3,4,4])"},
      {"MuseGlimmerForConditionalGeneration", R"("layer_rope_theta":[0,1e4])"},
      {"Llama4ForCausalLM", R"("num_experts_per_tok":2)"},
      {"Llama4ForCausalLM", R"("layer_types":["sliding_attention"])"},
      {"Ministral3ForCausalLM", R"("rope_parameters":null)"}};
  for (const auto& [architecture, field] : faults) {
    const std::string key = std::string(field).substr(1, std::string(field).find('"', 1) - 1);
    EXPECT_THAT(error_of(field, architecture), HasSubstr(key)) << architecture;
    EXPECT_EQ(error_of(R"("rope_parameters":{"rope_type":"default"})", architecture), "");
  }
}

TEST(ModelConfig, HeadsOfMimoDifferInNumberAlone) {
  const std::string experts =
      R"("n_routed_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":16)";
  const auto error = [&](std::string_view field) {
    return error_of(fmt::format("{}{}{}", experts, field.empty() ? "" : ",", field),
                    "MiMoV2FlashForCausalLM");
  };
  EXPECT_EQ(error(""), "");
  EXPECT_THAT(error(R"("swa_head_dim":8)"), HasSubstr("expected 192"));
  EXPECT_THAT(error(R"("swa_v_head_dim":64)"), HasSubstr("expected 128"));
  EXPECT_THAT(error(R"("swa_num_attention_heads":4)"), HasSubstr("swa_num_attention_heads"));
  EXPECT_THAT(error(R"("swa_num_key_value_heads":3)"), HasSubstr("expected a divisor"));
  EXPECT_THAT(error(R"("hybrid_layer_pattern":[0,1])"), HasSubstr("expected one per layer, 4"));
  EXPECT_THAT(error(R"("moe_layer_freq":[0,1])"), HasSubstr("moe_layer_freq"));
  EXPECT_THAT(error(R"("moe_layer_freq":0)"), HasSubstr("moe_layer_freq; got 0"));
}

constexpr std::string_view kGemma4 =
    R"("num_key_value_heads":4,"head_dim":256,"sliding_window":64,"layer_types":)"
    R"(["sliding_attention","full_attention","sliding_attention","full_attention"],)"
    R"("rope_parameters":{"full_attention":{"rope_type":"proportional","rope_theta":1e6,)"
    R"("partial_rotary_factor":0.25},"sliding_attention":{"rope_theta":1e4}})";

TEST(ModelConfig, Gemma4HasHeadsByKindOfLayer) {
  const DecoderConfig large =
      decoder(fmt::format(R"({},"attention_k_eq_v":true,"num_global_key_value_heads":2,)"
                          R"("hidden_size_per_layer_input":0)",
                          kGemma4),
              "Gemma4ForCausalLM");
  EXPECT_EQ(heads_of(large, 0), (LayerHeads{8, 4, 256, 256}));
  EXPECT_EQ(heads_of(large, 1), (LayerHeads{8, 2, 512, 512}));
  EXPECT_FALSE(has_k_for_v(large, 0));
  EXPECT_TRUE(has_k_for_v(large, 1));
  EXPECT_EQ(rotated_dim(large.ropes[0], large.head_dim), 512);
  EXPECT_EQ(rotated_dim(large.ropes[1], large.head_dim), 256);
  EXPECT_EQ(large.layer_input_size, 0);
  EXPECT_TRUE(owns_cache(large, 3));
  const DecoderConfig small =
      decoder(fmt::format(R"({},"num_kv_shared_layers":2,"use_double_wide_mlp":true,)"
                          R"("vocab_size_per_layer_input":100)",
                          kGemma4),
              "Gemma4ForCausalLM");
  EXPECT_EQ(heads_of(small, 1), (LayerHeads{8, 4, 512, 512}));
  EXPECT_THAT(small.kv_sources, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(small.layer_intermediate_sizes, ElementsAre(128, 128, 256, 256));
  EXPECT_FALSE(owns_cache(small, 2));
  EXPECT_EQ(small.layer_input_size, 256);
  const std::string unified = fmt::format(
      R"({{"architectures":["Gemma4UnifiedForConditionalGeneration"],"text_config":{}}})",
      with(kGemma4, "Gemma4UnifiedForConditionalGeneration"));
  EXPECT_EQ(decoder_config(parse_model_config(unified, "config.json").value()).layer_input_size, 0);
}

TEST(ModelConfig, Gemma4sFaultsAreNamed) {
  const std::vector<std::pair<std::string, std::string>> faults = {
      {R"("use_bidirectional_attention":"all")", "use_bidirectional_attention"},
      {R"("global_head_dim":33)", "global_head_dim; got 33, expected an even number"},
      {R"("attention_k_eq_v":true,"num_global_key_value_heads":3)", "expected a divisor"},
      {R"("num_kv_shared_layers":4)", "before the shared layers, a layer of each"},
      {R"("num_kv_shared_layers":3)", "before the shared layers, a layer of each"},
      {R"("vocab_size_per_layer_input":50)", "vocab_size_per_layer_input; got 50"},
      {R"("per_layer_config":{"1":{"head_dim":512}})", "per_layer_config; got other heads"},
      {R"("per_layer_config":{"0":{"head_dim":512}})", "per_layer_config; got other heads"},
      {R"("enable_moe_block":true)", "num_experts"},
  };
  for (const auto& [fields, expected] : faults) {
    EXPECT_THAT(error_of(fmt::format("{},{}", kGemma4, fields), "Gemma4ForCausalLM"),
                HasSubstr(expected))
        << fields;
  }
  EXPECT_THAT(error_of("", "Gemma4ForCausalLM"),
              HasSubstr("layer_types; got a window in the last"));
  EXPECT_THAT(error_of(R"("layer_types":["full_attention","full_attention","full_attention",)"
                       R"("full_attention"])",
                       "Gemma4ForCausalLM"),
              HasSubstr("rope_parameters; got another rotation"));
}

TEST(ModelConfig, AKeyHasOneValue) {
  EXPECT_EQ(error_of(R"("hidden_size":64,"hidden_size":32)"),
            "[config] config.json: \"hidden_size\"; got it twice, expected one value");
  EXPECT_EQ(error_of(R"("rope_scaling":{"factor":2,"factor":4,"rope_type":"linear"})"),
            "[config] config.json: rope_scaling.\"factor\"; got it twice, expected one value");
  EXPECT_EQ(parse_generation_config(R"({"top_p":0.5,"top_p":0.9})", "g.json").status().message(),
            "[config] g.json: \"top_p\"; got it twice, expected one value");
}

TEST(ConfigFields, AFieldMayHaveSeveralSpellings) {
  const auto read = [](std::string_view json, const auto& body) {
    const JsonDocument document = JsonDocument::parse(json, "c.json").value();
    ConfigFields fields(root_object(document, "c.json").value(), "c.json");
    fields.add_spellings("num_experts", {"num_local_experts", "moe_num_experts"});
    fields.add_spellings("rope_scaling", {"rope_parameters"});
    body(fields);
    return fields.status().message();
  };
  const auto num_experts = [&](std::string_view json) {
    int number = 0;
    EXPECT_EQ(read(json,
                   [&](ConfigFields& fields) {
                     EXPECT_TRUE(fields.has("num_experts"));
                     number = fields.integer("num_experts", 1, 64);
                     fields.expect_only({"num_experts"});
                   }),
              "");
    return number;
  };
  EXPECT_EQ(num_experts(R"({"num_experts":8})"), 8);
  EXPECT_EQ(num_experts(R"({"moe_num_experts":8})"), 8);
  EXPECT_EQ(num_experts(R"({"num_experts":null,"num_local_experts":8})"), 8);
  EXPECT_EQ(num_experts(R"({"num_experts":8,"num_local_experts":8.0})"), 8) << "they agree";
  const auto read_all = [](ConfigFields& fields) {
    fields.integer("num_experts", 1, 64);
    if (auto rope = fields.object("rope_scaling")) {
      rope->number("factor", 1, 2);
      fields.keep(rope->status());
    }
  };
  EXPECT_EQ(read(R"({"num_experts":8,"moe_num_experts":16})", read_all),
            "[config] c.json: moe_num_experts; got \"16\" beside num_experts \"8\", expected the "
            "same value in both");
  EXPECT_EQ(read(R"({"num_local_experts":8,"moe_num_experts":16})", read_all),
            "[config] c.json: moe_num_experts; got \"16\" beside num_local_experts \"8\", expected "
            "the same value in both");
  EXPECT_EQ(read(R"({"num_local_experts":0})", read_all),
            "[config] c.json: num_local_experts; got \"0\", expected a whole number from 1 to 64");
  EXPECT_EQ(read("{}", read_all),
            "[config] c.json: num_experts; got nothing, expected a whole number from 1 to 64");
  EXPECT_EQ(read(R"({"num_experts":8,"rope_parameters":{"factor":3}})", read_all),
            "[config] c.json: rope_parameters.factor; got \"3\", expected a number from 1 to 2");
  EXPECT_TRUE(read(R"({"num_experts":null})", [](ConfigFields& fields) {
                EXPECT_TRUE(fields.mentions("num_experts"));
                EXPECT_FALSE(fields.has("num_experts"));
              }).empty());
}

TEST(ModelConfig, TypesOfWeightsAreReadInBothSpellings) {
  EXPECT_EQ(parse(R"("dtype":"float16")").value().dtype, DType::kF16);
  EXPECT_EQ(parse(R"("torch_dtype":"float16","dtype":null)").value().dtype, DType::kF16);
  EXPECT_THAT(error_of(R"("dtype":"int8")"), HasSubstr("dtype; got \"int8\", expected float32"));
  EXPECT_THAT(error_of(R"("torch_dtype":"float16","dtype":"bfloat16")"),
              HasSubstr("dtype; got the string \"bfloat16\" beside torch_dtype"));
}

TEST(ModelConfig, OtherArchitecturesAreRefusedByName) {
  for (const char* architecture : {"GemmaForCausalLM", "LlamaForCausalLMEagle3", "llama", ""}) {
    const auto config = parse("", architecture);
    ASSERT_FALSE(config.ok());
    EXPECT_EQ(config.status().code(), StatusCode::kUnimplemented);
    EXPECT_THAT(config.status().message(),
                AllOf(HasSubstr(architecture), HasSubstr("docs/models.md")));
  }
  EXPECT_THAT(error_of(R"("architectures":null)"), HasSubstr("got nothing"));
  EXPECT_THAT(error_of(R"("architectures":"LlamaForCausalLM")"), HasSubstr("architectures"));
  EXPECT_FALSE(parse_model_config("[]", "x").ok());
  EXPECT_FALSE(parse_model_config("", "x").ok());
}

TEST(ModelConfig, RealOnesAreRead) {
  const std::filesystem::path directory = shared_data_path("configs/hf");
  QUIRE_REQUIRE_SHARED(directory);
  // From the models' cards; DeepSeek's layers for prediction are not counted.
  const std::map<std::string, int64_t> num_parameters_of = {
      {"Qwen--Qwen2.5-7B-Instruct", 7615616512},
      {"Qwen--Qwen3-0.6B", 596049920},
      {"Qwen--Qwen3-1.7B", 1720574976},
      {"Qwen--Qwen3-30B-A3B", 30532122624},
      {"Qwen--Qwen3-32B", 32762123264},
      {"Qwen--Qwen3-8B", 8190735360},
      {"deepseek-ai--DeepSeek-Coder-V2-Lite-Instruct", 15706484224},
      {"deepseek-ai--DeepSeek-R1", 671026419200},
      {"google--gemma-2-2b-it", 2614341888},
      {"google--gemma-3-1b-it", 999885952},
      {"deepseek-ai--DeepSeek-V3", 671026419200},
      {"meta-llama--Llama-3.1-8B-Instruct", 8030261248},
      {"meta-llama--Llama-3.3-70B-Instruct", 70553706496},
      {"meta-llama--Meta-Llama-3.1-405B", 405853388800},
      {"meta-llama--Meta-Llama-3.1-70B", 70553706496},
      {"meta-llama--Meta-Llama-3.1-8B", 8030261248},
      {"mistralai--Mixtral-8x7B-Instruct-v0.1", 46702792704},
  };
  int num_seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().stem().string();
    const auto expected = num_parameters_of.find(name);
    if (expected == num_parameters_of.end()) continue;
    ++num_seen;
    const auto config = value_of(
        parse_model_config(read_file(entry.path(), 1 << 20).value(), entry.path().string()));
    EXPECT_EQ(num_parameters(config), expected->second) << name;
  }
  EXPECT_EQ(num_seen, static_cast<int>(num_parameters_of.size()));
}

TEST(ModelConfig, RealRopeScalingIsRead) {
  const std::filesystem::path path =
      shared_data_path("configs/hf/meta-llama--Llama-3.1-8B-Instruct.json");
  QUIRE_REQUIRE_SHARED(path);
  const ModelConfig config = parse_model_config(read_file(path, 1 << 20).value(), "x").value();
  const RopeConfig& rope = decoder_config(config).ropes.at(0);
  EXPECT_EQ(rope.type, RopeType::kLlama3);
  EXPECT_EQ(rope.theta, 500000.0);
  EXPECT_EQ(rope.factor, 8.0);
  EXPECT_EQ(rope.original_max_position_embeddings, 8192);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(128001, 128008, 128009));
}

TEST(GenerationConfig, HasTheValuesOfTheFile) {
  const GenerationConfig config =
      parse_generation_config(R"({"do_sample":true,"temperature":0.6,"top_p":0.9,"top_k":20,)"
                              R"("repetition_penalty":1.05,"eos_token_id":[5,6],"min_p":null})",
                              "generation_config.json")
          .value();
  EXPECT_EQ(config.do_sample, true);
  EXPECT_EQ(config.temperature, 0.6F);
  EXPECT_EQ(config.top_p, 0.9F);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.min_p, std::nullopt);
  EXPECT_EQ(config.repetition_penalty, 1.05F);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(5, 6));
  EXPECT_EQ(parse_generation_config("{}", "x")->temperature, std::nullopt);
  for (const char* bad : {R"({"temperature":-1})", R"({"top_p":2})", R"({"top_p":0})",
                          R"({"top_k":-5})", R"({"repetition_penalty":0})", "7"}) {
    EXPECT_FALSE(parse_generation_config(bad, "x").ok()) << bad;
  }
}

}  // namespace
}  // namespace quire::testing
