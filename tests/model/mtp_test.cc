#include "model/mtp/mtp.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cpu/ops/cpu_ops.h"
#include "model/decoder.h"
#include "model/model_loader.h"
#include "model/tensor_layout.h"
#include "support/draft_passes.h"
#include "support/drafter_parts.h"
#include "support/fp8_checkpoint.h"
#include "support/model_harness.h"
#include "support/mtp_reference.h"
#include "support/qwen_mtp_reference.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Row = MtpReference::Row;

constexpr int kHidden = 16;

ModelConfig mimo_config(const MimoShape& shape = {}) {
  return parse_model_config(mimo_config_json(shape), "config.json").value();
}

ModelConfig qwen_config(const QwenShape& shape = {}, std::string_view more = "") {
  return parse_model_config(qwen_config_json(shape, more), "config.json").value();
}

constexpr QwenShape kExperts = {.num_experts = 4};

ModelLimits target_limits(const ModelConfig& config) {
  ModelLimits limits = drafter_limits();
  limits.tapped_layers = {config.num_layers};
  return limits;
}

// The head's tensors in the file of its target, under the decoder's names.
Result<std::unique_ptr<WeightSource>> head_source(const ModelConfig& target, DrafterFile& file) {
  const ModelConfig head = mtp_config(target);
  return apply_layout(std::move(file.weights), head.layout, list_mtp_tensors(head));
}

// A target and its head, which have the same tensors.
struct LoadedMtp {
  std::unique_ptr<Model> target;
  std::unique_ptr<Model> head;
};

Result<LoadedMtp> load_both(const ModelConfig& config, const StoredTensors& tensors, Ops& ops) {
  DrafterFile file(tensors);
  const DrafterFile of_target(tensors, config);
  LoadedMtp loaded;
  QUIRE_ASSIGN_OR_RETURN(loaded.target,
                         load_model(config, *of_target.weights, ops, target_limits(config)));
  QUIRE_ASSIGN_OR_RETURN(const auto source, head_source(config, file));
  QUIRE_ASSIGN_OR_RETURN(
      loaded.head, load_mtp(mtp_config(config), *loaded.target, *source, ops, drafter_limits()));
  return loaded;
}

// The target computes a prompt, and the head its pairs; then three passes continue the head's own
// states. All are compared with the reference.
template <typename Reference>
void expect_agrees(const ModelConfig& config, const StoredTensors& tensors,
                   const Reference& reference, Ops& ops, double tolerance,
                   const std::string& what) {
  const auto loaded = load_both(config, tensors, ops);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto attention = make_reference_attention();

  const std::vector<int32_t> prompt = {3, 0, 19, 7, 7};
  ModelHarness target(*loaded->target, *attention, target_limits(config));
  ASSERT_TRUE(target.step({{0, prompt}}).ok());
  std::vector<float> combined(prompt.size() * kHidden);
  loaded->head->draft_head()->combine(loaded->target->taps().rows(0, 5),
                                      {combined.data(), DType::kF32, {5, kHidden}});
  const std::vector<Row> hidden = reference.target_states(prompt);
  expect_near_rows(combined, hidden, tolerance, what + ", the target's states");

  ModelHarness harness(*loaded->head, *attention, drafter_limits());
  expect_passes_agree(*loaded->head, harness, reference, {0, 19, 7, 7, 12}, {2, 4, 19}, combined,
                      hidden, tolerance, what);
}

// Computes with the reference operations and with those of a CPU.
template <typename Reference>
void expect_agrees(const ModelConfig& config, const StoredTensors& tensors,
                   const Reference& reference, const std::string& what) {
  ThreadPool pool(2);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps ops;
  expect_agrees(config, tensors, reference, ops, 1e-5, what);
  expect_agrees(config, tensors, reference, *cpu, 1e-4, what + " on the CPU");
}

TEST(Mtp, AgreesWithTheReference) {
  for (const int num_layers : {1, 3}) {
    const MimoShape shape = {.num_layers = num_layers};
    const StoredTensors tensors = random_mimo(shape);
    expect_agrees(mimo_config(shape), tensors, MtpReference(shape, tensors),
                  fmt::format("{} layers", num_layers));
  }
}

TEST(Mtp, OfQwenAgreesWithTheReference) {
  for (const int num_layers : {1, 3}) {
    for (const int num_experts : {0, 4}) {
      const QwenShape shape = {.num_layers = num_layers, .num_experts = num_experts};
      const StoredTensors tensors = random_qwen(shape);
      const QwenMtpReference reference(shape, tensors);
      const std::string what = fmt::format("{} layers, {} experts", num_layers, num_experts);
      expect_agrees(qwen_config(shape), tensors, reference, what);
      if (num_experts == 0) continue;
      expect_agrees(qwen_config(shape), stack_experts(shape, tensors), reference,
                    what + " in stacks");
    }
  }
}

// Moves the tensors of a matrix to another name.
void rename(StoredTensors& tensors, const std::string& from, const std::string& to) {
  StoredTensors moved;
  for (auto& [name, tensor] : tensors) {
    const bool is_of_matrix = name.starts_with(from + ".");
    moved[is_of_matrix ? to + name.substr(from.size()) : name] = std::move(tensor);
  }
  tensors = std::move(moved);
}

// Tools differ in whether they quantize mtp.fc: both kinds of checkpoints are published.
TEST(Mtp, OfAQuantizedCheckpointAgreesWithTheReference) {
  for (const QwenShape& shape : {QwenShape{}, kExperts}) {
    for (const Fp8Tool tool : {Fp8Tool::kHuggingFaceTensor, Fp8Tool::kCompressedChannel}) {
      for (const bool quantizes_fc : {false, true}) {
        StoredTensors tensors = random_qwen(shape);
        if (quantizes_fc) rename(tensors, "mtp.fc", "mtp.fc_proj");
        Fp8Checkpoint fp8 =
            quantize_checkpoint(qwen_config_json(shape), safetensors_file(tensors), tool);
        for (StoredTensors* const stored : {&fp8.tensors, &fp8.dequantized}) {
          rename(*stored, "mtp.fc_proj", "mtp.fc");
        }
        const ModelConfig config = parse_model_config(fp8.config_json, "config.json").value();
        ASSERT_TRUE(config.format);
        EXPECT_EQ(fp8.tensors.at("mtp.fc.weight").dtype, quantizes_fc ? "F8_E4M3" : "F32");
        expect_agrees(config, fp8.tensors, QwenMtpReference(shape, fp8.dequantized),
                      fmt::format("fp8, fc {}", quantizes_fc));
      }
    }
  }
}

std::string load_error(const ModelConfig& config, const StoredTensors& tensors) {
  ReferenceOps ops;
  return std::string(load_both(config, tensors, ops).status().message());
}

void expect_named(const ModelConfig& config, const StoredTensors& all, std::string_view prefix) {
  for (const auto& [name, tensor] : all) {
    if (!name.starts_with(prefix)) continue;
    StoredTensors tensors = all;
    tensors[name].shape.push_back(1);
    EXPECT_THAT(load_error(config, tensors), HasSubstr('"' + name + '"')) << "another shape";
    tensors.erase(name);
    EXPECT_THAT(load_error(config, tensors), HasSubstr('"' + name + '"')) << "missing";
  }
}

TEST(Mtp, NamesTheTensorThatIsMissingOrHasAnotherShape) {
  expect_named(mimo_config(), random_mimo({}), "model.mtp_layers.");
  expect_named(qwen_config(), random_qwen({}), "mtp.");
  expect_named(qwen_config(kExperts), random_qwen(kExperts), "mtp.");
}

TEST(Mtp, RefusesTensorsThatItDoesNotUse) {
  StoredTensors tensors = random_mimo({});
  EXPECT_EQ(load_error(mimo_config(), tensors), "");
  std::string name = "model.mtp_layers.0.self_attn.q_norm.weight";
  tensors[name] = tensors["model.norm.weight"];
  EXPECT_THAT(load_error(mimo_config(), tensors),
              AllOf(HasSubstr('"' + name + '"'), HasSubstr("MTP")));
  tensors = random_qwen({});
  EXPECT_EQ(load_error(qwen_config(), tensors), "");
  name = "mtp.embed_tokens.weight";
  tensors[name] = tensors["model.embed_tokens.weight"];
  EXPECT_THAT(load_error(qwen_config(), tensors),
              AllOf(HasSubstr('"' + name + '"'), HasSubstr("MTP")));
}

TEST(Mtp, IsNotReadWithoutSpeculation) {
  ReferenceOps ops;
  const auto load_target = [&](const StoredTensors& tensors, const ModelConfig& config) {
    const DrafterFile file(tensors, config);
    return load_model(config, *file.weights, ops, drafter_limits()).status();
  };
  const MimoShape shape = {.num_mtp_layers = 2};
  EXPECT_EQ(load_target(random_mimo(shape), mimo_config(shape)).message(), "");
  EXPECT_EQ(load_target(random_mimo(shape), mimo_config({.num_mtp_layers = 0})).message(), "");
  EXPECT_EQ(load_target(random_qwen({}), qwen_config()).message(), "");
  EXPECT_EQ(
      load_target(stack_experts(kExperts, random_qwen(kExperts)), qwen_config(kExperts)).message(),
      "");
}

void expect_plans_memory(const ModelConfig& config, const StoredTensors& tensors,
                         std::set<std::string> expected) {
  const ModelConfig head = mtp_config(config);
  DrafterFile file(tensors);
  const auto source = head_source(config, file).value();
  CountingOps ops;
  const DrafterFile of_target(tensors, config);
  const auto target = load_model(config, *of_target.weights, ops, drafter_limits()).value();
  ops.num_bytes = 0;
  ASSERT_TRUE(load_mtp(head, *target, *source, ops, drafter_limits()).ok());
  const ModelLimits limits = target_limits(config);  // their taps are not the head's
  const int64_t logits = int64_t{limits.max_num_logit_rows} * config.vocab_size * 4;
  EXPECT_EQ(mtp_activation_bytes(head, limits, ops).value(), ops.num_bytes + logits);

  std::set<std::string> listed;
  int64_t num_elements = 0;
  for (const TensorSpec& tensor : list_mtp_tensors(head)) {
    listed.insert(source->name_in_file(tensor.name));
    num_elements += tensor.shape.num_elements();
  }
  EXPECT_EQ(plan_weights(list_mtp_tensors(head), *source, ops, {}).value().num_bytes,
            num_elements * 4);
  EXPECT_EQ(listed, expected);
}

std::set<std::string> names_with(const StoredTensors& tensors, std::string_view prefix) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(prefix)) names.insert(name);
  }
  return names;
}

TEST(Mtp, PlansItsMemory) {
  const StoredTensors mimo = random_mimo({});
  expect_plans_memory(mimo_config(), mimo, names_with(mimo, "model.mtp_layers."));
  for (const QwenShape& shape : {QwenShape{}, kExperts}) {
    const StoredTensors qwen = random_qwen(shape);
    std::set<std::string> names = names_with(qwen, "mtp.");
    EXPECT_EQ(names.size(), shape.num_experts == 0 ? 15U : 29U) << "15 as in Qwen3.5-0.8B";
    names.insert("model.norm.weight");
    expect_plans_memory(qwen_config(shape), qwen, names);
  }
}

// ------ configuration

TEST(MtpConfig, NeedsOneLayer) {
  EXPECT_TRUE(check_mtp(mimo_config()).ok());
  EXPECT_THAT(check_mtp(mimo_config({.num_mtp_layers = 3})).message(),
              HasSubstr("num_nextn_predict_layers of a model that drafts with method mtp; got 3, "
                        "expected 1"));
  EXPECT_THAT(check_mtp(mimo_config({.num_mtp_layers = 0})).message(),
              HasSubstr("got 0, expected 1"));
  EXPECT_TRUE(check_mtp(qwen_config()).ok()) << "Qwen3-Next does not state the number";
  EXPECT_TRUE(check_mtp(qwen_config({}, R"(,"mtp_num_hidden_layers":1)")).ok());
  for (const int count : {0, 2}) {
    const std::string field = fmt::format(R"(,"mtp_num_hidden_layers":{})", count);
    EXPECT_THAT(check_mtp(qwen_config({}, field)).message(),
                HasSubstr(fmt::format("mtp_num_hidden_layers of a model that drafts with method "
                                      "mtp; got {}, expected 1",
                                      count)));
  }
  EXPECT_THAT(check_mtp(target_config()).message(),
              HasSubstr("not served for this architecture; got LlamaForCausalLM, expected MiMo"));
}

TEST(MtpConfig, RefusesEmbeddingsOfItsOwn) {
  const auto with = [](std::string_view value) {
    return qwen_config({}, fmt::format(R"(,"mtp_use_dedicated_embeddings":{})", value));
  };
  EXPECT_TRUE(check_mtp(with("false")).ok());
  EXPECT_THAT(check_mtp(with("true")).message(),
              HasSubstr("mtp_use_dedicated_embeddings of a model that drafts with method mtp; got "
                        "true, expected false"));
}

TEST(MtpConfig, NeedsTheTensorsOfTheLayer) {
  StoredTensors tensors = random_qwen({});
  const ModelConfig config = qwen_config();
  EXPECT_TRUE(check_mtp_tensors(config, *DrafterFile(tensors).weights).ok());
  EXPECT_TRUE(check_mtp_tensors(config, *DrafterFile(tensors, config).weights).ok());
  EXPECT_TRUE(check_mtp_tensors(config, DummyWeights(DType::kF32)).ok());
  std::erase_if(tensors, [](const auto& tensor) { return tensor.first.starts_with("mtp."); });
  EXPECT_THAT(check_mtp_tensors(config, *DrafterFile(tensors).weights).message(),
              HasSubstr("this one lacks its tensors; got no \"mtp.norm.weight\", expected it as"));
}

// The layer has the attention of the target's first layer.
TEST(MtpConfig, IsThatOfTheTarget) {
  const ModelConfig head = mtp_config(mimo_config({.num_layers = 5}));
  EXPECT_EQ(head.num_layers, 1);
  EXPECT_TRUE(head.layout.is_plain()) << "its own tensors are not ignored";
  const DecoderConfig& decoder = decoder_config(head);
  EXPECT_THAT(decoder.layer_windows, ElementsAre(0));
  EXPECT_THAT(decoder.layer_ropes, ElementsAre(0));
  EXPECT_TRUE(decoder.qkv_bias);
  EXPECT_EQ(decoder_kv_groups(head, drafter_limits(), DType::kF32).size(), 1U);
}

// The first layers of these targets have recurrent states.
TEST(MtpConfig, HasAttentionBesideLayersWithStates) {
  for (const QwenShape& shape :
       {QwenShape{.num_layers = 4}, QwenShape{.num_layers = 4, .num_experts = 4}}) {
    ModelConfig target =
        qwen_config(shape, R"(,"layer_types":["linear_attention",)"
                           R"("full_attention","linear_attention","full_attention"])");
    EXPECT_FALSE(decoder_state_group(target, drafter_limits()).layers.empty());
    const ModelConfig head = mtp_config(target);
    EXPECT_TRUE(decoder_state_group(head, drafter_limits()).layers.empty());
    const auto groups = decoder_kv_groups(head, drafter_limits(), DType::kF32);
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].decode, decoder_kv_groups(target, drafter_limits(), DType::kF32)[0].decode);
  }
}

}  // namespace
}  // namespace quire::testing
