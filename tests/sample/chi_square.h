// Chi-squared tests of counts against the shares that a distribution gives them.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <vector>

namespace quire {

// Infinite if a cell without a share has a count.
inline double chi_square(const std::vector<int>& counts,
                         const std::function<double(size_t)>& share) {
  double total = 0;
  for (const int count : counts) total += count;
  double chi = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * share(i);
    if (expected > 0) {
      chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    } else if (counts[i] > 0) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return chi;
}

// The 99.9 % point of chi-square by Wilson and Hilferty's approximation, for this many cells with a
// share.
inline double bound(size_t num_cells) {
  const double df = static_cast<double>(num_cells) - 1;
  return df * std::pow(1 - 2 / (9 * df) + 3.09 * std::sqrt(2 / (9 * df)), 3);
}

}  // namespace quire
