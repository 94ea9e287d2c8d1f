// Reads one rank's parts of a model's matrices as a WeightStore takes them: finds their tensors,
// divides them, unpacks integers, and expands quantized numbers that the store does not keep.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "model/tensor_reader.h"
#include "model/weights.h"
#include "ops/weight_store.h"

namespace quire {

class MatrixReader {
 public:
  // `tensors` and `store` must outlive the reader.
  MatrixReader(TensorReader& tensors, const WeightStore& store, const Parallel& parallel)
      : tensors_(tensors), store_(store), parallel_(parallel) {}

  // The numbers of the binding's matrices, valid until release().
  Result<LinearSource> read(const MatrixBinding& binding);
  // A copy of the binding's only matrix in plain_dtype().
  Result<Tensor> read_plain(const MatrixBinding& binding);
  void release();

  // Returns the error of make_linear or make_experts. If the matrix could not be quantized, adds
  // the tensor's name.
  Status explain(const Status& status, const MatrixBinding& binding);

  // This rank's rows of a part.
  Slice rows_of(const MatrixPart& part, const MatrixBinding& binding) const;
  // Whether quantized blocks are kept as they are: the store keeps the blocks of every part, and no
  // border between ranks cuts a block. Otherwise the source expands them.
  bool keeps_blocks(const MatrixBinding& binding) const;

 private:
  // The split of the numbers in the source. A matrix to quantize at load has whole rows, and the
  // store divides its columns.
  static Split split_of_source(const MatrixBinding& binding);
  Slice columns_of(const MatrixBinding& binding) const;
  bool has_zero_columns(const MatrixBinding& binding) const;  // InnerPart::is_zero
  bool is_whole(const MatrixBinding& binding) const;

  Status add_blocks(const MatrixPart& part, const MatrixBinding& binding);
  Status add_part(const MatrixPart& part, const MatrixBinding& binding);
  RepeatedRows repeated_part(const RepeatedTensor& numbers, const MatrixPart& part,
                             const MatrixBinding& binding) const;
  Result<TensorView> bias_part(const MatrixPart& part, const MatrixBinding& binding);
  // Gives all matrices of a stack blocks of one size. A border between ranks may have cut the
  // blocks of only some of them.
  Status unify_blocks();

  Result<WeightView> matrix_part(const MatrixPart& part, const MatrixBinding& binding);
  // Fails if an exponent of a matrix in MXFP4 stands for a NaN.
  Status check_exponents(const std::string& name, const BlockMatrix& matrix);
  Result<WeightView> take_matrix(const std::string& name, const Shape& whole,
                                 const MatrixPart& part, const MatrixBinding& binding);
  Result<WeightView> take_quantized(const std::string& name, const Shape& whole,
                                    const MatrixPart& part, const WeightFormat& format);
  // Returns integers, or their products with the scales if the store does not keep integers.
  Result<WeightView> take_integers(const std::string& name, const Shape& whole,
                                   const MatrixPart& part, const MatrixBinding& binding);
  Status check_stored_shape(const MatrixPart& part, const Shape& whole, const WeightFormat& format);
  Status take_unused_bias(const MatrixPart& part, const MatrixBinding& binding);
  // The order of the columns; empty: they are in order.
  Result<std::vector<int32_t>> take_order(const MatrixPart& part, const Shape& whole,
                                          const WeightFormat& format);
  ThreadPool& threads();

  TensorReader& tensors_;
  const WeightStore& store_;
  const Parallel parallel_;
  // The parts of the matrix being read.
  std::vector<WeightView> weights_;
  std::vector<TensorView> biases_;
  std::vector<RepeatedRows> repeated_;  // used instead of weights_
  std::vector<BlockMatrix> blocks_;     // used instead of weights_
  std::vector<Tensor> copies_;          // slices, and unpacked or expanded matrices
  std::optional<ThreadPool> threads_;   // that convert matrices; made when they are needed
};

}  // namespace quire
