#include "model/eagle3/eagle3.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/file.h"
#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/ops/cpu_ops.h"
#include "model/decoder.h"
#include "model/model_loader.h"
#include "support/draft_passes.h"
#include "support/drafter_parts.h"
#include "support/eagle3_reference.h"
#include "support/model_harness.h"
#include "support/reference_ops.h"
#include "support/shared_data.h"
#include "support/value_of.h"
#include "tensor/checkpoint.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Row = Eagle3Reference::Row;

// A head beside its target, and the head's reference.
class HeadOfTarget {
 public:
  HeadOfTarget(const HeadShape& shape, Ops& ops) : HeadOfTarget(shape, random_head(shape), ops) {}
  HeadOfTarget(const HeadShape& shape, const StoredTensors& tensors, Ops& ops)
      : shape_(shape), parts_(target_config(shape.target_hidden, shape.vocab), tensors, ops) {}

  Result<std::unique_ptr<Model>> load() {
    QUIRE_ASSIGN_OR_RETURN(
        const ModelConfig config,
        parse_eagle3_config(head_config_json(shape_), "config.json", parts_.weights()));
    return load_eagle3(config, parts_.target(), parts_.weights(), parts_.ops(), parts_.limits());
  }

  Eagle3Reference reference() {
    std::vector<float> embeddings =
        parts_.own_or_shared("embed_tokens.weight", {shape_.vocab, shape_.hidden});
    std::vector<float> lm_head =
        shape_.is_tied && !shape_.has_lm_head
            ? embeddings
            : parts_.own_or_shared("lm_head.weight", {shape_.draft_vocab, shape_.hidden});
    return Eagle3Reference(shape_, parts_.tensors(), std::move(embeddings), std::move(lm_head));
  }

  const ModelLimits& limits() const { return parts_.limits(); }

 private:
  HeadShape shape_;
  DrafterWithTarget parts_;
};

std::string load_error(const HeadShape& shape, const StoredTensors& tensors) {
  ReferenceOps ops;
  const auto head = HeadOfTarget(shape, tensors, ops).load();
  return head.ok() ? "" : head.status().message();
}

// Pass 0 over five pairs whose hidden states come from the target, then three passes that continue
// the head's own states, all compared with the reference.
void expect_agrees(const HeadShape& shape, Ops& ops, double tolerance, const std::string& what) {
  HeadOfTarget parts(shape, ops);
  const auto head = parts.load();
  ASSERT_TRUE(head.ok()) << what << ": " << head.status().message();
  const Eagle3Reference reference = parts.reference();
  const auto width = static_cast<size_t>(shape.hidden);
  const size_t taps_width =
      (shape.taps.empty() ? 3 : shape.taps.size()) * static_cast<size_t>(shape.target_hidden);
  const std::vector<int32_t> tokens = {3, 0, 19, 7, 7};

  std::vector<float> taps = random_floats(tokens.size() * taps_width, 2);
  std::vector<float> combined(tokens.size() * width);
  (*head)->draft_head()->combine({taps.data(), DType::kF32, {5, static_cast<int64_t>(taps_width)}},
                                 {combined.data(), DType::kF32, {5, shape.hidden}});
  std::vector<Row> hidden;
  for (const Row& row : rows_of(taps, taps_width)) hidden.push_back(reference.combine(row));
  expect_near_rows(combined, hidden, tolerance, what + ", combined");

  const auto attention = make_reference_attention();
  ModelHarness harness(**head, *attention, parts.limits());
  expect_passes_agree(**head, harness, reference, tokens, {12, 4, 19}, combined, hidden, tolerance,
                      what);
}

TEST(Eagle3, AgreesWithTheReference) {
  const std::pair<const char*, HeadShape> cases[] = {
      {"authors", {}},
      {"authors, the target's embeddings", {.has_embeddings = false}},
      {"authors, one vocabulary and lm_head",
       {.draft_vocab = 20, .has_embeddings = false, .has_lm_head = false}},
      {"tied to its own embeddings", {.draft_vocab = 20, .has_lm_head = false, .is_tied = true}},
      {"speculators", {.is_speculators = true}},
      {"speculators, norm before the residual",
       {.is_speculators = true, .norm_before_residual = true, .has_embeddings = false}},
      {"speculators, all norms",
       {.is_speculators = true,
        .norm_before_residual = true,
        .norm_before_fc = true,
        .norm_output = true}},
      {"two layers", {.num_layers = 2}},
      {"speculators, three layers", {.is_speculators = true, .num_layers = 3}},
      {"two taps", {.taps = {0, 6}}},
      {"a wider target", {.target_hidden = 24, .taps = {1}}},
      {"biases", {.has_bias = true}},
  };
  ThreadPool pool(2);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps reference;
  for (const auto& [what, shape] : cases) {
    expect_agrees(shape, reference, 1e-5, what);
    expect_agrees(shape, *cpu, 1e-4, std::string(what) + " on the CPU");
  }
}

TEST(Eagle3, ListsTheTargetsIdsByDraftId) {
  ReferenceOps ops;
  const HeadShape shape;
  StoredTensors tensors = random_head(shape);
  const auto ids = [&](const HeadShape& of, const StoredTensors& in) {
    const auto head = value_of(HeadOfTarget(of, in, ops).load());
    const std::span<const int32_t> span = head->draft_head()->target_ids();
    return std::vector<int32_t>(span.begin(), span.end());
  };
  EXPECT_THAT(ids(shape, tensors), ElementsAre(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 0, 2));
  const int32_t differences[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8};
  tensors["d2t"] = stored_short_integers(differences);
  EXPECT_THAT(ids(shape, tensors), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 19));
  const HeadShape whole = {.draft_vocab = 20};
  tensors = random_head(whole);
  EXPECT_THAT(ids(whole, tensors), IsEmpty());
  tensors["d2t"] = stored_integers(std::vector<int64_t>(20, 0));
  EXPECT_THAT(ids(whole, tensors), IsEmpty()) << "all differences are 0";
}

TEST(Eagle3, RefusesAWrongVocabulary) {
  const HeadShape shape;
  const auto error_of = [&](const StoredTensor& d2t) {
    StoredTensors tensors = random_head(shape);
    tensors["d2t"] = d2t;
    return load_error(shape, tensors);
  };
  const auto with = [](size_t draft_id, int64_t difference) {
    std::vector<int64_t> differences(12, 0);
    differences[draft_id] = difference;
    return stored_integers(differences);
  };
  EXPECT_EQ(error_of(with(11, 8)), "");
  EXPECT_THAT(error_of(with(11, 9)),
              AllOf(HasSubstr("tensor \"d2t\" maps draft id 11 outside of "
                              "the target's 20 tokens; got a difference of 9, expected -11 to 8"),
                    HasSubstr("use a drafter that was trained for this model")));
  EXPECT_THAT(error_of(with(3, -4)), HasSubstr("expected -3 to 16"));
  EXPECT_THAT(error_of(with(3, std::numeric_limits<int64_t>::max())), HasSubstr("draft id 3"));
  EXPECT_THAT(error_of(with(3, std::numeric_limits<int64_t>::min())), HasSubstr("draft id 3"));
  EXPECT_THAT(error_of(with(0, 5)), HasSubstr("\"d2t\" maps two draft ids to one token; got 5"));
  EXPECT_THAT(
      error_of(stored_floats({12}, std::vector<float>(12, std::nanf("")))),
      AllOf(HasSubstr("\"d2t\" has the wrong type; got f32"), HasSubstr("checkpoint beside")));
  EXPECT_THAT(
      error_of(stored_integers(std::vector<int64_t>(13, 0))),
      AllOf(HasSubstr("drafter.safetensors: tensor \"d2t\""), HasSubstr("got [13], expected [12]"),
            HasSubstr("use a drafter that was trained for this model")));
}

TEST(Eagle3, NamesTheTensorThatIsMissingOrHasAnotherShape) {
  for (const bool is_speculators : {false, true}) {
    const HeadShape shape = {
        .is_speculators = is_speculators, .num_layers = 2, .norm_before_fc = true};
    for (const auto& [name, tensor] : random_head(shape)) {
      if (name == "t2d") continue;
      StoredTensors tensors = random_head(shape);
      tensors[name].shape.insert(tensors[name].shape.begin(), 1);
      EXPECT_THAT(load_error(shape, tensors), HasSubstr('"' + name + '"')) << "another shape";
      tensors.erase(name);
      // Without embeddings, the head reads those of the target.
      if (name == "embed_tokens.weight") continue;
      EXPECT_THAT(load_error(shape, tensors), HasSubstr('"' + name + '"')) << "missing";
    }
  }
}

TEST(Eagle3, RefusesTensorsThatItDoesNotUse) {
  const HeadShape shape;
  StoredTensors tensors = random_head(shape);
  tensors.erase("t2d");
  tensors["verifier_norm.weight"] = tensors["norm.weight"];
  EXPECT_EQ(load_error(shape, tensors), "");
  tensors["midlayer.self_attn.q_norm.weight"] = tensors["norm.weight"];
  EXPECT_THAT(load_error(shape, tensors),
              AllOf(HasSubstr("\"midlayer.self_attn.q_norm.weight\""), HasSubstr("EAGLE-3")));
}

TEST(Eagle3, ATruncatedFileNamesATensor) {
  std::vector<std::byte> bytes = safetensors_file(random_head({}));
  bytes.resize(bytes.size() - 100);
  EXPECT_THAT(Checkpoint::from_memory(bytes, "head.safetensors").status().message(),
              AllOf(HasSubstr("head.safetensors: tensor \""), HasSubstr("may be truncated")));
}

TEST(Eagle3, PlansItsMemory) {
  for (const bool norm_before_fc : {false, true}) {
    const HeadShape shape = {.taps = {1, 2}, .norm_before_fc = norm_before_fc};
    const StoredTensors tensors = random_head(shape);
    const DrafterFile file(tensors);
    const ModelConfig config =
        parse_eagle3_config(head_config_json(shape), "config.json", *file.weights).value();
    CountingOps ops;
    HeadOfTarget parts(shape, ops);
    ops.num_bytes = 0;
    ModelLimits limits = parts.limits();
    ASSERT_TRUE(parts.load().ok());
    limits.tapped_layers = {1, 2};  // of the target
    const int64_t logits = int64_t{limits.max_num_logit_rows} * shape.draft_vocab * 4;
    EXPECT_EQ(eagle3_activation_bytes(config, limits, ops), ops.num_bytes + logits);

    std::set<std::string> listed = {"d2t", "t2d"};
    int64_t num_elements = 0;
    for (const TensorSpec& tensor : list_eagle3_tensors(config)) {
      listed.insert(tensor.name);
      num_elements += tensor.shape.num_elements();
    }
    std::set<std::string> stored;
    for (const auto& [name, tensor] : tensors) stored.insert(name);
    EXPECT_EQ(listed, stored);
    EXPECT_EQ(plan_weights(list_eagle3_tensors(config), *file.weights, ops, {}).value().num_bytes,
              num_elements * 4);
  }
}

// ------ configuration

std::string misfit(const HeadShape& shape, const ModelConfig& target) {
  const DrafterFile file(random_head(shape));
  const auto config = parse_eagle3_config(head_config_json(shape), "config.json", *file.weights);
  if (!config.ok()) return config.status().message();
  return check_eagle3(*config, target).message();
}

TEST(Eagle3Config, FitsItsTargetAlone) {
  EXPECT_EQ(misfit({}, target_config()), "");
  EXPECT_THAT(misfit({}, target_config(16, 21)),
              HasSubstr("vocab_size is not that of the target; got 20, expected 21"));
  EXPECT_THAT(misfit({}, target_config(24)),
              HasSubstr("target_hidden_size is not that of the target; got 16, expected 24"));
  EXPECT_EQ(misfit({.target_hidden = 24}, target_config(24)), "");
  EXPECT_THAT(
      misfit({.target_hidden = 24, .has_embeddings = false}, target_config(24)),
      AllOf(HasSubstr("no tensor \"embed_tokens.weight\""), HasSubstr("got 24, expected 16")));
  EXPECT_THAT(
      misfit({.target_hidden = 24, .draft_vocab = 20, .has_lm_head = false}, target_config(24)),
      AllOf(HasSubstr("no tensor \"lm_head.weight\""), HasSubstr("got 24, expected 16")));
  EXPECT_THAT(misfit({.has_lm_head = false}, target_config()),
              AllOf(HasSubstr("no tensor \"lm_head.weight\""), HasSubstr("got 20, expected 12")));
  EXPECT_EQ(misfit({.taps = {0, 7}}, target_config()), "") << "7 is the last layer's output";
  EXPECT_THAT(misfit({.taps = {0, 8}}, target_config()), HasSubstr("got 8, expected at most 7"));
  EXPECT_THAT(misfit({}, target_config(16, 20, 6)), HasSubstr("got 6, expected at least 7"));
}

TEST(Eagle3Config, TapsLayersAcrossTheDepthUnlessItListsThem) {
  const DrafterFile file(random_head({}));
  const auto taps = [&](const HeadShape& shape, int num_layers) {
    const ModelConfig head =
        parse_eagle3_config(head_config_json(shape), "config.json", *file.weights).value();
    return eagle3_tapped_layers(head, target_config(16, 20, num_layers));
  };
  EXPECT_THAT(taps({}, 32), ElementsAre(2, 16, 29));
  EXPECT_THAT(taps({}, 7), ElementsAre(2, 3, 4));
  EXPECT_THAT(taps({.taps = {9, 1, 5}}, 32), ElementsAre(1, 5, 9));
  EXPECT_THAT(taps({.is_speculators = true, .taps = {3}}, 32), ElementsAre(3));
}

// A valid config.json with some fields replaced by, or added from, `fields`.
std::string config_error(std::string_view fields, bool is_speculators = false) {
  std::string json = head_config_json({.is_speculators = is_speculators});
  json.insert(1, std::string(fields) + ",");
  const auto config = parse_eagle3_config(json, "c", DummyWeights(DType::kF32));
  return config.ok() ? "" : config.status().message();
}

TEST(Eagle3Config, RefusesVariantsByName) {
  EXPECT_EQ(config_error(R"("fc_norm":false,"eagle_config":{"use_aux_hidden_state":true})"), "");
  EXPECT_THAT(config_error(R"("fc_norm":true)"), HasSubstr("c: fc_norm; got true, expected false"));
  EXPECT_THAT(config_error(R"("parallel_drafting":true)"), HasSubstr("parallel_drafting"));
  EXPECT_THAT(config_error(R"("use_sliding_window":true)"), HasSubstr("use_sliding_window"));
  EXPECT_THAT(config_error(R"("layer_types":["sliding_attention"])"), HasSubstr("layer_types"));
  for (const char* option :
       {R"("use_aux_hidden_state":false)", R"("use_last_layernorm":false)",
        R"("use_input_layernorm_in_first_layer":false)", R"("use_mtp_layernorm":true)"}) {
    const std::string_view key =
        std::string_view(option).substr(1, std::string_view(option).find('"', 1) - 1);
    EXPECT_THAT(config_error(fmt::format(R"("eagle_config":{{{}}})", option)),
                HasSubstr(fmt::format("eagle_config.{}; got", key)));
  }
  EXPECT_THAT(config_error(R"("quantization_config":{"quant_method":"fp8"})"),
              HasSubstr("quantized"));
  EXPECT_THAT(config_error(R"("eagle_aux_hidden_state_layer_ids":[3,1,3])"),
              HasSubstr("eagle_aux_hidden_state_layer_ids; got layer 3 twice"));
  EXPECT_THAT(config_error(R"("eagle_config":{"eagle_aux_hidden_state_layer_ids":[-1]})"),
              HasSubstr("eagle_config.eagle_aux_hidden_state_layer_ids"));
  EXPECT_THAT(config_error(R"("dtype":"int8")"), HasSubstr("dtype"));
}

std::string replaced_error(std::string_view from, std::string_view to, bool is_speculators) {
  std::string json = head_config_json({.is_speculators = is_speculators});
  json.replace(json.find(from), from.size(), to);
  const auto config = parse_eagle3_config(json, "c", DummyWeights(DType::kF32));
  return config.ok() ? "" : config.status().message();
}

TEST(Eagle3Config, RefusesOtherModels) {
  EXPECT_THAT(replaced_error("LlamaForCausalLMEagle3", "LlamaForCausalLMEagle", false),
              AllOf(HasSubstr("architectures; got \"LlamaForCausalLMEagle\""),
                    HasSubstr("LlamaForCausalLMEagle3, Eagle3LlamaForCausalLM")));
  EXPECT_EQ(replaced_error("LlamaForCausalLMEagle3", "LlamaForCausalLM", false), "");
  EXPECT_THAT(replaced_error(R"("llama")", R"("llama4_text")", false), HasSubstr("model_type"));
  EXPECT_THAT(replaced_error(R"("llama")", R"("qwen3")", true),
              HasSubstr("transformer_layer_config.model_type; got \"qwen3\""));
  EXPECT_THAT(replaced_error(R"("silu")", R"("relu")", false), HasSubstr("hidden_act"));
  EXPECT_THAT(replaced_error(R"("eagle3")", R"("dflash")", true),
              HasSubstr("speculators_model_type; got \"dflash\", expected \"eagle3\""));
  EXPECT_THAT(replaced_error("transformer_layer_config", "layer", true),
              HasSubstr("transformer_layer_config; got nothing"));
  EXPECT_THAT(replaced_error(R"("draft_vocab_size":12)", R"("draft_vocab_size":21)", false),
              HasSubstr("draft_vocab_size; got \"21\", expected a whole number from 1 to 20"));
  EXPECT_THAT(replaced_error(R"("hidden_size":16)", R"("hidden":16)", true),
              HasSubstr("transformer_layer_config.hidden_size; got nothing"));
}

TEST(Eagle3Config, SpeculatorsNormsBeforeTheResidualByDefault) {
  for (const bool is_speculators : {false, true}) {
    std::string json = head_config_json({.is_speculators = is_speculators});
    const std::string_view field = R"("norm_before_residual":false,)";
    json.erase(json.find(field), field.size());
    const ModelConfig config = parse_eagle3_config(json, "c", DummyWeights(DType::kF32)).value();
    EXPECT_EQ(dynamic_cast<const Eagle3Config&>(*config.family).norm_before_residual,
              is_speculators);
  }
}

// A head given as the model itself is refused with a hint.
TEST(Eagle3Config, IsNotAModelThatGenerates) {
  for (const bool is_speculators : {false, true}) {
    EXPECT_THAT(parse_model_config(head_config_json({.is_speculators = is_speculators}), "c")
                    .status()
                    .message(),
                HasSubstr("`speculative_config` names it"));
  }
}

TEST(Eagle3Config, ReadsPublishedConfigurations) {
  const std::filesystem::path folder = shared_data_path("configs/eagle3");
  QUIRE_REQUIRE_SHARED(folder);
  int num_read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    const std::string json = read_file(entry.path(), size_t{1} << 20).value();
    const auto config = value_of(parse_eagle3_config(json, path, DummyWeights(DType::kF32)));
    const auto& eagle = dynamic_cast<const Eagle3Config&>(*config.family);
    EXPECT_EQ(config.num_layers, 1) << path;
    EXPECT_TRUE(config.vocab_size == 16000 || config.vocab_size == 32000) << path;
    EXPECT_GT(eagle.target_vocab_size, 100000) << path;
    EXPECT_EQ(eagle.target_hidden_size, config.hidden_size) << path;
    EXPECT_FALSE(eagle.norm_before_residual) << path;
    ++num_read;
  }
  EXPECT_GE(num_read, 7);
}

}  // namespace
}  // namespace quire::testing
