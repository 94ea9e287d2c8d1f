#include "cuda/platform/cuda_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "cuda/base/device_info.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/platform/runner_bytes.h"
#include "cuda/step/draft_costs.h"

namespace quire::cuda {
namespace {

// The next step is enqueued before the results of the oldest step are released.
constexpr int kNumResultBuffers = kMaxStepsInFlight + 1;
// Lengths of the warm-up prompts: long and short prompts use different kernels.
constexpr int kWarmUpPrompts[] = {512, 48, 4};
// The distance between the ids of neighbouring tokens of padding.
constexpr int64_t kTokenStride = 7919;

// One runner's start. Its steps are declared, and defined below, in the order in which they happen.
class Start {
 public:
  Start(StepParts& made, CudaOps& ops)
      : made_(made),
        runner_(made.runner),
        sizes_(made.runner.sizes),
        ops_(ops),
        stream_(made.stream),
        target_(made.target) {}

  Status run();

 private:
  void check_sizes() const;

  // 1. Memory.
  Status make_drafter();
  Status allocate();
  Status allocate_results();

  // 2. Kernels.
  // Runs a step with the largest number of rows, which also initializes everything that is
  // initialized on first use, and measures every matrix product in every row bucket.
  Status warm_up();
  // Samples padding from parts of the logits, greedily and randomly, so that CUDA loads these
  // kernels before a step: the first use of a kernel waits for the device, and so for the other
  // ranks.
  Status warm_up_choice();
  // Runs padding-only prompts through every candidate prefill backend, so that CUDA loads their
  // kernels before the first request.
  Status warm_up_prompts();
  Status run_padded_prompt(int num_tokens, std::span<const AttentionChoice> choices);

  // 3. Graphs.
  // First runs a step with each combination of backends, because libraries initialize on first use,
  // which must not happen within a capture.
  Status capture_graphs();
  Result<CudaGraph> capture(const DecodeGraph& graph);

  // 4. The drafter, if there is one.
  // Measures the products of the drafter's model, captures its graphs, and measures the costs of
  // steps with drafts.
  Status start_drafter();
  Status capture_draft_graphs();
  // Whether the runner chooses how many drafts a step verifies, by measured costs.
  bool chooses_drafts() const;
  // Finds the costs of the steps and proposals that an adaptive runner chooses between: kept costs,
  // otherwise measured costs. All ranks measure at the same time.
  Status find_draft_costs();
  std::string draft_costs_key(const DraftCosts& steps) const;
  Result<DraftCosts> measure_draft_steps(const DraftCosts& steps);

  // Steps of padding, which the start runs and captures.
  // Runs the model on num_tokens tokens of padding, and computes the logits of the graph's batch.
  // The first of these tokens are the batch, which attention receives.
  Status run_padding(const DecodeGraph& graph, int num_tokens);
  // Uploads and plans a batch of padding alone.
  Result<std::span<const KvGroupStep>> plan_padding(const DecodeGraph& graph);
  // The plans for the target's inputs, which are padded to the graph.
  std::span<const AttentionChoice> choices_of(const DecodeGraph& graph);
  // Uploads a batch of padding alone, and describes it in the target's inputs.
  Status upload_padding(const GraphBatch& batch);
  // Does what upload_padding() does, and derives the batch's arrays.
  Status derive_padding(const GraphBatch& batch);

  StepParts& made_;
  const RunnerParts& runner_;
  const RunnerSizes& sizes_;
  CudaOps& ops_;
  CudaStream& stream_;
  TargetPass& target_;
};

Status Start::run() {
  QUIRE_RETURN_IF_ERROR(use_device(stream_.limits().device));
  check_sizes();
  QUIRE_RETURN_IF_ERROR(ops_.weights().finish());
  QUIRE_RETURN_IF_ERROR(make_drafter());
  QUIRE_RETURN_IF_ERROR(allocate());
  QUIRE_RETURN_IF_ERROR(warm_up());
  QUIRE_RETURN_IF_ERROR(warm_up_prompts());
  if (!sizes_.enforce_eager) QUIRE_RETURN_IF_ERROR(capture_graphs());
  return made_.draft_stage ? start_drafter() : Status();
}

void Start::check_sizes() const {
  const ModelLimits& limits = sizes_.limits;
  const int most = sizes_.max_num_seqs * limits.decode_q_len();
  QUIRE_CHECK(
      most <= limits.max_num_tokens && most <= limits.max_num_logit_rows,
      fmt::format("[cuda] a step cannot decode all sequences at once; got max_num_seqs {} with {} "
                  "query tokens each, expected at most {} tokens and {} logits rows per step",
                  sizes_.max_num_seqs, limits.decode_q_len(), limits.max_num_tokens,
                  limits.max_num_logit_rows));
}

Status Start::make_drafter() {
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<CudaDrafter> drafter,
                         cuda::make_drafter(runner_.drafts, drafter_limits(sizes_), ops_, stream_));
  if (drafter != nullptr) made_.draft_stage.emplace(std::move(drafter), stream_);
  return {};
}

Status Start::allocate() {
  QUIRE_RETURN_IF_ERROR(target_.allocate());
  QUIRE_ASSIGN_OR_RETURN(made_.prompt_logprobs,
                         PromptLogprobs::create(sizes_.limits, sizes_.max_num_seqs));
  for (int i = 0; i < kNumResultBuffers; ++i) QUIRE_RETURN_IF_ERROR(allocate_results());
  return {};
}

Status Start::allocate_results() {
  const size_t sampled_bytes =
      target_.embeds() ? target_.outputs.view.num_bytes()
                       : DeviceSampler::results_bytes(sizes_.limits.max_num_logit_rows, true);
  QUIRE_ASSIGN_OR_RETURN(Buffer sampled, pinned_memory(sampled_bytes));
  QUIRE_ASSIGN_OR_RETURN(Buffer prompt_logprobs,
                         pinned_memory(PromptLogprobs::results_bytes(sizes_.limits)));
  QUIRE_ASSIGN_OR_RETURN(CudaEvent arrived, CudaEvent::create());
  made_.results.push_back(
      {std::move(sampled), std::move(prompt_logprobs), {}, std::move(arrived), {}});
  if (!made_.draft_stage) return {};
  const auto num_next_tokens =
      static_cast<size_t>(sizes_.max_num_seqs) * static_cast<size_t>(sizes_.limits.decode_q_len());
  StepResults& results = made_.results.back();
  QUIRE_ASSIGN_OR_RETURN(results.next_tokens, pinned_memory(num_next_tokens * sizeof(int32_t)));
  QUIRE_ASSIGN_OR_RETURN(Stopwatch verify, Stopwatch::create());
  QUIRE_ASSIGN_OR_RETURN(Stopwatch draft, Stopwatch::create());
  results.timers.emplace(std::move(verify), std::move(draft));
  return {};
}

Status Start::warm_up() {
  const int max_num_tokens = sizes_.limits.max_num_tokens;
  QUIRE_RETURN_IF_ERROR(ops_.tune_linears(row_buckets(max_num_tokens), [&] {
    return run_padding(made_.graphs.largest(), max_num_tokens);
  }));
  if (target_.divides_logits()) QUIRE_RETURN_IF_ERROR(warm_up_choice());
  return stream_.synchronize();
}

Status Start::warm_up_choice() {
  const GraphBatch& batch = made_.graphs.largest().batch;
  const int num_rows = batch.num_tokens();
  QUIRE_RETURN_IF_ERROR(derive_padding(batch));
  target_.model().gather_logits(num_rows, target_.output_rows(num_rows));
  for (const bool is_random : {false, true}) {
    target_.sample(target_.sampler->plan_padding(num_rows, is_random));
  }
  return {};
}

Status Start::warm_up_prompts() {
  constexpr AttentionUse kPrompts = {.phase = Phase::kPrefill};
  const ModelInstance& instance = target_.instance();
  size_t most = 0;
  for (const AttentionSelector& selector : instance.attention) {
    most = std::max(most, selector.candidates(kPrompts).size());
  }
  for (size_t i = 0; i < most; ++i) {
    std::vector<AttentionChoice> choices;
    for (size_t g = 0; g < instance.attention.size(); ++g) {
      const auto candidates = instance.attention[g].candidates(kPrompts);
      const AttentionBackend& backend = *candidates[std::min(i, candidates.size() - 1)];
      choices.push_back({.prefill = &instance.plans[g].find(kPrompts, backend)});
    }
    for (const int num_tokens : kWarmUpPrompts) {
      QUIRE_RETURN_IF_ERROR(
          run_padded_prompt(std::min(num_tokens, sizes_.limits.max_num_tokens), choices));
    }
  }
  return stream_.synchronize();
}

// The request has no slot: its tokens attend to nothing, and their keys and values are not written.
Status Start::run_padded_prompt(int num_tokens, std::span<const AttentionChoice> choices) {
  BatchPlan plan;
  plan.spans = {{.slot = -1, .num_tokens = num_tokens}};
  plan.token_ids.resize(static_cast<size_t>(num_tokens));
  QUIRE_RETURN_IF_ERROR(target_.buffers.upload(plan, {}, nullptr, stream_));
  target_.buffers.derive(1, stream_);
  target_.inputs.describe(plan, target_.buffers.arrays());
  QUIRE_ASSIGN_OR_RETURN(const auto steps,
                         target_.attention.update(target_.inputs.batches(), choices, stream_));
  return target_.run_layers(num_tokens, steps);
}

Status Start::capture_graphs() {
  for (const DecodeGraph* graph : made_.graphs.one_of_each_choice()) {
    QUIRE_RETURN_IF_ERROR(run_padding(*graph, graph->batch.num_tokens()));
  }
  return made_.graphs.capture(stream_.limits().device,
                              [this](const DecodeGraph& graph) { return capture(graph); });
}

Result<CudaGraph> Start::capture(const DecodeGraph& graph) {
  QUIRE_ASSIGN_OR_RETURN(const auto steps, plan_padding(graph));
  return CudaGraph::capture(stream_, [&]() -> Status {
    target_.buffers.derive(graph.batch.num_reqs, stream_);
    const int num_tokens = graph.batch.num_tokens();
    QUIRE_RETURN_IF_ERROR(target_.run_layers(num_tokens, steps));
    return target_.compute_outputs(num_tokens);
  });
}

Status Start::start_drafter() {
  const int max_num_tokens = sizes_.limits.max_num_tokens;
  const auto run_largest = [&]() -> Status {
    const GraphBatch& batch = made_.graphs.largest().batch;
    QUIRE_RETURN_IF_ERROR(derive_padding(batch));
    return made_.draft_stage->run(target_.draft_step(&batch, max_num_tokens), batch.num_reqs,
                                  sizes_.limits.num_drafts);
  };
  QUIRE_RETURN_IF_ERROR(ops_.tune_linears(row_buckets(max_num_tokens), run_largest));
  if (!sizes_.enforce_eager) QUIRE_RETURN_IF_ERROR(capture_draft_graphs());
  return chooses_drafts() ? find_draft_costs() : stream_.synchronize();
}

Status Start::capture_draft_graphs() {
  for (const DecodeGraph& graph : made_.graphs.all()) {
    QUIRE_RETURN_IF_ERROR(derive_padding(graph.batch));
    QUIRE_RETURN_IF_ERROR(
        made_.draft_stage->capture(target_.draft_step(&graph.batch, graph.batch.num_tokens())));
  }
  made_.draft_stage->log_graphs();
  return {};
}

bool Start::chooses_drafts() const {
  if (!runner_.verification.is_adaptive) return false;
  if (!ops_.choices().measures()) {
    log_info("[cuda] every step verifies all drafts, because {} is off", SettingName{"measure"});
    return false;
  }
  // While a runner starts, eager steps leave out the collectives, so their times are too short.
  const bool omits_collectives = sizes_.enforce_eager && sizes_.limits.parallel.size > 1;
  if (omits_collectives) {
    log_info(
        "[cuda] every step verifies all drafts, because {} is set and several GPUs share the "
        "model",
        SettingName{"enforce_eager"});
  }
  return !omits_collectives;
}

// All ranks must choose the same number of proposals, so all choose by the times of rank 0, and
// rank 0 decides whether the ranks measure.
Status Start::find_draft_costs() {
  MeasuredChoices& choices = ops_.choices();
  const Agreement ranks = ops_.agreement();
  const DraftCosts steps = measured_draft_steps(made_.graphs);
  const std::string key = draft_costs_key(steps);
  const std::string own = choices.find(ChoiceKind::kDraftSteps, key).value_or("");
  QUIRE_ASSIGN_OR_RETURN(const std::string kept, ranks.from_first(from_base64(own)));
  if (Result<DraftCosts> costs = draft_costs_from_bytes(kept, steps); costs.ok()) {
    made_.draft_costs = std::move(*costs);
    return {};
  }
  // All ranks have loaded their kernels before one launches a graph that waits for the others.
  QUIRE_RETURN_IF_ERROR(stream_.synchronize());
  QUIRE_RETURN_IF_ERROR(ranks.wait());
  QUIRE_ASSIGN_OR_RETURN(const DraftCosts measured, measure_draft_steps(steps));
  QUIRE_ASSIGN_OR_RETURN(const std::string bytes, ranks.from_first(draft_costs_to_bytes(measured)));
  QUIRE_ASSIGN_OR_RETURN(made_.draft_costs, draft_costs_from_bytes(bytes, steps));
  if (!ranks.is_first()) return {};
  log_draft_costs(*made_.draft_costs);
  if (!runner_.shape_key.empty()) {
    const auto* first = reinterpret_cast<const uint8_t*>(bytes.data());
    choices.add(ChoiceKind::kDraftSteps, key, to_base64({first, bytes.size()}));
  }
  return {};
}

std::string Start::draft_costs_key(const DraftCosts& steps) const {
  return fmt::format(
      "{}, different tokens, {} ranks, KV in {} blocks of {}, context {}, {}, {} sequences, {} "
      "drafts",
      runner_.shape_key, sizes_.limits.parallel.size, dtype_name(sizes_.limits.kv_dtype),
      sizes_.limits.page_size, sizes_.limits.max_model_len,
      sizes_.enforce_eager ? "eager" : "graphs", fmt::join(steps.batch_sizes, " "),
      fmt::join(steps.num_drafts, " "));
}

Result<DraftCosts> Start::measure_draft_steps(const DraftCosts& steps) {
  const MeasuredChoices::Timing timing(ops_.choices(), ChoiceKind::kDraftSteps);
  const auto verify = [this](const DecodeGraph& graph) -> Status {
    if (sizes_.enforce_eager) return run_padding(graph, graph.batch.num_tokens());
    QUIRE_RETURN_IF_ERROR(plan_padding(graph).status());
    graph.graph.launch(stream_);
    return {};
  };
  const auto propose = [this](const DecodeGraph& graph, int num_drafts) {
    return made_.draft_stage->run(target_.draft_step(&graph.batch, graph.batch.num_tokens()),
                                  graph.batch.num_reqs, num_drafts);
  };
  return measure_draft_costs(made_.graphs, steps, {verify, propose}, stream_);
}

Status Start::run_padding(const DecodeGraph& graph, int num_tokens) {
  QUIRE_ASSIGN_OR_RETURN(const auto steps, plan_padding(graph));
  target_.buffers.derive(graph.batch.num_reqs, stream_);
  QUIRE_RETURN_IF_ERROR(target_.run_layers(num_tokens, steps));
  return target_.compute_outputs(graph.batch.num_tokens());
}

Result<std::span<const KvGroupStep>> Start::plan_padding(const DecodeGraph& graph) {
  QUIRE_RETURN_IF_ERROR(upload_padding(graph.batch));
  return target_.attention.update(target_.inputs.batches(), choices_of(graph), stream_);
}

// With enforce_eager there are no plans for graphs, so padding runs eagerly too.
std::span<const AttentionChoice> Start::choices_of(const DecodeGraph& graph) {
  if (sizes_.enforce_eager) return target_.attention.choose(target_.inputs.batch());
  return target_.attention.choose_for_graph(graph.attention, graph.batch.num_reqs,
                                            graph.batch.q_len);
}

Status Start::upload_padding(const GraphBatch& batch) {
  // With equal tokens, all rows of a step would read the same experts, so drafts would seem free.
  BatchPlan padding;
  for (int64_t i = 0; i < batch.num_tokens(); ++i) {
    padding.token_ids.push_back(static_cast<int32_t>(i * kTokenStride % sizes_.vocab_size));
  }
  QUIRE_RETURN_IF_ERROR(target_.buffers.upload(padding, {}, &batch, stream_));
  target_.inputs.describe(padding, target_.buffers.arrays());
  target_.inputs.pad_to_graph(batch, sizes_.limits.max_kv_len());
  return {};
}

Status Start::derive_padding(const GraphBatch& batch) {
  QUIRE_RETURN_IF_ERROR(upload_padding(batch));
  target_.buffers.derive(batch.num_reqs, stream_);
  return {};
}

Status run_start(StepParts& made, CudaOps& ops) {
  const StartingRank starting(ops);
  return Start(made, ops).run();
}

// Adds the settings that reduce memory to an out-of-memory error at start.
Status add_remedy(Status status) {
  if (status.code() != StatusCode::kResourceExhausted) return status;
  return resource_exhausted(
      "[cuda] GPU memory ran out while CUDA graphs were captured and libraries loaded; lower "
      "`gpu_memory_utilization` or `max_num_seqs`, or set `enforce_eager`: " +
      status.message());
}

}  // namespace

StepParts::StepParts(const RunnerParts& from, CudaOps& ops, CudaStream& own_stream)
    : runner(from),
      stream(own_stream),
      target(runner, ops, own_stream),
      graphs(decode_graphs(runner.sizes, runner.target().attention)) {}

StepParts::~StepParts() {
  (void)use_device(stream.limits().device);
  (void)stream.synchronize();
}

Result<std::unique_ptr<StepParts>> start_runner(const RunnerParts& parts, CudaOps& ops,
                                                CudaStream& stream) {
  auto made = std::make_unique<StepParts>(parts, ops, stream);
  const Status started = run_start(*made, ops);
  if (!started.ok()) return add_remedy(started);
  stream.traffic() = {};  // the setup's traffic does not count as a step's
  return made;
}

}  // namespace quire::cuda
