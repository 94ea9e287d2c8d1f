#include "cuda/states/cuda_state_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace quire::cuda {
namespace {

SeqRange decoding(const StatePages& states) {
  return {.first = 0, .count = states.num_decode_seqs};
}

SeqRange others(const StatePages& states) {
  return {.first = states.num_decode_seqs, .count = states.num_seqs - states.num_decode_seqs};
}

}  // namespace

void CudaStateOps::short_conv(const ShortConv& conv) {
  const int64_t channels = conv.out.shape[1];
  check_.rows(conv.out, channels);
  check_.rows(conv.bgx, 3 * channels);
  QUIRE_CHECK(conv.bgx.shape[0] == conv.out.shape[0], "[ops] short_conv: the shapes do not match");
  QUIRE_CHECK(
      conv.kernel >= 2 && conv.kernel <= kMaxShortConvKernel && conv.num_rows >= conv.kernel - 1,
      "[ops] short_conv: the kernel is too wide, or the state too small");
  const SeqRange decode = decoding(conv.states);
  const SeqRange prefill = others(conv.states);
  if (decode.count > 0) run_short_conv_decode(context_, conv, decode);
  if (prefill.count > 0) run_short_conv_prefill(context_, conv, prefill);
}

void CudaStateOps::delta_net(const DeltaNet& net) {
  check_.rows(net.out, net.shape.width());
  check_.rows(net.x, net.shape.num_channels() + net.shape.width());
  check_.rows(net.ba, 2 * net.shape.num_v_heads);
  QUIRE_CHECK(net.x.shape[0] == net.out.shape[0] && net.ba.shape[0] == net.out.shape[0],
              "[ops] delta_net: the shapes differ in tokens");
  QUIRE_CHECK(supports(net.shape).ok(), "[ops] delta_net: the shape is not supported");
  const SeqRange decode = decoding(net.states);
  const SeqRange prefill = others(net.states);
  if (decode.count > 0) {
    if (is_fast(net.shape) && net.num_drafts == 0) {
      run_delta_decode(context_, net, decode);
    } else {
      run_by_token(net, decode);
    }
  }
  if (prefill.count == 0) return;
  // A warp looks up the pages of a chunk's blocks, one per lane.
  const bool fits_warp = net.states.block_size >= 4;
  if (is_fast(net.shape) && check_.activation != DType::kF32 && fits_warp) {
    for (int first = 0; first < prefill.count; first += kDeltaSeqsPerLaunch) {
      run_by_chunk(net, {.first = prefill.first + first,
                         .count = std::min(prefill.count - first, kDeltaSeqsPerLaunch)});
    }
  } else {
    run_by_token(net, prefill);
  }
}

// The fast kernels are compiled for the shapes of the published models.
bool CudaStateOps::is_fast(const DeltaNetShape& shape) const {
  return context_.stream->limits().compute_capability >= 90 && shape.k_dim == kDeltaHeadDim &&
         shape.v_dim == kDeltaHeadDim && shape.kernel == kDeltaKernel;
}

void CudaStateOps::run_by_token(const DeltaNet& net, const SeqRange& seqs) const {
  const DeltaWorkspace workspace = workspace_of(net);
  run_delta_prepare(context_, net, seqs, workspace);
  run_delta_recurrent(context_, net, seqs, workspace);
}

void CudaStateOps::run_by_chunk(const DeltaNet& net, const SeqRange& seqs) const {
  const DeltaWorkspace workspace = workspace_of(net);
  run_delta_prepare(context_, net, seqs, workspace);
  run_delta_chunks(context_, net, seqs, workspace);
  run_delta_scan(context_, net, seqs, workspace);
  run_delta_finish(context_, net, seqs, workspace);
}

DeltaWorkspace CudaStateOps::workspace_of(const DeltaNet& net) const {
  const DeltaWorkspace workspace =
      lay_out_delta_workspace(net.workspace.data(), net.shape, net.num_drafts, check_.activation,
                              net.out.shape[0], net.states.num_seqs);
  QUIRE_CHECK(workspace.num_bytes <= net.workspace.size(),
              "[ops] delta_net: the workspace is too small for the step");
  return workspace;
}

Status CudaStateOps::supports(const DeltaNetShape& shape) const {
  if (is_recurrent_shape(shape, context_.stream->limits().max_shared_bytes)) return {};
  return unimplemented(fmt::format(
      "[cuda] a delta net with heads of {} x {}; expected heads of at most {} columns, of which a "
      "state fits into the shared memory of an SM, or `device` cpu",
      shape.k_dim, shape.v_dim, kMaxDeltaHeadDim));
}

int64_t CudaStateOps::workspace_bytes(const DeltaNetShape& shape, int num_drafts,
                                      int64_t max_num_tokens, int64_t max_num_seqs) const {
  return static_cast<int64_t>(lay_out_delta_workspace(nullptr, shape, num_drafts, check_.activation,
                                                      max_num_tokens, max_num_seqs)
                                  .num_bytes);
}

}  // namespace quire::cuda
