// A model with quantized weights gives the output of the model of its numbers, with any batch, any
// number of threads and any number of ranks.
#include <gtest/gtest.h>

#include "engine/engine_case.h"
#include "engine/quantized_models.h"

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

INSTANTIATE_TEST_SUITE_P(All, QuantizedEngine, ::testing::ValuesIn(quantized_models()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace quire::testing
