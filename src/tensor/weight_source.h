// Sources of a model's weights: a checkpoint on disk, one in memory, or random numbers (dummy).
// Also the scheme of a weight matrix: how its values are stored, and the scales that multiply them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quire/status.h"
#include "tensor/gguf_blocks.h"
#include "tensor/tensor.h"

namespace quire {

class MappedFile;

// A tensor that repeats a pool of numbers: element i is pool[(first + i) % length of pool].
struct RepeatedTensor {
  TensorView pool;  // valid as long as the source
  int64_t first = 0;
};

// The text of a shape for errors, for example "[128, 64]".
std::string shape_text(const Shape& shape);

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Returns a tensor of exactly this shape in host memory, aligned to its type: F32, F16, BF16,
  // F8_E4M3, I8, I32, I64 or U8. A single number may be stored with any number of axes. It is valid
  // until release(name). Errors name the file and the tensor.
  virtual Result<TensorView> tensor(std::string_view name, const Shape& expected) = 0;
  virtual bool has(std::string_view name) const = 0;
  // The type of the tensor that tensor() would return, without reading it; absent: no such tensor.
  virtual std::optional<DType> dtype_of(std::string_view name) const = 0;
  // The file that has the tensor, for errors; empty: no file.
  virtual std::string file_of(std::string_view /*name*/) const { return {}; }
  // The name of the tensor in the file, for errors: for example, the name of a fused matrix if the
  // tensor is a part of its rows. If the tensor is missing, the name that is expected.
  virtual std::string name_in_file(std::string_view name) const { return std::string(name); }
  // Copies the numbers of an I32 or I64 tensor [count].
  virtual Result<std::vector<int64_t>> integers(std::string_view name, int64_t count);
  // If the tensor repeats a pool, returns the pool, so that a device can fill the tensor itself.
  virtual Result<std::optional<RepeatedTensor>> repeated(std::string_view /*name*/) {
    return std::optional<RepeatedTensor>();
  }
  // The type of a matrix that is stored in quantized blocks; null if it is not.
  virtual const GgufBlockType* block_type(std::string_view /*name*/) const { return nullptr; }
  // The types of all quantized blocks, by name; empty: there are none.
  virtual std::vector<const GgufBlockType*> block_types() const;
  // Returns a matrix of exactly this shape that is stored in quantized blocks, valid until
  // release(name). tensor() would expand it.
  virtual Result<BlockMatrix> blocks(std::string_view name, const Shape& expected);
  // Frees the tensor's memory. The tensor can be requested again.
  virtual void release(std::string_view name) = 0;
  // The names of all tensors, to check that none was overlooked.
  virtual std::vector<std::string> names() const = 0;
  // The files whose bytes are used in place if possible; empty: the weights are in other memory.
  virtual std::vector<const MappedFile*> files() const { return {}; }
  // The tensor's shape as stored, without reading it; absent: no such tensor, or not known.
  virtual std::optional<Shape> shape_of(std::string_view /*name*/) const { return std::nullopt; }
};

// Random weights of any requested shape (load_format dummy). A name always gets the same numbers.
// Matrices and biases are approximately N(0, 0.02²); norm weights are near 1; integers are 0.
// Tensors with the names that AWQ, GPTQ and compressed-tensors give to packed integers of 4 or 8
// bits are random I32, and their scales are near 0.004; the optional tensors of such matrices are
// absent.
class DummyWeights : public WeightSource {
 public:
  explicit DummyWeights(DType dtype);

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view name) const override;
  std::optional<DType> dtype_of(std::string_view name) const override;
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t count) override;
  Result<std::optional<RepeatedTensor>> repeated(std::string_view name) override;
  void release(std::string_view name) override;
  std::vector<std::string> names() const override { return {}; }

 private:
  Result<RepeatedTensor> numbers_of(std::string_view name);

  DType dtype_;
  Tensor pool_;       // numbers around 0
  Tensor norm_pool_;  // numbers around 1
  Tensor scale_pool_;
  Tensor packed_pool_;  // random bits
  std::unordered_map<std::string, Tensor> tensors_;
};

// Lets several readers, each on its own thread, share `source`. Each reader requests a tensor once
// and releases it once. The last release frees the tensor's memory, so that it is read from disk
// once. A second request of one reader may read it again, and may keep its memory for ever.
std::unique_ptr<WeightSource> share_weights(std::unique_ptr<WeightSource> source, int num_readers);

// Whether vectors, scales and matrices without scales may have this type: F32, F16 or BF16.
constexpr bool is_weight_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

enum class ScaleLayout : uint8_t { kNone, kTensor, kRows, kBlocks };

struct WeightScheme {
  DType values = DType::kF32;
  ScaleLayout scales = ScaleLayout::kNone;
  int64_t block_rows = 0;  // kBlocks: the rows and columns that share one scale
  int64_t block_columns = 0;
  // With scales, the type of values * scales, which is the model's type before it was quantized.
  DType dequantized_dtype = DType::kF32;
  // Bits of the integers in I8 values: 4 (-8 to 7) or 8 (-128 to 127).
  int bits = 8;
  // Each scale has a zero point, an integer of the same range that is subtracted from the values.
  bool has_zeros = false;

  friend bool operator==(const WeightScheme&, const WeightScheme&) = default;
};

// Returns for example "fp8_e4m3 with a scale per block of 128 x 128", or "4-bit integers with a
// scale and a zero point per group of 128".
std::string describe(const WeightScheme& scheme);
// The name of the values' type: dtype_name(), or "i4" for integers of 4 bits.
std::string_view values_name(const WeightScheme& scheme);
constexpr bool is_integer(const WeightScheme& scheme) {
  return scheme.values == DType::kI8;
}

constexpr bool has_fp8_blocks(const WeightScheme& scheme) {
  return scheme.values == DType::kF8E4M3 && scheme.scales == ScaleLayout::kBlocks;
}

// The block of `matrix` [rows, columns] that shares one scale; not for kNone.
Shape scale_block(const WeightScheme& scheme, const Shape& matrix);
// The shape of the scales of `matrix`; the last block along either axis may be incomplete.
Shape scales_shape(const WeightScheme& scheme, const Shape& matrix);

// A matrix [rows, columns] in memory; its elements are (values - zeros) * scales.
struct WeightView {
  WeightView() = default;
  // Values without scales.
  WeightView(const TensorView& plain) : values(plain) { scheme.values = plain.dtype; }
  WeightView(const TensorView& of_values, const TensorView& of_scales, const WeightScheme& scheme_)
      : values(of_values), scales(of_scales), scheme(scheme_) {}

  TensorView values;
  TensorView scales;  // F32, F16 or BF16 of scales_shape(); data null: none
  TensorView zeros;   // I8 of scales_shape(); data null: zeros
  // I32 [columns]: values[:, i] is column order[i] of the matrix; data null: values are in order.
  TensorView order;
  WeightScheme scheme;
};

// The type of a matrix of this scheme once its values are multiplied by their scales: BF16 if the
// product has that type, and otherwise F32; without scales, the type of the values.
DType plain_dtype(const WeightScheme& scheme);
// The scheme of the matrix once its values are multiplied by their scales.
inline WeightScheme plain_scheme(const WeightScheme& scheme) {
  return {.values = plain_dtype(scheme)};
}
// Writes row `row` of the matrix in plain_dtype().
void write_plain_row(const WeightView& matrix, int64_t row, std::byte* out);

}  // namespace quire
