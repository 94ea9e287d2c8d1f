#include "quantize/output_plan.h"

#include <fmt/format.h>

#include <cmath>

namespace quire {

Status read_row(const TensorView& tensor, int64_t row, std::string_view name,
                const NumberRange& range, float* out) {
  const int64_t columns = tensor.shape[tensor.shape.rank() - 1];
  for (int64_t i = 0; i < columns; ++i) {
    const float value = element_as_f32(tensor, row * columns + i);
    if (!(std::abs(value) <= range.largest)) {
      const std::string problem =
          std::isfinite(value)
              ? fmt::format("magnitude {} exceeds {}, the largest that {} stores; use --to bf16",
                            std::abs(value), range.largest, range.type)
              : fmt::format("got {}, expected a finite number: the checkpoint is damaged", value);
      return invalid_argument(fmt::format("[quantize] tensor {}: element {} of row {}; {}",
                                          quote_name(name), i, row, problem));
    }
    out[i] = value;
  }
  return {};
}

}  // namespace quire
