// The microseconds of a step's sampling in a graph, and of the upload of masks.
// `bench_cuda_sampler` prints a row per kind of parameters, with a column per number of logits
// rows.
#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <string>

#include "cuda/base/graph.h"
#include "cuda/sample/sampler_rig.h"

namespace quire::cuda {
namespace {

constexpr int kVocab = 128256;

struct Case {
  std::string name;
  SamplingParams params;
  float spread = 3.0F;
  bool is_masked = false;
  int every = 1;  // every nth slot has the parameters; the others sample randomly
};

std::vector<Case> make_cases() {
  const auto with = [](auto change) {
    SamplingParams params;
    change(params);
    return params;
  };
  return {
      {"greedy", with([](auto& p) { p.temperature = 0; })},
      {"random", with([](auto&) {})},
      {"min_p 0.05", with([](auto& p) { p.min_p = 0.05F; })},
      {"top_k 50", with([](auto& p) { p.top_k = 50; })},
      {"top_k 50 top_p 0.9", with([](auto& p) {
         p.top_k = 50;
         p.top_p = 0.9F;
       })},
      {"top_p 0.9, sure", with([](auto& p) { p.top_p = 0.9F; }), 8.0F},
      {"top_p 0.9, unsure", with([](auto& p) { p.top_p = 0.9F; }), 1.0F},
      {"top_k 20000 top_p 0.9", with([](auto& p) {
         p.top_k = 20000;
         p.top_p = 0.9F;
       })},
      {"greedy logprobs 20", with([](auto& p) {
         p.temperature = 0;
         p.logprobs = 20;
       })},
      {"penalties top_p 0.9", with([](auto& p) {
         p.top_p = 0.9F;
         p.frequency_penalty = 0.5F;
       })},
      {"1 of 8 penalties", with([](auto& p) { p.frequency_penalty = 0.5F; }), 3.0F, false, 8},
      {"1 of 8 logprobs 5", with([](auto& p) { p.logprobs = 5; }), 3.0F, false, 8},
      {"1 of 256 penalties", with([](auto& p) { p.frequency_penalty = 0.5F; }), 3.0F, false, 256},
      {"greedy, masked", with([](auto& p) { p.temperature = 0; }), 3.0F, true},
      {"top_p 0.9, masked", with([](auto& p) { p.top_p = 0.9F; }), 3.0F, true},
  };
}

Result<double> microseconds_of(SamplerRig& rig, const SamplePlan& plan) {
  using std::chrono::steady_clock;
  constexpr int kReplays = 20;
  QUIRE_ASSIGN_OR_RETURN(const CudaGraph graph, CudaGraph::capture(rig.stream(), [&]() -> Status {
                           for (int n = 0; n < kReplays; ++n) {
                             rig.sampler().sample(plan, rig.logits_view(plan.num_rows()),
                                                  rig.slots(), rig.offsets(), rig.stream());
                           }
                           return {};
                         }));
  steady_clock::time_point begin;
  for (int round = 0; round < 2; ++round) {  // the first warms up
    begin = steady_clock::now();
    graph.launch(rig.stream());
    QUIRE_RETURN_IF_ERROR(rig.stream().synchronize());
  }
  return std::chrono::duration<double, std::micro>(steady_clock::now() - begin).count() / kReplays;
}

Status print_sampling() {
  fmt::print("{:24}{:>8}{:>8}{:>8}{:>8}   us, {} tokens\n", "rows", 1, 8, 64, 256, kVocab);
  QUIRE_ASSIGN_OR_RETURN(const auto owner, SamplerRig::create({256, 256, 256, kVocab, 2048}));
  SamplerRig& rig = *owner;
  for (const Case& test : make_cases()) {
    std::mt19937 random(5);
    std::vector<float> eight = random_logits(8 * kVocab, test.spread, 0, random);
    std::vector<SlotAdded> added;
    std::vector<int32_t> slots;
    for (int slot = 0; slot < 256; ++slot) {
      SlotAdded one;
      one.slot = slot;
      one.token_ids = std::vector<int32_t>{1, 2, 3};
      one.num_prompt_tokens = 3;
      one.sampling = std::make_shared<SamplingSpec>(SamplingSpec{
          .params = std::make_shared<SamplingParams>(slot % test.every == 0 ? test.params
                                                                            : SamplingParams()),
          .seed = static_cast<uint64_t>(slot)});
      added.push_back(one);
      slots.push_back(slot);
      if (slot % 8 == 0) {
        rig.stream().copy_to_device(rig.logits() + static_cast<size_t>(slot) * kVocab, eight.data(),
                                    eight.size() * sizeof(float));
      }
    }
    rig.stream().copy_to_device(rig.slots(), slots.data(), slots.size() * sizeof(int32_t));
    QUIRE_RETURN_IF_ERROR(rig.add_slots(added));
    fmt::print("{:24}", test.name);
    for (const int num_rows : {1, 8, 64, 256}) {
      const std::vector<int32_t> ids(slots.begin(), slots.begin() + num_rows);
      StepMasks masks;
      if (test.is_masked) {
        masks.idx = ids;
        masks.masks.assign(ids.size(), std::vector<uint32_t>(kVocab / 32, 0xF0F0F0F0U));
      }
      const SamplePlan plan = rig.plan(ids, masks);
      QUIRE_RETURN_IF_ERROR(rig.stream().synchronize());
      QUIRE_ASSIGN_OR_RETURN(const double microseconds, microseconds_of(rig, plan));
      fmt::print("{:8.1f}", microseconds);
    }
    fmt::print("\n");
  }
  return {};
}

// Measures on the host's clock how long masks take to reach device memory.
Status print_masks() {
  using std::chrono::steady_clock;
  QUIRE_ASSIGN_OR_RETURN(const auto owner, SamplerRig::create({256, 256, 256, kVocab, 2048}));
  SamplerRig& rig = *owner;
  fmt::print("{:24}", "upload of masks");
  for (const size_t count : {1, 8, 64, 256}) {
    const std::vector<std::vector<uint32_t>> masks(count, std::vector<uint32_t>(kVocab / 32, 1U));
    const std::vector<int32_t> idx(256, 0);
    std::vector<int32_t> rows(256);
    std::iota(rows.begin(), rows.end(), 0);
    steady_clock::time_point begin;
    for (int round = 0; round < 9; ++round) {
      if (round == 4) begin = steady_clock::now();  // each of the ring's slots was used
      rig.plan(rows, {.idx = idx, .masks = masks});
      QUIRE_RETURN_IF_ERROR(rig.stream().synchronize());
    }
    const std::chrono::duration<double, std::micro> took = steady_clock::now() - begin;
    fmt::print("{:8.1f}", took.count() / 5);
  }
  fmt::print("\n");
  return {};
}

Status run() {
  QUIRE_RETURN_IF_ERROR(open_test_device());
  QUIRE_RETURN_IF_ERROR(print_sampling());
  return print_masks();
}

}  // namespace
}  // namespace quire::cuda

int main() {
  const quire::Status status = quire::cuda::run();
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", status.message());
  return 1;
}
