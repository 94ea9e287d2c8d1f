// Weights on the device, and their upload.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "cuda/base/memory.h"
#include "cuda/ops/op_kernels.h"
#include "ops/weight_store.h"

namespace quire::cuda {

// Rows that are quantized on the device.
struct QuantizedRows {
  TensorView values;  // E4M3 [rows, columns.count]
  TensorView scales;  // F32 [rows]
  Slice columns;      // of the rows that are quantized
};

// Uploads weights from host memory (usually a mapped file) to the device.
class WeightUpload {
 public:
  explicit WeightUpload(const LaunchContext& context) : context_(context) {}

  // Enqueues device = host, converted if the types differ. The caller may free the host tensor when
  // this returns, because the data is in pinned memory by then. The device copies one part while
  // several threads read the next.
  Status upload(const TensorView& host, const TensorView& device);
  // Enqueues writing the rows to the device, where they are contiguous.
  Status fill(const RepeatedRows& rows, const TensorView& device);
  // Enqueue the quantization of rows in F32, F16 or BF16, as MatricesToQuantize defines it. The
  // rows pass through a device buffer that holds a part of them at a time.
  Status quantize(const TensorView& host, const QuantizedRows& device);
  Status quantize(const RepeatedRows& rows, const QuantizedRows& device);
  // Enqueues filling `device` with contiguous pieces of piece_bytes. write(i, piece) fills piece i,
  // whose bytes are 0 before. All cores share the pieces.
  Status make(int64_t num_pieces, int64_t piece_bytes, std::byte* device,
              const std::function<void(int64_t i, std::byte* piece)>& write);
  // Waits for all enqueued uploads, and frees threads and memory until the next upload.
  Status release();

 private:
  enum class Check { kNone, kFinite };

  Status start();
  // Like upload(). With Check::kFinite, fails if an element is an infinity or a NaN.
  Status copy(const TensorView& host, const TensorView& device, Check check);
  Status upload_pool(const TensorView& pool);
  // Calls stage(first, part) for ranges of the rows, which start at row `first`. `stage` enqueues
  // writing these rows to `part`, in device memory. Enqueues the quantization of each part.
  template <class Stage>
  Status quantize_staged(const Shape& shape, DType dtype, const QuantizedRows& device,
                         const Stage& stage);

  LaunchContext context_;
  std::optional<ThreadPool> threads_;
  std::optional<ThreadPool> makers_;  // runs make()
  std::optional<PinnedRing> staging_;
  Buffer pool_;         // of the last filled rows
  Buffer staged_rows_;  // rows before they are quantized
};

// Fails, naming the scheme, if GPUs cannot compute with it.
Status check_scheme(const WeightScheme& scheme);

// The layout of the scales of stacked matrices: F32 [rows], one per row; or one per block of
// `scale_rows` rows and kScaleColumns columns, as in GemmCall.
struct ScalesLayout {
  Shape shape;
  int64_t scale_rows = 0;

  bool operator==(const ScalesLayout&) const = default;
};

// The layout for matrices of one scheme. With scales per block, scale_rows divides 128 and the
// heights of all matrices except the last, so that no block has rows of two matrices.
ScalesLayout scales_layout(std::span<const WeightView> matrices);
// The layout for a source whose matrices have scales or are quantized at load.
ScalesLayout scales_layout(const LinearSource& source);
// The scales of the matrices in this layout. A scale per tensor is repeated for each row.
std::vector<float> stacked_scales(std::span<const WeightView> matrices, const ScalesLayout& layout);

// The type of the weights after CudaLinear::load(source, dtype); fails as that function does.
Result<DType> kept_dtype(const LinearSource& source, DType dtype);

// Enqueues the upload or quantization of a matrix to `weights` [out_features, in_features], whose
// type is kept_dtype(). If that is E4M3, also writes the scales to `scales`, in the layout of
// scales_layout().
Status upload_matrix(const LinearSource& source, const TensorView& weights,
                     const TensorView& scales, WeightUpload& upload);

// Enqueues the upload of the source's biases, one below the other, to `bias` [out_features]. Fails
// with kInvalidArgument if they do not fit the source's matrices.
Status upload_biases(const LinearSource& source, const TensorView& bias, WeightUpload& upload);

class PackedMatrices;

// A weight matrix on the device: row-major [out_features, in_features] in the activations' type, or
// in E4M3 with F32 scales per row or per block. A scale per tensor is repeated per row, so that
// stacked matrices may have different scales. Alternatively, the weights are a PackedMatrices.
class CudaLinear final : public Linear {
 public:
  ~CudaLinear() override;

  // Enqueues the upload or quantization of the weights. Values with scales keep their type; other
  // values and the bias are converted to `dtype`. Fails with kInvalidArgument if the shapes or the
  // schemes of the blocks do not match, and with kUnimplemented for schemes that GPUs cannot
  // compute with.
  static Result<std::unique_ptr<CudaLinear>> load(const LinearSource& source, DType dtype,
                                                  WeightUpload& upload);
  // Enqueues the upload of a source with quantized weights, which stay packed. The bias is
  // converted to `dtype`. Fails as PackedMatrices::load() does.
  static Result<std::unique_ptr<CudaLinear>> load_packed(const LinearSource& source, DType dtype,
                                                         WeightUpload& upload);

  int64_t in_features() const override { return weights_.view.shape[1]; }
  int64_t out_features() const override { return weights_.view.shape[0]; }
  size_t num_bytes() const override;

  // Null if the weights are not packed.
  const PackedMatrices* packed() const { return packed_.get(); }
  // If the weights are packed, this has a shape but no data.
  const TensorView& weights() const { return weights_.view; }
  // GemmCall::w_scales and scale_rows.
  const TensorView& scales() const { return scales_.view; }
  int64_t scale_rows() const { return scale_rows_; }
  const TensorView& bias() const { return bias_.view; }  // [out_features]; data null: none

 private:
  CudaLinear();
  Status load_bias(const LinearSource& source, DType dtype, WeightUpload& upload);

  std::unique_ptr<PackedMatrices> packed_;
  Tensor weights_;
  Tensor scales_;
  int64_t scale_rows_ = 0;
  Tensor bias_;
};

// Every Linear of this device's Ops is a CudaLinear.
inline const CudaLinear& as_cuda(const Linear& linear) {
  return static_cast<const CudaLinear&>(linear);
}

}  // namespace quire::cuda
