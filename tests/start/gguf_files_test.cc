// Wrong GGUF files and their metadata.
#include "start/gguf_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_case.h"
#include "model/gguf/gguf_config.h"
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

GgufWriter sized_model(const std::string& architecture) {
  const std::string prefix = architecture + ".";
  return GgufWriter()
      .text("general.architecture", architecture)
      .number(prefix + "embedding_length", 4)
      .number(prefix + "feed_forward_length", 4)
      .number(prefix + "block_count", 1)
      .number(prefix + "attention.head_count", 1)
      .number(prefix + "context_length", 8)
      .floats("token_embd.weight", {2, 4}, std::vector<float>(8));
}

GgufWriter sized_llama() {
  return sized_model("llama");
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
      HasSubstr("tokenizer.ggml.model; got \"bert\", expected gpt2, llama or gemma4"));
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

// The keys of single architectures, with values that their models cannot have.
TEST(GgufFiles, WrongValuesOfOneArchitectureAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](const GgufWriter& writer) {
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  const auto partial = [](uint32_t count) {
    return sized_model("glm4").number("glm4.rope.dimension_count", count);
  };
  EXPECT_EQ(error_with(partial(2)), "");
  EXPECT_THAT(error_with(partial(6)), HasSubstr("\"glm4.rope.dimension_count\"; got 6, expected 2 "
                                                "to 4"));
  EXPECT_THAT(error_with(partial(3)), HasSubstr("metadata \"glm4.rope.dimension_count\"; got 0.75, "
                                                "expected an even number"));
  // The rows of GLM-4.1V are in another order.
  EXPECT_THAT(error_with(partial(2).numbers("glm4.rope.dimension_sections",
                                            std::vector<int32_t>{1, 1, 0, 0})),
              HasSubstr("\"glm4.rope.dimension_sections\"; got 1, expected 0"));
  const auto granite = [](std::string_view key, float value) {
    return sized_model("granite").real(std::string("granite.") + std::string(key), value);
  };
  EXPECT_EQ(error_with(granite("logit_scale", 0)), "");
  EXPECT_THAT(error_with(granite("logit_scale", -1)),
              HasSubstr("metadata \"granite.logit_scale\"; got "));
  EXPECT_THAT(error_with(granite("attention.scale", NAN)),
              HasSubstr("metadata \"granite.attention.scale\"; got no number"));
  EXPECT_THAT(error_with(granite("attention.temperature_scale", 0.1F)),
              HasSubstr("other values are not served"));
  EXPECT_THAT(error_with(sized_model("granite").flag("granite.rope.scaling.finetuned", false)),
              HasSubstr("\"granite.rope.scaling.finetuned\"; got false, expected true"));
  const auto longrope = [](const std::vector<float>& factors) {
    const auto count = static_cast<int64_t>(factors.size());
    return sized_model("phi3").floats("rope_factors_long.weight", {count}, factors);
  };
  EXPECT_EQ(error_with(longrope({1, 2}).floats("rope_factors_short.weight", {2}, {1, 1})), "");
  EXPECT_THAT(error_with(longrope({1, 2})),
              HasSubstr("got no tensor \"rope_factors_short.weight\", expected one beside"));
  EXPECT_THAT(error_with(longrope({1, 0}).floats("rope_factors_short.weight", {2}, {1, 1})),
              HasSubstr("tensor \"rope_factors_long.weight\"; got 0, expected positive"));
  EXPECT_THAT(error_with(longrope({1}).floats("rope_factors_short.weight", {2}, {1, 1})),
              HasSubstr("tensor \"rope_factors_long.weight\" of another size"));
  EXPECT_THAT(error_with(sized_model("phi3").text("phi3.rope.scaling.type", "su")),
              HasSubstr("expected none, linear, yarn or longrope"));
  const auto mistral = [] {
    return sized_model("mistral3").real("mistral3.attention.temperature_scale", 0.1F);
  };
  EXPECT_THAT(error_with(mistral()), HasSubstr("\"mistral3.rope.scaling.type\"; got \"none\", "
                                               "expected yarn beside"));
  const auto yarn = [&] {
    return mistral()
        .text("mistral3.rope.scaling.type", "yarn")
        .real("mistral3.rope.scaling.factor", 2.0F)
        .number("mistral3.rope.scaling.original_context_length", 4);
  };
  EXPECT_EQ(error_with(yarn()), "");
  EXPECT_THAT(error_with(yarn().number("mistral3.attention.temperature_length", 5)),
              HasSubstr("\"mistral3.attention.temperature_length\"; got 5, expected the context's "
                        "length before scaling, 4"));
  EXPECT_THAT(error_with(sized_model("olmo2").number("olmo2.attention.sliding_window", 4)), "");
  EXPECT_THAT(error_with(sized_model("olmo2").number("olmo2.expert_count", 2)),
              HasSubstr("\"olmo2.expert_count\"; got 2, expected 0"));
}

TEST(GgufFiles, WrongDeltaNetsAreNamed) {
  const ScratchDirectory scratch;
  const std::vector<std::pair<std::string, uint32_t>> fields = {
      {"ssm.group_count", 2},     {"ssm.time_step_rank", 4}, {"ssm.state_size", 8},
      {"ssm.inner_size", 48},     {"ssm.conv_kernel", 4},    {"full_attention_interval", 1},
      {"rope.dimension_count", 2}};
  const auto writer_with = [&](const std::string& key, std::optional<uint32_t> value) {
    GgufWriter writer = sized_model("qwen35");
    for (const auto& [name, number] : fields) {
      if (name != key) writer.number("qwen35." + name, number);
    }
    if (value) writer.number("qwen35." + key, *value);
    return writer;
  };
  const auto error_with = [&](const GgufWriter& writer) {
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_EQ(error_with(writer_with("", {})), "");
  for (const auto& [name, number] : fields) {
    if (!name.starts_with("ssm.")) continue;
    EXPECT_THAT(error_with(writer_with(name, {})),
                HasSubstr("metadata \"qwen35." + name + "\"; got nothing, expected"));
    EXPECT_THAT(error_with(writer_with(name, 0)), HasSubstr("\"qwen35." + name + "\"; got 0"));
    EXPECT_THAT(error_with(writer_with(name, 4000000000U)),
                HasSubstr("\"qwen35." + name + "\"; got 4000000000"));
  }
  EXPECT_THAT(error_with(writer_with("ssm.inner_size", 49)),
              HasSubstr("\"qwen35.ssm.inner_size\"; got 49, expected a multiple of the 4 heads"));
  EXPECT_THAT(error_with(writer_with("ssm.group_count", 3)),
              HasSubstr("\"qwen35.ssm.time_step_rank\"; got 4, expected a multiple of metadata "
                        "\"qwen35.ssm.group_count\", 3"));
  EXPECT_THAT(error_with(writer_with("ssm.conv_kernel", 9)),
              HasSubstr("\"qwen35.ssm.conv_kernel\"; got \"9\", expected a whole number from 2"));
  EXPECT_THAT(error_with(writer_with("full_attention_interval", 2)),
              HasSubstr("\"qwen35.full_attention_interval\"; got no layer with attention"));
  const std::string layers = "qwen35.attention.recurrent_layers";
  EXPECT_EQ(error_with(writer_with("", {}).numbers(layers, std::vector<int32_t>{0, 0})), "");
  EXPECT_THAT(error_with(writer_with("", {}).numbers(layers, std::vector<int32_t>{})),
              HasSubstr("\"" + layers + "\"; got no list, or a shorter one"));
  EXPECT_THAT(error_with(writer_with("", {}).number(layers, 1)), HasSubstr("got no list"));
  EXPECT_THAT(error_with(writer_with("", {}).numbers(layers, std::vector<int32_t>{1})),
              HasSubstr("metadata \"" + layers + "\"; got no layer with attention"));
}

// The last blocks, which predict further tokens, are not layers of the model.
TEST(GgufFiles, BlocksOfFurtherTokensAreNotLayers) {
  const ScratchDirectory scratch;
  const auto open = [&](uint32_t num_mtp) {
    const auto writer = sized_llama().number("llama.nextn_predict_layers", num_mtp);
    return open_model_files(cpu_config(scratch.write("m.gguf", writer.file())));
  };
  EXPECT_EQ(open(0).value().config.num_layers, 1);
  EXPECT_THAT(open(1).status().message(),
              HasSubstr("metadata \"llama.block_count\"; got 1, expected at least 2"));
  EXPECT_THAT(open(4096).status().message(), HasSubstr("\"llama.nextn_predict_layers\"; got 4096"));
}

// Tensors of further blocks are loaded with a wrong number of layers if the number is damaged.
TEST(GgufFiles, BlocksThatTheMetadataLacksAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](uint32_t num_blocks, uint32_t num_mtp, uint32_t first_mtp = 3) {
    GgufWriter writer;
    writer.text("general.architecture", "llama")
        .number("llama.embedding_length", 4)
        .number("llama.feed_forward_length", 4)
        .number("llama.block_count", num_blocks)
        .number("llama.attention.head_count", 1)
        .number("llama.context_length", 8);
    if (num_mtp > 0) writer.number("llama.nextn_predict_layers", num_mtp);
    writer.floats("token_embd.weight", {2, 4}, std::vector<float>(8))
        .floats("blk.1.attn_norm.weight", {4}, std::vector<float>(4))
        .floats("blk.2.attn_norm.weight", {4}, std::vector<float>(4));
    for (uint32_t block = first_mtp; block < num_blocks; ++block) {
      writer.floats(fmt::format("blk.{}.nextn.eh_proj.weight", block), {1}, {1.0F});
    }
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_EQ(error_with(3, 0), "");
  EXPECT_EQ(error_with(3, 2, 1), "");
  EXPECT_THAT(error_with(3, 2, 2),
              HasSubstr("\"llama.nextn_predict_layers\"; got 2, and block 1 has "
                        "no tensor of such a layer, expected"));
  EXPECT_THAT(error_with(2, 0), HasSubstr("tensor \"blk.2.attn_norm.weight\"; got a block after "
                                          "the 2 of metadata \"llama.block_count\""));
  EXPECT_THAT(error_with(2, 1, 1), HasSubstr("tensor \"blk.2.attn_norm.weight\""));
  EXPECT_THAT(error_with(1, 0), HasSubstr("tensor \"blk.1.attn_norm.weight\""));
}

// A list of another vocabulary, whose ids mean other texts.
TEST(GgufFiles, TokensAreOnePerRowOfTheEmbedding) {
  const ScratchDirectory scratch;
  const auto error_with = [&](int64_t rows) {
    const std::vector<std::string> tokens = {"<unk>", "a", "b"};
    const std::string file = GgufWriter()
                                 .text("general.architecture", "llama")
                                 .number("llama.embedding_length", 4)
                                 .number("llama.feed_forward_length", 4)
                                 .number("llama.block_count", 1)
                                 .number("llama.attention.head_count", 1)
                                 .number("llama.context_length", 8)
                                 .text("tokenizer.ggml.model", "llama")
                                 .texts("tokenizer.ggml.tokens", tokens)
                                 .numbers<int32_t>("tokenizer.ggml.token_type", {2, 1, 1})
                                 .numbers<float>("tokenizer.ggml.scores", {0, 0, 0})
                                 .floats("token_embd.weight", {rows, 4},
                                         std::vector<float>(static_cast<size_t>(rows * 4)))
                                 .file();
    return error_of(scratch.write("m.gguf", file));
  };
  EXPECT_EQ(error_with(3), "");
  for (const int64_t rows : {2, 4}) {
    EXPECT_THAT(error_with(rows),
                AllOf(HasSubstr("m.gguf: tokenizer.ggml.tokens; got 3 tokens, expected " +
                                std::to_string(rows) + ", one per row"),
                      HasSubstr("`tokenizer`")));
  }
}

std::string mixture_error(const std::string& architecture, std::string_view key, uint32_t value) {
  const std::string prefix = architecture + ".";
  GgufWriter writer = sized_model(architecture);
  writer.number(prefix + std::string(key), value);
  for (const auto& [name, count] : {std::pair("expert_count", 2), std::pair("expert_used_count", 1),
                                    std::pair("expert_feed_forward_length", 2)}) {
    if (key != name) writer.number(prefix + name, static_cast<uint32_t>(count));
  }
  writer.flag(prefix + "expert_weights_norm", true);
  const std::string file = writer.file();
  return gguf_model_config(GgufModel::from_memory(bytes_of(file), "m.gguf").value())
      .status()
      .message();
}

TEST(GgufFiles, WrongMixturesAreNamed) {
  for (const std::string architecture : {"glm4moe", "hy_v3", "minimax-m2"}) {
    EXPECT_EQ(mixture_error(architecture, "expert_gating_func", 2), "");
    EXPECT_THAT(mixture_error(architecture, "expert_gating_func", 1),
                HasSubstr(".expert_gating_func\"; got 1, expected 2 (sigmoid)"));
    EXPECT_THAT(mixture_error(architecture, "expert_count", 0),
                HasSubstr(".expert_count\"; got 0, expected 1 to 1024"));
  }
  for (const std::string architecture : {"hy_v3", "minimax-m2"}) {
    EXPECT_THAT(mixture_error(architecture, "expert_group_count", 2),
                HasSubstr(".expert_group_count\"; got 2"));
  }
  EXPECT_THAT(mixture_error("hy_v3", "expert_shared_feed_forward_length", 3),
              HasSubstr("expert_shared_feed_forward_length\"; got 3, expected a multiple of"));
  EXPECT_THAT(mixture_error("minimax-m2", "expert_weights_scale", 2),
              HasSubstr("got 2, expected 1"));
}

// The decoders of models that take images are computed as those of the families without images.
TEST(GgufFiles, DecodersOfModelsWithImagesAreThoseOfTheirFamilies) {
  const auto config_of = [](const std::string& architecture) {
    GgufWriter writer = sized_model(architecture);
    for (const char* const key :
         {"expert_count", "expert_used_count", "expert_feed_forward_length"}) {
      if (architecture.ends_with("moe")) writer.number(architecture + "." + key, 1);
    }
    const std::string file = writer.file();
    return gguf_config_json(GgufModel::from_memory(bytes_of(file), "m.gguf").value()).value();
  };
  EXPECT_EQ(config_of("qwen2vl"), config_of("qwen2"));
  EXPECT_EQ(config_of("qwen3vl"), config_of("qwen3"));
  EXPECT_EQ(config_of("qwen3vlmoe"), config_of("qwen3moe"));
}

TEST(GgufFiles, HaveNamesOfCheckpointsArchitectures) {
  EXPECT_EQ(gguf_name_of("LlamaForCausalLM"), "llama");
  EXPECT_EQ(gguf_name_of("Olmo3ForCausalLM"), "olmo2");
  EXPECT_EQ(gguf_name_of("Glm4MoeLiteForCausalLM"), "deepseek2");
  EXPECT_EQ(gguf_name_of("Qwen3VLMoeForConditionalGeneration"), "qwen3vlmoe");
  EXPECT_EQ(gguf_name_of("Mistral3ForConditionalGeneration"), "mistral3, mistral4");
  EXPECT_EQ(gguf_name_of("MiMoForCausalLM"), "");
  EXPECT_EQ(gguf_name_of(""), "");
}

// An architecture may store the rows of several matrices as one.
TEST(GgufFiles, WrongRowsOfJoinedMatricesAreNamed) {
  const ScratchDirectory scratch;
  const auto error_with = [&](std::string_view name, const std::vector<int64_t>& shape) {
    const auto count = static_cast<size_t>(shape[0] * (shape.size() > 1 ? shape[1] : 1));
    const auto writer = sized_model("phi3").floats(name, shape, std::vector<float>(count));
    return error_of(scratch.write("m.gguf", writer.file()));
  };
  EXPECT_EQ(error_with("blk.0.attn_qkv.weight", {12, 4}), "");
  EXPECT_EQ(error_with("blk.0.attn_qkv.bias", {12}), "");
  EXPECT_EQ(error_with("blk.0.ffn_up.weight", {8, 4}), "");
  EXPECT_THAT(error_with("blk.0.attn_qkv.weight", {8, 4}),
              HasSubstr("tensor \"blk.0.attn_qkv.weight\"; got shape [8, 4], expected [12, 4]"));
  EXPECT_THAT(error_with("blk.0.ffn_up.weight", {4, 4}), HasSubstr("expected [8, 4]"));
}

}  // namespace
}  // namespace quire::testing
