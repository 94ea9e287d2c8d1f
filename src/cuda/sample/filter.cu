// Top-k, top-p and min-p without a full sort, and sampling from the kept tokens.
//
// One thread block per logits row. Keys order tokens by logit, then by id. The tokens whose key is
// at least a cut are kept. RowFilter finds the cut and samples in these phases, which all threads
// of the thread block run together:
//
//   phase               reads       writes      result
//   find_largest        logits                  the largest logit; a greedy row needs no more
//   cut_by_min_p                                min-p's cut, by bisection over floats: exact
//   count_steps         logits      bins        tokens (and weights, for top-p) per step of
//                                               1/64 nat
//   find_threshold_bin  bins, list              the step or key in which top-k or top-p ends
//   gather              logits      list        the keys of a range, sorted in descending order
//   find_cut_key        bins        bins, list  an exact cut whose step does not fit into the list:
//                                               count_keys divides the range of keys until a part
//                                               does
//   sample_list         list                    a token among the list's (Gumbel-max)
//   sample_row          logits                  a token among the row's (Gumbel-max)
//
// Short path (find_list_cut): all tokens that may be kept fit into the list, so both filters end at
// an exact token. Long path: find_cut_key finds top-k's cut, then cut_by_mass top-p's.
//
// Barriers. Besides the memory of the reductions, bins and list are the only shared data. A phase
// that writes them (clear, count_steps, count_keys, gather, sort_list) ends with a barrier, so the
// next phase may read them. Between a read and the next write of the same array there is another
// barrier: inside find_threshold_bin or gather, or explicit. All threads take the same branches,
// because these depend on reductions, find_threshold_bin's results, and shared data between two
// barriers.
//
// Tokens below e^-32 of the largest weight are not distinguished: a filter that would keep only
// some of them keeps none or all. This changes no probability by more than 1e-8. Cumulative sums
// are fp64 and fixed point: the cut is the same as on the CPU unless it is within 1e-8 of the mass.
#include "cuda/base/launch.h"
#include "cuda/sample/gumbel.cuh"
#include "cuda/sample/histogram.cuh"
#include "cuda/sample/rules.cuh"

namespace quire::cuda {
namespace {

constexpr int kMaxThreads = 1024;
constexpr float kLeastFloat = -3.402823466e38F;

struct FilterShared {
  Histogram bins;
  uint64_t list[kNumBins];
  int list_size;
};

// The thread block's shared memory. A function returns it, so that functions that are not inlined
// still access it as shared memory.
__device__ __forceinline__ FilterShared& block_shared() {
  __shared__ FilterShared shared;
  return shared;
}

struct KeyRange {  // inclusive
  uint64_t low, high;
};

// The smallest float from -FLT_MAX to `high` for which `passes` is true. `passes` is monotonic, and
// true for `high`. The lanes of a warp test 32 values at once; every warp of the thread block does
// the same.
template <typename Passes>
__device__ float least_passing(float high, Passes passes) {
  uint32_t first = ordered_bits(kLeastFloat);
  uint32_t last = ordered_bits(high);
  const uint32_t lane = threadIdx.x % 32;
  while (first < last) {
    const uint32_t step = (last - first) / 32 + 1;
    const uint32_t probe = min(last - first, lane * step) + first;
    const uint32_t passed = __ballot_sync(0xFFFFFFFFU, passes(from_ordered_bits(probe)));
    const int lowest = __ffs(static_cast<int>(passed)) - 1;
    const uint32_t last_probe = min(last - first, 31 * step) + first;
    if (lowest < 0) {
      first = last_probe + 1;
    } else {
      const uint32_t begin = first;
      last = min(last - begin, static_cast<uint32_t>(lowest) * step) + begin;
      if (lowest > 0) first = begin + static_cast<uint32_t>(lowest - 1) * step + 1;
    }
  }
  return from_ordered_bits(last);
}

// Sorts in descending order, over the next power of two; entries beyond the size are 0.
__device__ __forceinline__ void sort_list() {
  FilterShared& shared = block_shared();
  const int size = shared.list_size;
  int padded = 1;
  while (padded < size) padded *= 2;
  const auto thread = static_cast<int>(threadIdx.x);
  const auto threads = static_cast<int>(blockDim.x);
  for (int i = size + thread; i < padded; i += threads) shared.list[i] = 0;
  __syncthreads();
  for (int run = 2; run <= padded; run *= 2) {
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int pair = thread; pair < padded / 2; pair += threads) {
        const int a = pair / distance * distance * 2 + pair % distance;
        const int b = a + distance;
        const uint64_t x = shared.list[a], y = shared.list[b];
        if ((x < y) == ((a & run) == 0)) {
          shared.list[a] = y;
          shared.list[b] = x;
        }
      }
      __syncthreads();
    }
  }
}

template <bool kRules>
class RowFilter {
 public:
  __device__ RowFilter(const RowReader<kRules>& reader, const SlotState& state, float largest)
      : reader_(reader),
        state_(state),
        largest_(largest),
        scale_(largest, 1.0 / static_cast<double>(state.temperature)) {}

  // The lowest key that is kept.
  struct Cut {
    uint64_t key;
    bool is_in_list;  // the list holds all kept tokens
  };

  __device__ Cut find_cut() {
    cut_by_min_p();
    const bool by_mass = state_.top_p < 1.0F;
    if (state_.top_k < 1 && !by_mass) return {key_from(least_), false};
    count_steps<false>(by_mass);
    const ThresholdBin kth = top_k_step();
    const int steps = min(kth.bin + 1, num_steps_down_to(least_));
    const double below =
        find_threshold_bin(0, false, [&](int b) {
          return b < steps ? static_cast<double>(block_shared().bins.count[b]) : 0.0;
        }).total;
    if (below <= kNumBins) return {find_list_cut(steps, by_mass), true};
    if (kth.bin < num_steps_down_to(least_)) {
      const int32_t target = state_.top_k;
      const uint64_t key = find_cut_key(kth.bin, kth.before, target, false);
      least_ = fmaxf(least_, logit_of(key));
    }
    return by_mass ? cut_by_mass() : Cut{key_from(least_), false};
  }
  __device__ Winner sample(const Cut& cut) const {
    return cut.is_in_list ? sample_list(cut.key) : sample_row(cut.key);
  }

 private:
  __device__ void cut_by_min_p() {
    if (!(state_.min_p > 0)) return;
    const auto min_p = static_cast<double>(state_.min_p);
    least_ = least_passing(largest_, [&](float x) { return scale_.weight(x) >= min_p; });
  }

  // The lowest key with this logit.
  __device__ static uint64_t key_from(float logit) {
    return static_cast<uint64_t>(ordered_bits(logit)) << 32;
  }
  __device__ __noinline__ float step_floor(int step) const {
    const auto end = static_cast<float>(step + 1);
    return least_passing(largest_, [&](float x) { return scale_.steps(x) < end; });
  }
  __device__ int num_steps_down_to(float logit) const {
    const float steps = scale_.steps(logit);
    return steps < kNumBins ? static_cast<int>(steps) + 1 : kNumBins;
  }

  // Fills the bins, one per step, with the tokens of the whole row, or only with those from least_
  // on; with their weights if by_mass.
  template <bool kFromLeast>
  __device__ __noinline__ void count_steps(bool by_mass) {
    block_shared().bins.clear();
    Histogram& bins = block_shared().bins;
    const float least = least_;
    const WeightScale scale = scale_;
    const RowReader<kRules> reader = reader_;
    reader.for_each([&](float x, int32_t) {
      const float steps = scale.steps(x);
      if ((kFromLeast && !(x >= least)) || !(steps < kNumBins)) return;
      const auto step = static_cast<int>(steps);
      if (kFromLeast || by_mass) {
        bins.add(step, scale.above(step, x));
      } else {
        bins.add(step);
      }
    });
    __syncthreads();
  }

  // The step that holds the k-th largest logit; kNumBins if top-k does not apply.
  __device__ ThresholdBin top_k_step() const {
    if (state_.top_k < 1) return {kNumBins, 0, 0};
    return find_threshold_bin(state_.top_k, false, [&](int b) {
      return static_cast<double>(block_shared().bins.count[b]);
    });
  }

  // Fills the list with the keys of a range, sorted. The row has at most kNumBins keys in the
  // range.
  __device__ __noinline__ void gather(KeyRange range) {
    if (threadIdx.x == 0) block_shared().list_size = 0;
    __syncthreads();
    const float floor = logit_of(range.low);
    const RowReader<kRules> reader = reader_;
    reader.for_each([&](float x, int32_t id) {
      if (!(x >= floor) || x == minus_infinity()) return;
      const uint64_t key = token_key(x, id);
      if (key < range.low || key > range.high) return;
      const int at = atomicAdd(&block_shared().list_size, 1);
      if (at < kNumBins) block_shared().list[at] = key;
    });
    __syncthreads();
    if (threadIdx.x == 0) block_shared().list_size = min(block_shared().list_size, kNumBins);
    __syncthreads();
    sort_list();
  }

  __device__ double list_weight(int i, float least) const {
    if (i >= block_shared().list_size) return 0;
    const float logit = logit_of(block_shared().list[i]);
    return logit >= least ? scale_.weight(logit) : 0;
  }

  // The cut if all tokens that may be kept fit into the list.
  __device__ __noinline__ uint64_t find_list_cut(int steps, bool by_mass) {
    gather({key_from(step_floor(steps - 1)), ~uint64_t{0}});
    const int k = state_.top_k;
    if (k >= 1 && k <= block_shared().list_size)
      least_ = fmaxf(least_, logit_of(block_shared().list[k - 1]));
    uint64_t cut = key_from(least_);
    if (by_mass) {
      const ThresholdBin end = find_threshold_bin(static_cast<double>(state_.top_p), true,
                                                  [&](int i) { return list_weight(i, least_); });
      if (end.bin < kNumBins) cut = block_shared().list[end.bin];
    }
    return cut;
  }

  __device__ Winner sample_list(uint64_t cut) const {
    const GumbelParams params(state_, largest_);
    Winner winner;
    for (int i = static_cast<int>(threadIdx.x); i < block_shared().list_size;
         i += static_cast<int>(blockDim.x)) {
      const uint64_t key = block_shared().list[i];
      if (key >= cut) winner.add(params.score_of(logit_of(key), token_of(key)), token_of(key));
    }
    return block_winner(winner);
  }

  // Top-p's cut if the tokens that the other filters keep do not fit into the list.
  __device__ Cut cut_by_mass() {
    if (least_ > kLeastFloat) count_steps<true>(true);
    const int last = num_steps_down_to(least_) - 1;
    const ThresholdBin end =
        find_threshold_bin(static_cast<double>(state_.top_p), true,
                           [&](int b) { return b <= last ? block_shared().bins.mass(b, b) : 0.0; });
    if (end.bin == kNumBins) return {key_from(least_), false};
    const double target = static_cast<double>(state_.top_p) * end.total;
    const double count =
        find_threshold_bin(0, false, [&](int b) {
          return b <= end.bin ? static_cast<double>(block_shared().bins.count[b]) : 0.0;
        }).total;
    if (count > kNumBins) return {find_cut_key(end.bin, end.before, target, true), false};
    gather({key_from(fmaxf(step_floor(end.bin), least_)), ~uint64_t{0}});
    return {list_cut(target), true};
  }

  // The key of the token of `step` at which the count or the mass reaches the target; `before` is
  // the sum of the steps before it.
  __device__ __noinline__ uint64_t find_cut_key(int step, double before, double target,
                                                bool by_mass) {
    KeyRange range = {key_from(fmaxf(step_floor(step), least_)), key_from(largest_) | 0xFFFFFFFFU};
    if (step > 0) range.high = key_from(step_floor(step - 1)) - 1;
    uint32_t count = block_shared().bins.count[step];
    __syncthreads();
    while (count > kNumBins) {
      int shift = 0;
      while ((range.high - range.low) >> shift >= kNumBins) ++shift;
      count_keys(range, shift, step);
      const ThresholdBin part = find_threshold_bin(target - before, false, [&](int b) {
        return by_mass ? block_shared().bins.mass(b, step)
                       : static_cast<double>(block_shared().bins.count[b]);
      });
      if (part.bin == kNumBins) return range.low;  // only rounding remains
      before += part.before;
      count = block_shared().bins.count[part.bin];
      range.high -= static_cast<uint64_t>(part.bin) << shift;
      const uint64_t width = (uint64_t{1} << shift) - 1;
      if (range.high - range.low > width) range.low = range.high - width;
      __syncthreads();
    }
    gather(range);
    const int size = block_shared().list_size;
    if (size == 0) return range.low;  // min-p keeps no token here
    if (by_mass) return list_cut(target - before);
    return block_shared().list[min(static_cast<int>(target - before), size) - 1];
  }

  // The key of the list's token at which the mass reaches the target, or of its last token.
  __device__ uint64_t list_cut(double target) const {
    const ThresholdBin end =
        find_threshold_bin(target, false, [&](int i) { return list_weight(i, least_); });
    return block_shared().list[min(end.bin, block_shared().list_size - 1)];
  }

  // Fills the bins with the range's tokens, 2^shift keys per bin, from the highest key down.
  __device__ void count_keys(KeyRange range, int shift, int step) {
    block_shared().bins.clear();
    Histogram& bins = block_shared().bins;
    const WeightScale scale = scale_;
    const float floor = logit_of(range.low);
    const RowReader<kRules> reader = reader_;
    reader.for_each([&](float x, int32_t id) {
      if (!(x >= floor) || x == minus_infinity()) return;
      const uint64_t key = token_key(x, id);
      if (key < range.low || key > range.high) return;
      bins.add(static_cast<int>((range.high - key) >> shift), scale.above(step, x));
    });
    __syncthreads();
  }

  __device__ __noinline__ Winner sample_row(uint64_t cut) const {
    const RowReader<kRules> reader = reader_;
    const GumbelParams params(state_, largest_);
    const float cut_logit = logit_of(cut);
    const int32_t cut_token = static_cast<uint32_t>(cut) == 0 ? kNoToken : token_of(cut);
    return sample_gumbel_max(
        reader.row, 0, reader.row.end_quad(), params,
        [&](int32_t q, Quad& quad) { reader.change(q, quad); },
        [&](float x, int32_t id) { return x > cut_logit || (x == cut_logit && id <= cut_token); });
  }

  const RowReader<kRules>& reader_;
  const SlotState& state_;
  float largest_;
  WeightScale scale_;
  float least_ = kLeastFloat;  // smaller logits are not kept
};

// Checks the model's own logits first, then the logits after the rules.
template <bool kRules>
__device__ RowStatus find_largest(const RowReader<kRules>& reader, LargestLogit& largest) {
  LargestLogit raw, changed;
  for_each_quad(reader.row, 0, reader.row.end_quad(), [&](int32_t q, Quad quad) {
#pragma unroll
    for (int j = 0; j < 4; ++j) raw.add(quad.x[j], q * 4 + j);
    if constexpr (kRules) {
      reader.change(q, quad);
#pragma unroll
      for (int j = 0; j < 4; ++j) changed.add(quad.x[j], q * 4 + j);
    }
  });
  largest = block_largest(raw);
  if constexpr (kRules) {
    const RowStatus status = largest.status();
    if (status != RowStatus::kOk) return status;
    largest = block_largest(changed);
    if (largest.status() == RowStatus::kNoneFinite) return RowStatus::kNoneAllowed;
  }
  return largest.status();
}

// With `cuts`, writes the row's distribution there, and does not sample a token.
template <bool kRules>
__global__ void __launch_bounds__(kMaxThreads)
    filter_kernel(SlotTables tables, SampleCall call, RowCut* cuts) {
  const auto i = static_cast<int>(blockIdx.x);
  if (!is_of_pass(call, i, kRules ? SamplePass::kRules : SamplePass::kFilter)) return;
  if (call.slots[i] < 0) {
    if (threadIdx.x == 0 && cuts == nullptr) store_padding(call.results[i]);
    return;
  }
  const SlotState state = state_at(tables, call, i);
  const RowReader<kRules> reader = reader_of<kRules>(tables, call, state, i);
  LargestLogit largest;
  const RowStatus status = find_largest(reader, largest);
  int32_t token_id = largest.token_id;
  uint64_t key = token_key(largest.logit, token_id);
  const bool is_random = state.temperature >= kGreedyBelow;
  if (status == RowStatus::kOk && is_random) {
    RowFilter<kRules> filter(reader, state, largest.logit);
    const auto cut = filter.find_cut();
    key = cut.key;
    if (cuts == nullptr) token_id = filter.sample(cut).token_id;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (cuts == nullptr) {
    store_result(status, state.position, token_id, largest.nan_id, call.results[i]);
  } else {
    const double inverse = is_random ? 1.0 / static_cast<double>(state.temperature) : 0.0;
    cuts[i] = {key, inverse, largest.logit, status, largest.nan_id, 0};
  }
}

}  // namespace

void launch_cut(const SlotTables& tables, const SampleCall& call, SamplePass pass,
                int num_pass_rows, int num_sms, RowCut* cuts, CudaStream& stream) {
  // With few rows, each row has an SM of its own. With many, there are two thread blocks per SM, so
  // that one computes while the other loads.
  const int threads = num_pass_rows <= num_sms ? kMaxThreads : kMaxThreads / 2;
  const LaunchShape shape = {.grid = static_cast<unsigned>(call.num_rows),
                             .block = static_cast<unsigned>(threads)};
  QUIRE_LAUNCH(stream, pass == SamplePass::kRules ? filter_kernel<true> : filter_kernel<false>,
               shape, tables, call, cuts);
}

void launch_filter(const SlotTables& tables, const SampleCall& call, SamplePass pass,
                   int num_pass_rows, int num_sms, CudaStream& stream) {
  launch_cut(tables, call, pass, num_pass_rows, num_sms, nullptr, stream);
}

}  // namespace quire::cuda
