#include "cuda/platform/gpu_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "start/plan.h"
#include "start/platform_choice.h"
#include "support/value_of.h"

namespace quire::testing {

void GpuTest::SetUp() {
  const Status gpu = cuda_status();
  if (!gpu.ok()) GTEST_SKIP() << gpu.message();
}

EngineConfig tiny_f32(const std::string& device) {
  EngineConfig config = tiny_config();
  config.device = device;
  config.dtype = "f32";
  config.max_num_seqs = 16;
  config.max_num_batched_tokens = 256;
  config.kv_cache_memory = int64_t{32} << 20;
  return config;
}

std::string name_of(const ::testing::TestParamInfo<Variant>& variant) {
  return variant.param.name;
}

const std::vector<Variant>& common_variants() {
  static const std::vector<Variant> variants = {
      {"graphs", [](EngineConfig&) {}},
      {"eager", [](EngineConfig& c) { c.enforce_eager = true; }},
      {"chunk33", [](EngineConfig& c) { c.max_num_batched_tokens = 33; }},
      {"one_row", [](EngineConfig& c) { c.max_num_seqs = 1; }},
      {"preemption", [](EngineConfig& c) {
         c.max_model_len = 192;
         c.kv_cache_memory = 16 * 8192;  // 16 blocks: 15 * 16 tokens for all
       }}};
  return variants;
}

std::vector<Collected> cpu_answers(const std::vector<Request>& requests) {
  return run_all(*make_engine(tiny_f32("cpu")), requests);
}

EngineConfig embedded(const std::string& device) {
  EngineConfig config;
  config.device = device;
  config.max_model_len = 512;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 512;
  config.kv_cache_memory = int64_t{256} << 20;
  return config;
}

std::vector<std::string> served_backends(const EngineConfig& config, Phase phase) {
  const auto files = value_of(open_model_files(config));
  const auto platform = value_of(make_platform(config, files));
  const auto plan = value_of(plan_engine(config, files, *platform));
  const bool is_decode = phase == Phase::kDecode;
  std::vector<std::string> names;
  const DeviceContext& context = *platform->contexts().front();
  for (const auto& backend : context.attention().all()) {
    const AttentionUse use = {.phase = phase, .in_graph = is_decode};
    const auto serves = [&](const KvGroup& group) {
      return backend->supports(is_decode ? group.decode : group.prefill, use, context.device())
          .ok();
    };
    if (std::ranges::all_of(plan.target.attention.kv_groups, serves)) {
      names.emplace_back(backend->name());
    }
  }
  return names;
}

std::vector<std::string> served_backends(const EngineConfig& config) {
  std::vector<std::string> names = served_backends(config, Phase::kDecode);
  for (const std::string& name : served_backends(config, Phase::kPrefill)) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<Request> questions(const Engine& engine, int max_tokens) {
  constexpr const char* kNames[] = {"Sam", "Rosa", "Tom", "Lena"};
  constexpr const char* kThings[] = {"stickers", "apples", "stamps"};
  std::vector<Request> all;
  for (int i = 0; i < kNumQuestions; ++i) {
    const auto question =
        fmt::format("{} collected {} {}. {} has {} times as many as {}. How many {} do they have?",
                    kNames[i % 4], 5 + 3 * i, kThings[i % 3], kNames[(i + 1) % 4], 2 + i % 4,
                    kNames[i % 4], kThings[i % 3]);
    Request request;
    request.prompt = *engine.render_chat({{"user", question}});
    request.add_special_tokens = false;
    request.sampling.temperature = 0.0F;
    request.sampling.max_tokens = max_tokens;
    all.push_back(request);
  }
  return all;
}

std::vector<Request> mixed_requests(int num_beginnings) {
  std::vector<Request> all;
  for (int i = 0; i < kNumPrompts; ++i) {
    const auto seed = static_cast<uint64_t>(i % num_beginnings);
    all.push_back(greedy(tiny_prompt(1 + (i * 37) % 160, seed), 12 + i % 9));
  }
  return all;
}

std::vector<Collected> answers_to_questions(const EngineConfig& config, int prompt_logprobs) {
  const auto engine = make_engine(config);
  std::vector<Request> all = questions(*engine);
  for (Request& request : all) request.sampling.prompt_logprobs = prompt_logprobs;
  return run_all(*engine, all);
}

int count_differences(const std::vector<Collected>& got, const std::vector<Collected>& expected) {
  EXPECT_EQ(got.size(), expected.size());
  int num_different = 0;
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    EXPECT_FALSE(got[i].token_ids.empty());
    EXPECT_TRUE(got[i].error.ok()) << got[i].error.message();
    num_different += got[i].token_ids == expected[i].token_ids ? 0 : 1;
  }
  return num_different;
}

}  // namespace quire::testing
