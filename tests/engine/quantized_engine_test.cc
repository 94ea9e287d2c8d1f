// A model with quantized weights gives the output of the model of its numbers, with any batch, any
// number of threads and any number of ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "engine/engine_case.h"
#include "engine/quantized_models.h"
#include "model/config.h"
#include "start/embedded.h"
#include "support/gguf_conversion.h"
#include "support/shared_data.h"
#include "support/source_models.h"
#include "tokenizer/tokenizer.h"

namespace quire::testing {
namespace {

// How products round their inputs: to 16 bits (as much as F32 for plain weights), or to 8.
std::vector<std::string> activations_for(const QuantizedModel& model) {
  const auto* const gguf = std::get_if<GgufFormat>(&model.format);
  const bool is_multiplied = model.bound > 0 && (gguf == nullptr || gguf->matrices != "F16");
  return is_multiplied ? std::vector<std::string>{"f32", "int8"} : std::vector<std::string>{"f32"};
}

class QuantizedEngine : public ::testing::TestWithParam<QuantizedModel> {
 protected:
  const ScratchDirectory scratch_;
  EngineConfig config_ = write_quantized(GetParam(), scratch_);
};

// docs/cli.md states the bounds of blocks.
TEST_P(QuantizedEngine, EqualsTheModelOfItsNumbers) {
  const ScratchDirectory scratch;
  const Outcome expected = run(write_numbers(GetParam(), scratch));
  for (const std::string& activations : activations_for(GetParam())) {
    config_.cpu_activations = activations;
    const Outcome got = run(config_);
    const double largest = largest_difference(got.outputs, expected.outputs);
    RecordProperty(activations, std::to_string(largest));
    if (activations == "int8") {
      EXPECT_GT(largest, 0.0) << "int8 has no effect";
      // A token near the border between two experts may get the other one.
      if (GetParam().structure == Structure::kDense) {
        EXPECT_LT(largest, 0.15);
      }
    } else if (GetParam().bound > 0) {
      EXPECT_LT(largest, GetParam().bound);
      EXPECT_LT(got.weight_bytes, expected.weight_bytes);
    } else {
      expect_same(got.outputs, expected.outputs);
      EXPECT_EQ(got.weight_bytes, expected.weight_bytes) << "FP8 takes the bytes of its products";
    }
  }
}

TEST_P(QuantizedEngine, HasTheSameBitsWhateverTheBatch) {
  const std::vector<Request> requests = logprob_requests({1, 7, 30, 130});
  for (const std::string& activations : activations_for(GetParam())) {
    config_.cpu_activations = activations;
    EngineConfig one_thread = config_;
    one_thread.num_threads = 1;
    one_thread.enable_prefix_caching = false;
    std::vector<Collected> alone;
    const auto engine = make_engine(one_thread);
    for (const Request& request : requests) {
      alone.push_back(run_all(*engine, {request}).front());
    }
    constexpr void (*kChanges[])(EngineConfig&) = {
        [](EngineConfig& c) { c.num_threads = 3; },
        [](EngineConfig& c) { c.max_num_batched_tokens = 16; },
        [](EngineConfig& c) { c.max_num_seqs = 1; }};
    for (const auto& change : kChanges) {
      EngineConfig changed = config_;
      change(changed);
      expect_same(outputs_of(changed, requests), alone);
    }
  }
}

// Where the sums of ranks differ in their last bits, a rounded activation differs by one step.
TEST_P(QuantizedEngine, GivesTheOutputOfOneRankOnTwo) {
  if (!GetParam().divides) GTEST_SKIP() << "its columns are in an order of groups";
  const std::vector<Request> requests = logprob_requests({1, 7, 30, 64});
  const std::vector<Collected> expected = outputs_of(config_, requests);
  const std::vector<Collected> got = outputs_of(with_ranks(config_, 2), requests);
  if (GetParam().bound > 0) {
    EXPECT_LT(largest_difference(got, expected), 0.02);
  } else {
    expect_close(got, expected, 1e-5);
  }
}

// The mean difference of the log probabilities of the prompts' tokens.
double mean_difference(const std::vector<Collected>& got, const std::vector<Collected>& expected) {
  double sum = 0;
  int count = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t at = 1; at < expected[i].prompt_logprobs.size(); ++at, ++count) {
      sum += std::abs(double{got[i].prompt_logprobs[at][0].logprob} -
                      double{expected[i].prompt_logprobs[at][0].logprob});
    }
  }
  return sum / count;
}

// Problems with their answers, from the text that the embedded model was trained on.
std::vector<Request> abacus_problems(int num_problems) {
  const auto tokenizer = Tokenizer::from_json(embedded_model().tokenizer_json, "embedded").value();
  std::ifstream lines(source_path("models/quire-abacus/heldout.jsonl"));
  std::vector<Request> all;
  for (std::string line; std::ssize(all) < num_problems && std::getline(lines, line);) {
    const JsonDocument problem = JsonDocument::parse(line, "heldout.jsonl").value();
    const std::string text = fmt::format("<|user|>{}<|end|><|assistant|>{}",
                                         std::string_view(problem.root()["question"]),
                                         std::string_view(problem.root()["answer"]));
    all.push_back(greedy(tokenizer->encode(text, true).value(), 1));
    all.back().sampling.prompt_logprobs = 1;
  }
  return all;
}

// A trained model, whose activations have outliers, as those of random weights do not. docs/cli.md
// compares the errors with llama.cpp's.
TEST(EmbeddedModelInBlocks, IsAsExactAsItsInputs) {
  const SourceModel model = abacus_model();
  const ModelConfig config = parse_model_config(model.config, "config.json").value();
  const std::vector<Request> problems = abacus_problems(4);
  for (const char* const type : {"Q8_0", "Q4_0", "Q4_K"}) {
    SCOPED_TRACE(type);
    const std::string file = convert_to_gguf({model.config, model.bytes()}, "llama", type);
    const ScratchDirectory scratch;
    const std::vector<Collected> expected =
        outputs_of(write_checkpoint(scratch, model.config, numbers_of(file, config)), problems);
    EngineConfig blocks = cpu_config(scratch.write("model.gguf", file));
    for (const auto& [activations, bound] :
         {std::pair<const char*, double>{"f32", 1e-4}, {"int8", 5e-3}}) {
      blocks.cpu_activations = activations;
      const double error = mean_difference(outputs_of(blocks, problems), expected);
      RecordProperty(std::string(type) + "_" + activations, std::to_string(error));
      EXPECT_LT(error, bound) << activations;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, QuantizedEngine, ::testing::ValuesIn(quantized_models()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace quire::testing
