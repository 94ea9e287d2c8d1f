// Takes the tensors of a load from its source, checks their types, and records which were used.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tensor/weight_source.h"

namespace quire {

class TensorReader {
 public:
  explicit TensorReader(WeightSource& source);

  WeightSource& source() const { return source_; }
  // Whether the checkpoint has this tensor. Always false for random weights, from which any tensor
  // can be taken.
  bool stores(const std::string& name) const { return names_.contains(name); }
  bool is_random() const { return names_.empty(); }

  // Their results are valid until release_taken().
  Result<TensorView> take(const std::string& name, const Shape& shape);
  Result<TensorView> take_float(const std::string& name, const Shape& shape);
  Result<TensorView> take_typed(const std::string& name, const Shape& shape, DType dtype);
  // Fails as check_scales() does.
  Result<TensorView> take_scales(const std::string& name, const Shape& shape,
                                 const WeightScheme& scheme = {});
  Result<BlockMatrix> take_blocks(const std::string& name, const Shape& shape);
  void release_taken();

  // Their results need no release.
  Result<std::vector<int64_t>> take_numbers(const std::string& name, int64_t count);
  Result<std::optional<RepeatedTensor>> take_repeated(const std::string& name);

  // Returns `status` with a message that begins with the tensor's file and name and the fault.
  Status about_tensor(const std::string& name, std::string_view fault, const Status& status) const;
  // Fails if the checkpoint has a tensor that was neither taken nor has one of these prefixes.
  Status check_nothing_left(std::span<const std::string> ignored_prefixes,
                            std::string_view architecture) const;

 private:
  WeightSource& source_;
  const std::set<std::string> names_;  // of the source; empty if its weights are random
  std::unordered_set<std::string> used_;
  std::vector<std::string> taken_;  // since the last release
};

}  // namespace quire
