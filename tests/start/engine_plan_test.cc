// Backend selection and refusals at start, on a platform whose backends serve one phase each.
#include <gmock/gmock.h>

#include <cmath>

#include "attn/fake_backend.h"
#include "attn/selection.h"
#include "base/thread_pool.h"
#include "cpu/ops/cpu_ops.h"
#include "engine/tiny_drafters.h"
#include "engine/tiny_engine.h"
#include "model/decoder_sizes.h"
#include "model/model_loader.h"
#include "start/plan.h"
#include "start/platform_choice.h"
#include "start/report.h"
#include "support/reference_ops.h"

namespace quire::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kReserve = int64_t{10} << 20;

class FakeContext final : public DeviceContext {
 public:
  FakeContext() : pool_(1), ops_(make_cpu_ops(pool_)) {
    // The real flashinfer serves both phases. Here "native" stands for its prefill half.
    attention_.add(std::make_unique<PickyBackend>("flashinfer", 64, Phase::kDecode));
    auto xqa = std::make_unique<PickyBackend>("xqa", 64, Phase::kDecode);
    xqa->is_causal = true;
    attention_.add(std::move(xqa));
    attention_.add(std::make_unique<PickyBackend>("cudnn", 1, Phase::kDecode));
    attention_.add(std::make_unique<PickyBackend>("native", 64, Phase::kPrefill));
  }

  Status bind_thread() override { return {}; }
  const Device& device() const override { return device_; }
  const BackendSet& attention() const override { return attention_; }
  Ops& ops() override { return other_ops != nullptr ? *other_ops : *ops_; }
  Result<MemoryBudget> memory_budget() const override {
    return MemoryBudget{.owner = "GPU", .free_bytes = free_bytes};
  }
  Result<std::unique_ptr<Runner>> make_runner(const RunnerParts& /*parts*/) override {
    return unimplemented("nothing runs here");
  }
  Status copy_to_host(const TensorView& /*device*/, void* /*host*/) override {
    return unimplemented("nothing is copied here");
  }
  int64_t lookup_drafter_bytes(const DrafterLimits& limits) const override {
    return int64_t{limits.max_num_seqs} * limits.max_model_len * 4;
  }

  int64_t free_bytes = int64_t{64} << 20;
  Ops* other_ops = nullptr;  // used instead of those of a CPU

 private:
  Result<Buffer> allocate_workspace(size_t num_bytes) override { return Buffer::host(num_bytes); }

  Device device_;
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  BackendSet attention_;
};

class FakePlatform final : public Platform {
 public:
  FakePlatform() { contexts_.push_back(std::make_unique<FakeContext>()); }

  FakeContext& context() { return dynamic_cast<FakeContext&>(*contexts_.front()); }
  std::span<const std::unique_ptr<DeviceContext>> contexts() const override { return contexts_; }
  PlatformDefaults defaults() const override {
    return {.max_num_seqs = 32, .max_num_rule_seqs = 8, .max_num_batched_tokens = 128};
  }
  RunnerBytes runner_bytes(const RunnerSizes& sizes,
                           std::span<const AttentionSelector> attention) const override {
    EXPECT_EQ(attention.size(), sizes.windows.size());
    return {.buffers = 0, .reserve = kReserve};
  }
  std::vector<int> decode_q_lens(int num_drafts, bool is_adaptive) const override {
    return is_adaptive ? std::vector{1, 1 + num_drafts} : std::vector{1 + num_drafts};
  }
  std::vector<DecodeKey> decode_keys(int max_num_seqs, int max_model_len,
                                     std::span<const int> /*q_lens*/) const override {
    return {{.num_reqs = 1, .max_kv_len = max_model_len},
            {.num_reqs = max_num_seqs, .max_kv_len = max_model_len}};
  }

 private:
  std::vector<std::unique_ptr<DeviceContext>> contexts_;
};

class EnginePlanTest : public ::testing::Test {
 protected:
  Result<EnginePlan> plan(const EngineConfig& config, const DraftRequest& drafts = {}) {
    QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(config));
    return plan_engine(config, files, platform_, drafts);
  }
  Result<EnginePlan> plan_with(const std::string& any, const std::string& decode = "",
                               const std::string& prefill = "") {
    EngineConfig config = tiny_config();
    config.attention_backend = any;
    config.decode_attention_backend = decode;
    config.prefill_attention_backend = prefill;
    return plan(config);
  }

  FakePlatform platform_;
};

TEST_F(EnginePlanTest, ABackendForBothPhasesServesThoseThatItCan) {
  const auto plan = value_of(plan_with("xqa"));
  EXPECT_EQ(report_attention(plan.target.attention).backends, "decode: xqa, prefill: native");
  // The log at start and `quire doctor` report the backend of the other phase, and the reason.
  const std::string remark =
      "`attention_backend` xqa cannot serve prefill: a) wrong phase. So auto selects another.";
  EXPECT_THAT(report_attention(plan.target.attention).summary, Contains(remark));
  EXPECT_THAT(report_attention(plan.target.attention).summary,
              Contains("decode of up to 512 tokens: xqa (forced by `attention_backend`)"));
  EXPECT_THAT(report_attention(plan.target.attention).summary,
              Contains("prefill: native (the only backend that serves this shape)"));
  EXPECT_THAT(report_attention(plan.target.attention).details, Contains(remark));

  const auto prefill = value_of(plan_with("native"));
  EXPECT_EQ(report_attention(prefill.target.attention).backends,
            "decode: flashinfer, prefill: native");
  EXPECT_THAT(report_attention(prefill.target.attention).summary,
              Contains(HasSubstr("native cannot serve decode")));
}

TEST_F(EnginePlanTest, QueryLengthsOfDecodeAreSaidApart) {
  const std::vector<int> q_lens = {1, 5};
  dynamic_cast<PickyBackend&>(*platform_.context().attention().all()[1]).max_q_len = 1;
  const AttentionShape shape = {.num_heads = 8};
  auto selector = value_of(AttentionSelector::create(
      platform_.context().attention(), {shape, shape}, platform_.context().device(), {.any = "xqa"},
      std::make_shared<TuningTable>(), q_lens));
  EnginePlan plan;
  plan.target.attention.kv_groups.resize(1);
  plan.target.attention.selectors.push_back(selector);
  for (const int q_len : q_lens) {
    plan.target.attention.decode_keys.push_back({.num_reqs = 4, .max_kv_len = 512, .q_len = q_len});
  }
  const std::vector<std::string> lines = report_attention(plan.target.attention).summary;
  EXPECT_THAT(lines, Contains("decode of up to 512 tokens: xqa (forced by `attention_backend`)"));
  EXPECT_THAT(lines, Contains("decode of 5 query tokens of up to 512 tokens: flashinfer (the only "
                              "backend that serves this shape)"));
  EXPECT_THAT(report_attention(plan.target.attention).details,
              Contains(HasSubstr("decode of 5 query tokens of 4 up to")));
}

TEST_F(EnginePlanTest, ABackendOfNoPhaseIsRefused) {
  EXPECT_THAT(plan_with("cudnn").status().message(),
              HasSubstr("`attention_backend` cudnn cannot serve decode: a) too many heads."));
  EXPECT_THAT(plan_with("xqa", "flashinfer").status().message(),
              HasSubstr("`attention_backend` xqa cannot serve prefill"));
  EXPECT_THAT(plan_with("nonsense").status().message(), HasSubstr("must be one of auto, "));
}

TEST_F(EnginePlanTest, AFlagForOnePhaseIsStrict) {
  EXPECT_THAT(plan_with("auto", "native").status().message(),
              HasSubstr("`decode_attention_backend` native cannot serve decode"));
  EXPECT_THAT(plan_with("xqa", "", "flashinfer").status().message(),
              HasSubstr("`prefill_attention_backend` flashinfer cannot serve prefill"));
  const auto plan = value_of(plan_with("xqa", "", "native"));
  EXPECT_EQ(report_attention(plan.target.attention).backends, "decode: xqa, prefill: native");
}

TEST_F(EnginePlanTest, AStepHasATokenOfEachSequence) {
  EngineConfig config = tiny_config();
  config.max_num_seqs = 64;
  config.max_num_batched_tokens = 24;
  const auto plan = value_of(this->plan(config));
  EXPECT_EQ(plan.scheduler.max_num_seqs, 24);
  EXPECT_EQ(plan.target.attention.decode_keys.back().num_reqs, 24);
  config.max_num_seqs = 0;
  EXPECT_EQ(this->plan(config)->scheduler.max_num_seqs, 24);
  config.max_num_batched_tokens = 0;
  EXPECT_EQ(this->plan(config)->scheduler.max_num_seqs, 32);
  config.max_num_seqs = 65536;
  EXPECT_THAT(this->plan(config).status().message(), HasSubstr("max_num_seqs: must be"));
}

TEST_F(EnginePlanTest, TheSchedulerBoundsTheTokensOfAPrompt) {
  EngineConfig config = tiny_config();
  EXPECT_EQ(plan(config)->scheduler.long_prefill_token_threshold, 0);
  config.long_prefill_token_threshold = 24;
  EXPECT_EQ(plan(config)->scheduler.long_prefill_token_threshold, 24);
}

TEST_F(EnginePlanTest, AStepHasTheDraftsOfEachSequence) {
  EngineConfig config = tiny_config();
  EXPECT_EQ(plan(config, {.num_drafts = 7})->scheduler.max_num_batched_tokens, 32 * 8);
  config.max_num_seqs = 64;
  EXPECT_EQ(plan(config, {.num_drafts = 7})->scheduler.max_num_batched_tokens, 64 * 8);
  EXPECT_EQ(plan(config, {.num_drafts = 7})->scheduler.max_num_seqs, 64);
  config.max_num_batched_tokens = 100;
  EXPECT_EQ(plan(config, {.num_drafts = 7})->scheduler.max_num_seqs, 12) << "8 tokens each";
}

TEST_F(EnginePlanTest, AttentionIsPlannedForEachQueryLengthOfDecode) {
  const auto q_lens_of = [](const EnginePlan& plan) {
    std::vector<int> q_lens;
    for (const AttentionUse& use : plan.target.attention.selectors[0].eager_uses()) {
      if (use.phase == Phase::kDecode) q_lens.push_back(use.q_len);
    }
    return q_lens;
  };
  const auto fixed = value_of(plan(tiny_config(), {.num_drafts = 4}));
  EXPECT_THAT(fixed.sizes.decode_q_lens, ElementsAre(5));
  EXPECT_THAT(q_lens_of(fixed), ElementsAre(5));
  const auto adaptive = value_of(plan(tiny_config(), {.num_drafts = 4, .is_adaptive = true}));
  EXPECT_THAT(adaptive.sizes.decode_q_lens, ElementsAre(1, 5));
  EXPECT_THAT(q_lens_of(adaptive), ElementsAre(1, 5));
}

TEST_F(EnginePlanTest, ABlockDrafterHasOneQueryLength) {
  EngineConfig config = eagle_target();
  // It serves the target, but no block, because it is causal.
  config.attention_backend = "xqa";
  const auto files = value_of(open_model_files(config));
  const auto plan_block = [&](DraftModelKind kind, const char* method) {
    const auto draft = value_of(DraftModel::open(
        config, {.kind = kind, .model = block_drafter(method), .method = method, .num_drafts = 4},
        files.config));
    return plan(config, {.num_drafts = 4, .model = draft.get(), .is_adaptive = true});
  };
  const auto dflash = value_of(plan_block(DraftModelKind::kDFlash, "dflash"));
  EXPECT_EQ(report_attention(dflash.target.attention).backends, "decode: xqa, prefill: native");
  EXPECT_EQ(report_attention(dflash.draft->attention).backends,
            "decode: flashinfer, prefill: native");
  EXPECT_EQ(dflash.draft->attention.selectors[0].eager_uses()[0].q_len, 5);
  EXPECT_EQ(dflash.draft->attention.selectors[0].eager_uses().size(), 2) << "and prompts";
  EXPECT_EQ(dflash.sizes.draft_q_len, 5);
  EXPECT_EQ(dflash.scheduler.num_draft_kv_slots, 5);

  const auto dspark = value_of(plan_block(DraftModelKind::kDSpark, "dspark"));
  EXPECT_EQ(dspark.draft->attention.selectors[0].eager_uses()[0].q_len, 4);
  EXPECT_EQ(dspark.sizes.draft_q_len, 4);
}

TEST_F(EnginePlanTest, ADrafterPassesOverStepsAndTokens) {
  const EngineConfig config = eagle_target();
  const auto files = value_of(open_model_files(config));
  const auto draft = value_of(DraftModel::open(
      config,
      {.kind = DraftModelKind::kEagle3, .model = eagle_head(), .method = "eagle3", .num_drafts = 4},
      files.config));
  const auto planned = value_of(plan(config, {.num_drafts = 4, .model = draft.get()}));
  const std::vector<AttentionUse> uses = planned.draft->attention.selectors[0].eager_uses();
  ASSERT_EQ(uses.size(), 3);
  EXPECT_EQ(uses[0].q_len, 1);
  EXPECT_EQ(uses[1].q_len, 5);
  EXPECT_EQ(planned.sizes.draft_q_len, 1);
}

TEST_F(EnginePlanTest, PlansTheDistributionsOfDrafts) {
  EngineConfig config = tiny_config();
  config.max_num_seqs = 8;
  const auto without = plan(config, {.num_drafts = 4});
  const auto with = plan(config, {.num_drafts = 4, .has_probs = true});
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_EQ(with->memory_request.activation_bytes,
            without->memory_request.activation_bytes + 8 * 4 * 96 * 4);
}

TEST_F(EnginePlanTest, PlansTheTokensThatAreLookedUp) {
  EngineConfig config = tiny_config();
  config.max_num_seqs = 8;
  config.max_model_len = 200;
  const auto without = plan(config, {.num_drafts = 4});
  const auto with = plan(config, {.num_drafts = 4, .by_lookup = true});
  ASSERT_TRUE(without.ok() && with.ok());
  EXPECT_EQ(with->memory_request.activation_bytes,
            without->memory_request.activation_bytes + 8 * 200 * 4);
}

TEST_F(EnginePlanTest, PlansTheWorkspaceOfExperts) {
  const EngineConfig config = tiny_experts_config();
  const auto planned = value_of(plan(config));
  const ModelConfig model = open_model_files(config)->config;
  const ModelLimits& limits = planned.sizes.limits;
  const Ops& ops = platform_.context().ops();
  const int64_t workspace = experts_workspace_bytes(model, limits, ops).value();
  EXPECT_GT(workspace, 0);
  EXPECT_EQ(planned.memory_request.activation_bytes,
            decoder_activation_bytes(model, limits, ops) + workspace);
}

TEST_F(EnginePlanTest, RefusesExpertsThatTheDeviceDoesNotCompute) {
  DenseOps ops;
  platform_.context().other_ops = &ops;
  EXPECT_TRUE(plan(tiny_config()).ok());
  const auto refused = plan(tiny_experts_config());
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
  EXPECT_THAT(refused.status().message(), HasSubstr("`device` cpu"));
}

TEST_F(EnginePlanTest, SequencesWithRulesAreNoMoreThanAll) {
  EngineConfig config = tiny_config();
  EXPECT_EQ(plan(config)->scheduler.max_num_rule_seqs, 8) << "the platform's default";
  config.max_num_seqs = 4;
  EXPECT_EQ(plan(config)->scheduler.max_num_rule_seqs, 4);
  config.max_num_rule_seqs = 3;
  EXPECT_EQ(plan(config)->scheduler.max_num_rule_seqs, 3);
  config.max_num_rule_seqs = -1;
  EXPECT_THAT(plan(config).status().message(), HasSubstr("max_num_rule_seqs: must be"));
}

TEST_F(EnginePlanTest, KeepsAReserveForUnknownMemory) {
  const auto plan = value_of(this->plan(tiny_config()));
  EXPECT_EQ(plan.memory_request.reserve_bytes, kReserve);
  EXPECT_EQ(plan.sizes.max_columns, 112) << "intermediate_size";
  EXPECT_EQ(plan.sizes.latent_head_width, 0);
  EXPECT_GE(plan.memory_plan.left_bytes, 0);
  const int64_t planned = plan.memory_request.weight_bytes + plan.memory_request.activation_bytes +
                          plan.memory_request.workspace_bytes + plan.memory_request.reserve_bytes +
                          plan.memory_plan.kv_bytes;
  EXPECT_EQ(planned + plan.memory_plan.left_bytes, platform_.context().free_bytes);
  platform_.context().free_bytes = kReserve;
  const auto none = this->plan(tiny_config());
  EXPECT_EQ(none.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(none.status().message(), HasSubstr("raise `gpu_memory_utilization`"));
  EXPECT_EQ(none.status().message().find('\n'), std::string::npos);
}

// A window as long as the context that fits hides nothing: its layers join the others.
TEST_F(EnginePlanTest, AShrunkContextHasTheGroupsAndTablesOfItsOwn) {
  EngineConfig config = tiny_windows_config();
  config.kv_cache_memory = int64_t{30} << 10;
  const auto shrunk = value_of(plan(config));
  config.max_model_len = shrunk.sizes.limits.max_model_len;
  ASSERT_LE(config.max_model_len, 40) << "the window";
  const auto asked_for = value_of(plan(config));
  EXPECT_EQ(shrunk.target.attention.kv_groups.size(), 1U);
  EXPECT_EQ(shrunk.sizes.windows, asked_for.sizes.windows);
  EXPECT_EQ(shrunk.memory_plan.num_blocks, asked_for.memory_plan.num_blocks);
  EXPECT_EQ(shrunk.scheduler.tables.size(), 1U);
}

// Also on a machine without a GPU, whose absence would be the next error.
TEST(MakePlatform, RefusesAnInt8CacheOnAGpu) {
  const auto files = value_of(open_model_files(tiny_config()));
  EngineConfig config = tiny_config();
  config.device = "cpu";
  config.kv_cache_dtype = "int8";
  EXPECT_TRUE(make_platform(config, files).ok());
  config.device = "cuda";
  EXPECT_EQ(make_platform(config, files).status().message(),
            "[engine] kv_cache_dtype: got int8 on a GPU, expected fp8, a GPU's cache in 8 bits; "
            "int8 is for `device` cpu");
}

// A head of 16 elements takes 20 bytes in 8-bit integers and 64 in F32.
TEST(PlanEngine, PlansTheBytesOfAnInt8Cache) {
  EngineConfig config = tiny_config();
  config.device = "cpu";
  config.kv_cache_dtype = "f32";
  const auto bytes_of_block = [&] {
    const auto files = open_model_files(config);
    const auto platform = make_platform(config, *files);
    return plan_engine(config, *files, **platform)->memory_request.tables.front().block_bytes;
  };
  const int64_t in_f32 = bytes_of_block();
  config.kv_cache_dtype = "int8";
  EXPECT_EQ(bytes_of_block() * 64, in_f32 * 20);
}

TEST(MakePlatform, RefusesAShareOutOfRange) {
  const auto files = value_of(open_model_files(tiny_config()));
  for (const double share : {0.0, -0.5, 1.5, std::nan("")}) {
    EngineConfig config = tiny_config();
    config.gpu_memory_utilization = share;
    EXPECT_THAT(make_platform(config, files).status().message(),
                HasSubstr("gpu_memory_utilization: must be"));
  }
}

}  // namespace
}  // namespace quire::testing
