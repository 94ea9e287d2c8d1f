// A check of numbers that is fast enough to run while a whole checkpoint is copied.
#pragma once

#include "tensor/tensor.h"

namespace quire {

// Whether every element of an F32, F16 or BF16 tensor in host memory is finite.
bool all_finite(const TensorView& view);

}  // namespace quire
