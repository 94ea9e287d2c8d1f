// The embedded model in every type of GGUF files: the loss that each type adds is small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/tiny_engine.h"
#include "start/model_files.h"
#include "support/gguf_conversion.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "support/source_models.h"
#include "tensor/gguf_blocks.h"

namespace quire {
namespace {

using testing::convert_to_gguf;
using testing::ScratchDirectory;

// The mean negative log-likelihood of the first held-out problems with their answers, in nats.
double loss_on_problems(const std::string& model) {
  std::vector<Request> requests;
  std::ifstream problems(testing::source_path("models/quire-abacus/heldout.jsonl"));
  for (std::string line; requests.size() < 24 && std::getline(problems, line);) {
    const auto problem = JsonDocument::parse(line, "heldout.jsonl").value();
    const auto text_of = [&](const char* key) {
      return std::string(problem.root()[key].get_string().value());
    };
    Request request;
    request.prompt =
        fmt::format("Question: {}\nAnswer: {}", text_of("question"), text_of("answer"));
    request.sampling.max_tokens = 1;
    request.sampling.prompt_logprobs = 1;
    requests.push_back(request);
  }
  double sum = 0;
  int64_t num_tokens = 0;
  EngineConfig config;
  config.model = model;
  config.device = "cpu";
  config.num_threads = 2;
  const auto engine = testing::make_engine(config);
  if (engine == nullptr) return std::nan("");
  for (const testing::Collected& output : testing::run_all(*engine, requests)) {
    for (const PositionLogprobs& position : output.prompt_logprobs) {
      if (position.empty()) continue;  // the first token
      sum -= position[0].logprob;
      ++num_tokens;
    }
  }
  EXPECT_GT(num_tokens, 1000);
  return sum / static_cast<double>(num_tokens);
}

struct TypeBound {
  std::string_view type;
  double most_added_loss;  // to that of the checkpoint, in nats
};
// About twice the losses with the simple scales of testing::quantize().
constexpr auto kTypeBounds = std::to_array<TypeBound>({{"F32", 1e-4},
                                                       {"F16", 1e-4},
                                                       {"BF16", 1e-4},
                                                       {"Q8_0", 0.001},
                                                       {"Q4_0", 0.04},
                                                       {"Q4_1", 0.03},
                                                       {"Q5_0", 0.005},
                                                       {"Q5_1", 0.005},
                                                       {"Q2_K", 0.2},
                                                       {"Q3_K", 0.08},
                                                       {"Q4_K", 0.03},
                                                       {"Q5_K", 0.005},
                                                       {"Q6_K", 0.002},
                                                       {"IQ4_NL", 0.03},
                                                       {"IQ4_XS", 0.03}});

class GgufLosses : public ::testing::TestWithParam<TypeBound> {};

TEST_P(GgufLosses, AreSmall) {
  static const double loss = loss_on_problems("");
  const testing::SourceModel model = testing::abacus_model();
  const ScratchDirectory scratch;
  const std::string file = scratch.write(
      "m.gguf", convert_to_gguf({model.config, model.bytes(), embedded_model().tokenizer_json},
                                "llama", GetParam().type));
  const double added = loss_on_problems(file) - loss;
  RecordProperty("added_loss", fmt::format("{:.4f}", added));
  EXPECT_LT(std::abs(added), GetParam().most_added_loss);
}

INSTANTIATE_TEST_SUITE_P(All, GgufLosses, ::testing::ValuesIn(kTypeBounds),
                         [](const auto& bound) { return std::string(bound.param.type); });

TEST(GgufLossesTest, BoundEveryType) {
  EXPECT_EQ(kTypeBounds.size(), gguf_block_types().size());
}

}  // namespace
}  // namespace quire
