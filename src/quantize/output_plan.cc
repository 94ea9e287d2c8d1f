#include "quantize/output_plan.h"

#include <fmt/format.h>

#include <cmath>

namespace quire {

Status read_row(const TensorView& tensor, int64_t row, std::string_view name, float largest,
                float* out) {
  const int64_t columns = tensor.shape[tensor.shape.rank() - 1];
  for (int64_t i = 0; i < columns; ++i) {
    const float value = element_as_f32(tensor, row * columns + i);
    if (!(std::abs(value) <= largest)) {
      return invalid_argument(fmt::format(
          "[quantize] tensor {}: element {} of row {}; got {}, expected a finite number{}",
          quote_name(name), i, row, value,
          std::isfinite(value)
              ? fmt::format(" of at most {}, as F16 numbers are: use bf16", largest)
              : ": the checkpoint is damaged"));
    }
    out[i] = value;
  }
  return {};
}

}  // namespace quire
