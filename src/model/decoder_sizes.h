// One rank's sizes of a decoder within the limits: the widths of its layers, caches, states and
// buffers. They are known before any weight is loaded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "model/decoder_config.h"
#include "model/model.h"

namespace quire {

// One rank's widths, in elements per token. Each is the largest of all layers.
struct DecoderWidths {
  int num_heads = 0;
  // With multi-head latent attention, these are not used.
  int64_t q = 0;    // the queries of all heads
  int64_t qkv = 0;  // the queries, keys and values
  int64_t out = 0;  // attention's output

  int64_t attention = 0;     // all inner values of attention
  int64_t intermediate = 0;  // the widest MLP of a dense layer or of shared experts
  int64_t experts = 0;       // the output of experts with norms of their own; 0: there are none
  int64_t layer_inputs = 0;  // the inputs of all layers (DecoderConfig::layer_input_size)

  // Width of the scratch buffer: the largest of the sub-layers' inner values.
  int64_t scratch() const {
    return std::max({attention, 3 * intermediate, experts, 2 * layer_inputs});
  }
};

DecoderWidths decoder_widths(const ModelConfig& config, const Parallel& parallel, const Ops& ops);
// The F32 values per token that rotations and norms of queries and keys need in a step.
int64_t rotation_width(const DecoderConfig& decoder);
// One rank's heads of a layer.
LayerHeads rank_heads(const DecoderConfig& decoder, size_t layer, const Parallel& parallel);
// The width, per token, of the keys and values that a layer with these heads computes.
int64_t kv_width(const DecoderConfig& decoder, size_t layer, const LayerHeads& heads);
// One rank's channels of a convolution.
int64_t conv_channels(const ModelConfig& config, const Parallel& parallel);
// One rank's heads of a delta net.
DeltaNetShape rank_shape(DeltaNetShape shape, const Parallel& parallel);

// The widths per token of the input of a layer's state (from DecoderLayer::qkv) and of its output.
struct StateWidths {
  int64_t in = 0;
  int64_t out = 0;
};
StateWidths state_widths(const ModelConfig& config, size_t layer, const Parallel& parallel);
// The rows of a convolution's state (ShortConv::num_rows).
int conv_state_rows(const ShortConvConfig& conv, const ModelLimits& limits);
// The elements per logits row: this rank's part, and the space for the gathered parts of all ranks.
int64_t num_gathered_logits(const ModelConfig& config, const ModelLimits& limits);

// Groups one rank's layers by the shape of their attention; queries and outputs have type
// `activation`.
std::vector<KvGroup> decoder_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                       DType activation);
// The states of one rank's layers; no layers if the model has none.
StateGroup decoder_state_group(const ModelConfig& config, const ModelLimits& limits);
int64_t decoder_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                 const Ops& ops);
// The workspace of the layers with recurrent states, which depends on the device. Fails with
// kUnimplemented if the device does not compute them.
Result<int64_t> state_workspace_bytes(const ModelConfig& config, const ModelLimits& limits,
                                      const Ops& ops);
// The workspace of the layers that are mixtures of experts, which depends on the device; 0: there
// are none. Fails with kUnimplemented if the device does not compute them.
Result<int64_t> experts_workspace_bytes(const ModelConfig& config, const ModelLimits& limits,
                                        const Ops& ops);

}  // namespace quire
