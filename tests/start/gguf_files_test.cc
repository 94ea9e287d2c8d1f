// Wrong GGUF files and their metadata.
#include "start/gguf_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_case.h"
#include "start/model_files.h"
#include "support/gguf_bytes.h"

namespace quire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(const std::string& file) {
  const auto files = open_model_files(cpu_config(file));
  return files.ok() ? "" : files.status().message();
}

GgufWriter sized_llama() {
  return GgufWriter()
      .text("general.architecture", "llama")
      .number("llama.embedding_length", 4)
      .number("llama.feed_forward_length", 4)
      .number("llama.block_count", 1)
      .number("llama.attention.head_count", 1)
      .number("llama.context_length", 8)
      .floats("token_embd.weight", {2, 4}, std::vector<float>(8));
}

TEST(GgufFiles, WrongOnesAreNamed) {
  const ScratchDirectory scratch;
  const auto write = [&](const GgufWriter& writer) {
    return scratch.write("m.gguf", writer.file());
  };
  EXPECT_THAT(error_of(write(GgufWriter().number("general.architecture", 3))),
              HasSubstr("\"general.architecture\"; got nothing, expected one of llama, qwen2"));
  EXPECT_THAT(error_of(write(GgufWriter().text("general.architecture", "rwkv6"))),
              HasSubstr("got \"rwkv6\""));
  const auto llama = [] { return GgufWriter().text("general.architecture", "llama"); };
  EXPECT_THAT(error_of(write(llama())), HasSubstr("token_embd.weight"));
  const auto sized = sized_llama;
  EXPECT_EQ(error_of(write(sized())), "");
  EXPECT_THAT(error_of(write(llama().floats("token_embd.weight", {2, 4}, std::vector<float>(8)))),
              HasSubstr("m.gguf: metadata \"llama.embedding_length\"; got nothing, expected"));
  EXPECT_THAT(error_of(write(sized().number("llama.rope.dimension_count", 2))),
              HasSubstr("\"llama.rope.dimension_count\"; got 2, expected the head's, 4"));
  EXPECT_THAT(error_of(write(sized().text("llama.rope.scaling.type", "longrope"))),
              HasSubstr("expected none, linear or yarn"));
  EXPECT_THAT(error_of(write(sized().text("llama.rope.scaling.type", "yarn"))),
              HasSubstr("\"llama.rope.scaling.factor\"; got nothing, expected a factor"));
  EXPECT_THAT(error_of(write(sized().real("llama.rope.freq_base", NAN))),
              HasSubstr("\"llama.rope.freq_base\"; got an infinity, a NaN"));
  EXPECT_THAT(error_of(write(sized().text("llama.attention.key_length", "4"))),
              HasSubstr("\"llama.attention.key_length\"; got no integer"));
  // A factor without a type is linear, so it needs no frequencies beside it.
  for (const char* const key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const auto scaled = [&] { return sized().real(key, 8.0F); };
    EXPECT_EQ(error_of(write(scaled())), "");
    EXPECT_THAT(error_of(write(scaled().floats("rope_freqs.weight", {2}, {1, 1}))),
                HasSubstr("got \"linear\", expected none beside"));
  }
  EXPECT_THAT(error_of(write(sized().number("llama.attention.key_length", 3000000000U))),
              HasSubstr("got 3000000000, expected 1 to 2147483647"));
  EXPECT_THAT(error_of(write(sized().floats("rope_freqs.weight", {2}, {1, NAN}))),
              HasSubstr("tensor \"rope_freqs.weight\"; got nan, expected positive finite numbers"));
  for (const float divisor : {0.0F, -1.0F}) {
    EXPECT_THAT(error_of(write(sized().floats("rope_freqs.weight", {2}, {1, divisor}))),
                HasSubstr(fmt::format("got {}, expected positive finite numbers", divisor)));
  }
  EXPECT_THAT(error_of(write(sized().floats("rope_freqs.weight", {3}, {1, 1, 1}))),
              HasSubstr("one number per frequency, 2"));
  EXPECT_THAT(
      error_of(write(
          sized().text("tokenizer.ggml.model", "bert").texts("tokenizer.ggml.tokens", {"a"}))),
      HasSubstr("tokenizer.ggml.model; got \"bert\", expected gpt2 or llama"));
  EXPECT_THAT(error_of(write(
                  sized().text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.tokens", "a"))),
              HasSubstr("expected a list of texts"));
  EXPECT_THAT(error_of(write(sized().number("llama.attention.head_count_kv", 3))),
              HasSubstr("metadata \"llama.attention.head_count_kv\"; got 3, expected"));
  EXPECT_THAT(error_of(scratch.path()), HasSubstr("the name of one of the files, such as"));
  const std::string fifo = (scratch.path() / "fifo").string();
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(error_of(fifo), HasSubstr("fifo is not a regular file; got a FIFO"))
      << "and nothing waits for a writer";
}

// A value of another kind is not an absent one.
TEST(GgufFiles, WrongKindsOfATokenizersTextsAreNamed) {
  const auto error_with = [](const GgufWriter& writer) {
    const std::string file = writer.file();
    const auto gguf = GgufModel::from_memory(bytes_of(file), "m.gguf").value();
    return gguf_tokenizer_config(gguf).status().message();
  };
  EXPECT_EQ(error_with(GgufWriter().text("tokenizer.chat_template", "{{ x }}")), "");
  EXPECT_THAT(
      error_with(GgufWriter().number("tokenizer.chat_template", 1)),
      HasSubstr("\"tokenizer.chat_template\"; got a value of another kind, expected a text"));
  EXPECT_THAT(error_with(GgufWriter().text("tokenizer.ggml.eos_token_id", "2")),
              HasSubstr("\"tokenizer.ggml.eos_token_id\"; got a value of another kind, expected an "
                        "integer"));
}

TEST(GgufFiles, GiveSamplingDefaults) {
  const ScratchDirectory scratch;
  const auto sampled = [] {
    return sized_llama()
        .real("general.sampling.temp", 0.25F)
        .number("general.sampling.top_k", 20)
        .real("general.sampling.penalty_repeat", 1.5F);
  };
  const std::string file = scratch.write("m.gguf", sampled().file());
  const auto generation_of = [&](const std::string& setting) {
    EngineConfig config = cpu_config(file);
    config.generation_config = setting;
    return open_model_files(config).value().generation;
  };
  GenerationConfig generation = generation_of("auto");
  EXPECT_EQ(generation.source, "general.sampling.*");
  EXPECT_EQ(generation.temperature, 0.25F);
  EXPECT_EQ(generation.top_k, 20);
  EXPECT_EQ(generation.repetition_penalty, 1.5F);
  EXPECT_EQ(generation.top_p, std::nullopt);
  generation = generation_of("vllm");
  EXPECT_EQ(generation.temperature, 1.0F);
  EXPECT_EQ(generation.top_k, std::nullopt);
  EXPECT_EQ(generation.repetition_penalty, std::nullopt);
  // A file beside it that only names ends adds them; one with sampling values replaces all.
  scratch.write("generation_config.json", R"({"eos_token_id": [1]})");
  generation = generation_of("auto");
  EXPECT_EQ(generation.source, "general.sampling.*");
  EXPECT_EQ(generation.eos_token_ids, std::vector<int>{1});
  scratch.write("generation_config.json", R"({"do_sample": false})");
  generation = generation_of("auto");
  EXPECT_EQ(generation.source, "generation_config.json");
  EXPECT_EQ(generation.do_sample, false);
  EXPECT_EQ(generation.temperature, std::nullopt);
}

TEST(GgufFiles, WrongSamplingDefaultsAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](const GgufWriter& writer) {
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_THAT(
      error_with(sized_llama().text("general.sampling.temp", "1")),
      HasSubstr("\"general.sampling.temp\"; got a value of another kind, expected a number"));
  EXPECT_THAT(error_with(sized_llama().real("general.sampling.min_p", NAN)),
              HasSubstr("\"general.sampling.min_p\"; got nan, expected a finite number"));
  EXPECT_THAT(error_with(sized_llama().real("general.sampling.temp", -1.0F)),
              HasSubstr("temperature; got \"-1\", expected a number from 0"));
  EngineConfig config = cpu_config(scratch.write("m.gguf", sized_llama().file()));
  config.generation_config = "folder";
  EXPECT_THAT(open_model_files(config).status().message(),
              HasSubstr("generation_config: must be auto or vllm, got folder"));
}

// The numbers of queries' and keys' biases are reordered, which takes a block apart.
TEST(GgufFiles, BiasesInBlocksAreRefused) {
  const ScratchDirectory scratch;
  const auto error_with = [&](std::string_view name) {
    GgufWriter writer = sized_llama();
    writer.tensor(name, {32}, 8, std::string(34, '\1'));  // one block of Q8_0
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  for (const std::string_view name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias"}) {
    EXPECT_THAT(error_with(name), HasSubstr(fmt::format("tensor \"{}\"; got a vector in blocks of "
                                                        "Q8_0, expected f32, f16 or bf16",
                                                        name)));
  }
  EXPECT_EQ(error_with("blk.0.attn_v.bias"), "");
}

// The listed values of metadata that change the arithmetic are refused.
TEST(GgufFiles, UnservedValuesAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](std::string_view key, float value) {
    return error_of(scratch.write("m.gguf", sized_llama().real(key, value).file()));
  };
  struct Case {
    std::string key;
    std::vector<float> served;
    float unserved;
  };
  const Case cases[] = {
      {"attention.causal", {1}, 0},
      {"attention.clamp_kqv", {0}, 8},
      {"attention.scale", {0}, 0.5F},
      {"attention.temperature_scale", {0}, 0.1F},
      {"logit_scale", {0, 1}, 0.5F},
      {"residual_scale", {0, 1}, 3},
      {"embedding_scale", {0, 1}, 12},
      {"final_logit_softcapping", {0}, 30},
      {"rope.scaling.attn_factor", {1}, 5},
      {"rope.scaling.yarn_attn_factor", {1}, NAN},
      {"rope.scaling.yarn_ext_factor", {1, -1}, 0},
      {"expert_group_scale", {0, 1}, 3},
      {"moe_every_n_layers", {0, 1}, 2},
      {"swiglu_clamp_exp", {0}, 7},
      {"swiglu_clamp_shexp", {0}, 7},
      {"attention.max_alibi_bias", {0}, 8},
      {"router_logit_softcapping", {0}, 30},
  };
  for (const Case& one : cases) {
    const std::string key = "llama." + one.key;
    for (const float value : one.served) EXPECT_EQ(error_with(key, value), "");
    EXPECT_THAT(error_with(key, one.unserved),
                AllOf(HasSubstr(fmt::format("\"{}\"; got {:g}, expected ", key, one.unserved)),
                      HasSubstr("other values are not served")));
  }
  const auto window_error = [&](uint32_t window) {
    const auto writer = sized_llama().number("llama.attention.sliding_window", window);
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_EQ(window_error(0), "");
  EXPECT_EQ(window_error(8), "");  // the context
  EXPECT_THAT(window_error(7), HasSubstr("\"llama.attention.sliding_window\"; got 7, expected 0"));
}

}  // namespace
}  // namespace quire::testing
