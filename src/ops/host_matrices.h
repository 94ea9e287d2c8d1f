// The parts of a weight store that do not depend on the device: checks, and the numbers of a
// LinearSource in host memory.
#pragma once

#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "ops/weight_store.h"
#include "quire/status.h"
#include "tensor/tensor.h"
#include "tensor/weight_source.h"

namespace quire {

// Fails if an F32, F16 or BF16 matrix has an infinity or a NaN, which cannot be quantized.
Status check_finite(const TensorView& matrix);

// Fails unless the vector is in F32, F16 or BF16, as WeightStore::make_vector() requires.
Status check_vector(const TensorView& vector);

// Quantizes an F32, F16 or BF16 matrix to FP8 with a scale per row: the largest magnitude of a row
// becomes 448. The result refers to `copies`. Fails if the matrix has an infinity or a NaN.
// `threads` share the rows.
Result<WeightView> quantize_rows(const TensorView& matrix, const WeightScheme& scheme,
                                 std::vector<Tensor>& copies, ThreadPool& threads);

// Returns the matrices of a source that is not in blocks. Writes repeated rows out, and quantizes
// MatricesToQuantize. The result refers to the source and `copies`. Fails as quantize_rows() does.
Result<std::vector<WeightView>> matrices_in_memory(const LinearSource& source,
                                                   std::vector<Tensor>& copies,
                                                   ThreadPool& threads);

}  // namespace quire
