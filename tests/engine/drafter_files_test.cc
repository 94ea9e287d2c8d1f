// Drafters whose weights are files. The first ones are block drafters with known drafts: their
// layers add nothing, so that the logits of a token depend on the token alone. The number of
// accepted drafts of the embedded model's output then follows from the output. The others, of all
// methods that read hidden states, have random weights that are large enough for every draft to
// depend on its whole context.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "engine/tiny_drafters.h"
#include "engine/tiny_engine.h"
#include "support/dflash_reference.h"
#include "support/eagle3_reference.h"
#include "support/mtp_reference.h"
#include "support/qwen_mtp_reference.h"
#include "support/reference_layer.h"
#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

// Sizes of the embedded model.
constexpr int kVocab = 4096;
constexpr int kHidden = 384;
constexpr int kNumTargetLayers = 8;
constexpr int32_t kMask = 0;
constexpr int kBlockSize = 8;
// With a prompt of 20 tokens, the last block fits the last page.
constexpr size_t kNumTokens = 117;

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

// Returns the checkpoint's directory.
std::string write_checkpoint(const std::string& name, const std::string& config,
                             const StoredTensors& tensors) {
  static const ScratchDirectory scratch;
  std::filesystem::create_directories(scratch.path() / name);
  scratch.write(name + "/config.json", config);
  scratch.write(name + "/model.safetensors", safetensors_file(tensors));
  return scratch.path() / name;
}

struct DrafterKind {
  const char* method;
  bool has_transitions;
  bool is_speculators = false;  // the layout, with a draft vocabulary
};

// The tokens that a drafter prefers somewhere, in descending order, so that no draft id is its own
// target's id.
std::vector<int32_t> draft_vocabulary(const NextTokens& next) {
  std::set<int32_t, std::greater<>> ids;
  for (const auto& [source, target] : next) ids.insert(target);
  return {ids.begin(), ids.end()};
}

// The rows `ids` of [kVocab, width].
std::vector<float> rows_of_ids(const std::vector<float>& rows, const std::vector<int32_t>& ids,
                               int width) {
  std::vector<float> chosen;
  for (const int32_t id : ids) {
    const auto first = rows.begin() + int64_t{id} * width;
    chosen.insert(chosen.end(), first, first + width);
  }
  return chosen;
}

std::string drafter_config(const DrafterKind& kind, size_t num_draft_ids) {
  const int markov_rank = kind.has_transitions ? kHidden : 0;
  const std::string layers = fmt::format(
      R"({},"model_type":"qwen3","hidden_size":{},"num_hidden_layers":1,"vocab_size":{},)"
      R"("tie_word_embeddings":false)",
      layer_sizes_json(), kHidden, kVocab);
  const std::string block =
      fmt::format(R"("block_size":{},"num_target_layers":{},"mask_token_id":{},"markov_rank":{},)"
                  R"("draft_vocab_size":{})",
                  kBlockSize, kNumTargetLayers, kMask, markov_rank, num_draft_ids);
  if (kind.is_speculators) {
    return fmt::format(R"({{"speculators_model_type":"{}",{},"aux_hidden_state_layer_ids":[2,7],)"
                       R"("transformer_layer_config":{{{}}}}})",
                       kind.method, block, layers);
  }
  const bool is_dflash = std::string_view(kind.method) == "dflash";
  return fmt::format(R"({{"architectures":["{}"],{},{},"target_layer_ids":[1,6]}})",
                     is_dflash ? "DFlashDraftModel" : "Qwen3DSparkModel", layers, block);
}

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
    random.add(fmt::format("layers.0.self_attn.{}.weight", name), {kReferenceHeadDim}, 1.0F);
  }
  StoredTensors tensors = std::move(random.tensors);
  const auto put = [&](const std::string& name, int64_t rows, const std::vector<float>& values) {
    tensors[name] = stored_floats({rows, std::ssize(values) / rows}, values);
  };
  for (const char* name : {"self_attn.o_proj", "mlp.down_proj"}) {
    const std::string weight = fmt::format("layers.0.{}.weight", name);
    put(weight, kHidden, std::vector<float>(tensors[weight].bytes.size() / sizeof(float)));
  }
  tensors["norm.weight"] = stored_floats({kHidden}, std::vector<float>(kHidden, 1.0F));
  const Association logits(by_block, kHidden, 1.0F);
  std::vector<int32_t> draft_ids(kVocab);
  std::iota(draft_ids.begin(), draft_ids.end(), 0);
  if (kind.is_speculators) {
    draft_ids = draft_vocabulary(by_block);
    std::vector<int64_t> differences;
    for (const int32_t id : draft_ids) differences.push_back(id - std::ssize(differences));
    tensors["d2t"] = stored_integers(differences);
  }
  put("embed_tokens.weight", kVocab, logits.from);
  put("lm_head.weight", std::ssize(draft_ids), rows_of_ids(logits.to, draft_ids, kHidden));
  if (kind.has_transitions) {
    const Association transitions(by_transition, kHidden, 16.0F);
    put("markov_head.markov_w1.weight", kVocab, transitions.from);
    put("markov_head.markov_w2.weight", std::ssize(draft_ids),
        rows_of_ids(transitions.to, draft_ids, kHidden));
  }
  return write_checkpoint(
      fmt::format("{}_{}_{}", kind.method, kind.has_transitions, kind.is_speculators),
      drafter_config(kind, draft_ids.size()), tensors);
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

// The accepted drafts of a request for the first kNumTokens of `output`. Its last step may accept
// drafts beyond them.
int64_t count_accepted(const DrafterKind& kind, const NextTokens& by_block,
                       const NextTokens& by_transition, const std::vector<int32_t>& output,
                       int num_drafts) {
  int64_t num_accepted = 0;
  for (size_t newest = 0; newest + 1 < kNumTokens;) {
    const std::vector<int32_t> drafts =
        drafts_after(kind, by_block, by_transition, output[newest], num_drafts);
    size_t count = 0;
    while (count < drafts.size() && drafts[count] == output[newest + 1 + count]) {
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
  Request request = greedy(tiny_prompt(20, 1), kNumTokens + kBlockSize);
  const std::vector<int32_t> output = run_all(*make_engine(config), {request}).front().token_ids;
  ASSERT_EQ(output.size(), kNumTokens + kBlockSize);
  request.sampling.max_tokens = kNumTokens;
  const NextTokens by_block = most_frequent(output);
  NextTokens by_transition = by_block;  // where a draft follows a token, not a mask
  by_transition.erase(kMask);
  constexpr std::array<DrafterKind, 5> kKinds = {{{"dflash", false},
                                                  {"dspark", false},
                                                  {"dspark", true},
                                                  {"dflash", false, true},
                                                  {"dspark", true, true}}};
  for (const DrafterKind& kind : kKinds) {
    const std::string folder = write_drafter(kind, by_block, by_transition);
    for (const int num_drafts : {1, kBlockSize - 1}) {
      config.speculative_config =
          fmt::format(R"({{"method": "{}", "model": "{}", "num_speculative_tokens": {},
                           "enable_adaptive_verification": false}})",
                      kind.method, folder, num_drafts);
      const auto engine = make_engine(config);
      EXPECT_TRUE(std::ranges::equal(run_all(*engine, {request}).front().token_ids,
                                     std::span(output).first(kNumTokens)));
      const int64_t expected = count_accepted(kind, by_block, by_transition, output, num_drafts);
      EXPECT_GT(expected, 5);
      EXPECT_EQ(stats_at_rest(*engine).speculation.num_accepted, expected)
          << kind.method << ", transitions " << kind.has_transitions << ", speculators "
          << kind.is_speculators << ", " << num_drafts;
    }
    std::filesystem::remove_all(folder);
  }
}

// ---- Random weights

constexpr int kSmallVocab = 6;  // so that random drafts are right often

std::string write_target() {
  RandomTensors random(3);
  random.add_matrix("model.embed_tokens", kSmallVocab, 16);
  random.add_matrix("lm_head", kSmallVocab, 16);
  random.add("model.norm.weight", {16}, 1.0F);
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    random.add_layer(prefix, 16, 16, false, false);
    random.add(prefix + "input_layernorm.weight", {16}, 1.0F);
    random.add(prefix + "post_attention_layernorm.weight", {16}, 1.0F);
  }
  return write_checkpoint("target", R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",
      "hidden_size":16,"intermediate_size":24,"num_hidden_layers":2,"num_attention_heads":4,
      "num_key_value_heads":2,"head_dim":8,"vocab_size":6,"max_position_embeddings":512,
      "rms_norm_eps":1e-5,"rope_theta":10000.0,"hidden_act":"silu","tie_word_embeddings":false,
      "torch_dtype":"float32"})",
                          random.tensors);
}

// `model`: the drafter's directory; empty: it is in the target's checkpoint.
EngineConfig with_speculation(const std::string& target, std::string_view method,
                              const std::string& model, int num_drafts) {
  EngineConfig config;
  config.num_threads = 2;
  config.model = target;
  config.enable_prefix_caching = false;
  config.speculative_config = fmt::format(
      R"({{"method": "{}", {} "num_speculative_tokens": {}, "enable_adaptive_verification": false}})",
      method, model.empty() ? "" : fmt::format(R"("model": "{}",)", model), num_drafts);
  return config;
}

BlockShape small_block_shape(bool is_dspark, bool is_speculators) {
  return {.is_dspark = is_dspark,
          .is_speculators = is_speculators,
          .vocab = kSmallVocab,
          .draft_vocab = is_speculators ? 5 : 0,
          .num_target_layers = 2,
          .target_layer_ids = {0, 1},
          .block_size = 8,
          .mask_token_id = 5,
          .markov_rank = is_dspark ? 4 : 0,
          .has_lm_head = is_speculators};
}

EngineConfig with_random_block_drafter(bool is_dspark, bool is_speculators, int num_drafts) {
  const BlockShape shape = small_block_shape(is_dspark, is_speculators);
  const std::string drafter =
      write_checkpoint(fmt::format("random_{}_{}", is_dspark, is_speculators),
                       block_config_json(shape), random_block_drafter(shape, 7));
  return with_speculation(write_target(), is_dspark ? "dspark" : "dflash", drafter, num_drafts);
}

constexpr MimoShape kMimo = {.vocab = kSmallVocab};

constexpr QwenShape kQwen = {.vocab = kSmallVocab};
constexpr QwenShape kQwenExperts = {.vocab = kSmallVocab, .num_experts = 4};

std::string write_mimo() {
  return write_checkpoint("mimo", mimo_config_json(kMimo), random_mimo(kMimo, 7));
}

std::string write_qwen(const QwenShape& shape) {
  StoredTensors tensors = random_qwen(shape, 1);
  if (shape.num_experts > 0) tensors = stack_experts(shape, std::move(tensors));
  return write_checkpoint(fmt::format("qwen_{}", shape.num_experts), qwen_config_json(shape),
                          tensors);
}

EngineConfig with_random_drafter(std::string_view method, int num_drafts) {
  if (method == "mtp") return with_speculation(write_mimo(), "mtp", "", num_drafts);
  if (method == "mtp of Qwen") return with_speculation(write_qwen(kQwen), "mtp", "", num_drafts);
  if (method == "mtp of Qwen with experts") {
    return with_speculation(write_qwen(kQwenExperts), "mtp", "", num_drafts);
  }
  return with_random_block_drafter(method.starts_with("dspark"), method.ends_with("speculators"),
                                   num_drafts);
}

std::vector<int32_t> small_prompt(int length, uint64_t salt) {
  std::vector<int32_t> prompt = tiny_prompt(length, salt);
  for (int32_t& id : prompt) id %= kSmallVocab;
  return prompt;
}

// Temperature 1: greedy output would soon repeat itself.
Request sampled(std::vector<int32_t> prompt, int max_tokens) {
  Request request = greedy(std::move(prompt), max_tokens);
  request.sampling.temperature = 1.0F;
  request.sampling.seed = 11;
  return request;
}

int64_t num_accepted(const Engine& engine) {
  return stats_at_rest(engine).speculation.num_accepted;
}

// Whether the first draft after the prompt is accepted: the first step that verifies one brings the
// second and third token of the output. `counted`: the statistics so far, updated by the call.
bool accepts_first_draft(Engine& engine, std::vector<int32_t> prompt,
                         std::span<const int32_t> expected, SpeculationStats& counted) {
  const SpeculationStats before = counted;
  const Collected next = run_all(engine, {sampled(std::move(prompt), 3)}).front();
  EXPECT_TRUE(std::ranges::equal(next.token_ids, expected));
  counted = stats_at_rest(engine).speculation;
  return counted.num_accepted > before.num_accepted && counted.num_spans == before.num_spans + 1;
}

class RandomDrafterTest : public ::testing::TestWithParam<const char*> {};

// The first draft after each prefix of an output shows how many drafts are accepted while the same
// tokens are decoded: decoded tokens, some of which were drafts, have the context of a prompt.
TEST_P(RandomDrafterTest, HasTheContextOfAPromptWhileItDecodes) {
  const auto engine = make_engine(with_random_drafter(GetParam(), 1));
  const std::vector<int32_t> prompt = small_prompt(20, 7);
  constexpr int kNumDecoded = 60;
  const std::vector<int32_t> output =
      run_all(*engine, {sampled(prompt, kNumDecoded + 8)}).front().token_ids;
  const int64_t before = num_accepted(*engine);
  run_all(*engine, {sampled(prompt, kNumDecoded)});
  SpeculationStats counted = stats_at_rest(*engine).speculation;
  const int64_t total = counted.num_accepted - before;
  EXPECT_GT(total, 5);
  int64_t expected = 0;
  for (int newest = 0; newest + 1 < kNumDecoded; ++newest) {
    std::vector<int32_t> tokens = prompt;
    tokens.insert(tokens.end(), output.begin(), output.begin() + newest);
    const std::span next = std::span(output).subspan(static_cast<size_t>(newest), 3);
    if (!accepts_first_draft(*engine, std::move(tokens), next, counted)) continue;
    ++expected;
    ++newest;
  }
  EXPECT_EQ(total, expected);
}

TEST_P(RandomDrafterTest, AcceptsAsMuchAfterChunksAndPrefixHits) {
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i) {
    std::vector<int32_t> prompt = small_prompt(16 * (1 + i % 4), static_cast<uint64_t>(i % 3));
    const std::vector<int32_t> own = small_prompt(i % 20, static_cast<uint64_t>(100 + i));
    prompt.insert(prompt.end(), own.begin(), own.end());
    requests.push_back(sampled(std::move(prompt), 40));
  }
  EngineConfig config = with_random_drafter(GetParam(), 4);
  const auto whole = make_engine(config);
  const std::vector<Collected> expected = run_all(*whole, requests);
  EXPECT_GT(num_accepted(*whole), 50);
  config.enable_prefix_caching = true;
  config.max_num_batched_tokens = 24;
  config.max_num_seqs = 4;
  const auto chunked = make_engine(config);
  for (int64_t round = 1; round <= 2; ++round) {
    expect_same(run_all(*chunked, requests), expected);
    EXPECT_EQ(num_accepted(*chunked), round * num_accepted(*whole));
  }
  EXPECT_GT(stats_at_rest(*chunked).prefix_cache_hits, 500);
}

INSTANTIATE_TEST_SUITE_P(Methods, RandomDrafterTest,
                         ::testing::Values("dflash", "dflash of speculators", "dspark",
                                           "dspark of speculators", "mtp", "mtp of Qwen",
                                           "mtp of Qwen with experts"));

// ---- Broken drafters

struct BrokenDrafter {
  const char* method;
  std::string config;
  StoredTensors tensors;
};

std::vector<BrokenDrafter> drafters_to_break() {
  const BlockShape block = small_block_shape(false, true);
  const BlockShape transitions = small_block_shape(true, true);
  const HeadShape head = {.vocab = kSmallVocab, .draft_vocab = 5, .taps = {0, 1}};
  return {{"dflash", block_config_json(block), random_block_drafter(block)},
          {"dspark", block_config_json(transitions), random_block_drafter(transitions)},
          {"eagle3", head_config_json(head), random_head(head)}};
}

TEST(BrokenDrafter, ATruncatedFileIsRefusedByItsName) {
  const std::string target = write_target();
  for (const BrokenDrafter& whole : drafters_to_break()) {
    const std::filesystem::path folder =
        write_checkpoint(fmt::format("truncated_{}", whole.method), whole.config, whole.tensors);
    const std::filesystem::path file = folder / "model.safetensors";
    const auto num_bytes = std::filesystem::file_size(file);
    for (const uintmax_t left : {num_bytes - 1, num_bytes / 2, uintmax_t{20}, uintmax_t{0}}) {
      std::filesystem::resize_file(file, left);
      const auto engine =
          Engine::create(with_speculation(target, whole.method, folder.string(), 4));
      EXPECT_THAT(engine.status().message(), HasSubstr(file.string())) << left;
    }
    std::filesystem::remove_all(folder);
  }
}

// A drafter whose logits are NaN proposes nothing, and the output equals the output of the target
// alone.
TEST(BrokenDrafter, NanWeightsProposeNothing) {
  EngineConfig alone;
  alone.model = write_target();
  alone.num_threads = 2;
  const std::vector<Request> requests = {sampled(small_prompt(20, 7), 40),
                                         sampled(small_prompt(33, 8), 40)};
  const std::vector<Collected> expected = run_all(*make_engine(alone), requests);
  for (const BrokenDrafter& whole : drafters_to_break()) {
    for (const char* name : {"fc.weight", "lm_head.weight"}) {
      StoredTensors tensors = whole.tensors;
      const std::vector<float> values = floats_of(tensors[name]);
      tensors[name] =
          stored_floats(tensors[name].shape, std::vector<float>(values.size(), std::nanf("")));
      const std::string folder =
          write_checkpoint(fmt::format("nan_{}", whole.method), whole.config, tensors);
      const auto engine = make_engine(with_speculation(alone.model, whole.method, folder, 4));
      expect_same(run_all(*engine, requests), expected);
      EXPECT_EQ(stats_at_rest(*engine).speculation.num_drafts, 0) << whole.method << ", " << name;
      std::filesystem::remove_all(folder);
    }
  }
}

// The target fits; the drafter does not, or the KV cache of both.
TEST(BrokenDrafter, ADrafterThatDoesNotFitTheMemoryIsRefusedBeforeItIsLoaded) {
  const std::string huge = write_config("quire_huge_drafter", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384,
      "intermediate_size": 65536, "num_hidden_layers": 500, "num_attention_heads": 128,
      "num_key_value_heads": 8, "vocab_size": 96, "max_position_embeddings": 512,
      "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
      "tie_word_embeddings": false, "torch_dtype": "bfloat16"})");
  const auto too_large = Engine::create(with_drafter(tiny_config(), huge, 4));
  EXPECT_EQ(too_large.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(too_large.status().message(),
              ::testing::AllOf(HasSubstr("does not fit"), HasSubstr("quire_huge_drafter"),
                               HasSubstr("use a smaller one, or leave out `speculative_config`")));
  EngineConfig config = tiny_config();
  config.max_model_len = 512;
  config.kv_cache_memory = int64_t{33} * 4096;  // 33 blocks of 16 tokens, all for the target
  ASSERT_TRUE(Engine::create(config).ok());
  const auto no_cache = Engine::create(with_drafter(config, config.model, 4));
  EXPECT_EQ(no_cache.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(no_cache.status().message(),
              ::testing::AllOf(HasSubstr("the KV cache is too small for one sequence"),
                               HasSubstr("leave out `speculative_config`")));
}

// ---- Layers for multi-token prediction

// The drafts after tokens[0, newest], by the reference.
template <typename Reference>
std::vector<int32_t> mtp_drafts(const Reference& reference,
                                std::span<const ReferenceTensors::Row> states,
                                std::span<const int32_t> tokens, size_t newest, int num_drafts) {
  std::vector<int32_t> read(tokens.begin() + 1, tokens.begin() + static_cast<int64_t>(newest) + 1);
  std::vector<ReferenceTensors::Row> hidden(states.begin(),
                                            states.begin() + static_cast<int64_t>(newest));
  std::vector<int32_t> drafts;
  for (int i = 0; i < num_drafts; ++i) {
    const auto output = reference.run(read, hidden);
    const ReferenceTensors::Row& logits = output.logits.back();
    drafts.push_back(static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin()));
    read.push_back(drafts.back());
    hidden.push_back(output.states.back());
  }
  return drafts;
}

// The reference computes the target, the head and the whole way of each draft from the tokens.
template <typename Reference>
void expect_drafts_of(const Reference& reference, const std::string& target) {
  constexpr int kNumOutput = 60;
  const std::vector<int32_t> prompt = small_prompt(20, 7);
  for (const int num_drafts : {1, 3}) {
    const auto engine = make_engine(with_speculation(target, "mtp", "", num_drafts));
    std::vector<int32_t> tokens = prompt;
    const std::vector<int32_t> output =
        run_all(*engine, {sampled(prompt, kNumOutput + num_drafts)}).front().token_ids;
    tokens.insert(tokens.end(), output.begin(), output.end());
    const int64_t before = num_accepted(*engine);
    run_all(*engine, {sampled(prompt, kNumOutput)});

    const auto states = reference.target_states(tokens);
    const size_t end = prompt.size() + kNumOutput;
    int64_t expected = 0;
    for (size_t newest = prompt.size(); newest + 1 < end; ++newest) {
      for (const int32_t draft :
           mtp_drafts(reference, std::span(states), tokens, newest, num_drafts)) {
        if (tokens[newest + 1] != draft) break;
        ++expected;
        ++newest;
      }
    }
    EXPECT_GT(expected, 5);
    EXPECT_EQ(num_accepted(*engine) - before, expected) << num_drafts;
  }
}

TEST(MtpDrafter, AcceptsTheDraftsOfTheReference) {
  expect_drafts_of(MtpReference(kMimo, random_mimo(kMimo, 7)), write_mimo());
  expect_drafts_of(QwenMtpReference(kQwen, random_qwen(kQwen, 1)), write_qwen(kQwen));
  expect_drafts_of(QwenMtpReference(kQwenExperts, random_qwen(kQwenExperts, 1)),
                   write_qwen(kQwenExperts));
}

// Copies of a model, such as those that transformers saves, often have its config.json without the
// layer's tensors.
TEST(MtpDrafter, IsTheChoiceOfAutoIfTheCheckpointHasIt) {
  const std::vector<Request> requests = {sampled(small_prompt(20, 7), 40)};
  EngineConfig config;
  config.model = write_qwen(kQwen);
  config.num_threads = 2;
  const std::vector<Collected> expected = run_all(*make_engine(config), requests);
  config.speculative_config = R"({"method": "auto"})";
  const auto own = make_engine(config);
  EXPECT_EQ(own->model_info().speculative_method, "mtp");
  EXPECT_EQ(own->model_info().num_speculative_tokens, 3);
  expect_same(run_all(*own, requests), expected);

  StoredTensors copied = random_qwen(kQwen, 1);
  std::erase_if(copied, [](const auto& tensor) { return tensor.first.starts_with("mtp."); });
  config.model = write_checkpoint("qwen_copy", qwen_config_json(kQwen), copied);
  const auto by_lookup = make_engine(config);
  EXPECT_EQ(by_lookup->model_info().speculative_method, "suffix");
  EXPECT_EQ(by_lookup->model_info().num_speculative_tokens, 8);
  expect_same(run_all(*by_lookup, requests), expected);

  config.speculative_config = R"({"method": "auto", "num_speculative_tokens_per_batch_size":
                                  [[1, 4, 5]]})";
  EXPECT_TRUE(Engine::create(config).ok());
  config.model = write_qwen(kQwen);
  EXPECT_THAT(Engine::create(config).status().message(),
              HasSubstr("with k of at most num_speculative_tokens, 3; the model's own layer"));
  config.model = write_checkpoint("qwen_copy", qwen_config_json(kQwen), copied);
  config.speculative_config = R"({"method": "mtp", "num_speculative_tokens": 1})";
  EXPECT_THAT(Engine::create(config).status().message(),
              HasSubstr("this one lacks its tensors; got no \"mtp.norm.weight\""));
}

// Before the target is planned, so that a report of the checkpoint has the fault.
TEST(MtpDrafter, OfADamagedCheckpointIsNotOpened) {
  EngineConfig config;
  config.speculative_config = R"({"method": "mtp", "num_speculative_tokens": 1})";
  const auto error_with = [&](const std::string& name, const StoredTensors& tensors) {
    config.model = write_checkpoint(name, qwen_config_json(kQwen), tensors);
    return Engine::create(config).status().message();
  };
  StoredTensors tensors = random_qwen(kQwen, 1);
  StoredTensor& matrix = tensors["mtp.fc.weight"];
  std::swap(matrix.shape[0], matrix.shape[1]);
  EXPECT_THAT(error_with("qwen_turned", tensors),
              HasSubstr("tensor \"mtp.fc.weight\" has another shape than the configuration says"));
  tensors.erase("mtp.fc.weight");
  EXPECT_THAT(
      error_with("qwen_cut", tensors),
      HasSubstr("lacks 1 tensors of the MTP head, the first of which is \"mtp.fc.weight\""));
}

}  // namespace
}  // namespace quire::testing
