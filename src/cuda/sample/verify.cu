// Verifies drafts by the probabilities of their tokens in the target's distribution and in the
// drafter's, as verify_drafts() (sample/rejection.h) does.
//
//   kernel            grid   result
//   compare_kernel    rows   the weights' sum, and the ratio of the draft's probabilities
//   residual_kernel   rows   the residual's mass; block verification only
//   settle_kernel     rows   the accepted drafts and the next token, at a span's first row
//
// Each thread block sums in fp64 and in one fixed order, so that the outcome does not depend on the
// batch. The cuts of the target's distributions are computed before (filter.cu). Like the filters,
// the kernels are launched once per pass. A span's next token belongs to the pass of its row.
#include "cuda/base/launch.h"
#include "cuda/sample/gumbel.cuh"
#include "cuda/sample/rules.cuh"
#include "sample/rejection.h"

namespace quire::cuda {
namespace {

constexpr int kVerifyThreads = 512;

// Row i as its pass reads it, and its target distribution.
template <bool kRules>
struct TargetRow {
  RowReader<kRules> reader;
  RowCut cut;

  __device__ TargetRow(const SlotTables& tables, const SampleCall& call, const VerifyCall& verify,
                       int i)
      : reader(reader_of<kRules>(tables, call, state_at(tables, call, i), i)),
        cut(verify.cuts[i]) {}

  // Calls use(weight, id) for the tokens of the distribution.
  template <typename Use>
  __device__ void for_each(Use use) const {
    reader.for_each([&](float x, int32_t id) {
      const double weight = weight_of(cut, x, id);
      if (weight > 0) use(weight, id);
    });
  }
  __device__ double weight(int32_t id) const {
    Quad quad = reader.row.quad(id / 4);
    reader.change(id / 4, quad);
    return weight_of(cut, quad.x[id % 4], id);
  }
};

template <bool kRules>
__device__ bool is_of(const SampleCall& call, int i) {
  return is_of_pass(call, i, kRules ? SamplePass::kRules : SamplePass::kFilter);
}

// Whether row i has a draft, which is in the span's next row.
__device__ bool has_draft(const SampleCall& call, int i) {
  return i + 1 < call.num_rows && call.slots[i + 1] == call.slots[i];
}

// The distribution of row i's draft, by token id.
__device__ const float* draft_probs(const SlotTables& tables, const SampleCall& call,
                                    const VerifyCall& verify, int i) {
  const int64_t row = static_cast<int64_t>(call.slots[i]) * (tables.q_len - 1) + call.offsets[i];
  return verify.probs + row * tables.vocab_size;
}

// The check of is_distribution() on the CPU. All threads get the same result.
__device__ bool is_distribution(const float* probs, int vocab_size) {
  double sum = 0;
  int num_broken = 0;
  for (auto id = static_cast<int>(threadIdx.x); id < vocab_size;
       id += static_cast<int>(blockDim.x)) {
    num_broken += probs[id] >= 0 && probs[id] <= 1 ? 0 : 1;  // a NaN is broken
    sum += static_cast<double>(probs[id]);
  }
  sum = block_sum(sum);
  return block_sum(num_broken) == 0 && fabs(sum - 1) <= kSumTolerance;
}

// Writes the verdict's inputs for row i, which has a target distribution.
template <bool kRules>
__device__ void compare_row(const SlotTables& tables, const SampleCall& call,
                            const VerifyCall& verify, int i) {
  const TargetRow<kRules> target(tables, call, verify, i);
  double total = 0;
  target.for_each([&](double weight, int32_t) { total += weight; });
  VerifiedRow row;
  row.total = block_sum(total);
  row.has_target = true;
  if (has_draft(call, i)) {
    const int32_t draft = drafts_of(tables, call, i)[call.offsets[i]];
    const float* probs = draft_probs(tables, call, verify, i);
    row.is_drawable = is_distribution(probs, tables.vocab_size) && draft >= 0 &&
                      draft < tables.vocab_size && probs[draft] > 0;
    if (row.is_drawable) {
      row.ratio = target.weight(draft) / row.total / static_cast<double>(probs[draft]);
    }
  }
  if (threadIdx.x == 0) verify.rows[i] = row;
}

template <bool kRules>
__global__ void __launch_bounds__(kVerifyThreads)
    compare_kernel(SlotTables tables, SampleCall call, VerifyCall verify) {
  const auto i = static_cast<int>(blockIdx.x);
  if (!is_of<kRules>(call, i)) return;
  if (call.slots[i] < 0) {
    if (threadIdx.x == 0) store_padding(call.results[i]);
    return;
  }
  const RowCut& cut = verify.cuts[i];
  if (threadIdx.x == 0) {
    const int64_t position = tables.states[call.slots[i]].position + call.offsets[i];
    store_result(cut.status, position, 0, cut.nan_id, call.results[i]);
  }
  if (cut.status == RowStatus::kOk) {
    compare_row<kRules>(tables, call, verify, i);
  } else if (threadIdx.x == 0) {
    verify.rows[i] = VerifiedRow();
  }
}

// The amount by which the target's probability of a token, times `survival`, exceeds the draft's.
struct Excess {
  double scale;
  const float* probs;

  __device__ double operator()(double weight, int32_t id) const {
    return fmax(weight * scale - static_cast<double>(probs[id]), 0.0);
  }
};

template <bool kRules>
__global__ void __launch_bounds__(kVerifyThreads)
    residual_kernel(SlotTables tables, SampleCall call, VerifyCall verify) {
  const auto i = static_cast<int>(blockIdx.x);
  if (!is_of<kRules>(call, i) || call.slots[i] < 0 || !verify.rows[i].is_drawable) return;
  const double survival = survival_of(verify.rows + i - call.offsets[i], call.offsets[i]);
  if (survival == 0) return;  // the row's residual is not needed
  const TargetRow<kRules> target(tables, call, verify, i);
  const Excess excess = {survival / verify.rows[i].total, draft_probs(tables, call, verify, i)};
  double mass = 0;
  target.for_each([&](double weight, int32_t id) { mass += excess(weight, id); });
  mass = block_sum(mass);
  if (threadIdx.x == 0) verify.rows[i].mass = mass;
}

// Gumbel-max sampling with the row's noise. use(weight, id) returns the weight to sample by.
// Returns kNoToken if no weight is positive.
template <bool kRules, typename Use>
__device__ int32_t sample_row(const TargetRow<kRules>& target, const TokenNoise& noise, Use use) {
  Winner winner;
  target.for_each([&](double weight, int32_t id) {
    const double mine = use(weight, id);
    if (mine <= 0) return;
    double u[4];
    noise.uniform_quad(static_cast<uint32_t>(id) / 4, u);
    winner.add(mine / -log(u[id % 4]), id);
  });
  return block_winner(winner).token_id;
}

template <bool kRules>
__device__ int32_t sample_next(const SlotTables& tables, const SampleCall& call,
                               const VerifyCall& verify, int i, const SpanVerdict& verdict,
                               const DraftNoise& noise) {
  const TargetRow<kRules> target(tables, call, verify, i);
  const auto num_accepted = static_cast<size_t>(verdict.num_accepted);
  const auto as_target = [](double weight, int32_t) { return weight; };
  if (verdict.next == NextToken::kTarget) {
    return sample_row(target, noise.token(num_accepted), as_target);
  }
  const Excess excess = {verdict.survival / verify.rows[i].total,
                         draft_probs(tables, call, verify, i)};
  const TokenNoise residual = noise.residual(num_accepted);
  const int32_t token_id = sample_row(target, residual, excess);
  // If rounding leaves no residual, the distributions are equal.
  return token_id == kNoToken ? sample_row(target, residual, as_target) : token_id;
}

template <bool kRules>
__global__ void __launch_bounds__(kVerifyThreads)
    settle_kernel(SlotTables tables, SampleCall call, VerifyCall verify) {
  const auto first = static_cast<int>(blockIdx.x);
  if (call.slots[first] < 0 || call.offsets[first] != 0) return;
  const SlotState& state = tables.states[call.slots[first]];
  const DraftNoise noise(state.seed, static_cast<uint64_t>(state.position));
  const VerifiedRow* rows = verify.rows + first;
  const SpanVerdict verdict =
      verify.is_block ? decide_block(rows, noise) : decide_standard(rows, noise);
  const int last = first + verdict.num_accepted;
  if (!is_of<kRules>(call, last)) return;
  int32_t token_id = 0;
  if (verdict.next != NextToken::kNone) {
    token_id = sample_next<kRules>(tables, call, verify, last, verdict, noise);
  }
  if (threadIdx.x != 0) return;
  const int32_t* drafts = drafts_of(tables, call, first);
  for (int i = first; i < last; ++i) call.results[i].token_id = drafts[i - first];
  call.results[last].token_id = token_id;
  call.num_accepted[first] = verdict.num_accepted;
}

template <bool kRules>
void launch_pass(const SlotTables& tables, const SampleCall& call, const VerifyCall& verify,
                 VerifyStage stage, CudaStream& stream) {
  const LaunchShape shape = {.grid = static_cast<unsigned>(call.num_rows), .block = kVerifyThreads};
  switch (stage) {
    case VerifyStage::kCompare:
      return QUIRE_LAUNCH(stream, compare_kernel<kRules>, shape, tables, call, verify);
    case VerifyStage::kResidual:
      return QUIRE_LAUNCH(stream, residual_kernel<kRules>, shape, tables, call, verify);
    case VerifyStage::kSettle:
      return QUIRE_LAUNCH(stream, settle_kernel<kRules>, shape, tables, call, verify);
  }
}

}  // namespace

void launch_verify(const SlotTables& tables, const SampleCall& call, const VerifyCall& verify,
                   VerifyStage stage, SamplePass pass, CudaStream& stream) {
  if (pass == SamplePass::kRules) {
    launch_pass<true>(tables, call, verify, stage, stream);
  } else {
    launch_pass<false>(tables, call, verify, stage, stream);
  }
}

}  // namespace quire::cuda
