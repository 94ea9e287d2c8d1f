// The tables that came with this build: what quire tune wrote on devices we measured.
#pragma once

#include "attn/tuning_table.h"
#include "tensor/device.h"

namespace quire {

// The table of the device's name; an empty one where it was not measured.
TuningTable builtin_table(const Device& device);

}  // namespace quire
