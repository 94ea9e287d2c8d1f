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
#include "support/draft_passes.h"
#include "support/drafter_parts.h"
#include "support/model_harness.h"
#include "support/mtp_reference.h"

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

ModelLimits target_limits(const MimoShape& shape) {
  ModelLimits limits = drafter_limits();
  limits.tapped_layers = {shape.num_layers};
  return limits;
}

// A target and its head, which have the same tensors.
struct LoadedMimo {
  std::unique_ptr<Model> target;
  std::unique_ptr<Model> head;
};

Result<LoadedMimo> load_mimo(const MimoShape& shape, const StoredTensors& tensors, Ops& ops) {
  const ModelConfig config = mimo_config(shape);
  const DrafterFile file(tensors);
  const DrafterFile of_target(tensors, config);
  LoadedMimo mimo;
  QUIRE_ASSIGN_OR_RETURN(mimo.target,
                         load_model(config, *of_target.weights, ops, target_limits(shape)));
  QUIRE_ASSIGN_OR_RETURN(
      mimo.head, load_mtp(mtp_config(config), *mimo.target, *file.weights, ops, drafter_limits()));
  return mimo;
}

// The target computes a prompt, and the head its pairs; then three passes continue the head's own
// states. All are compared with the reference.
void expect_agrees(const MimoShape& shape, Ops& ops, double tolerance, const std::string& what) {
  const StoredTensors tensors = random_mimo(shape);
  const MtpReference reference(shape, tensors);
  const auto loaded = load_mimo(shape, tensors, ops);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto attention = make_reference_attention();

  const std::vector<int32_t> prompt = {3, 0, 19, 7, 7};
  ModelHarness target(*loaded->target, *attention, target_limits(shape));
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

TEST(Mtp, AgreesWithTheReference) {
  ThreadPool pool(2);
  const auto cpu = make_cpu_ops(pool);
  ReferenceOps reference;
  for (const int num_layers : {1, 3}) {
    const MimoShape shape = {.num_layers = num_layers};
    expect_agrees(shape, reference, 1e-5, fmt::format("{} layers", num_layers));
    expect_agrees(shape, *cpu, 1e-4, fmt::format("{} layers on the CPU", num_layers));
  }
}

std::string load_error(const MimoShape& shape, const StoredTensors& tensors) {
  ReferenceOps ops;
  return std::string(load_mimo(shape, tensors, ops).status().message());
}

TEST(Mtp, NamesTheTensorThatIsMissingOrHasAnotherShape) {
  for (const auto& [name, tensor] : random_mimo({})) {
    if (!name.starts_with("model.mtp_layers.")) continue;
    StoredTensors tensors = random_mimo({});
    tensors[name].shape.insert(tensors[name].shape.begin(), 1);
    EXPECT_THAT(load_error({}, tensors), HasSubstr('"' + name + '"')) << "another shape";
    tensors.erase(name);
    EXPECT_THAT(load_error({}, tensors), HasSubstr('"' + name + '"')) << "missing";
  }
}

TEST(Mtp, RefusesTensorsThatItDoesNotUse) {
  StoredTensors tensors = random_mimo({});
  EXPECT_EQ(load_error({}, tensors), "");
  const std::string name = "model.mtp_layers.0.self_attn.q_norm.weight";
  tensors[name] = tensors["model.norm.weight"];
  EXPECT_THAT(load_error({}, tensors), AllOf(HasSubstr('"' + name + '"'), HasSubstr("MTP")));
}

TEST(Mtp, IsNotReadWithoutSpeculation) {
  const MimoShape shape = {.num_mtp_layers = 2};
  const DrafterFile file(random_mimo(shape), mimo_config(shape));
  ReferenceOps ops;
  const auto target = load_model(mimo_config(shape), *file.weights, ops, drafter_limits());
  EXPECT_TRUE(target.ok()) << target.status().message();
  // A config.json without the field has no such layers.
  const ModelConfig without = mimo_config({.num_mtp_layers = 0});
  const DrafterFile left(random_mimo(shape), without);
  const auto strict = load_model(without, *left.weights, ops, drafter_limits());
  EXPECT_THAT(strict.status().message(), HasSubstr("\"model.mtp_layers."));
}

TEST(Mtp, PlansItsMemory) {
  const StoredTensors tensors = random_mimo({});
  const ModelConfig config = mimo_config();
  const ModelConfig head = mtp_config(config);
  const DrafterFile file(tensors);
  CountingOps ops;
  const DrafterFile of_target(tensors, config);
  const auto target = load_model(config, *of_target.weights, ops, drafter_limits()).value();
  ops.num_bytes = 0;
  ASSERT_TRUE(load_mtp(head, *target, *file.weights, ops, drafter_limits()).ok());
  const ModelLimits limits = target_limits({});  // their taps are not the head's
  const int64_t logits = int64_t{limits.max_num_logit_rows} * config.vocab_size * 4;
  EXPECT_EQ(mtp_activation_bytes(head, limits, ops), ops.num_bytes + logits);

  std::set<std::string> listed;
  int64_t num_elements = 0;
  for (const TensorSpec& tensor : list_mtp_tensors(head)) {
    listed.insert(tensor.name);
    num_elements += tensor.shape.num_elements();
  }
  EXPECT_EQ(plan_weights(list_mtp_tensors(head), *file.weights, ops, {}).value().num_bytes,
            num_elements * 4);
  std::set<std::string> stored;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("model.mtp_layers.")) stored.insert(name);
  }
  EXPECT_EQ(listed, stored);
  EXPECT_EQ(stored.size(), 16U);
}

// ------ configuration

TEST(MtpConfig, NeedsOneLayer) {
  EXPECT_TRUE(check_mtp(mimo_config()).ok());
  EXPECT_THAT(check_mtp(mimo_config({.num_mtp_layers = 3})).message(),
              HasSubstr("num_nextn_predict_layers of a model that drafts with method mtp; got 3, "
                        "expected 1"));
  EXPECT_THAT(check_mtp(mimo_config({.num_mtp_layers = 0})).message(),
              HasSubstr("this one has none; got MiMoForCausalLM without num_nextn_predict_layers"));
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

}  // namespace
}  // namespace quire::testing
