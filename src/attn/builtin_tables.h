// The tuning tables of this build: output of `quire tune` on the devices that were measured.
#pragma once

#include "attn/tuning_table.h"
#include "tensor/tensor.h"

namespace quire {

// The table for the device's name; empty if the device was not measured.
TuningTable builtin_table(const Device& device);

}  // namespace quire
