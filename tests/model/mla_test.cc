// Multi-head latent attention: configuration, weights and cache. The logits are compared with those
// of transformers in tests/parity.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/ops/cpu_ops.h"
#include "model/decoder.h"
#include "model/decoder_config.h"
#include "model/model_loader.h"
#include "model/mtp/mtp.h"
#include "support/model_harness.h"
#include "support/reference_layer.h"
#include "support/reference_ops.h"
#include "support/shared_data.h"
#include "support/source_models.h"
#include "support/value_of.h"
#include "tensor/checkpoint.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string golden_config(const std::string& name) {
  return golden_model(name).config;
}

// The tensors of a golden checkpoint, which a test may change.
StoredTensors golden_tensors(const std::string& name) {
  return stored_tensors(golden_model(name).bytes());
}

std::string replaced(std::string json, const std::string& from, const std::string& to) {
  const size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return json.replace(at, from.size(), to);
}

std::string error_of(const std::string& json) {
  return std::string(parse_model_config(json, "config.json").status().message());
}

TEST(Mla, ReadsRealConfigurations) {
  const auto path =
      shared_data_path("configs/hf/deepseek-ai--DeepSeek-Coder-V2-Lite-Instruct.json");
  QUIRE_REQUIRE_SHARED(path);
  const ModelConfig lite = parse_model_config(read_file(path, 1 << 20).value(), "x").value();
  const DecoderConfig& decoder = decoder_config(lite);
  ASSERT_TRUE(decoder.mla && decoder.moe);
  EXPECT_EQ(decoder.mla->q_lora_rank, 0);
  EXPECT_EQ(decoder.mla->latent_head_dim(), 576);
  EXPECT_EQ(decoder.mla->q_head_dim(), 192);
  EXPECT_EQ(decoder.head_dim, 64);
  EXPECT_NEAR(decoder.attention_scale, 0.114722, 1e-6);
  EXPECT_EQ(decoder.moe->routing.num_experts, 64);
  EXPECT_EQ(decoder.moe->routing.top_k, 6);
  EXPECT_EQ(decoder.moe->routing.num_groups, 1);
  EXPECT_EQ(decoder.moe->shared_intermediate_size, 2 * 1408);
  EXPECT_FALSE(decoder.moe->layers[0]);
  EXPECT_TRUE(decoder.moe->layers[1]);

  ModelLimits limits;
  limits.max_num_tokens = 16;
  limits.max_model_len = 4096;
  limits.page_size = 64;
  const std::vector<KvGroup> groups = decoder_kv_groups(lite, limits, DType::kF32);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_TRUE(groups[0].layout.is_latent);
  EXPECT_EQ(groups[0].layout.page_bytes(), 64 * 576 * 2) << "one BF16 vector per token";
  EXPECT_EQ(groups[0].decode.num_heads, 16);
  EXPECT_EQ(groups[0].decode.num_kv_heads, 1);
}

TEST(Mla, ReadsTheRoutingOfDeepSeekV3) {
  const auto path = shared_data_path("configs/hf/deepseek-ai--DeepSeek-V3.json");
  QUIRE_REQUIRE_SHARED(path);
  const ModelConfig v3 = parse_model_config(read_file(path, 1 << 20).value(), "x").value();
  const DecoderConfig& decoder = decoder_config(v3);
  ASSERT_TRUE(decoder.mla && decoder.moe);
  EXPECT_EQ(decoder.mla->q_lora_rank, 1536);
  const ExpertRouting& routing = decoder.moe->routing;
  EXPECT_EQ(routing.scores, RouterScores::kSigmoid);
  EXPECT_EQ(routing.group_scores, GroupScores::kTwoLargest);
  EXPECT_EQ(routing.num_groups, 8);
  EXPECT_EQ(routing.top_groups, 4);
  EXPECT_TRUE(routing.renormalize);
  EXPECT_EQ(routing.scale, 2.5F);
  EXPECT_TRUE(decoder.moe->has_correction_bias);
  EXPECT_NEAR(decoder.attention_scale, 1.873854 / std::sqrt(192.0), 1e-6);
  ASSERT_TRUE(v3.format);
  EXPECT_EQ(v3.format->scheme.block_rows, 128);
}

TEST(Mla, FaultsOfTheConfigurationAreNamed) {
  const std::string v2 = golden_config("deepseek_v2");
  const std::string v3 = golden_config("deepseek_v3");
  const std::string rank = R"("kv_lora_rank": 32)";
  EXPECT_THAT(error_of(replaced(v2, rank, R"("kv_lora_rank": 0)")), HasSubstr("kv_lora_rank"));
  EXPECT_THAT(error_of(replaced(v2, rank, R"("unknown": 1)")), HasSubstr("kv_lora_rank"));
  EXPECT_THAT(error_of(replaced(v2, R"("qk_rope_head_dim": 8)", R"("qk_rope_head_dim": 7)")),
              AllOf(HasSubstr("qk_rope_head_dim; got 7"), HasSubstr("an even number")));
  EXPECT_THAT(error_of(replaced(v2, R"("topk_method": "greedy")", R"("topk_method": "best")")),
              AllOf(HasSubstr("topk_method"), HasSubstr("group_limited_greedy")));
  const std::string normalized =
      replaced(v2, R"("norm_topk_prob": false)", R"("norm_topk_prob": true)");
  EXPECT_EQ(error_of(normalized), "");
  EXPECT_THAT(error_of(replaced(normalized, R"("routed_scaling_factor": 1.0)",
                                R"("routed_scaling_factor": 2.0)")),
              AllOf(HasSubstr("norm_topk_prob"), HasSubstr("routed_scaling_factor of 1")));
  EXPECT_THAT(error_of(replaced(v3, R"("n_group": 4)", R"("n_group": 5)")),
              AllOf(HasSubstr("n_group; got 5"), HasSubstr("equal groups")));
  EXPECT_THAT(error_of(replaced(v3, "noaux_tc", "greedy")), HasSubstr("topk_method"));
}

ModelLimits small_limits(DType kv) {
  ModelLimits limits;
  limits.max_num_tokens = 16;
  limits.max_num_logit_rows = 16;
  limits.max_model_len = 64;
  limits.kv_dtype = kv;
  return limits;
}

// The logits of 12 tokens, in steps of 8, 3 and 1.
Result<std::vector<float>> logits_of(const std::string& config, const StoredTensors& tensors,
                                     DType kv) {
  const std::vector<std::byte> bytes = safetensors_file(tensors);
  QUIRE_ASSIGN_OR_RETURN(auto checkpoint, Checkpoint::from_memory(bytes, "test"));
  ModelConfig parsed = parse_model_config(config, "config.json").value();
  QUIRE_ASSIGN_OR_RETURN(const auto weights, present_weights(std::move(checkpoint), parsed));
  const ModelLimits limits = small_limits(kv);
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  const auto attention = make_reference_attention();
  QUIRE_ASSIGN_OR_RETURN(const auto model, load_model(parsed, *weights, *ops, limits));
  ModelHarness harness(*model, *attention, limits);
  std::vector<float> logits;
  int32_t id = 0;
  for (const int count : {8, 3, 1}) {
    std::vector<int32_t> ids;
    for (int i = 0; i < count; ++i) ids.push_back(id = (id * 7 + 5) % 60);
    QUIRE_ASSIGN_OR_RETURN(const auto of_step, harness.step({{0, ids}}));
    logits.insert(logits.end(), of_step.front().begin(), of_step.front().end());
  }
  return logits;
}

TEST(Mla, IgnoresAsManyLayersForPredictionAsThereAre) {
  const std::string config =
      replaced(golden_config("deepseek_v3"), R"("num_nextn_predict_layers": 0)",
               R"("num_nextn_predict_layers": 1)");
  const ModelConfig parsed = parse_model_config(config, "x").value();
  StoredTensors tensors = golden_tensors("deepseek_v3");
  const auto expected = value_of(logits_of(config, tensors, DType::kF32));
  const float number = 1.0F;
  const auto add_layer = [&](int layer) {
    tensors[fmt::format("model.layers.{}.eh_proj.weight", layer)] =
        stored_floats({1, 1}, {&number, 1});
  };
  add_layer(parsed.num_layers);
  EXPECT_EQ(logits_of(config, tensors, DType::kF32).value(), expected);
  EXPECT_THAT(logits_of(golden_config("deepseek_v3"), tensors, DType::kF32).status().message(),
              HasSubstr("eh_proj"));
  add_layer(parsed.num_layers + 1);
  EXPECT_THAT(logits_of(config, tensors, DType::kF32).status().message(), HasSubstr("eh_proj"));
  EXPECT_THAT(check_mtp(parsed).message(),
              AllOf(HasSubstr("DeepseekV3ForCausalLM"), HasSubstr("use another method")));
}

TEST(Mla, NamesTheTensorThatIsMissing) {
  for (const char* name : {"kv_b_proj.weight", "kv_a_layernorm.weight", "q_b_proj.weight",
                           "kv_a_proj_with_mqa.weight"}) {
    StoredTensors tensors = golden_tensors("deepseek_v3");
    const std::string full = fmt::format("model.layers.1.self_attn.{}", name);
    ASSERT_EQ(tensors.erase(full), 1U) << full;
    EXPECT_THAT(logits_of(golden_config("deepseek_v3"), tensors, DType::kF32).status().message(),
                HasSubstr(full));
  }
}

TEST(Mla, ADeviceWithoutItRefuses) {
  const std::vector<std::byte> bytes = safetensors_file(golden_tensors("deepseek_v3"));
  const auto checkpoint = Checkpoint::from_memory(bytes, "test").value();
  DenseOps ops;
  const auto config = parse_model_config(golden_config("deepseek_v3"), "config.json").value();
  EXPECT_THAT(load_model(config, *checkpoint, ops, small_limits(DType::kF32)).status().message(),
              HasSubstr("multi-head latent attention"));
}

// ---- The expanded form

// The products of one input, by those of an input per head.
class SharingOps final : public ReferenceOps, public LatentExpansionOps {
 public:
  LatentExpansionOps* expansion() override { return this; }
  void shared_linear(const PerHeadLinear& w, TensorView x, TensorView out) override {
    const int64_t width = x.shape[1];
    std::vector<float> repeated;
    for (int64_t i = 0; i < x.shape[0] * w.num_heads(); ++i) {
      const float* const row = x.as<float>() + i / w.num_heads() * width;
      repeated.insert(repeated.end(), row, row + width);
    }
    per_head_linear(w, {repeated.data(), DType::kF32, {x.shape[0], w.num_heads(), width}}, out);
  }
  void shared_linear_transposed(const PerHeadLinear& w, TensorView x, TensorView out) override {
    const int64_t heads = w.num_heads();
    const int64_t n = w.out_features();
    const int64_t k = w.in_features();
    std::vector<float> ones(static_cast<size_t>(k * k));
    for (int64_t i = 0; i < k; ++i) ones[static_cast<size_t>(i * k + i)] = 1.0F;
    std::vector<float> columns(static_cast<size_t>(k * heads * n));  // [k, heads, n]
    shared_linear(w, {ones.data(), DType::kF32, {k, k}},
                  {columns.data(), DType::kF32, {k, heads, n}});
    for (int64_t i = 0; i < x.shape[0] * heads * k; ++i) {
      const int64_t row = i / k;  // over tokens and heads
      const float* const in = x.as<float>() + row / heads * n;
      const float* const column = columns.data() + (i % k * heads + row % heads) * n;
      double sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += double{in[j]} * double{column[j]};
      out.as<float>()[row * out.shape[2] + i % k] = static_cast<float>(sum);
    }
  }
};

// Expands every prompt, in plain loops. The absorbed form must not be asked for.
class ExpandingReferencePlan final : public ExpandingPlan {
 public:
  explicit ExpandingReferencePlan(const AttentionShape& shape) : shape_(shape) {}

  size_t workspace_bytes() const override { return 0; }
  Status update(const AttentionBatch& batch, Stream& /*stream*/) override {
    batch_ = batch;
    return {};
  }
  Status run(const AttentionCall& /*call*/, Stream& /*stream*/) override {
    return internal_error("the absorbed form of an expanded prompt");
  }
  ExpandingPlan* expanding_plan() override { return this; }
  Status run_expanded(const ExpandedCall& call, Stream& /*stream*/) override {
    const PhaseRange& range = batch_.prefill;
    // Scratch may have any content.
    std::fill_n(call.scratch.as<float>(), call.scratch.shape.num_elements(), NAN);
    for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
      attend(call, req);
    }
    return {};
  }

 private:
  void attend(const ExpandedCall& call, int req) const {
    const int64_t num_positions = batch_.seq_lens[req];
    const int64_t heads = call.q.shape[1];
    const int64_t key_dim = call.q.shape[2];
    const int64_t value_dim = call.out.shape[2];
    const int64_t latent_dim = shape_.head_dim_v;
    const int64_t rope_dim = shape_.head_dim - latent_dim;
    std::vector<float> latents, rotated;
    for (int64_t position = 0; position < num_positions; ++position) {
      const int64_t page = batch_.block_table[req * batch_.max_pages + position / shape_.page_size];
      const float* const vector = static_cast<const float*>(call.kv.k) +
                                  page * call.kv.page_stride_k +
                                  position % shape_.page_size * call.kv.token_stride_k;
      latents.insert(latents.end(), vector, vector + latent_dim);
      rotated.insert(rotated.end(), vector + latent_dim, vector + shape_.head_dim);
    }
    std::vector<float> keys(static_cast<size_t>(num_positions * heads * key_dim));
    std::vector<float> values(static_cast<size_t>(num_positions * heads * value_dim));
    call.expander->expand({latents.data(), DType::kF32, {num_positions, latent_dim}},
                          {keys.data(), DType::kF32, {num_positions, heads, key_dim}},
                          {values.data(), DType::kF32, {num_positions, heads, value_dim}});
    const int32_t first = batch_.query_start.host[req];
    const int64_t q_len = batch_.query_start.host[req + 1] - first;
    for (int64_t row = 0; row < q_len * heads; ++row) {
      const int64_t head = row % heads;
      const float* const q = call.q.as<float>() + (first * heads + row) * key_dim;
      std::vector<double> sums(static_cast<size_t>(value_dim));
      double total = 0;
      for (int64_t position = 0; position <= num_positions - q_len + row / heads; ++position) {
        float* const key = keys.data() + (position * heads + head) * key_dim;
        std::copy_n(rotated.data() + position * rope_dim, rope_dim, key + key_dim - rope_dim);
        double score = 0;
        for (int64_t d = 0; d < key_dim; ++d) score += double{q[d]} * double{key[d]};
        const double weight = std::exp(score * double{shape_.scale});
        const float* const value = values.data() + (position * heads + head) * value_dim;
        for (int64_t d = 0; d < value_dim; ++d) {
          sums[static_cast<size_t>(d)] += weight * double{value[d]};
        }
        total += weight;
      }
      float* const out = call.out.as<float>() + (first * heads + row) * value_dim;
      for (int64_t d = 0; d < value_dim; ++d) {
        out[d] = static_cast<float>(sums[static_cast<size_t>(d)] / total);
      }
    }
  }

  AttentionShape shape_;
  AttentionBatch batch_;
};

class ExpandingBackend final : public AttentionBackend {
 public:
  std::string_view name() const override { return "expanding"; }
  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& device) const override {
    return absorbed_->supports(shape, use, device);
  }
  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    if (limits.use.phase == Phase::kDecode) return absorbed_->make_plan(shape, limits);
    return std::unique_ptr<AttentionPlan>(std::make_unique<ExpandingReferencePlan>(shape));
  }

 private:
  std::unique_ptr<AttentionBackend> absorbed_ = make_reference_attention();
};

// Prompts alone, prompts after a context beside decode, and decode alone.
std::vector<std::vector<float>> logits_of_steps(const std::string& golden, Ops& ops,
                                                AttentionBackend& attention) {
  const std::vector<std::byte> bytes = safetensors_file(golden_tensors(golden));
  const auto checkpoint = Checkpoint::from_memory(bytes, "test").value();
  const ModelLimits limits = small_limits(DType::kF32);
  const auto config = parse_model_config(golden_config(golden), "config.json").value();
  const auto model = load_model(config, *checkpoint, ops, limits).value();
  ModelHarness harness(*model, attention, limits);
  std::vector<std::vector<float>> all;
  for (const std::vector<HarnessChunk>& chunks : std::vector<std::vector<HarnessChunk>>{
           {{0, {5, 6, 7, 8, 9}}, {1, {3, 1, 4, 1, 5, 9, 2, 6}}},
           {{0, {10}}, {1, {5, 3, 5}}, {2, {8, 9, 7, 9, 3, 2, 3}}},
           {{0, {11}}, {2, {8}}, {1, {4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9}}},
           {{0, {12}}, {1, {5}}}}) {
    const auto of_step = value_of(harness.step(chunks));
    all.insert(all.end(), of_step.begin(), of_step.end());
  }
  return all;
}

TEST(MlaExpanded, LogitsAreThoseOfAbsorbedPrompts) {
  for (const char* golden : {"deepseek_v2", "deepseek_v3"}) {
    ReferenceOps plain;
    SharingOps sharing;
    const auto absorbed = make_reference_attention();
    ExpandingBackend expanding;
    const auto expected = logits_of_steps(golden, plain, *absorbed);
    const auto actual = logits_of_steps(golden, sharing, expanding);
    ASSERT_EQ(actual.size(), 10U);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].size(), expected[i].size());
      for (size_t j = 0; j < actual[i].size(); ++j) {
        ASSERT_NEAR(actual[i][j], expected[i][j], 1e-4) << golden << ", chunk " << i;
      }
    }
    EXPECT_NE(actual, expected) << "sums in another order round differently";
    EXPECT_EQ(logits_of_steps(golden, sharing, *absorbed), expected);
  }
}

// ---- Scales of an FP8 KV cache

void multiply(StoredTensors& tensors, const std::string& name, float factor) {
  std::vector<float> numbers = floats_of(tensors.at(name));
  for (float& number : numbers) number *= factor;
  tensors[name] = stored_floats(tensors.at(name).shape, numbers);
}

void add_scale(StoredTensors& tensors, const std::string& name, float scale) {
  tensors[name] = stored_floats({}, {&scale, 1});
}

// Keys and values that are 2^12 times as large exceed FP8. With scales of 2^12 the cache has the
// same bytes; with queries and an output projection divided by 2^12, the logits are the same.
void expect_scales_compensate(const char* k_name, const char* v_name) {
  constexpr float kFactor = 4096.0F;
  const std::string config = golden_config("llama");
  StoredTensors tensors = golden_tensors("llama");
  const std::vector<float> expected = logits_of(config, tensors, DType::kF8E4M3).value();
  const int num_layers = parse_model_config(config, "x").value().num_layers;
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    multiply(tensors, attention + "k_proj.weight", kFactor);
    multiply(tensors, attention + "q_proj.weight", 1.0F / kFactor);
    multiply(tensors, attention + "v_proj.weight", kFactor);
    multiply(tensors, attention + "o_proj.weight", 1.0F / kFactor);
  }
  const std::vector<float> without = logits_of(config, tensors, DType::kF8E4M3).value();
  EXPECT_NE(without, expected);
  for (int layer = 0; layer < num_layers; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    add_scale(tensors, attention + k_name, kFactor);
    add_scale(tensors, attention + v_name, kFactor);
  }
  EXPECT_EQ(logits_of(config, tensors, DType::kF8E4M3).value(), expected) << k_name;
}

TEST(KvScales, OfEveryToolMakeTheCacheFit) {
  expect_scales_compensate("k_scale", "v_scale");
  expect_scales_compensate("k_proj.k_scale", "v_proj.v_scale");
  expect_scales_compensate("k_proj.output_scale", "v_proj.output_scale");
  expect_scales_compensate("kv_scale", "kv_scale");
}

TEST(KvScales, AreNotUsedByAnotherCache) {
  const std::string config = golden_config("llama");
  StoredTensors tensors = golden_tensors("llama");
  const std::vector<float> expected = logits_of(config, tensors, DType::kF32).value();
  add_scale(tensors, "model.layers.0.self_attn.k_scale", 64.0F);
  add_scale(tensors, "model.layers.0.self_attn.v_scale", 64.0F);
  EXPECT_EQ(logits_of(config, tensors, DType::kF32).value(), expected);
}

// Multiplies rows [first, first + count) of each block of `period` rows.
void multiply_rows(StoredTensors& tensors, const std::string& name, int64_t period, int64_t first,
                   int64_t count, float factor) {
  StoredTensor& tensor = tensors.at(name);
  std::vector<float> numbers = floats_of(tensor);
  const int64_t num_columns = tensor.shape[1];
  for (int64_t i = 0; i < static_cast<int64_t>(numbers.size()); ++i) {
    const int64_t row = i / num_columns % period;
    if (row >= first && row < first + count) numbers[static_cast<size_t>(i)] *= factor;
  }
  tensor = stored_floats(tensor.shape, numbers);
}

// Latent vectors and rotated keys are 2^12 times as large. Values are a part of the keys and have
// their scale.
TEST(KvScales, OfLatentVectorsAreThoseOfKeys) {
  constexpr float kFactor = 4096.0F;
  const std::string config = golden_config("deepseek_v2");
  StoredTensors tensors = golden_tensors("deepseek_v2");
  const std::vector<float> expected = logits_of(config, tensors, DType::kF8E4M3).value();
  const ModelConfig parsed = parse_model_config(config, "x").value();
  const MlaConfig& mla = *decoder_config(parsed).mla;
  for (int layer = 0; layer < parsed.num_layers; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    multiply(tensors, attention + "kv_a_layernorm.weight", kFactor);
    multiply(tensors, attention + "kv_b_proj.weight", 1.0F / kFactor);
    multiply_rows(tensors, attention + "kv_a_proj_with_mqa.weight", mla.latent_head_dim(),
                  mla.kv_lora_rank, mla.rope_head_dim, kFactor);
    multiply_rows(tensors, attention + "q_proj.weight", mla.q_head_dim(), mla.nope_head_dim,
                  mla.rope_head_dim, 1.0F / kFactor);
  }
  EXPECT_NE(logits_of(config, tensors, DType::kF8E4M3).value(), expected);
  for (int layer = 0; layer < parsed.num_layers; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    add_scale(tensors, attention + "k_scale", kFactor);
    add_scale(tensors, attention + "v_scale", 3.0F);
  }
  EXPECT_EQ(logits_of(config, tensors, DType::kF8E4M3).value(), expected);
}

TEST(KvScales, OfTwoToolsMustAgree) {
  const std::string config = golden_config("llama");
  StoredTensors tensors = golden_tensors("llama");
  for (const char* name : {"k_scale", "v_scale", "k_proj.output_scale"}) {
    add_scale(tensors, fmt::format("model.layers.0.self_attn.{}", name), 2.0F);
  }
  EXPECT_TRUE(logits_of(config, tensors, DType::kF8E4M3).ok());
  add_scale(tensors, "model.layers.0.self_attn.k_proj.output_scale", 4.0F);
  EXPECT_THAT(logits_of(config, tensors, DType::kF8E4M3).status().message(),
              AllOf(HasSubstr("k_proj.output_scale"), HasSubstr("got 4, expected 2")));
}

TEST(KvScales, HalfOfAPairIsRefused) {
  StoredTensors tensors = golden_tensors("llama");
  add_scale(tensors, "model.layers.1.self_attn.k_scale", 1.0F);
  EXPECT_THAT(logits_of(golden_config("llama"), tensors, DType::kF8E4M3).status().message(),
              AllOf(HasSubstr("model.layers.1.self_attn"), HasSubstr("a scale of keys"),
                    HasSubstr("none of values")));
}

}  // namespace
}  // namespace quire::testing
