// Mixture-of-experts models with random weights, compared with an fp64 computation of the whole
// model, token by token.
#include "model/moe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <variant>

#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/attention/simd.h"
#include "cpu/ops/cpu_ops.h"
#include "model/decoder.h"
#include "model/model_loader.h"
#include "ops/layer_tail_ops.h"
#include "support/drafter_parts.h"
#include "support/integer_checkpoint.h"
#include "support/model_harness.h"
#include "support/reference_layer.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Row = ReferenceTensors::Row;

constexpr int kHidden = 16;
constexpr int kVocab = 20;
constexpr int kLayers = 3;
constexpr int kExperts = 6;
constexpr int kExpertWidth = 24;  // Mixtral's is intermediate_size
constexpr int kSharedWidth = 10;  // of shared experts that cannot be merged with the others

// The checkpoint's names of a layer's router and experts.
struct ExpertNames {
  std::string block = "mlp.";
  std::string gate = "gate_proj";
  std::string up = "up_proj";
  std::string down = "down_proj";
};

// The names of a family's tensors, and which of its layers are mixtures.
struct TestFamily {
  std::string architecture;
  ExpertNames names;
  std::vector<bool> moe_layers;
  bool qk_norm = false;
  std::string fields;  // of config.json, beside the sizes
};

const TestFamily kQwen = {
    "Qwen3MoeForCausalLM",
    {},
    {false, true, false},
    true,
    R"("num_experts":6,"num_experts_per_tok":2,"moe_intermediate_size":24,"norm_topk_prob":true,)"
    R"("mlp_only_layers":[0],"decoder_sparse_step":2)"};
const TestFamily kMixtral = {"MixtralForCausalLM",
                             {"block_sparse_moe.", "w1", "w3", "w2"},
                             {true, true, true},
                             false,
                             R"("num_local_experts":6,"num_experts_per_tok":2)"};

std::string config_json(const TestFamily& family) {
  return fmt::format(R"({{{},{},"architectures":["{}"],"hidden_size":{},"num_hidden_layers":{},)"
                     R"("vocab_size":{},"torch_dtype":"float32"}})",
                     layer_sizes_json(), family.fields, family.architecture, kHidden, kLayers,
                     kVocab);
}

ModelConfig config_of(const TestFamily& family) {
  return parse_model_config(config_json(family), "config.json").value();
}

// The configuration with another routing, which no family above has.
ModelConfig config_with(const TestFamily& family, void (*change)(MoeConfig& moe)) {
  ModelConfig config = config_of(family);
  auto decoder = std::make_shared<DecoderConfig>(decoder_config(config));
  change(*decoder->moe);
  config.family = decoder;
  return config;
}

// Gives the layers of DeepSeek-V3: sigmoid scores, a correction bias, groups, and a shared MLP.
template <int kWidth>
void make_like_deepseek(MoeConfig& moe) {
  moe.routing.scores = RouterScores::kSigmoid;
  moe.routing.num_groups = 3;
  moe.routing.top_groups = 2;
  moe.routing.group_scores = GroupScores::kTwoLargest;
  moe.routing.scale = 2.5F;
  moe.has_correction_bias = true;
  moe.shared_intermediate_size = kWidth;
}

std::string layer_prefix(int layer) {
  return fmt::format("model.layers.{}.", layer);
}

void add_mlp(const std::string& block, int width, RandomTensors& random) {
  random.add_matrix(block + "gate_proj", width, kHidden);
  random.add_matrix(block + "up_proj", width, kHidden);
  random.add_matrix(block + "down_proj", kHidden, width);
}

void add_experts(const std::string& prefix, const TestFamily& family, RandomTensors& random) {
  const std::string block = prefix + family.names.block;
  random.add_matrix(block + "gate", kExperts, kHidden);
  for (int i = 0; i < kExperts; ++i) {
    const std::string expert = fmt::format("{}experts.{}.", block, i);
    random.add_matrix(expert + family.names.gate, kExpertWidth, kHidden);
    random.add_matrix(expert + family.names.up, kExpertWidth, kHidden);
    random.add_matrix(expert + family.names.down, kHidden, kExpertWidth);
  }
}

StoredTensors random_model(const TestFamily& family, int shared_width = 0) {
  RandomTensors random(5);
  random.add_matrix("model.embed_tokens", kVocab, kHidden);
  random.add_matrix("lm_head", kVocab, kHidden);
  random.add("model.norm.weight", {kHidden}, 1.0F);
  for (int i = 0; i < kLayers; ++i) {
    const std::string prefix = layer_prefix(i);
    random.add_layer(prefix, kHidden, kHidden, false, false);
    random.add(prefix + "input_layernorm.weight", {kHidden}, 1.0F);
    random.add(prefix + "post_attention_layernorm.weight", {kHidden}, 1.0F);
    if (family.qk_norm) {
      random.add(prefix + "self_attn.q_norm.weight", {kReferenceHeadDim}, 1.0F);
      random.add(prefix + "self_attn.k_norm.weight", {kReferenceHeadDim}, 1.0F);
    }
    if (!family.moe_layers[static_cast<size_t>(i)]) continue;
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      random.tensors.erase(fmt::format("{}mlp.{}.weight", prefix, name));
    }
    add_experts(prefix, family, random);
    if (shared_width == 0) continue;
    random.add(prefix + family.names.block + "gate.e_score_correction_bias", {kExperts}, 0.0F);
    add_mlp(prefix + family.names.block + "shared_experts.", shared_width, random);
  }
  return std::move(random.tensors);
}

// The weighted sum of a token's experts.
Row mixture(const ReferenceTensors& tensors, const StoredTensors& stored, const std::string& prefix,
            const TestFamily& family, const MoeConfig& moe, const Row& x) {
  const std::string block = prefix + family.names.block;
  const Row logits = tensors.apply(block + "gate", x);
  std::vector<float> bias;
  if (moe.has_correction_bias) bias = floats_of(stored.at(block + "gate.e_score_correction_bias"));
  const std::vector<float> rounded(logits.begin(), logits.end());
  Row total(x.size(), 0.0);
  if (moe.shared_intermediate_size > 0) {
    const std::string shared = block + "shared_experts.";
    total = tensors.gated_mlp(shared + "gate_proj", shared + "up_proj", shared + "down_proj", x);
  }
  for (const RoutedExpert& routed : reference_route(moe.routing, rounded, bias)) {
    const std::string expert = fmt::format("{}experts.{}.", block, routed.id);
    Row y = tensors.gated_mlp(expert + family.names.gate, expert + family.names.up,
                              expert + family.names.down, x);
    for (double& value : y) value *= routed.weight;
    total = sum(total, y);
  }
  return total;
}

// The logits of every position.
std::vector<Row> reference_logits(const StoredTensors& stored, const TestFamily& family,
                                  const MoeConfig& moe, const std::vector<int32_t>& tokens) {
  const ReferenceTensors tensors(stored);
  std::vector<ReferenceTensors::KeysValues> caches(kLayers);
  std::vector<Row> logits;
  for (size_t position = 0; position < tokens.size(); ++position) {
    Row residual = tensors.row("model.embed_tokens", tokens[position], kHidden);
    for (int i = 0; i < kLayers; ++i) {
      const std::string prefix = layer_prefix(i);
      auto& cache = caches[static_cast<size_t>(i)];
      const Row input = tensors.norm(prefix + "input_layernorm", residual);
      tensors.add_keys_values(prefix, input, position, cache);
      residual = sum(residual, tensors.attend(prefix, input, position, cache));
      const Row normed = tensors.norm(prefix + "post_attention_layernorm", residual);
      const bool is_moe = family.moe_layers[static_cast<size_t>(i)];
      residual = sum(residual, is_moe ? mixture(tensors, stored, prefix, family, moe, normed)
                                      : tensors.mlp(prefix, normed));
    }
    logits.push_back(tensors.apply("lm_head", tensors.norm("model.norm", residual)));
  }
  return logits;
}

const std::vector<int32_t> kTokens = {3, 0, 19, 7, 7, 12, 2, 4, 19, 1, 5, 11};

// The logits of the model, whose prompt is cut into chunks of these sizes.
std::vector<float> model_logits(const ModelConfig& config, const StoredTensors& stored, Ops& ops,
                                AttentionBackend& attention, const std::vector<int>& chunks) {
  const DrafterFile file(stored, config);
  const auto model = load_model(config, *file.weights, ops, drafter_limits());
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) return {};
  ModelHarness harness(**model, attention, drafter_limits());
  std::vector<float> logits;
  auto next = kTokens.begin();
  for (const int size : chunks) {
    const auto part = harness.step({{0, {next, next + size}}}).value().front();
    logits.insert(logits.end(), part.begin(), part.end());
    next += size;
  }
  return logits;
}

void expect_agrees(const TestFamily& family, const ModelConfig& config,
                   const StoredTensors& stored) {
  const std::vector<Row> expected =
      reference_logits(stored, family, *decoder_config(config).moe, kTokens);
  ReferenceOps reference;
  const auto exact_attention = make_reference_attention();
  expect_near_rows(model_logits(config, stored, reference, *exact_attention, {12}), expected, 2e-5,
                   family.architecture);
  ThreadPool pool(2);
  const auto cpu = make_cpu_ops(pool);
  const auto attention = make_cpu_attention(pool);
  const auto whole = model_logits(config, stored, *cpu, *attention, {12});
  expect_near_rows(whole, expected, 2e-4, family.architecture + " on the CPU");
  EXPECT_EQ(model_logits(config, stored, *cpu, *attention, {5, 1, 4, 2}), whole)
      << "the bits do not depend on the chunks";
}

TEST(Moe, AgreesWithTheReference) {
  for (const TestFamily& family : {kQwen, kMixtral}) {
    expect_agrees(family, config_of(family), random_model(family));
  }
}

TEST(Moe, WithoutRenormalizationAgreesWithTheReference) {
  const ModelConfig config =
      config_with(kQwen, [](MoeConfig& moe) { moe.routing.renormalize = false; });
  expect_agrees(kQwen, config, random_model(kQwen));
}

TEST(Moe, WithSharedExpertsAgreesWithTheReference) {
  for (const TestFamily& family : {kQwen, kMixtral}) {
    expect_agrees(family, config_with(family, make_like_deepseek<kSharedWidth>),
                  random_model(family, kSharedWidth));
  }
}

// A device that merges shared experts with the others.
class MergingOps final : public ReferenceOps {
 public:
  bool merges_shared_experts(const ExpertsShape& /*shape*/) const override { return true; }
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override {
    num_experts = source.shape().num_experts;
    return ReferenceOps::make_experts(source);
  }

  int num_experts = 0;  // of the last layer that was made
};

TEST(Moe, MergedSharedExpertsAgreeWithTheReference) {
  constexpr int kNumShared = 2;
  for (const auto& [width, num_merged] :
       {std::pair{kNumShared * kExpertWidth, kNumShared}, std::pair{kSharedWidth, 0}}) {
    const ModelConfig config =
        config_with(kQwen, width == kSharedWidth ? make_like_deepseek<kSharedWidth>
                                                 : make_like_deepseek<kNumShared * kExpertWidth>);
    const StoredTensors stored = random_model(kQwen, width);
    EXPECT_EQ(num_mergeable_experts(config), num_merged);
    MergingOps ops;
    const auto attention = make_reference_attention();
    expect_near_rows(model_logits(config, stored, ops, *attention, {7, 5}),
                     reference_logits(stored, kQwen, *decoder_config(config).moe, kTokens), 2e-5,
                     "shared experts");
    EXPECT_EQ(ops.num_experts, kExperts + num_merged);
    int64_t num_elements = 0;
    for (const auto& [name, tensor] : stored) {
      num_elements += static_cast<int64_t>(tensor.bytes.size() / sizeof(float));
    }
    EXPECT_EQ(num_parameters(config), num_elements) << "shared experts are counted once";
  }
}

// The stacks of a device have one type.
TEST(Moe, SharedExpertsOfAnotherTypeAreNotMerged) {
  constexpr int kWidth = 2 * kExpertWidth;
  const ModelConfig config = config_with(kQwen, make_like_deepseek<kWidth>);
  StoredTensors stored = random_model(kQwen, kWidth);
  StoredTensors rounded = stored;
  for (auto& [name, tensor] : stored) {
    if (name.find("shared_experts") == std::string::npos) continue;
    std::vector<float> values = floats_of(tensor);
    tensor.dtype = "BF16";
    tensor.bytes.resize(values.size() * sizeof(uint16_t));
    for (size_t i = 0; i < values.size(); ++i) {
      const uint16_t bits = f32_to_bf16(values[i]);
      std::memcpy(tensor.bytes.data() + i * sizeof(bits), &bits, sizeof(bits));
      values[i] = bf16_to_f32(bits);
    }
    rounded[name] = stored_floats(tensor.shape, values);
  }
  MergingOps ops;
  const auto attention = make_reference_attention();
  expect_near_rows(model_logits(config, stored, ops, *attention, {7, 5}),
                   reference_logits(rounded, kQwen, *decoder_config(config).moe, kTokens), 2e-5,
                   "shared experts in BF16");
  EXPECT_EQ(ops.num_experts, kExperts);
}

// A part of a quantized matrix cannot always be kept as the other experts are.
TEST(Moe, SeveralSharedExpertsInIntegersAreNotMerged) {
  constexpr int kWidth = 2 * kExpertWidth;
  const std::vector<std::byte> file = safetensors_file(random_model(kQwen, kWidth));
  const IntegerCheckpoint integers =
      quantize_integers(config_json(kQwen), file,
                        {.tool = IntegerTool::kCompressedPack, .bits = 8, .group_size = -1});
  ModelConfig config = config_with(kQwen, make_like_deepseek<kWidth>);
  config.format = parse_model_config(integers.config_json, "config.json").value().format;
  ASSERT_TRUE(config.format.has_value());
  MergingOps ops;
  const auto attention = make_reference_attention();
  expect_near_rows(
      model_logits(config, integers.tensors, ops, *attention, {7, 5}),
      reference_logits(integers.dequantized, kQwen, *decoder_config(config).moe, kTokens), 2e-5,
      "shared experts in integers");
  EXPECT_EQ(ops.num_experts, kExperts);
}

// Keeps matrices of integers.
class IntegerOps : public ReferenceOps {
 public:
  int64_t quantized_bytes(const QuantizedForm& matrix) const override {
    return std::holds_alternative<IntegerForm>(matrix.numbers) ? matrix.shape.num_elements() : 0;
  }
};

// Keeps those of experts only if all experts of the layer are alike.
class UniformExpertsOps final : public IntegerOps {
 public:
  bool mixes_experts() const override { return false; }
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override {
    Counting counting(source, num_integers);
    return ReferenceOps::make_experts(counting);
  }

  int num_integers = 0;  // products of integers in experts

 private:
  class Counting final : public ExpertsSource {
   public:
    Counting(ExpertsSource& source, int& num_integers) : source_(source), count_(num_integers) {}
    const ExpertsShape& shape() const override { return source_.shape(); }
    Result<LinearSource> gate_up(int idx) override { return counted(source_.gate_up(idx)); }
    Result<LinearSource> down(int idx) override { return counted(source_.down(idx)); }

   private:
    Result<LinearSource> counted(Result<LinearSource> source) {
      const auto* const stored =
          source.ok() ? std::get_if<StoredMatrices>(&source->numbers) : nullptr;
      if (stored != nullptr && is_integer(stored->each.front().scheme)) ++count_;
      return source;
    }

    ExpertsSource& source_;
    int& count_;
  };
};

TEST(Moe, ExpertsThatTheDeviceDoesNotMixAreExpanded) {
  const std::vector<std::byte> file = safetensors_file(random_model(kQwen));
  const IntegerCheckpoint integers = quantize_integers(
      config_json(kQwen), file,
      {.tool = IntegerTool::kCompressedPack, .bits = 8, .group_size = -1, .symmetric = true});
  const ModelConfig config = parse_model_config(integers.config_json, "config.json").value();
  const auto attention = make_reference_attention();
  // The experts whose down matrix is not quantized.
  for (const int num_plain : {0, 1, kExperts}) {
    StoredTensors stored = integers.tensors;
    for (int i = 0; i < num_plain; ++i) {
      const std::string down = fmt::format("{}mlp.experts.{}.down_proj", layer_prefix(1), i);
      std::erase_if(stored,
                    [&](const auto& tensor) { return tensor.first.starts_with(down + "."); });
      stored[down + ".weight"] = integers.dequantized.at(down + ".weight");
    }
    UniformExpertsOps ops;
    expect_near_rows(
        model_logits(config, stored, ops, *attention, {7, 5}),
        reference_logits(integers.dequantized, kQwen, *decoder_config(config).moe, kTokens), 2e-5,
        "experts in integers");
    EXPECT_EQ(ops.num_integers, num_plain == 0 ? 2 * kExperts : 0) << num_plain;
    const DrafterFile weights(stored);
    const int num_expanded = num_plain == 0 ? 0 : 3 * kExperts - num_plain;
    EXPECT_EQ(plan_weights(config, *weights.weights, ops, {}).value().num_bytes,
              plan_weights(config, *weights.weights, IntegerOps(), {}).value().num_bytes +
                  num_expanded * kHidden * kExpertWidth * 3)
        << num_plain;
    const std::string description = describe_quantization(
        config, *weights.weights, ops, plan_weights(config, *weights.weights, ops, {}).value());
    const std::string except = fmt::format(", except {} of {} matrices, which are expanded",
                                           num_expanded, 3 * 4 + 2 * 3 + 3 * kExperts - num_plain);
    EXPECT_THAT(description, HasSubstr("computed as they are"));
    EXPECT_EQ(description.find(except) != std::string::npos, num_expanded > 0) << description;
  }
}

TEST(Moe, TheLoadExpandsTheExpertsThatThePlanNames) {
  const IntegerCheckpoint integers = quantize_integers(
      config_json(kQwen), safetensors_file(random_model(kQwen)),
      {.tool = IntegerTool::kCompressedPack, .bits = 8, .group_size = -1, .symmetric = true});
  const ModelConfig config = parse_model_config(integers.config_json, "config.json").value();
  const DrafterFile file(integers.tensors);
  const ExpandedMatrices none;
  const ExpandedMatrices first = {.experts = {0}, .stacks = {}};
  for (const ExpandedMatrices* const expanded : {&none, &first}) {
    UniformExpertsOps ops;
    const LoadOptions options = {.progress = {}, .expanded = expanded};
    const auto model = load_model(config, *file.weights, ops, drafter_limits(), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(ops.num_integers, expanded == &none ? 2 * kExperts : 0);
  }
}

TEST(Moe, BlocksOfScalesAreNotDividedToMergeExperts) {
  ModelConfig config = config_with(kQwen, make_like_deepseek<2 * kExpertWidth>);
  config.format = WeightFormat{.scheme = {.values = DType::kF8E4M3,
                                          .scales = ScaleLayout::kBlocks,
                                          .block_rows = 16,
                                          .block_columns = 16},
                               .scales_suffix = ".weight_scale_inv"};
  EXPECT_EQ(num_mergeable_experts(config), 0);
  config.format->scheme.block_rows = config.format->scheme.block_columns = 8;
  EXPECT_EQ(num_mergeable_experts(config), 2);
}

std::string load_error(const TestFamily& family, const StoredTensors& tensors) {
  const DrafterFile file(tensors, config_of(family));
  ReferenceOps ops;
  return std::string(
      load_model(config_of(family), *file.weights, ops, drafter_limits()).status().message());
}

TEST(Moe, NamesTheTensorThatIsMissingOrHasAnotherShape) {
  for (const TestFamily& family : {kQwen, kMixtral}) {
    const StoredTensors whole = random_model(family);
    for (const auto& [name, tensor] : whole) {
      if (name.find(family.names.block) == std::string::npos) continue;
      StoredTensors tensors = whole;
      tensors[name].shape.insert(tensors[name].shape.begin(), 1);
      EXPECT_THAT(load_error(family, tensors), HasSubstr('"' + name + '"')) << "another shape";
      tensors.erase(name);
      const std::string error = load_error(family, tensors);
      EXPECT_THAT(error, HasSubstr('"' + name + '"')) << "missing";
      EXPECT_EQ(error.find('\n'), std::string::npos);
    }
    StoredTensors more = whole;
    const std::string name = layer_prefix(1) + family.names.block + "experts.6." + family.names.up;
    more[name + ".weight"] = more["model.norm.weight"];
    EXPECT_THAT(load_error(family, more), HasSubstr(name));
  }
}

TEST(Moe, PlansItsMemory) {
  for (const TestFamily& family : {kQwen, kMixtral}) {
    const StoredTensors stored = random_model(family);
    const ModelConfig config = config_of(family);
    const DrafterFile file(stored, config);
    const ModelLimits limits = drafter_limits();
    CountingOps ops;
    ASSERT_TRUE(load_model(config, *file.weights, ops, limits).ok());
    const int64_t logits = int64_t{limits.max_num_logit_rows} * kVocab * 4;
    EXPECT_EQ(estimate_activation_bytes(config, limits, ops).value(), ops.num_bytes + logits);
    int64_t num_elements = 0;
    for (const auto& [name, tensor] : stored) {
      num_elements += static_cast<int64_t>(tensor.bytes.size() / sizeof(float));
    }
    EXPECT_EQ(num_parameters(config), num_elements);
    EXPECT_EQ(plan_weights(config, *file.weights, ops, {}).value().num_bytes, num_elements * 4);
    ThreadPool pool(1);
    const auto cpu = make_cpu_ops(pool);
    EXPECT_GT(experts_workspace_bytes(config, limits, *cpu).value(), 0);
  }
}

TEST(Moe, ADeviceWithoutExpertsRefusesThem) {
  const DrafterFile file(random_model(kQwen));
  DenseOps ops;
  const Status load = load_model(config_of(kQwen), *file.weights, ops, drafter_limits()).status();
  const Status plan = experts_workspace_bytes(config_of(kQwen), drafter_limits(), ops).status();
  for (const Status& status : {load, plan}) {
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("mixture-of-experts"), HasSubstr("`device` cpu")));
  }
}

// With a search per name, this would run into the time limit of the test.
TEST(Moe, ManyExpertsAreCheapToList) {
  ModelConfig config = config_of(kMixtral);
  auto decoder = std::make_shared<DecoderConfig>(decoder_config(config));
  decoder->moe->routing.num_experts = 1024;
  decoder->moe->layers.assign(60, true);
  decoder->layer_windows.assign(60, 0);
  decoder->layer_ropes.assign(60, 0);
  config.num_layers = 60;
  config.family = decoder;
  EXPECT_EQ(list_tensors(config).size(), 3U + 60 * (4 + 2 + 1 + 3 * 1024));
}

std::string config_error(const TestFamily& family, const std::string& from, const std::string& to) {
  std::string json = config_json(family);
  const size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  json.replace(at, from.size(), to);
  return std::string(parse_model_config(json, "config.json").status().message());
}

TEST(Moe, FaultsOfTheConfigurationAreNamed) {
  const std::string top_k = R"("num_experts_per_tok":2)";
  EXPECT_THAT(config_error(kQwen, top_k, R"("num_experts_per_tok":7)"),
              AllOf(HasSubstr("num_experts_per_tok; got 7"), HasSubstr("num_experts, 6")));
  EXPECT_THAT(config_error(kMixtral, top_k, R"("num_experts_per_tok":0)"),
              HasSubstr(R"(num_experts_per_tok; got "0")"));
  EXPECT_THAT(config_error(kQwen, R"("num_experts":6)", R"("num_experts":0)"),
              HasSubstr(R"(num_experts; got "0")"));
  EXPECT_THAT(config_error(kQwen, R"("num_experts":6)", R"("num_experts":1025)"),
              HasSubstr(R"(num_experts; got "1025")"));
  EXPECT_THAT(config_error(kQwen, R"("decoder_sparse_step":2)", R"("decoder_sparse_step":0)"),
              HasSubstr(R"(decoder_sparse_step; got "0")"));
  EXPECT_THAT(config_error(kQwen, R"("mlp_only_layers":[0])", R"("mlp_only_layers":[-1])"),
              HasSubstr("mlp_only_layers"));
  EXPECT_THAT(config_error(kQwen, "\"norm_topk_prob\":true",
                           R"("norm_topk_prob":true,"use_sliding_window":true)"),
              HasSubstr("use_sliding_window; got true"));
  EXPECT_THAT(config_error(kMixtral, R"("num_local_experts":6)",
                           R"("num_local_experts":6,"hidden_act":"gelu")"),
              HasSubstr("hidden_act"));
  std::string many = config_json(kMixtral);
  many.replace(many.find(R"("num_local_experts":6)"), 21, R"("num_local_experts":1000)");
  many.replace(many.find(R"("num_hidden_layers":3)"), 21, R"("num_hidden_layers":1000)");
  EXPECT_THAT(parse_model_config(many, "config.json").status().message(),
              HasSubstr("num_local_experts; got 1000 in 1000 layers"));
}

TEST(Moe, DefaultsAreThoseOfTransformers) {
  const std::string sizes =
      R"("hidden_size":16,"intermediate_size":24,"num_hidden_layers":2,"vocab_size":20,)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64)";
  const auto parsed = [&](const char* architecture) {
    const std::string json = fmt::format(R"({{"architectures":["{}"],{}}})", architecture, sizes);
    return decoder_config(parse_model_config(json, "config.json").value());
  };
  const DecoderConfig qwen = parsed("Qwen3MoeForCausalLM");
  EXPECT_EQ(qwen.moe->routing.num_experts, 128);
  EXPECT_EQ(qwen.moe->routing.top_k, 8);
  EXPECT_FALSE(qwen.moe->routing.renormalize);
  EXPECT_EQ(qwen.moe->intermediate_size, 768);
  EXPECT_EQ(qwen.moe->layers, std::vector<bool>({true, true}));
  EXPECT_EQ(qwen.qk_norm, QkNorm::kPerHead);
  const DecoderConfig mixtral = parsed("MixtralForCausalLM");
  EXPECT_EQ(mixtral.moe->routing.num_experts, 8);
  EXPECT_EQ(mixtral.moe->routing.top_k, 2);
  EXPECT_TRUE(mixtral.moe->routing.renormalize);
  EXPECT_EQ(mixtral.moe->intermediate_size, 24);
  EXPECT_EQ(mixtral.ropes[0].theta, 1e6);
  EXPECT_EQ(mixtral.layer_windows, std::vector<int>({0, 0}));
}

TEST(Moe, OnlyDenseLayersHaveFusedTails) {
  const StoredTensors stored = random_model(kQwen);
  const auto attention = make_reference_attention();
  ReferenceOps separate;
  FusedTailOps fused;
  const auto expected = model_logits(config_of(kQwen), stored, separate, *attention, {12});
  EXPECT_EQ(model_logits(config_of(kQwen), stored, fused, *attention, {12}), expected);
  EXPECT_EQ(fused.num_tails, 2) << "one per dense layer";
}

}  // namespace
}  // namespace quire::testing
