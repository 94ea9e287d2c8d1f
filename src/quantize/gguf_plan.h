// The plan of a GGUF file made from a checkpoint.
#pragma once

#include "quantize/gguf_mixture.h"
#include "quantize/output_plan.h"
#include "quantize/source.h"

namespace quire {

// `source` must outlive the plan. Logs the matrices whose rows do not fill the blocks of their
// type.
Result<OutputPlan> plan_gguf(QuantizeSource& source, GgufTarget target);

}  // namespace quire
