// The weights of a GGUF file under the names of a checkpoint, which the model families use.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"
#include "model/gguf/gguf_names.h"
#include "quire/status.h"
#include "tensor/gguf.h"
#include "tensor/weight_source.h"

namespace quire {

// F32, F16 and BF16 tensors are read in place if their layout is the checkpoint's. Others are
// expanded when tensor() is called, one at a time: matrices to gguf_weight_dtype, vectors to F32. A
// router keeps its own type, because the choice of experts depends on its last bits.
//
// The value heads of a tiled delta net (DeltaNetShape::is_tiled) stay in the file's order, because
// the columns of blocks cannot be reordered head by head. With several ranks, the heads of rank 0
// come first, then the heads of rank 1, and so on, so that each rank's part is consecutive. The
// heads of one rank are in the file's order.
class GgufWeights : public WeightSource {
 public:
  // `config` is the result of gguf_model_config(). With `plain`, all tensors have this type: there
  // are no blocks, and the source looks like the checkpoint that the file was made from.
  static Result<std::unique_ptr<GgufWeights>> open(GgufModel gguf, const ModelConfig& config,
                                                   std::optional<DType> plain = std::nullopt,
                                                   int num_ranks = 1);

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view name) const override;
  std::optional<DType> dtype_of(std::string_view name) const override;
  std::optional<Shape> shape_of(std::string_view name) const override;
  const GgufBlockType* block_type(std::string_view name) const override;
  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override;
  void release(std::string_view name) override;
  std::vector<std::string> names() const override;
  std::vector<const MappedFile*> files() const override { return gguf_.files(); }

 private:
  // A tensor of the checkpoint that the file was made from: a tensor in the file, or a part of it,
  // and the differences between the two.
  struct Entry {
    const GgufTensor* tensor = nullptr;
    std::span<const std::byte> bytes;
    Shape shape;
    GgufChanges changes = {};  // undone at load
    bool keeps_type = false;   // keeps_gguf_type()
    // The rows and columns of `bytes` of which the tensor consists, in order; empty: all of them.
    std::vector<Slice> rows = {};
    std::vector<Slice> columns = {};
    // Set if the file has the matrix of keys and values of latent attention in two tensors: then
    // `tensor` is the keys' part (by head, transposed), and this is the values' part. Such a matrix
    // is always expanded, because its keys are transposed across blocks.
    const GgufTensor* latent_values = nullptr;
  };

  // One of several matrices whose rows are stored as one matrix.
  struct RowsPart {
    std::string_view name;  // in a layer of the checkpoint, with the dot before "weight" or "bias"
    int64_t num_rows = 0;
  };
  struct FusedRows {
    std::string_view file;  // as RowsPart::name, in a layer of the file
    std::vector<RowsPart> parts;
    int num_groups = 1;  // FusedMatrix::num_groups
  };

  GgufWeights(GgufModel gguf, const ModelConfig& config, const GgufArchitecture& architecture,
              int num_ranks);
  // Adds the matrices of delta nets to fused_.
  void add_delta_rows(const DeltaNetShape& shape, GgufDeltas order);
  Status add_tensor(const GgufTensor& tensor);
  // Adds each part of a tensor. `layer` is the file's, for example "blk.3.".
  Status add_rows(const GgufTensor& tensor, std::string_view layer, const FusedRows& fused,
                  std::string_view suffix);
  // Adds the matrices or biases of experts; returns false if the tensor is not a stack of them.
  Result<bool> add_if_of_experts(const GgufTensor& tensor);
  // `tensor` is a stack of the experts' matrices or biases, each of shape `each`. Adds the `rows`
  // of each expert as the tensors of the checkpoint's stack `stack` (GgufNames).
  Status add_experts(const GgufTensor& tensor, const std::string& stack, const Shape& each,
                     const Slice& rows);
  Status add_latent(const GgufTensor& keys, std::string_view layer);
  Status add_entry(const std::string& name, Entry entry);
  // Orders the value heads of a tiled delta net by rank.
  Status order_heads(const std::string& name, Entry& entry) const;
  Status check_shape(const GgufTensor& tensor, const Shape& expected) const;
  Status wrong_shape(const GgufTensor& tensor, const Shape& got, const Shape& expected) const;
  // Fails if the tensor is a vector in blocks, whose single numbers cannot be addressed.
  Status check_divisible(const GgufTensor& tensor) const;
  Status refuse_blocks(const GgufTensor& tensor) const;
  Status expand_latent(const Entry& entry, const TensorView& out);
  DType dtype_of(const Entry& entry) const;
  bool is_in_place(const Entry& entry) const;
  // Returns the entry's matrix. If the entry is a part of the tensor, copies it into parts_.
  Result<BlockMatrix> matrix_of(std::string_view name, const Entry& entry);
  // Fails if the tensor does not exist or has another shape.
  Result<const Entry*> find(std::string_view name, const Shape& expected) const;

  GgufModel gguf_;
  ModelConfig config_;
  std::vector<FusedRows> fused_;
  int num_ranks_;
  std::optional<DType> plain_;  // the type of all tensors
  DType matrix_dtype_;
  GgufNames names_;
  std::unordered_map<std::string, Entry> entries_;    // by the checkpoint's name
  std::unordered_map<std::string, Buffer> expanded_;  // numbers
  std::unordered_map<std::string, Buffer> parts_;     // copied blocks, until release()
  std::optional<ThreadPool> threads_;  // that expand tensors; made when they are needed
};

}  // namespace quire
