// The operations by which ranks exchange results, of a device whose rank is one of several
// (Ops::collectives).
#pragma once

#include "tensor/tensor.h"

namespace quire {

// Every rank calls the same functions in the same order and with the same shapes. The results have
// the same bits on all ranks. Works in the stream of the Ops that it is a part of.
class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual int num_ranks() const = 0;
  // x = the sum of every rank's x.
  virtual void all_reduce(TensorView x) = 0;
  // whole[t, :] = every rank's part[t, :], one after the other. whole: F32 [num_rows, columns].
  // part: F32 [num_rows, ceil(columns / number of ranks)], in memory of this size also where the
  // last ranks have fewer columns. scratch: F32, that size for every rank; undefined afterwards.
  virtual void all_gather_columns(TensorView part, TensorView whole, TensorView scratch) = 0;
};

}  // namespace quire
