// The drafter of Gemma 4 through the whole engine, against the drafts of transformers
// (tools/golden/gemma4_assistant.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/tiny_engine.h"
#include "parity/golden_families.h"
#include "support/reference_layer.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "support/value_of.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

// The drafter is the family, with its config.json as "published" and one prompt.
struct GoldenDrafter {
  std::string target;
  int num_drafts = 0;
  GoldenFamily drafter;
};

void PrintTo(const GoldenDrafter& golden, std::ostream* out) {
  *out << golden.target;
}

std::vector<GoldenDrafter> golden_drafters() {
  std::vector<GoldenDrafter> all;
  const auto folder = source_path("tests/golden/gemma4_drafters");
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const JsonDocument document = JsonDocument::load(file.path()).value();
    const simdjson::dom::element root = document.root();
    GoldenDrafter golden = {.target = std::string(root["target"].get_string().value()),
                            .num_drafts = static_cast<int>(root["num_drafts"].get_int64().value()),
                            .drafter = read_golden_family(file.path())};
    all.push_back(std::move(golden));
  }
  return all;
}

const GoldenFamily& family_named(const std::string& name) {
  static const std::vector<GoldenFamily> families = read_golden_families();
  return *std::ranges::find(families, name, &GoldenFamily::name);
}

// Writes the checkpoint, with further tensors that are not the model's.
std::string write_model(const ScratchDirectory& scratch, const GoldenFamily& family,
                        const std::string& name, const StoredTensors& more = {}) {
  GeneratedWeights weights(family);
  StoredTensors tensors = more;
  for (const std::string& tensor : weights.names()) {
    const std::vector<int64_t>& shape = family.tensors.at(tensor).shape;
    const TensorView view = value_of(weights.tensor(tensor, Shape(shape)));
    tensors[tensor] = stored_floats(
        shape, std::span(view.as<float>(), static_cast<size_t>(view.shape.num_elements())));
  }
  std::filesystem::create_directories(scratch.path() / name);
  scratch.write(name + "/config.json", family.configs.at("published"));
  scratch.write(name + "/model.safetensors", std::span<const std::byte>(safetensors_file(tensors)));
  return scratch.path() / name;
}

EngineConfig config_of(const std::string& model) {
  EngineConfig config;
  config.model = model;
  config.device = "cpu";
  config.kv_cache_dtype = "f32";
  config.num_threads = 2;
  return config;
}

std::string speculation(const std::string& drafter, int num_drafts, bool accepts_all) {
  return fmt::format(R"({{"method": "mtp", "model": "{}", "num_speculative_tokens": {},
                         "enable_adaptive_verification": false{}}})",
                     drafter, num_drafts,
                     accepts_all ? R"(, "rejection_sample_method": "synthetic",
                                      "synthetic_acceptance_rates": [1, 1, 1])"
                                 : "");
}

class Gemma4Drafters : public ::testing::TestWithParam<GoldenDrafter> {
 protected:
  // The published drafters of small targets have these, which choose the logits to compute.
  const StoredTensors kMasked = {
      {"masked_embedding.centroids.weight", stored_floats({1, 24}, std::vector<float>(24))}};

  const ScratchDirectory scratch_;
  const GoldenFamily& target_ = family_named(GetParam().target);
  const std::string model_ = write_model(scratch_, target_, "target");
  const std::string drafter_ = write_model(scratch_, GetParam().drafter, "drafter", kMasked);
};

// All drafts are accepted, so the output has every draft.
TEST_P(Gemma4Drafters, DraftAsTransformersDoes) {
  const GoldenPrompt& golden = GetParam().drafter.prompts.front();
  const auto num_ids = static_cast<int>(golden.following.size());
  for (const int num_ranks : {1, 2}) {
    for (const int num_batched : {0, 16}) {
      EngineConfig config = config_of(model_);
      config.tensor_parallel_size = num_ranks;
      config.max_num_batched_tokens = num_batched;
      config.speculative_config = speculation(drafter_, GetParam().num_drafts, true);
      const auto engine = make_engine(config);
      const std::vector<Request> requests = {
          greedy(golden.ids, num_ids), greedy({5, 9, 17}, num_ids), greedy(golden.ids, num_ids)};
      const std::vector<Collected> outputs = run_all(*engine, requests);
      EXPECT_EQ(outputs[0].token_ids, golden.following) << num_ranks << ", " << num_batched;
      EXPECT_EQ(outputs[2].token_ids, golden.following) << num_ranks << ", " << num_batched;
    }
  }
}

TEST_P(Gemma4Drafters, ChangeNoOutput) {
  std::vector<Request> requests;
  for (const GoldenPrompt& prompt : target_.prompts) requests.push_back(greedy(prompt.ids, 32));
  const auto alone = make_engine(config_of(model_));
  EngineConfig config = config_of(model_);
  config.speculative_config = speculation(drafter_, 2, false);
  const auto drafting = make_engine(config);
  const std::vector<Collected> expected = run_all(*alone, requests);
  const std::vector<Collected> outputs = run_all(*drafting, requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(outputs[i].token_ids, expected[i].token_ids);
    EXPECT_EQ(outputs[i].token_ids, target_.prompts[i].following);
  }
  EXPECT_GT(stats_at_rest(*drafting).speculation.num_drafts, 0);
}

INSTANTIATE_TEST_SUITE_P(Golden, Gemma4Drafters, ::testing::ValuesIn(golden_drafters()),
                         [](const auto& test) { return test.param.target; });

TEST(Gemma4Drafter, IsForItsTargetAlone) {
  const ScratchDirectory scratch;
  const GoldenDrafter golden = golden_drafters().front();
  const std::string model = write_model(scratch, family_named(golden.target), "target");
  const auto error_with = [&](const std::string& target, const std::string& from,
                              const std::string& to) {
    GoldenFamily changed = golden.drafter;
    std::string& json = changed.configs.at("published");
    json.replace(json.find(from), from.size(), to);
    EngineConfig config = config_of(target);
    config.speculative_config = speculation(write_model(scratch, changed, "changed"), 2, false);
    return Engine::create(config).status().message();
  };
  EXPECT_EQ(error_with(model, "\"backbone_hidden_size\":32", "\"backbone_hidden_size\":32"), "");
  EXPECT_THAT(error_with(model, "\"backbone_hidden_size\":32", "\"backbone_hidden_size\":48"),
              HasSubstr("backbone_hidden_size is not that of the target; got 48, expected 32"));
  EXPECT_THAT(error_with(model, "\"sliding_window\":8", "\"sliding_window\":6"),
              HasSubstr("a layer of another window than the target's; got 6"));
  EXPECT_THAT(error_with(model, "\"head_dim\":16", "\"head_dim\":24"),
              HasSubstr("size of a head is not that of the target; got 24, expected 16"));
  EXPECT_THAT(error_with(model, "AssistantForCausalLM\"", "ForCausalLM\""),
              HasSubstr("architectures; got"));
  const std::string llama = write_model(scratch, family_named("gemma3"), "other");
  EXPECT_THAT(error_with(llama, "\"backbone_hidden_size\":32", "\"backbone_hidden_size\":32"),
              HasSubstr("the drafter is for Gemma 4; got the target Gemma3"));
}

}  // namespace
}  // namespace quire::testing
