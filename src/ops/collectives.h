// The operations by which ranks exchange results. A device has them if its rank is one of several
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
  // whole[t, :] = the ranks' part[t, :], one after another. whole: F32 [num_rows, columns]. part:
  // F32 [num_rows, ceil(columns / num_ranks())]; its memory has this size even if the last ranks
  // have fewer columns. scratch: F32, num_ranks() times as large as part; undefined afterwards.
  virtual void all_gather_columns(TensorView part, TensorView whole, TensorView scratch) = 0;
};

}  // namespace quire
