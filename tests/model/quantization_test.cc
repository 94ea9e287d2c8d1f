#include "model/quantization.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"
#include "ops/host_matrices.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Result<std::optional<WeightFormat>> parse(std::string_view scheme,
                                          std::string_view dtype = "bfloat16",
                                          std::string_view key = "quantization_config") {
  const std::string json = fmt::format(
      R"({{"architectures":["LlamaForCausalLM"],"hidden_size":64,"intermediate_size":128,)"
      R"("num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,)"
      R"("max_position_embeddings":256,"torch_dtype":"{}","{}":{}}})",
      dtype, key, scheme);
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig config, parse_model_config(json, "config.json"));
  return config.format;
}

std::string error_of(std::string_view scheme) {
  return parse(scheme).status().message();
}

WeightFormat fp8(ScaleLayout layout, std::string suffix, std::string input_suffix = "") {
  WeightFormat format = {
      .scheme = {.values = DType::kF8E4M3, .scales = layout, .dequantized_dtype = DType::kBF16},
      .scales_suffix = std::move(suffix),
      .input_scale_suffix = std::move(input_suffix)};
  if (layout == ScaleLayout::kBlocks) format.scheme.block_rows = format.scheme.block_columns = 128;
  return format;
}

// A quantization_config of compressed-tensors.
std::string compressed(std::string_view weights, std::string_view inputs,
                       std::string_view more = "") {
  return fmt::format(R"({{"quant_method":"compressed-tensors","format":"float-quantized",{})"
                     R"("config_groups":{{"group_0":{{"targets":["Linear"],"weights":{},)"
                     R"("input_activations":{}}}}}}})",
                     more, weights, inputs);
}

constexpr const char* kPerTensor = R"({"num_bits":8,"type":"float","strategy":"tensor"})";
constexpr const char* kDynamic =
    R"({"num_bits":8,"type":"float","strategy":"token","dynamic":true})";

TEST(Quantization, ReadsTheFormatsOfEachTool) {
  const WeightFormat dynamic_tensor = fp8(ScaleLayout::kTensor, ".weight_scale");
  const WeightFormat static_tensor = fp8(ScaleLayout::kTensor, ".weight_scale", ".input_scale");
  const WeightFormat rows = fp8(ScaleLayout::kRows, ".weight_scale");
  const WeightFormat blocks = fp8(ScaleLayout::kBlocks, ".weight_scale_inv");
  const std::vector<std::pair<std::string, WeightFormat>> cases = {
      {R"({"quant_method":"fp8","activation_scheme":"dynamic"})", dynamic_tensor},
      {R"({"quant_method":"fp8","activation_scheme":"static","kv_cache_scheme":"static",)"
       R"("ignored_layers":["lm_head"]})",
       static_tensor},
      {R"({"quant_method":"fp8","activation_scheme":"dynamic","fmt":"e4m3","scale_fmt":"ue8m0",)"
       R"("weight_block_size":[128,128],"modules_to_not_convert":["lm_head"]})",
       blocks},
      {R"({"quant_method":"modelopt","quant_algo":"FP8","ignore":["lm_head"],)"
       R"("kv_cache_scheme":{"dynamic":false,"num_bits":8,"type":"float"},)"
       R"("producer":{"name":"modelopt","version":"0.29.0"},"config_groups":{"group_0":{)"
       R"("input_activations":{"dynamic":false,"num_bits":8,"type":"float"},)"
       R"("weights":{"dynamic":false,"num_bits":8,"type":"float"},"targets":["Linear"]}}})",
       static_tensor},
      {R"({"quant_method":"modelopt","quantization":{"quant_algo":"fp8"}})", static_tensor},
      {compressed(kPerTensor, kPerTensor), static_tensor},
      {compressed(kPerTensor, kDynamic), dynamic_tensor},
      {compressed(kPerTensor, "null"), dynamic_tensor},
      {compressed(R"({"num_bits":8,"type":"float","strategy":"channel"})", kDynamic,
                  R"("ignore":["lm_head","re:.*gate"],"version":"0.9","kv_cache_scheme":null,)"
                  R"("sparsity_config":{"format":"dense"},"quantization_status":"frozen",)"),
       rows}};
  for (const auto& [scheme, expected] : cases) {
    const auto format = parse(scheme);
    ASSERT_TRUE(format.ok()) << format.status().message() << scheme;
    EXPECT_EQ(*format, expected) << scheme;
  }
  WeightFormat compressed_blocks = blocks;
  compressed_blocks.scales_suffix = ".weight_scale";
  EXPECT_EQ(
      *parse(compressed(
          R"({"num_bits":8,"type":"float","strategy":"block","block_structure":[128,128]})",
          R"({"num_bits":8,"type":"float","strategy":"group","group_size":128,"dynamic":true})")),
      compressed_blocks);
  EXPECT_EQ(*parse("null"), std::nullopt);
}

TEST(Quantization, TheProductHasTheTypeOfTheModel) {
  const char* scheme = R"({"quant_method":"fp8"})";
  EXPECT_EQ((*parse(scheme, "bfloat16"))->scheme.dequantized_dtype, DType::kBF16);
  EXPECT_EQ((*parse(scheme, "float16"))->scheme.dequantized_dtype, DType::kF16);
}

TEST(Quantization, OtherSchemesAreNamedWithTheirRemedy) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"quant_method":"gptq","bits":3,"group_size":128})", "\"gptq\", 3 bits, groups of 128"},
      {R"({"quant_method":"gptq","bits":2,"group_size":128})", "\"gptq\", 2 bits, groups of 128"},
      {R"({"quant_method":"gptq","bits":4,"group_size":128,"checkpoint_format":"marlin"})",
       "\"gptq\", \"marlin\", 4 bits, groups of 128"},
      {R"({"quant_method":"gptq","bits":4,"group_size":128,"format":"bitblas"})",
       "\"gptq\", \"bitblas\", 4 bits, groups of 128"},
      {R"({"quant_method":"awq","bits":4,"group_size":128,"version":"gemv"})",
       "\"awq\", \"gemv\", 4 bits, groups of 128"},
      {R"({"quant_method":"awq","w_bit":8,"q_group_size":64})", "\"awq\", 8 bits, groups of 64"},
      {R"({"quant_method":"mxfp4"})", "\"mxfp4\""},
      {R"({"quant_method":"auto-round","bits":4})", "\"auto-round\", 4 bits"},
      {R"({"quant_method":"compressed-tensors","format":"marlin-24"})",
       "\"compressed-tensors\", \"marlin-24\""},
      {R"({"quant_method":"compressed-tensors","format":"mixed-precision"})",
       "\"compressed-tensors\", \"mixed-precision\""},
      {R"({"quant_method":"compressed-tensors","format":"nvfp4-pack-quantized"})",
       "\"compressed-tensors\", \"nvfp4-pack-quantized\""},
      {R"({"quant_method":"modelopt","quant_algo":"NVFP4"})", "\"modelopt\", \"NVFP4\""},
      {R"({"quant_method":"modelopt","quantization":{"quant_algo":"W4A16_AWQ"}})", "\"W4A16_AWQ\""},
      {R"({})", "unknown method"}};
  for (const auto& [scheme, name] : cases) {
    EXPECT_THAT(error_of(scheme),
                AllOf(HasSubstr(fmt::format("config.json: the checkpoint is quantized ({})", name)),
                      HasSubstr("expected FP8 by modelopt, compressed-tensors or Hugging Face"),
                      HasSubstr("integers of 4 or 8 bits by AWQ (gemm), GPTQ or"),
                      HasSubstr("a GGUF file")));
  }
}

TEST(Quantization, BitsandbytesIsNamedWithItsRemedy) {
  for (const char* bits : {"4", "8"}) {
    EXPECT_THAT(
        error_of(fmt::format(R"({{"quant_method":"bitsandbytes","load_in_{}bit":true}})", bits)),
        AllOf(HasSubstr(fmt::format("\"bitsandbytes\", {} bits", bits)),
              HasSubstr("expected the same model in AWQ, GPTQ or compressed-tensors, a GGUF "
                        "file, or the checkpoint in float32")));
  }
}

WeightFormat integers(Packing packing, int bits, int group_size, bool has_zeros) {
  WeightFormat format = {
      .scheme = {.values = DType::kI8,
                 .scales = group_size > 0 ? ScaleLayout::kBlocks : ScaleLayout::kRows,
                 .dequantized_dtype = DType::kBF16,
                 .bits = bits,
                 .has_zeros = has_zeros},
      .scales_suffix = packing == Packing::kCompressed || packing == Packing::kNone
                           ? ".weight_scale"
                           : ".scales",
      .packing = packing};
  if (group_size > 0) {
    format.scheme.block_rows = 1;
    format.scheme.block_columns = group_size;
  }
  return format;
}

std::string compressed_integers(std::string_view format, std::string_view weights,
                                std::string_view inputs = "null") {
  return fmt::format(
      R"({{"quant_method":"compressed-tensors","format":"{}","config_groups":)"
      R"({{"group_0":{{"targets":["Linear"],"weights":{},"input_activations":{}}}}}}})",
      format, weights, inputs);
}

TEST(Quantization, ReadsIntegersOfEveryTool) {
  WeightFormat ordered = integers(Packing::kGptq, 4, 128, true);
  ordered.has_column_groups = true;
  WeightFormat ordered_pack = integers(Packing::kCompressed, 4, 64, true);
  ordered_pack.has_column_groups = true;
  WeightFormat tensor = integers(Packing::kNone, 8, -1, false);
  tensor.scheme.scales = ScaleLayout::kTensor;
  WeightFormat static_inputs = integers(Packing::kNone, 8, -1, false);
  static_inputs.input_scale_suffix = ".input_scale";
  const std::vector<std::pair<std::string, WeightFormat>> cases = {
      {R"({"quant_method":"awq","bits":4,"group_size":128,"zero_point":true,"version":"GEMM",)"
       R"("modules_to_not_convert":["gate"]})",
       integers(Packing::kAwq, 4, 128, true)},
      {R"({"quant_method":"awq","w_bit":4,"q_group_size":-1})",
       integers(Packing::kAwq, 4, -1, true)},
      {R"({"quant_method":"gptq","bits":8,"group_size":-1,"sym":true,"desc_act":false})",
       integers(Packing::kGptq, 8, -1, true)},
      {R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true,"damp_percent":0.1})",
       ordered},
      {R"({"quant_method":"gptq","bits":4,"group_size":32,"checkpoint_format":"gptq_v2",)"
       R"("dynamic":{"-:.*gate.*":{}},"pack_dtype":"int32"})",
       integers(Packing::kGptqV2, 4, 32, true)},
      {R"({"quant_method":"gptq","bits":4,"group_size":32,"format":"gptq_v2"})",
       integers(Packing::kGptqV2, 4, 32, true)},
      {R"({"quant_method":"gptq","bits":4,"group_size":32,"format":"GPTQ",)"
       R"("checkpoint_format":"gptq"})",
       integers(Packing::kGptq, 4, 32, true)},
      {compressed_integers("pack-quantized",
                           R"({"num_bits":4,"type":"int","strategy":"group","group_size":128,)"
                           R"("actorder":"weight"})"),
       integers(Packing::kCompressed, 4, 128, false)},
      {compressed_integers("pack-quantized",
                           R"({"num_bits":4,"type":"int","strategy":"group","group_size":64,)"
                           R"("actorder":"group","symmetric":false})"),
       ordered_pack},
      {compressed_integers("pack-quantized", R"({"num_bits":8,"type":"int","strategy":"channel"})"),
       integers(Packing::kCompressed, 8, -1, false)},
      {compressed_integers(
           "int-quantized", R"({"num_bits":8,"type":"int","strategy":"tensor"})",
           R"({"num_bits":8,"type":"int","strategy":"token","dynamic":true,"symmetric":false})"),
       tensor},
      {compressed_integers("int-quantized", R"({"num_bits":8,"type":"int","strategy":"channel"})",
                           R"({"num_bits":8,"type":"int","strategy":"tensor"})"),
       static_inputs}};
  for (const auto& [scheme, expected] : cases) {
    const auto format = parse(scheme);
    ASSERT_TRUE(format.ok()) << scheme << ": " << format.status().message();
    ASSERT_TRUE(format->has_value()) << scheme;
    EXPECT_EQ(**format, expected) << scheme << ": " << describe(**format);
  }
  EXPECT_EQ(describe(ordered), "4-bit integers with a scale and a zero point per group of 128");
  EXPECT_EQ(describe(static_inputs),
            "8-bit integers with a scale per row and static scales of its inputs");
}

TEST(Quantization, FieldsThatContradictOrAreUnknownAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"quant_method":"fp8","activation_scheme":"static","weight_block_size":[128,128]})",
       "quantization_config.activation_scheme; got \"static\", expected \"dynamic\""},
      {R"({"quant_method":"fp8","activation_scheme":"token"})", "activation_scheme; got \"token\""},
      {R"({"quant_method":"fp8","fmt":"e5m2"})", "fmt; got \"e5m2\", expected \"e4m3\""},
      {R"({"quant_method":"fp8","weight_block_size":[128]})", "weight_block_size; got 1 numbers"},
      {R"({"quant_method":"fp8","weight_block_size":[0,128]})", "weight_block_size; got \"0\""},
      {R"({"quant_method":"fp8","ignored_layers":"lm_head"})", "ignored_layers"},
      {R"({"quant_method":"fp8","group_size":64})", "\"group_size\"; got an unknown field"},
      {R"({"quant_method":"awq","bits":4})", "group_size"},
      {R"({"quant_method":"awq","bits":4,"group_size":40})",
       "group_size; got 40, expected -1 or a multiple of 16"},
      {R"({"quant_method":"awq","bits":4,"group_size":0})", "group_size; got 0"},
      {R"({"quant_method":"awq","bits":4,"group_size":64,"zero_point":false})", "zero_point"},
      {R"({"quant_method":"awq","bits":4,"w_bit":8,"group_size":64})",
       "quantization_config.w_bit; got \"8\" beside bits \"4\", expected the same value in both"},
      {R"({"quant_method":"awq","bits":4,"group_size":64,"q_group_size":128})",
       "quantization_config.q_group_size; got \"128\" beside group_size \"64\""},
      {R"({"quant_method":"gptq","bits":4,"group_size":128,"is_marlin_format":true})",
       "is_marlin_format; got true, expected false: the layout of Marlin's kernel"},
      {R"({"quant_method":"gptq","group_size":64})", "bits"},
      {R"({"quant_method":"gptq","bits":4,"group_size":64,"lm_head":true})",
       "lm_head; got true, expected false"},
      {R"({"quant_method":"gptq","bits":4,"group_size":64,"pack_dtype":"int8"})", "pack_dtype"},
      {R"({"quant_method":"gptq","bits":4,"group_size":64,"dynamic":{"+:.*down.*":{"bits":8}}})",
       "dynamic; got an override of \"+:.*down.*\", expected one scheme for all matrices"},
      {compressed_integers("pack-quantized", R"({"num_bits":3,"type":"int","strategy":"channel"})"),
       "weights.num_bits; got 3, expected 4 or 8"},
      {compressed_integers("int-quantized", R"({"num_bits":4,"type":"int","strategy":"channel"})"),
       "weights.num_bits; got 4, expected 8"},
      {compressed_integers("int-quantized",
                           R"({"num_bits":8,"type":"int","strategy":"group","group_size":64})"),
       "weights.strategy; got \"group\", expected \"tensor\" or \"channel\""},
      {compressed_integers("pack-quantized", R"({"num_bits":4,"type":"float"})"), "weights.type"},
      {compressed_integers("pack-quantized", R"({"num_bits":4,"type":"int","symmetric":false})"),
       "weights.symmetric"},
      {compressed_integers("pack-quantized",
                           R"({"num_bits":4,"type":"int","strategy":"group","group_size":64,)"
                           R"("actorder":"random"})"),
       "actorder; got \"random\""},
      {compressed_integers("int-quantized", R"({"num_bits":8,"type":"int","strategy":"channel"})",
                           R"({"num_bits":4,"type":"int","dynamic":true})"),
       "input_activations.num_bits; got 4, expected 8"},
      {R"({"quant_method":"modelopt","quant_algo":"FP8","kv_cache_quant_algo":"NVFP4"})",
       "kv_cache_quant_algo; got \"NVFP4\""},
      {R"({"quant_method":"modelopt","quant_algo":"FP8","config_groups":{"group_0":{"weights":)"
       R"({"num_bits":8,"type":"float","strategy":"channel"}}}})",
       "config_groups; got another scheme"},
      {R"({"quant_method":"compressed-tensors","format":"float-quantized"})",
       "config_groups; got nothing"},
      {R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":)"
       R"({"group_0":{},"group_1":{}}})",
       "config_groups; got 2 groups, expected one"},
      {compressed(R"({"num_bits":4,"type":"float"})", "null"), "weights.num_bits; got 4"},
      {compressed(R"({"num_bits":8,"type":"int"})", "null"), "weights.type; got \"int\""},
      {compressed(R"({"num_bits":8,"type":"float","symmetric":false})", "null"), "symmetric"},
      {compressed(R"({"num_bits":8,"type":"float","strategy":"group"})", "null"),
       "strategy; got \"group\""},
      {compressed(R"({"num_bits":8,"type":"float","group_size":64})", "null"), "group_size"},
      {compressed(R"({"num_bits":8,"type":"float","strategy":"block"})", "null"),
       "block_structure; got 0 numbers"},
      {compressed(kPerTensor, R"({"num_bits":8,"type":"float","strategy":"channel"})"),
       "input_activations.strategy; got \"channel\""},
      {compressed(kPerTensor, R"({"num_bits":8,"type":"float","dynamic":"local"})"),
       "input_activations.dynamic"},
      {compressed(kPerTensor, "null", R"("sparsity_config":{"format":"sparse-24-bitmask"},)"),
       "sparsity_config.format"},
      {compressed(kPerTensor, "null", R"("transform_config":{"config_groups":{"u":{}}},)"),
       "transform_config; got transforms"},
      {compressed(kPerTensor, "null", R"("quantization_status":"calibration",)"),
       "quantization_status; got \"calibration\""},
      {compressed(kPerTensor, "null", R"("kv_cache_scheme":{"num_bits":4,"type":"float"},)"),
       "kv_cache_scheme.num_bits; got 4"}};
  for (const auto& [scheme, expected] : cases) {
    EXPECT_THAT(error_of(scheme), AllOf(HasSubstr("[config] config.json: quantization_config."),
                                        HasSubstr(expected), Not(HasSubstr("\n"))))
        << scheme;
  }
}

TEST(Quantization, ReadsTheOldKeyOfLlmCompressor) {
  const std::string scheme = compressed(kPerTensor, kDynamic);
  EXPECT_EQ(parse(scheme, "bfloat16", "compression_config").value(), parse(scheme).value());
  EXPECT_THAT(
      parse("{}", "bfloat16", R"(compression_config":{},"quantization_config)").status().message(),
      HasSubstr("compression_config; got it beside quantization_config"));
}

TEST(Quantization, ReadsModeloptsOwnFile) {
  const auto parse_file = [](std::string_view json) {
    return parse_hf_quant_config(json, "hf_quant_config.json");
  };
  const auto format = value_of(
      parse_file(R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"FP8",)"
                 R"("kv_cache_quant_algo":"FP8","exclude_modules":["lm_head","*router*"]}})"));
  ASSERT_TRUE(format.has_value());
  EXPECT_EQ(format->scales_suffix, ".weight_scale");
  EXPECT_EQ(format->input_scale_suffix, ".input_scale");
  const auto cache_only =
      value_of(parse_file(R"({"quantization":{"quant_algo":null,"kv_cache_quant_algo":"FP8"}})"));
  EXPECT_FALSE(cache_only.has_value());
  const std::pair<const char*, const char*> faults[] = {
      {R"({"quantization":{"quant_algo":null}})", "unknown method"},
      {R"({"producer":{}})", "quantization; got nothing"},
      {R"({"quantization":{"quant_algo":"NVFP4","group_size":16}})", "\"NVFP4\", groups of 16"},
      {R"({"quantization":{"quant_algo":"FP8","exclude_modules":7}})",
       "quantization.exclude_modules"},
      {R"({"quantization":{"quant_algo":"FP8"},"version":1})", "\"version\"; got an unknown field"},
      {"[]", "not a JSON object"}};
  for (const auto& [json, expected] : faults) {
    EXPECT_THAT(parse_file(json).status().message(),
                AllOf(HasSubstr("hf_quant_config.json"), HasSubstr(expected)));
  }
}

TEST(Quantization, ScalesArePositiveAndFinite) {
  const auto check = [](float scale) {
    float numbers[] = {1.0F, scale};
    return check_scales({numbers, DType::kF32, {2, 1}});
  };
  EXPECT_TRUE(check(std::numeric_limits<float>::denorm_min()).ok());
  for (const float wrong : {0.0F, -1.0F, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(check(wrong).message(), HasSubstr("as number 1, expected")) << wrong;
  }
}

TEST(Quantization, ScalesOfIntegersMayBeNegative) {
  const WeightScheme scheme = {.values = DType::kI8, .scales = ScaleLayout::kRows};
  const auto check = [&](float scale) {
    float numbers[] = {1.0F, scale};
    return check_scales({numbers, DType::kF32, {2, 1}}, scheme);
  };
  for (const float right : {0.0F, -1.0F}) EXPECT_TRUE(check(right).ok()) << right;
  for (const float wrong : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(check(wrong).message(), HasSubstr("as number 1, expected finite numbers;"));
  }
}

TEST(Quantization, RowsAreScaledToTheLargestNumberOfFp8) {
  float numbers[] = {1.0F, -4.0F, 0.5F, 0.0F, 0.0F, 0.0F, 1e-30F, -3e38F, 1e38F};
  std::vector<Tensor> copies;
  ThreadPool threads(2);
  const auto quantized = value_of(
      quantize_rows({numbers, DType::kF32, {3, 3}}, fp8_at_load().scheme, copies, threads));
  const auto* const scales = quantized.scales.as<float>();
  EXPECT_EQ(scales[0], 4.0F / 448.0F);
  EXPECT_GT(scales[1], 0.0F);
  const auto* const values = quantized.values.as<uint8_t>();
  EXPECT_EQ(e4m3_to_f32(values[1]), -448.0F);
  for (int i = 0; i < 9; ++i) {
    const float number = e4m3_to_f32(values[i]) * scales[i / 3];
    const float largest = 448.0F * scales[i / 3];
    EXPECT_NEAR(number, numbers[i], std::abs(numbers[i]) / 16 + largest / 448.0F / 1024) << i;
  }
}

}  // namespace
}  // namespace quire::testing
