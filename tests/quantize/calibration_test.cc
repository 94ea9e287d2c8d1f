// `quire quantize` with a calibration text: the statistics of inputs against FP64, scales that
// leave the function as it is, the perplexity of the copy, and texts that are refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "base/text_input.h"
#include "engine/engine_case.h"
#include "quantize/channel_scales.h"
#include "quantize/input_statistics.h"
#include "quantize/interrupt.h"
#include "quantize/quantize.h"
#include "quantize/source.h"
#include "start/model_files.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"
#include "tensor/checkpoint.h"

namespace quire::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kMaxBytes = size_t{256} << 20;

std::string copy_family(const std::string& family, const ScratchDirectory& scratch) {
  const fs::path golden = source_path("tests/golden/models") / family;
  scratch.copy(golden / "default.config.json", "config.json");
  scratch.copy(golden / "model.safetensors", "model.safetensors");
  return scratch.path().string();
}

std::vector<std::vector<int32_t>> token_windows(int vocab_size) {
  std::vector<std::vector<int32_t>> windows(3);
  for (size_t w = 0; w < windows.size(); ++w) {
    for (int i = 0; i < 20 + 7 * static_cast<int>(w); ++i) {
      windows[w].push_back((3 + i * 29 + static_cast<int>(w)) % vocab_size);
    }
  }
  return windows;
}

InputStatisticsByMatrix statistics_of(QuantizeSource& source, int num_threads) {
  const auto windows = token_windows(source.files.config.vocab_size);
  return collect_input_statistics(source, windows, num_threads, {}).value();
}

std::vector<float> numbers_of(QuantizeSource& source, const std::string& name, const Shape& shape) {
  const TensorView view = source.files.weights->tensor(name, shape).value();
  std::vector<float> numbers;
  for (int64_t i = 0; i < shape.num_elements(); ++i) numbers.push_back(element_as_f32(view, i));
  return numbers;
}

// The input of the first layer's projections is the norm of the embeddings.
TEST(InputStatistics, EqualTheFirstLayersInputs) {
  const ScratchDirectory scratch;
  QuantizeSource source = open_quantize_source(copy_family("llama", scratch)).value();
  const ModelConfig& config = source.files.config;
  const int64_t hidden = config.hidden_size;
  const auto embeddings =
      numbers_of(source, "model.embed_tokens.weight", {config.vocab_size, hidden});
  const auto norm = numbers_of(source, "model.layers.0.input_layernorm.weight", {hidden});
  std::vector<double> magnitudes(norm.size());
  std::vector<double> squares(norm.size());
  double num_tokens = 0;
  for (const std::vector<int32_t>& window : token_windows(config.vocab_size)) {
    for (const int32_t id : window) {
      const float* row = embeddings.data() + id * hidden;
      double sum = 0.0;
      for (int64_t c = 0; c < hidden; ++c) sum += double{row[c]} * row[c];
      const double root =
          std::sqrt(sum / static_cast<double>(hidden) + double{source.decoder().rms_norm_eps});
      for (size_t c = 0; c < norm.size(); ++c) {
        const double x = row[c] / root * norm[c];
        magnitudes[c] += std::abs(x);
        squares[c] += x * x;
      }
      ++num_tokens;
    }
  }
  const InputStatisticsByMatrix got = statistics_of(source, 2);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    const InputStatistics& inputs =
        *got.at(fmt::format("model.layers.0.self_attn.{}.weight", name));
    ASSERT_EQ(inputs.mean_magnitude.size(), norm.size());
    for (size_t c = 0; c < norm.size(); ++c) {
      const double magnitude = magnitudes[c] / num_tokens;
      const double square = squares[c] / num_tokens;
      EXPECT_NEAR(inputs.mean_magnitude[c], magnitude, 1e-5 * magnitude) << c;
      EXPECT_NEAR(inputs.mean_square[c], square, 1e-5 * square) << c;
    }
  }
  for (const TensorSpec& tensor : source.tensors) {
    if (!is_layer_matrix(tensor)) continue;
    EXPECT_EQ(std::ssize(got.at(tensor.name)->mean_square), tensor.shape[1]) << tensor.name;
  }
}

TEST(InputStatistics, DoNotDependOnThreads) {
  const ScratchDirectory scratch;
  QuantizeSource source = open_quantize_source(copy_family("gemma3", scratch)).value();
  const InputStatisticsByMatrix one = statistics_of(source, 1);
  const InputStatisticsByMatrix three = statistics_of(source, 3);
  ASSERT_EQ(one.size(), three.size());
  ASSERT_FALSE(one.empty());
  for (const auto& [name, inputs] : one) {
    EXPECT_EQ(inputs->mean_square, three.at(name)->mean_square) << name;
    EXPECT_EQ(inputs->mean_magnitude, three.at(name)->mean_magnitude) << name;
  }
}

TEST(InputStatistics, NameTheFirstInputThatIsNotFinite) {
  const ScratchDirectory scratch;
  const std::string model = copy_family("llama", scratch);
  std::string weights = read_file(scratch.path() / "model.safetensors", kMaxBytes).value();
  const auto view = Checkpoint::from_memory(std::as_bytes(std::span(weights)), "test").value();
  QuantizeSource source = open_quantize_source(model).value();
  const int64_t hidden = source.files.config.hidden_size;
  const TensorView norm =
      view->tensor("model.layers.1.post_attention_layernorm.weight", {hidden}).value();
  norm.as<float>()[2] = 3e38F;  // finite, and its products are not
  scratch.write("model.safetensors", weights);
  source = open_quantize_source(model).value();
  const auto windows = token_windows(source.files.config.vocab_size);
  EXPECT_THAT(collect_input_statistics(source, windows, 1, {}).status().message(),
              AllOf(HasSubstr("channel 2 of the input of \"model.layers.1.mlp.gate_proj.weight\""),
                    HasSubstr("got a sum of squares of inf, expected a finite number")));
}

// By token of the prompts, its log probability.
std::vector<double> logprobs(const std::string& model, const std::vector<Request>& requests) {
  std::vector<double> all;
  for (const Collected& one : outputs_of(cpu_config(model), requests)) {
    for (size_t t = 1; t < one.prompt_logprobs.size(); ++t) {
      all.push_back(one.prompt_logprobs[t][0].logprob);
    }
  }
  return all;
}

class Folding : public ::testing::TestWithParam<const char*> {};

// The checkpoint with its scales but without any rounding to integers.
TEST_P(Folding, LeavesTheFunctionAsItIs) {
  const ScratchDirectory scratch;
  const std::string model = copy_family(GetParam(), scratch);
  QuantizeSource source = open_quantize_source(model).value();
  const InputStatisticsByMatrix inputs = statistics_of(source, 2);
  ThreadPool threads(2);
  ChannelScales scales;
  double largest_exponent = 0.0;
  for (const ScaleGroup& group : find_scale_groups(source.tensors, source.decoder())) {
    // Exaggerated magnitudes, so that the scales differ much.
    InputStatistics uneven = *inputs.at(group.readers.front().name);
    for (size_t c = 0; c < uneven.mean_square.size(); ++c) {
      const double factor = c % 5 == 1 ? 9.0 : 1.0;
      uneven.mean_magnitude[c] *= factor;
      uneven.mean_square[c] *= factor * factor;
    }
    const auto choice =
        add_group_scales(group, uneven, 4, *source.files.weights, threads, scales).value();
    largest_exponent = std::max(largest_exponent, choice.exponent);
  }
  ASSERT_GT(largest_exponent, 0.2);
  std::string weights = read_file(fs::path(model) / "model.safetensors", kMaxBytes).value();
  const auto view = Checkpoint::from_memory(std::as_bytes(std::span(weights)), "test").value();
  for (const TensorSpec& tensor : source.tensors) {
    const TensorScales* const of_tensor = find_scales(scales, tensor.name);
    if (of_tensor == nullptr) continue;
    auto* const numbers = view->tensor(tensor.name, tensor.shape).value().as<float>();
    ASSERT_GE(reinterpret_cast<char*>(numbers), weights.data());
    ASSERT_LT(reinterpret_cast<char*>(numbers), weights.data() + weights.size());
    const auto columns = static_cast<size_t>(tensor.shape[tensor.shape.rank() - 1]);
    if (tensor.shape.rank() == 1) {
      of_tensor->scale_vector({numbers, columns});
      continue;
    }
    for (int64_t row = 0; row < tensor.shape[0]; ++row) {
      of_tensor->scale_row(row, {numbers + row * tensor.shape[1], columns});
    }
  }
  const ScratchDirectory folded;
  folded.copy(fs::path(model) / "config.json", "config.json");
  folded.write("model.safetensors", weights);
  std::vector<Request> requests;
  for (const int length : {2, 7, 30}) {
    std::vector<int32_t> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back(3 + (i * 29 + length) % 60);
    requests.push_back(greedy(std::move(prompt), 2));
    requests.back().sampling.prompt_logprobs = 1;
  }
  const std::vector<double> expected = logprobs(model, requests);
  const std::vector<double> got = logprobs(folded.path().string(), requests);
  ASSERT_EQ(got.size(), expected.size());
  ASSERT_FALSE(got.empty());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Families, Folding,
                         ::testing::Values("llama", "llama_tied_biased", "qwen2", "qwen3", "gemma2",
                                           "gemma3"),
                         [](const auto& family) { return std::string(family.param); });

// Problems in the form of a text, in which the embedded model learned these answers.
std::string problems(const std::string& file) {
  const std::string lines = read_file(source_path("models/quire-abacus") / file, kMaxBytes).value();
  std::string all;
  for (const Line& line : split_lines(lines)) {
    const auto json = JsonDocument::parse(line.text, file).value();
    all += fmt::format("Question: {}\nAnswer: {}\n\n", std::string_view(json.root()["question"]),
                       std::string_view(json.root()["answer"]));
  }
  return all;
}

CalibrationText shots(int max_tokens) {
  return {.name = "shots.jsonl", .text = problems("shots.jsonl"), .max_tokens = max_tokens};
}

QuantizeOptions calibrated_options(const fs::path& out, int group_size = 128,
                                   int max_tokens = 100) {
  QuantizeOptions options;
  options.out = out;
  options.target = W4A16Target{group_size, shots(max_tokens)};
  options.num_threads = 2;
  return options;
}

std::vector<double> heldout_logprobs(const std::string& model) {
  constexpr size_t kWindow = 250;
  constexpr size_t kNumTokens = 4000;
  const QuantizeSource embedded = open_quantize_source("").value();
  std::vector<int32_t> ids =
      embedded.files.tokenizer->encode(problems("heldout.jsonl"), false).value();
  std::vector<Request> requests;
  for (size_t begin = 0; begin < kNumTokens; begin += kWindow) {
    const auto first = ids.begin() + static_cast<int64_t>(begin);
    requests.push_back(greedy(std::vector<int32_t>(first, first + kWindow), 1));
    requests.back().sampling.prompt_logprobs = 1;
  }
  std::vector<double> all = logprobs(model, requests);
  EXPECT_EQ(all.size(), kNumTokens / kWindow * (kWindow - 1));
  return all;
}

// The mean difference, in nats per token. The mean log probability itself shows no loss: the model
// would word the answers otherwise, so rounding can make the given words more probable.
double difference(const std::vector<double>& left, const std::vector<double>& right) {
  EXPECT_EQ(left.size(), right.size());
  double sum = 0.0;
  for (size_t i = 0; i < left.size(); ++i) sum += std::abs(left[i] - right[i]);
  return sum / static_cast<double>(left.size());
}

void scale_bf16(int exponent, uint16_t& bits) {
  constexpr int kMantissaBits = 7;
  constexpr int kExponentMask = 0xff;
  const int biased = bits >> kMantissaBits & kExponentMask;
  if (biased == 0) return;
  const int scaled = std::clamp(biased + exponent, 0, kExponentMask - 1);
  bits =
      static_cast<uint16_t>((bits & ~(kExponentMask << kMantissaBits)) | scaled << kMantissaBits);
}

// Writes the embedded model with one of 16 channels of the norms 16 times as large, and with 1/16
// of the weights that read it. The function is the same, but as in large models, weights that
// matter are small beside others of their group, so plain rounding changes them much.
void write_uneven_model(const ScratchDirectory& out) {
  constexpr int kExponent = 4;
  constexpr int64_t kPeriod = 16;
  const QuantizeSource source = open_quantize_source(abacus_path().string()).value();
  std::string weights = read_file(abacus_path() / "model.safetensors", kMaxBytes).value();
  const auto view = Checkpoint::from_memory(std::as_bytes(std::span(weights)), "test").value();
  for (const TensorSpec& tensor : source.tensors) {
    const auto has = [&](const char* part) { return tensor.name.find(part) != std::string::npos; };
    const bool is_norm = has("layernorm");
    const bool is_reader =
        has("q_proj") || has("k_proj") || has("v_proj") || has("gate_proj") || has("up_proj");
    if (!is_norm && !is_reader) continue;
    auto* const numbers = view->tensor(tensor.name, tensor.shape).value().as<uint16_t>();
    const int64_t columns = tensor.shape[tensor.shape.rank() - 1];
    for (int64_t i = 0; i < tensor.shape.num_elements(); ++i) {
      if (i % columns % kPeriod == 5) scale_bf16(is_norm ? kExponent : -kExponent, numbers[i]);
    }
  }
  for (const char* const file : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    out.copy(abacus_path() / file, file);
  }
  out.write("model.safetensors", weights);
}

TEST(Calibration, ChangesHeldOutProbabilitiesLess) {
  constexpr int kGroupSize = 32;
  const ScratchDirectory uneven;
  write_uneven_model(uneven);
  const std::vector<double> source = heldout_logprobs("");
  EXPECT_LT(difference(heldout_logprobs(uneven.path().string()), source), 1e-4);
  const ScratchDirectory scratch;
  QuantizeOptions plain = calibrated_options(scratch.path() / "plain", kGroupSize, 2000);
  plain.model = uneven.path().string();
  QuantizeOptions scaled = plain;
  scaled.out = scratch.path() / "scaled";
  std::get<W4A16Target>(plain.target).calibration.reset();
  ASSERT_TRUE(quantize(plain).ok());
  ASSERT_TRUE(quantize(scaled).ok());
  const double change_by_plain = difference(heldout_logprobs(plain.out.string()), source);
  const double change_by_scaled = difference(heldout_logprobs(scaled.out.string()), source);
  EXPECT_GT(change_by_plain, 0.01);
  EXPECT_LT(change_by_scaled, 0.6 * change_by_plain);
}

TEST(Calibration, ResumedRunsGiveTheSameBytes) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(quantize(calibrated_options(scratch.path() / "whole")).ok());
  const fs::path out = scratch.path() / "out";
  QuantizeOptions options = calibrated_options(out);
  for (const size_t tensor : {size_t{40}, size_t{90}}) {
    EXPECT_EQ(quantize(options, interrupt_at(tensor)).status().code(), StatusCode::kCancelled);
  }
  options.num_threads = 1;
  const auto result = value_of(quantize(options));
  EXPECT_GE(result.num_continued, 89U);
  const std::string whole =
      read_file(scratch.path() / "whole/model.safetensors", kMaxBytes).value();
  EXPECT_TRUE(read_file(out / "model.safetensors", kMaxBytes).value() == whole);
}

TEST(Calibration, AnotherTextBeginsAnew) {
  const ScratchDirectory scratch;
  const QuantizeOptions options = calibrated_options(scratch.path() / "out");
  for (const int change : {0, 1, 2}) {
    ASSERT_FALSE(quantize(options, interrupt_at(50)).ok());
    ASSERT_GT(fs::file_size(options.out.string() + ".part/model.safetensors.part"), 0U);
    QuantizeOptions other = options;
    auto& calibration = std::get<W4A16Target>(other.target).calibration;
    if (change == 0) calibration->text += "x";  // beyond max_tokens
    if (change == 1) calibration->max_tokens = 99;
    if (change == 2) calibration.reset();
    const auto result = value_of(quantize(other));
    EXPECT_EQ(result.num_continued, 0U) << change;
    fs::remove_all(options.out);
  }
}

TEST(Calibration, AnInterruptBeforeTheFirstTensorLeavesNothing) {
  const ScratchDirectory scratch;
  for (const std::string_view at : {"load", "calibrate", "scales"}) {
    bool stop = false;
    QuantizeHooks hooks;
    hooks.on_preparation = [&](std::string_view what, size_t, size_t) { stop |= what == at; };
    hooks.interrupted = [&] { return stop; };
    const auto result = quantize(calibrated_options(scratch.path() / "out"), hooks);
    EXPECT_EQ(result.status().code(), StatusCode::kCancelled) << at;
    EXPECT_TRUE(fs::is_empty(scratch.path())) << at;
  }
}

TEST(Calibration, NamesATextThatIsTooShort) {
  const ScratchDirectory scratch;
  QuantizeOptions options = calibrated_options(scratch.path() / "out");
  std::get<W4A16Target>(options.target).calibration->text = "What is 2 + 3?";
  for (const Status& status : {check_quantize(options), quantize(options).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("calibration_file: shots.jsonl has "),
                                        HasSubstr("tokens; expected at least 64")));
  }
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(Calibration, NeedsATokenizer) {
  const ScratchDirectory model;
  const ScratchDirectory scratch;
  QuantizeOptions options = calibrated_options(scratch.path() / "out", 16);
  options.model = copy_family("llama", model);
  EXPECT_THAT(check_quantize(options).message(),
              AllOf(HasSubstr("has no tokenizer"), HasSubstr("calibration file")));
}

TEST(CalibrationWindows, CoverTheTokens) {
  const QuantizeSource source = open_quantize_source("").value();
  const CalibrationText text = shots(2000);
  const auto windows = calibration_windows(source, text).value();
  const auto bos = find_bos(*source.files.tokenizer).value();
  std::vector<int32_t> ids;
  for (const std::vector<int32_t>& window : windows) {
    EXPECT_LE(window.size(), 512U);
    if (bos) {
      EXPECT_EQ(window.front(), *bos);
    }
    ids.insert(ids.end(), window.begin() + (bos ? 1 : 0), window.end());
  }
  std::vector<int32_t> expected = source.files.tokenizer->encode(text.text, false).value();
  ASSERT_GT(expected.size(), 2000U);
  expected.resize(2000);
  EXPECT_EQ(ids, expected);
}

TEST(CalibrationWindows, RefuseAContextWithoutRoomForText) {
  QuantizeSource source = open_quantize_source("").value();
  source.files.config.longest_model_len = 1;
  const auto windows = calibration_windows(source, shots(2000));
  EXPECT_THAT(windows.status().message(), HasSubstr("has a context of 1 tokens"));
}

TEST(CalibrationWindows, RefuseTooFewTokens) {
  const QuantizeSource source = open_quantize_source("").value();
  for (const int max_tokens : {-1, 0, kMinCalibrationTokens - 1}) {
    const auto windows = calibration_windows(source, shots(max_tokens));
    EXPECT_THAT(windows.status().message(), HasSubstr("expected at least 64"));
  }
}

}  // namespace
}  // namespace quire::testing
