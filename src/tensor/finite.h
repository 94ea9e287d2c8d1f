// A check of numbers that is fast enough to run beside a copy of a whole checkpoint.
#pragma once

#include "tensor/tensor.h"

namespace quire {

// Whether no element of an F32, F16 or BF16 tensor in host memory is an infinity or a NaN.
bool all_finite(const TensorView& view);

}  // namespace quire
