// Binary search in device code.
#pragma once

namespace quire::cuda {

// Returns the last i in [first, first + count) with start_of(i) <= value, or `first` if there is no
// such i. start_of(i) must not decrease. For example, this finds the request of a token from the
// requests' first tokens; it skips requests without tokens.
template <typename StartOf>
__device__ __forceinline__ int last_starting_by(int first, int count, int value, StartOf start_of) {
  int low = first;
  int high = first + count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (start_of(middle) <= value) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace quire::cuda
