// An engine whose device fails: requests end with the error, the engine is unhealthy and refuses
// further requests, and the process continues.
#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <future>

#include "cuda/attention/backends.h"
#include "cuda/base/device_info.h"
#include "cuda/platform/cuda_runner.h"
#include "cuda/platform/gpu_engine.h"
#include "engine/engine_core.h"
#include "engine/input_processor.h"
#include "model/decoder.h"
#include "model/model_loader.h"
#include "start/model_files.h"

namespace quire::testing {
namespace {

using ::testing::HasSubstr;

enum class Fault { kNone, kUpdate, kNoted };

// A plan of the native backend that fails on demand: before anything is enqueued, or by an error
// that the stream keeps, like a failed launch of a kernel.
class FailingPlan final : public AttentionPlan {
 public:
  FailingPlan(std::unique_ptr<AttentionPlan> plan, const std::atomic<Fault>& fault)
      : plan_(std::move(plan)), fault_(fault) {}

  size_t workspace_bytes() const override { return plan_->workspace_bytes(); }
  Status update(const AttentionBatch& batch, Stream& stream) override {
    if (fault_ == Fault::kUpdate) return internal_error("[failing] an update that fails");
    if (fault_ == Fault::kNoted)
      cuda::as_cuda(stream).record_error(internal_error("[failing] a launch"));
    return plan_->update(batch, stream);
  }
  Status run(const AttentionCall& call, Stream& stream) override {
    return plan_->run(call, stream);
  }

 private:
  std::unique_ptr<AttentionPlan> plan_;
  const std::atomic<Fault>& fault_;
};

class FailingAttention final : public AttentionBackend {
 public:
  explicit FailingAttention(const cuda::DeviceInfo& info)
      : backend_(cuda::make_native_attention(info)) {}

  std::string_view name() const override { return "failing"; }
  Support supports(const AttentionShape& shape, const AttentionUse& use,
                   const Device& device) const override {
    return backend_->supports(shape, use, device);
  }
  Result<std::unique_ptr<AttentionPlan>> make_plan(const AttentionShape& shape,
                                                   const PlanLimits& limits) override {
    QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<AttentionPlan> plan, backend_->make_plan(shape, limits));
    return std::unique_ptr<AttentionPlan>(std::make_unique<FailingPlan>(std::move(plan), fault));
  }

  std::atomic<Fault> fault = Fault::kNone;

 private:
  std::unique_ptr<AttentionBackend> backend_;
};

// An engine that is assembled from its parts, with the failing backend.
class GpuFault : public GpuTest, public ::testing::WithParamInterface<Fault> {
 protected:
  static constexpr int kMaxNumSeqs = 4;

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    const Status started = start();
    ASSERT_TRUE(started.ok()) << started.message();
  }

  Status start() {
    QUIRE_ASSIGN_OR_RETURN(files_, open_model_files(tiny_f32("cuda")));
    QUIRE_ASSIGN_OR_RETURN(const cuda::DeviceInfo info, cuda::open_device(0));
    QUIRE_ASSIGN_OR_RETURN(stream_, cuda::CudaStream::create());
    QUIRE_ASSIGN_OR_RETURN(ops_, cuda::CudaOps::create(*stream_, DType::kF32));
    auto backend = std::make_unique<FailingAttention>(info);
    failing_ = backend.get();
    backends_.add(std::move(backend));

    const ModelLimits limits = {.max_num_tokens = 64,
                                .max_num_logit_rows = 32,
                                .max_model_len = 256,
                                .page_size = 16,
                                .kv_dtype = DType::kF32};
    const std::vector<KvGroup> groups = decoder_kv_groups(files_.config, limits, DType::kF32);
    const std::array q_lens = {limits.decode_q_len()};
    QUIRE_ASSIGN_OR_RETURN(
        AttentionSelector selector,
        AttentionSelector::create(backends_, {groups.at(0).decode, groups.at(0).prefill},
                                  info.device, {}, std::make_shared<TuningTable>(), q_lens));
    const PlanLimits largest = {.use = {},
                                .max_num_reqs = kMaxNumSeqs,
                                .max_num_tokens = limits.max_num_tokens,
                                .max_kv_len = limits.max_model_len};
    QUIRE_ASSIGN_OR_RETURN(
        AttentionPlans plans,
        AttentionPlans::make(selector, largest,
                             cuda::graph_keys(kMaxNumSeqs, limits.max_model_len, q_lens)));
    plans_.push_back(std::move(plans));
    const size_t workspace_bytes = plans_[0].workspace_bytes();
    QUIRE_ASSIGN_OR_RETURN(workspace_, cuda::device_memory(workspace_bytes));
    QUIRE_ASSIGN_OR_RETURN(model_, load_model(files_.config, *files_.weights, *ops_, limits));
    constexpr int kNumBlocks = 100;
    QUIRE_ASSIGN_OR_RETURN(kv_cache_, KvCache::allocate(groups, {}, std::array{kNumBlocks}, *ops_));
    QUIRE_ASSIGN_OR_RETURN(
        std::unique_ptr<Runner> runner,
        cuda::CudaRunner::create(
            {.instance = {.model = model_.get(),
                          .kv_cache = &kv_cache_,
                          .attention = {selector},
                          .plans = plans_},
             .sizes = {.limits = limits,
                       .max_num_seqs = kMaxNumSeqs,
                       .max_num_rule_seqs = kMaxNumSeqs,
                       .vocab_size = files_.config.vocab_size,
                       .num_layers = files_.config.num_layers},
             .workspace = {static_cast<std::byte*>(workspace_.data()), workspace_bytes}},
            *ops_, *stream_));
    core_ = std::make_unique<EngineCore>(SchedulerConfig{.max_num_seqs = kMaxNumSeqs,
                                                         .max_num_batched_tokens = 64,
                                                         .max_model_len = limits.max_model_len,
                                                         .block_size = 16,
                                                         .tables = {{.num_blocks = kNumBlocks}}},
                                         std::move(runner));
    return {};
  }

  // A request's output so far, and how it ended.
  struct Answer {
    std::promise<void> first_token;
    std::promise<Output> last;
    int num_tokens = 0;
  };

  std::shared_ptr<Answer> submit(int max_tokens) {
    auto answer = std::make_shared<Answer>();
    auto submission =
        processor_.prepare(greedy(tiny_prompt(9, 1), max_tokens), [answer](Output&& output) {
          if (answer->num_tokens++ == 0) {
            answer->first_token.set_value();
          }
          if (output.finish_reason) {
            answer->last.set_value(std::move(output));
          }
        });
    EXPECT_TRUE(submission.ok()) << submission.status().message();
    EXPECT_TRUE(core_->submit(std::move(*submission)).ok());
    return answer;
  }

  ModelFiles files_;
  std::unique_ptr<cuda::CudaStream> stream_;
  std::unique_ptr<cuda::CudaOps> ops_;
  BackendSet backends_;
  FailingAttention* failing_ = nullptr;
  std::vector<AttentionPlans> plans_;
  Buffer workspace_;
  std::unique_ptr<Model> model_;
  KvCache kv_cache_;
  InputProcessor processor_{nullptr, {.vocab_size = 96, .max_model_len = 256, .eos_ids = {2}}};
  std::unique_ptr<EngineCore> core_;
};

TEST_P(GpuFault, FailsRunningRequestsAndMarksTheEngine) {
  EXPECT_EQ(submit(5)->last.get_future().get().finish_reason, FinishReason::kLength);
  const auto first = submit(200);
  const auto second = submit(200);
  first->first_token.get_future().wait();
  EXPECT_TRUE(core_->health().ok());
  failing_->fault = GetParam();
  for (const auto& answer : {first, second}) {
    const Output last = answer->last.get_future().get();
    EXPECT_EQ(last.finish_reason, FinishReason::kError);
    EXPECT_THAT(last.error.message(), HasSubstr("[failing]"));
  }
  EXPECT_THAT(core_->health().message(), HasSubstr("[failing]"));
  // The failure is permanent: the engine does not use the device again.
  failing_->fault = Fault::kNone;
  const Output refused = submit(5)->last.get_future().get();
  EXPECT_EQ(refused.finish_reason, FinishReason::kError);
  EXPECT_EQ(refused.error.code(), StatusCode::kUnavailable);
  core_->stop();
  EXPECT_TRUE(stream_->synchronize().ok());
}

INSTANTIATE_TEST_SUITE_P(Faults, GpuFault, ::testing::Values(Fault::kUpdate, Fault::kNoted),
                         [](const auto& fault) {
                           return fault.param == Fault::kUpdate ? "update" : "noted";
                         });

}  // namespace
}  // namespace quire::testing
