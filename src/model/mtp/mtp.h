// Multi-token prediction (MTP): one decoder layer in the target's own checkpoint. It reads the
// target's last hidden state, beside the embedding of the token that the target sampled from it.
// Its output after its own final norm gives the logits, by the target's lm_head, and is its own
// next input. Families differ by MtpForm (decoder_config.h): MiMo's layer reads the state before
// the target's final norm, Qwen's the state after it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/model.h"
#include "model/weights.h"

namespace quire {

// Checks that the target has exactly one such layer, which then computes all drafts.
Status check_mtp(const ModelConfig& target);
// Checks that the checkpoint has the layer's tensors, which copies of a model often lack. The names
// are those of the file, or the decoder's. check_mtp() accepts the target.
Status check_mtp_tensors(const ModelConfig& target, const WeightSource& checkpoint);
// The configuration of the head of a target that check_mtp() accepts. Its family is a
// DecoderConfig.
ModelConfig mtp_config(const ModelConfig& target);

// Like list_tensors() and estimate_activation_bytes(). The KV groups are decoder_kv_groups().
std::vector<TensorSpec> list_mtp_tensors(const ModelConfig& head);
Result<int64_t> mtp_activation_bytes(const ModelConfig& head, const ModelLimits& limits,
                                     const Ops& ops);

// Loads the head from `source`, the target's checkpoint. `target` must outlive the head, which uses
// its embeddings and lm_head. The target must tap the output of its last layer.
Result<std::unique_ptr<Model>> load_mtp(const ModelConfig& head, const Model& target,
                                        WeightSource& source, Ops& ops, const ModelLimits& limits,
                                        const LoadOptions& options = {});

}  // namespace quire
