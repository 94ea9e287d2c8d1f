// One thread per slice.
#include "cuda/base/launch.h"
#include "cuda/platform/device_drafter.h"

namespace quire::cuda {
namespace {

constexpr int kThreads = 64;

__global__ void draft_kernel(RecordedRows rows, DraftCall call) {
  const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= call.num_slices || call.rows[i] < 0) return;
  const int64_t row = call.rows[i];
  const int num_computed = call.num_computed[row];
  const int32_t* known = rows.tokens + row * rows.max_tokens;
  uint64_t luck = (static_cast<uint64_t>(row) * 1000003 + static_cast<uint64_t>(num_computed)) *
                  0x9E3779B97F4A7C15ULL;
  luck ^= luck >> 29;
  const auto num_right = static_cast<int>(luck % static_cast<uint64_t>(rows.num_drafts + 1));
  int32_t* drafts = call.next_tokens + row * (rows.num_drafts + 1) + 1;
  for (int k = 0; k < rows.num_drafts; ++k) {
    const int position = num_computed + 1 + k;
    const int32_t token = position < rows.lengths[row] ? known[position] : 0;
    drafts[k] = k < num_right ? token : (token + 1) % rows.vocab_size;
  }
}

}  // namespace

void launch_draft(const RecordedRows& rows, const DraftCall& call, CudaStream& stream) {
  const int num_blocks = (call.num_slices + kThreads - 1) / kThreads;
  QUIRE_LAUNCH(stream, draft_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(num_blocks), .block = kThreads}), rows,
               call);
}

}  // namespace quire::cuda
