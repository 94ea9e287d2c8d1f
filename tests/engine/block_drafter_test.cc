// A block drafter whose drafts are known: its layers add nothing, so that the logits of a token
// depend on the token alone. How many drafts of the embedded model's output are accepted then
// follows from the output.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "engine/tiny_engine.h"
#include "support/reference_layer.h"

namespace quire {
namespace {

using testing::Collected;
using testing::RandomTensors;
using testing::run_all;
using testing::stats_at_rest;
using testing::stored_floats;

// Sizes of the embedded model.
constexpr int kVocab = 1536;
constexpr int kHidden = 256;
constexpr int kNumTargetLayers = 8;
constexpr int32_t kMask = 0;
constexpr int kBlockSize = 8;

using NextTokens = std::map<int32_t, int32_t>;

// The most frequent token after each one, and after kMask the most frequent one of all.
NextTokens most_frequent(const std::vector<int32_t>& tokens) {
  std::map<int32_t, std::map<int32_t, int>> counts;
  for (size_t i = 1; i < tokens.size(); ++i) {
    ++counts[tokens[i - 1]][tokens[i]];
    ++counts[kMask][tokens[i]];
  }
  NextTokens next;
  for (const auto& [token, followers] : counts) {
    next[token] =
        std::ranges::max_element(followers, {}, [](const auto& f) { return f.second; })->first;
  }
  return next;
}

// [rows, width] where the product of row `to` of the second and row `from` of the first is large
// for each pair (from, to) of `next`, and small for others.
struct Association {
  std::vector<float> from;
  std::vector<float> to;

  Association(const NextTokens& next, int width, float scale)
      : from(static_cast<size_t>(kVocab * width)), to(from.size(), 0.0F) {
    std::mt19937 generator(1);
    for (float& value : from) value = generator() % 2 == 0 ? 1.0F : -1.0F;
    for (const auto& [source, target] : next) {
      for (int i = 0; i < width; ++i) {
        to[static_cast<size_t>(target * width + i)] +=
            scale * from[static_cast<size_t>(source * width + i)];
      }
    }
  }
};

struct DrafterKind {
  const char* method;
  bool has_transitions;
};

// Returns the drafter's directory. After a token and after a mask, the logits prefer the tokens of
// `by_block`, and transitions prefer those of `by_transition` even more.
std::string write_drafter(const DrafterKind& kind, const NextTokens& by_block,
                          const NextTokens& by_transition) {
  RandomTensors random(1);
  random.add_matrix("fc", kHidden, 2 * kHidden);
  random.add("hidden_norm.weight", {kHidden}, 1.0F);
  random.add_layer("layers.0.", kHidden, kHidden, false, false);
  for (const char* name : {"input_layernorm", "post_attention_layernorm"}) {
    random.add(fmt::format("layers.0.{}.weight", name), {kHidden}, 1.0F);
  }
  for (const char* name : {"q_norm", "k_norm"}) {
    random.add(fmt::format("layers.0.self_attn.{}.weight", name), {testing::kReferenceHeadDim},
               1.0F);
  }
  testing::StoredTensors tensors = std::move(random.tensors);
  const auto put = [&](const std::string& name, int64_t rows, const std::vector<float>& values) {
    tensors[name] = stored_floats({rows, std::ssize(values) / rows}, values);
  };
  for (const char* name : {"self_attn.o_proj", "mlp.down_proj"}) {
    const std::string weight = fmt::format("layers.0.{}.weight", name);
    put(weight, kHidden, std::vector<float>(tensors[weight].bytes.size() / sizeof(float)));
  }
  tensors["norm.weight"] = stored_floats({kHidden}, std::vector<float>(kHidden, 1.0F));
  const Association logits(by_block, kHidden, 1.0F);
  put("embed_tokens.weight", kVocab, logits.from);
  put("lm_head.weight", kVocab, logits.to);
  if (kind.has_transitions) {
    const Association transitions(by_transition, kHidden, 16.0F);
    put("markov_head.markov_w1.weight", kVocab, transitions.from);
    put("markov_head.markov_w2.weight", kVocab, transitions.to);
  }
  const auto folder =
      std::filesystem::temp_directory_path() /
      fmt::format("quire_block_drafter_{}_{}_{}", kind.method, kind.has_transitions, ::getpid());
  std::filesystem::create_directories(folder);
  const bool is_dflash = std::string_view(kind.method) == "dflash";
  std::ofstream(folder / "config.json") << fmt::format(
      R"({{{},"architectures":["{}"],"model_type":"qwen3","hidden_size":{},"num_hidden_layers":1,)"
      R"("vocab_size":{},"tie_word_embeddings":false,"block_size":{},"num_target_layers":{},)"
      R"("mask_token_id":{},"target_layer_ids":[1,6],"markov_rank":{}}})",
      testing::layer_sizes_json(), is_dflash ? "DFlashDraftModel" : "Qwen3DSparkModel", kHidden,
      kVocab, kBlockSize, kNumTargetLayers, kMask, kind.has_transitions ? kHidden : 0);
  const std::vector<std::byte> file = testing::safetensors_file(tensors);
  std::ofstream(folder / "model.safetensors", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), std::ssize(file));
  return folder.string();
}

int32_t after(const NextTokens& next, int32_t token) {
  const auto found = next.find(token);
  return found == next.end() ? -1 : found->second;
}

// The drafts after a token.
std::vector<int32_t> drafts_after(const DrafterKind& kind, const NextTokens& by_block,
                                  const NextTokens& by_transition, int32_t newest, int num_drafts) {
  const bool is_dflash = std::string_view(kind.method) == "dflash";
  std::vector<int32_t> drafts;
  for (int i = 0; i < num_drafts; ++i) {
    const int32_t previous = drafts.empty() ? newest : drafts.back();
    const int32_t read = i == 0 && !is_dflash ? newest : kMask;
    drafts.push_back(kind.has_transitions ? after(by_transition, previous) : after(by_block, read));
  }
  return drafts;
}

int64_t count_accepted(const DrafterKind& kind, const NextTokens& by_block,
                       const NextTokens& by_transition, const std::vector<int32_t>& output,
                       int num_drafts) {
  int64_t num_accepted = 0;
  for (size_t newest = 0; newest + 1 < output.size();) {
    const std::vector<int32_t> drafts =
        drafts_after(kind, by_block, by_transition, output[newest], num_drafts);
    size_t count = 0;
    // The last token of a request is never a draft.
    while (count < drafts.size() && newest + count + 2 < output.size() &&
           drafts[count] == output[newest + 1 + count]) {
      ++count;
    }
    num_accepted += static_cast<int64_t>(count);
    newest += count + 1;
  }
  return num_accepted;
}

TEST(BlockDrafter, ProposesItsTokensInTheirPlaces) {
  EngineConfig config;  // of the embedded model
  config.num_threads = 2;
  config.max_model_len = 512;
  Request request = testing::greedy(testing::tiny_prompt(20, 1), 120);
  const std::vector<int32_t> output =
      run_all(*testing::make_engine(config), {request}).front().token_ids;
  ASSERT_EQ(output.size(), 120U);
  const NextTokens by_block = most_frequent(output);
  NextTokens by_transition = by_block;  // where a draft follows a token, not a mask
  by_transition.erase(kMask);
  constexpr std::array<DrafterKind, 3> kKinds = {
      {{"dflash", false}, {"dspark", false}, {"dspark", true}}};
  for (const DrafterKind& kind : kKinds) {
    const std::string folder = write_drafter(kind, by_block, by_transition);
    for (const int num_drafts : {1, 3, kBlockSize - 1}) {
      config.speculative_config =
          fmt::format(R"({{"method": "{}", "model": "{}", "num_speculative_tokens": {},
                           "enable_adaptive_verification": false}})",
                      kind.method, folder, num_drafts);
      const auto engine = testing::make_engine(config);
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(run_all(*engine, {request}).front().token_ids, output);
      const int64_t expected = count_accepted(kind, by_block, by_transition, output, num_drafts);
      EXPECT_GT(expected, 5);
      EXPECT_EQ(stats_at_rest(*engine).speculation.num_accepted, expected)
          << kind.method << ", transitions " << kind.has_transitions << ", " << num_drafts;
    }
    std::filesystem::remove_all(folder);
  }
}

}  // namespace
}  // namespace quire
