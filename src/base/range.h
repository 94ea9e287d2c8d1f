#pragma once

#include <limits>
#include <string>

namespace quire {

// The range of a number's valid values; messages print it as "a number in [0, 1)".
struct Range {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool min_excluded = false;
  bool max_excluded = false;

  // Returns false for NaN.
  bool contains(double value) const;
  std::string text() const;  // empty: any number
};

}  // namespace quire
