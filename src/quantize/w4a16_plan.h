// The plan of a checkpoint in 4-bit integers with 16-bit activations: compressed-tensors'
// "pack-quantized" format, symmetric, with a scale per group of a row.
#pragma once

#include <string>

#include "quantize/channel_scales.h"
#include "quantize/output_plan.h"
#include "quantize/source.h"

namespace quire {

// The plan of model.safetensors. `source` and `scales` must outlive it, and `scales` are read when
// a tensor is opened. The matrices of the layers are quantized, and all other tensors keep their
// type. Fails if a row is not a multiple of the group.
Result<OutputPlan> plan_w4a16(QuantizeSource& source, int group_size, const ChannelScales& scales);

// The source's config.json with a quantization_config.
std::string w4a16_config_json(const QuantizeSource& source, int group_size);

}  // namespace quire
