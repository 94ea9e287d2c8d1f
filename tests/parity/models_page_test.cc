// The table of docs/models.md. `QUIRE_UPDATE_DOCS=1 families_test` writes the page anew.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "model/families.h"
#include "model/gguf/gguf_architectures.h"
#include "parity/golden_families.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

constexpr std::string_view kHead =
    R"(# Models

This page is made from the table in `src/model/families.cc` by `QUIRE_UPDATE_DOCS=1 ctest --test-dir build -R
families_test`. A checkpoint is served if `architectures` in its `config.json` names one of these, in the spelling of
transformers 4 or 5. `quire doctor --model DIR` shows how it will run, and which fields of `config.json` do not matter.
Other architectures are refused by name.

- **Formats**: safetensors in F32, F16 and BF16, FP8, MXFP4, AWQ, GPTQ and compressed-tensors
  ([quantization](cli.md#quantize)); [GGUF files](cli.md#gguf-files) of the architectures whose name there is given.
- **Devices**: CPUs and NVIDIA GPUs, also divided among several. FP8 needs a Hopper GPU, or expands on a CPU.
- **Drafts**: MiMo-7B, Qwen3.5, Qwen3.6 and Qwen3-Next bring a layer for [method `mtp`](speculative-decoding.md#methods);
  Gemma 4 has drafters for it in checkpoints of their own.
- **Images**: of a model that takes images too, the decoder of text is loaded; a request with an image is refused.
- **Tests**: tiny models with random weights compute the logits and 32 greedy tokens of transformers in FP64, on one
  rank and on two, in steps of several sizes. The largest difference is 0.01 % of the largest logit (MXFP4: 0.05 %).

| architecture | models | GGUF | attention | MLP | tests |
|---|---|---|---|---|---|
)";

std::string attention_of(const FamilyTraits& family) {
  std::string text = family.read_mla != nullptr ? "latent" : "grouped queries";
  if (family.windows != WindowRule::kNone) {
    text += family.windows == WindowRule::kChunks ? ", chunks" : ", windows";
  }
  if (family.ropes == RopeRule::kAllButListed || family.ropes == RopeRule::kWindowsOnly) {
    text += ", layers without positions";
  }
  if (family.has_convs) text += ", convolutions";
  if (family.has_deltas) text += ", delta nets";
  return text;
}

std::string page() {
  const std::vector<GoldenFamily> golden = read_golden_families();
  const auto is_tested = [&](std::string_view architecture) {
    const std::string name = fmt::format("\"{}\"", architecture);
    return std::ranges::any_of(golden, [&](const GoldenFamily& family) {
      return std::ranges::any_of(family.configs, [&](const auto& config) {
        return config.second.find(name) != std::string::npos;
      });
    });
  };
  std::string text(kHead);
  for (const FamilyTraits& family : all_families()) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", family.architecture, family.models,
                        gguf_name_of(family.architecture), attention_of(family),
                        family.read_moe != nullptr ? "experts" : "dense",
                        is_tested(family.architecture) ? "FP64" : "form of another");
  }
  return text;
}

TEST(ModelsPage, ListsTheFamilies) {
  const auto path = source_path("docs/models.md");
  if (std::getenv("QUIRE_UPDATE_DOCS") != nullptr) std::ofstream(path) << page();
  const Result<std::string> text = read_file(path, size_t{1} << 20);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, page()) << "QUIRE_UPDATE_DOCS=1 families_test writes the page anew";
}

}  // namespace
}  // namespace quire::testing
