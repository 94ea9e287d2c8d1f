#include "quantize/gguf_mixture.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace quire {
namespace {

constexpr GgufModelShape kLlama8B = {"llama", 32, 32, 8, true};

std::string type_of(const std::string& name, int64_t columns, GgufTarget target,
                    const GgufModelShape& model = kLlama8B) {
  const GgufChoice choice = choose_gguf_type(name, columns, target, model);
  return choice.unfit == nullptr
             ? choice.type->name
             : fmt::format("{} instead of {}", choice.type->name, choice.unfit->name);
}

TEST(GgufMixture, Q4KMHasMoreBitsInSomeLayers) {
  const auto target = GgufTarget::kQ4KM;
  std::string values;
  std::string down;
  for (int layer = 0; layer < 32; ++layer) {
    values += type_of(fmt::format("blk.{}.attn_v.weight", layer), 4096, target)[1];
    down += type_of(fmt::format("blk.{}.ffn_down.weight", layer), 14336, target)[1];
    EXPECT_EQ(type_of(fmt::format("blk.{}.ffn_up.weight", layer), 4096, target), "Q4_K");
    EXPECT_EQ(type_of(fmt::format("blk.{}.attn_output.weight", layer), 4096, target), "Q4_K");
  }
  // The first and the last four layers, and every third between them.
  EXPECT_EQ(values, "66664464464464464464464464466666");
  EXPECT_EQ(down, values);
  EXPECT_EQ(type_of("output.weight", 4096, target), "Q6_K");
  EXPECT_EQ(type_of("token_embd.weight", 4096, target), "Q4_K");
}

TEST(GgufMixture, ATiedEmbeddingIsTheOutput) {
  GgufModelShape tied = kLlama8B;
  tied.has_output = false;
  EXPECT_EQ(type_of("token_embd.weight", 4096, GgufTarget::kQ4KM, tied), "Q6_K");
  EXPECT_EQ(type_of("token_embd.weight", 4096, GgufTarget::kQ4_0, tied), "Q6_K");
  EXPECT_EQ(type_of("token_embd.weight", 4096, GgufTarget::kQ8_0, tied), "Q8_0");
  EXPECT_EQ(type_of("token_embd.weight", 4096, GgufTarget::kF16, tied), "F16");
}

TEST(GgufMixture, ValuesOf70BGetFiveBits) {
  const GgufModelShape large = {"llama", 80, 64, 8, true};
  EXPECT_EQ(type_of("blk.0.attn_v.weight", 8192, GgufTarget::kQ4KM, large), "Q6_K");
  EXPECT_EQ(type_of("blk.10.attn_v.weight", 8192, GgufTarget::kQ4KM, large), "Q5_K");
  EXPECT_EQ(type_of("blk.10.ffn_down.weight", 28672, GgufTarget::kQ4KM, large), "Q4_K");
  const GgufModelShape full = {"llama", 80, 64, 64, true};
  EXPECT_EQ(type_of("blk.10.attn_v.weight", 8192, GgufTarget::kQ4KM, full), "Q4_K");
}

TEST(GgufMixture, OtherTypesFitOtherRows) {
  EXPECT_EQ(type_of("blk.9.ffn_up.weight", 384, GgufTarget::kQ4KM), "Q5_0 instead of Q4_K");
  EXPECT_EQ(type_of("blk.0.attn_v.weight", 384, GgufTarget::kQ4KM), "Q8_0 instead of Q6_K");
  EXPECT_EQ(type_of("output.weight", 384, GgufTarget::kQ4KM), "Q8_0 instead of Q6_K");
  EXPECT_EQ(type_of("output.weight", 384, GgufTarget::kQ4_0), "Q8_0 instead of Q6_K");
  EXPECT_EQ(type_of("blk.9.ffn_up.weight", 24, GgufTarget::kQ4KM), "F16 instead of Q4_K");
  EXPECT_EQ(type_of("blk.9.ffn_up.weight", 24, GgufTarget::kQ8_0), "F16 instead of Q8_0");
  EXPECT_EQ(type_of("blk.9.ffn_up.weight", 24, GgufTarget::kBf16), "BF16");
}

}  // namespace
}  // namespace quire
