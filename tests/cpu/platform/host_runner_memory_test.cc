// If the device thread cannot allocate memory, its steps fail and the process continues.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "cpu/ops/cpu_ops.h"
#include "cpu/platform/host_runner.h"
#include "ops/weight_store.h"
#include "support/scarce_memory.h"

namespace quire {
namespace {

// Lets every allocation of the device thread fail from its first step on.
class HungryModel final : public Model {
 public:
  explicit HungryModel(bool throws_int) : throws_int_(throws_int) { config_.vocab_size = 8; }

  const ModelConfig& config() const override { return config_; }
  const std::vector<KvGroup>& kv_groups() const override { return groups_; }
  Status forward(const StepInput& /*input*/) override {
    thread_local std::optional<testing::ScarceMemory> scarce;
    if (!scarce) scarce.emplace(0);
    if (throws_int_) throw 7;
    throw std::bad_alloc();
  }
  Status compute_logits(const int32_t*, int, TensorView) override { return {}; }
  Status hidden_states(const int32_t*, int, TensorView) override { return {}; }

 private:
  const bool throws_int_;
  ModelConfig config_;
  std::vector<KvGroup> groups_ = std::vector<KvGroup>(1);
};

TEST(HostRunnerOutOfMemory, FailsItsStepsAndNothingElse) {
  for (const bool throws_int : {false, true}) {
    HungryModel model(throws_int);
    HostDevice device(1);
    RunnerParts parts;
    parts.instance = {.model = &model};
    parts.sizes = {.limits = {.max_num_tokens = 16, .max_num_logit_rows = 2, .max_model_len = 64},
                   .max_num_seqs = 2,
                   .vocab_size = 8};
    const Result<std::unique_ptr<Runner>> runner = HostRunner::create(parts, device);
    ASSERT_TRUE(runner.ok());
    for (int i = 0; i < kMaxStepsInFlight; ++i) (*runner)->enqueue(std::make_shared<BatchPlan>());
    for (int i = 0; i < kMaxStepsInFlight; ++i) {
      EXPECT_EQ((*runner)->wait().error.message(), "out of memory");
    }
  }
}

// Sanitizers reserve address space, so they cannot run with a limit on it.
#ifdef __has_feature
constexpr bool kIsSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

TEST(CpuOpsOutOfMemory, FailAtTheFirstMatrix) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer cannot run with a limit on address space";
  std::vector<float> numbers(64);
  const WeightView matrix(TensorView{numbers.data(), DType::kF32, {8, 8}});
  ThreadPool pool(1);
  const auto make_linear = [&] {
    const rlimit limit = {0, 0};
    ::setrlimit(RLIMIT_AS, &limit);
    const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
    const StatusCode code =
        ops->weights().make_linear({.numbers = StoredMatrices{{&matrix, 1}}}).status().code();
    std::_Exit(code == StatusCode::kResourceExhausted ? 0 : 1);
  };
  EXPECT_EXIT(make_linear(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace quire
