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

// An upper bound of the tokens of the sequences.
int64_t most_tokens(const DeltaNet& net, const SeqRange& seqs) {
  const int64_t num_tokens = net.out.shape[0];
  const bool decodes = seqs.first + seqs.count <= net.states.num_decode_seqs;
  return decodes ? std::min(num_tokens, int64_t{seqs.count} * (1 + net.num_drafts)) : num_tokens;
}

void check_size(const DeltaNet& net, const DeltaWorkspace& workspace) {
  QUIRE_CHECK(workspace.num_bytes <= net.workspace.size(),
              "[ops] delta_net: the workspace is too small for the step");
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
    if (is_fast(net.shape)) {
      QUIRE_CHECK(net.num_drafts < kMaxDeltaTokens, "[ops] delta_net: too many drafts");
      run_delta_decode(context_, net, decode);
    } else {
      run_by_token(net, decode);
    }
  }
  if (prefill.count == 0) return;
  if (is_by_chunk(net.shape)) {
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
  return context_.stream->limits().compute_capability == 90 && shape.k_dim == kDeltaHeadDim &&
         shape.v_dim == kDeltaHeadDim && shape.kernel == kDeltaKernel;
}

bool CudaStateOps::is_by_chunk(const DeltaNetShape& shape) const {
  return is_fast(shape) && check_.activation != DType::kF32;
}

void CudaStateOps::run_by_token(const DeltaNet& net, const SeqRange& seqs) const {
  const DeltaWorkspace workspace = lay_out_by_token(net.workspace.data(), net.shape, net.num_drafts,
                                                    most_tokens(net, seqs), net.states.num_seqs);
  check_size(net, workspace);
  run_delta_recurrent(context_, net, seqs, workspace);
}

void CudaStateOps::run_by_chunk(const DeltaNet& net, const SeqRange& seqs) const {
  const DeltaWorkspace workspace =
      lay_out_by_chunk(net.workspace.data(), net.shape, net.num_drafts, check_.activation,
                       net.out.shape[0], net.states.num_seqs);
  check_size(net, workspace);
  // Each lane of a warp looks up the page of one of the blocks that a chunk touches.
  QUIRE_CHECK(kDeltaChunk / net.states.block_size + 1 <= 32,
              "[ops] delta_net: the blocks are too small");
  QUIRE_CHECK(is_aligned({net.x.data, net.out.data, net.conv}, 16),
              "[ops] delta_net: the rows are not aligned to 16 bytes");
  run_delta_prepare(context_, net, seqs, workspace);
  run_delta_chunks(context_, net, seqs, workspace);
  run_delta_scan(context_, net, seqs, workspace);
  run_delta_finish(context_, net, seqs, workspace);
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
  // If prompts can be computed by chunk, sequences that decode need no workspace.
  const DeltaWorkspace workspace =
      is_by_chunk(shape)
          ? lay_out_by_chunk(nullptr, shape, num_drafts, check_.activation, max_num_tokens,
                             max_num_seqs)
          : lay_out_by_token(nullptr, shape, num_drafts, max_num_tokens, max_num_seqs);
  return static_cast<int64_t>(workspace.num_bytes);
}

}  // namespace quire::cuda
