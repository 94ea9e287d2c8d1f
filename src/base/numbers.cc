#include "base/numbers.h"

#include <fmt/format.h>

#include <cmath>

namespace quire {

bool Range::contains(double value) const {
  const bool above = min_excluded ? value > min : value >= min;
  const bool below = max_excluded ? value < max : value <= max;
  return above && below;
}

std::string Range::text() const {
  const bool bounded_below = std::isfinite(min);
  const bool bounded_above = std::isfinite(max);
  if (bounded_below && bounded_above) {
    return fmt::format("in {}{}, {}{}", min_excluded ? '(' : '[', min, max,
                       max_excluded ? ')' : ']');
  }
  if (bounded_below) return fmt::format("{} {}", min_excluded ? "above" : "of at least", min);
  if (bounded_above) return fmt::format("{} {}", max_excluded ? "below" : "of at most", max);
  return "";
}

}  // namespace quire
