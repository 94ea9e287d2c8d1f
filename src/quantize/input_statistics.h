// Runs the unquantized model over a calibration text, and collects statistics of the inputs of its
// matrices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quantize/channel_scales.h"
#include "quantize/quantize.h"
#include "quantize/source.h"
#include "quire/status.h"

namespace quire {

// Cuts the text into windows for the model. Each begins with a BOS if the tokenizer adds one. Fails
// if the model has no tokenizer, if the text or text.max_tokens has fewer tokens than
// kMinCalibrationTokens, or if the model's context is too short for a window.
Result<std::vector<std::vector<int32_t>>> calibration_windows(const QuantizeSource& source,
                                                              const CalibrationText& text);

// Returns the statistics of the input of each matrix that a product reads. They do not depend on
// num_threads (0: one per physical core, within the quota). Until it returns, the model is in
// memory in the form that an engine on a CPU uses. Fails if an input is not finite.
Result<InputStatisticsByMatrix> collect_input_statistics(
    QuantizeSource& source, std::span<const std::vector<int32_t>> windows, int num_threads,
    const QuantizeHooks& hooks);

}  // namespace quire
