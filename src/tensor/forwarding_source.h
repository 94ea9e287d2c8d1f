// A source of weights that passes every call on to another one. Derived classes override the calls
// that they change.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/weight_source.h"

namespace quire {

class ForwardingSource : public WeightSource {
 public:
  explicit ForwardingSource(std::unique_ptr<WeightSource> source) : source_(std::move(source)) {}

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override {
    return source_->tensor(name, expected);
  }
  bool has(std::string_view name) const override { return source_->has(name); }
  std::optional<DType> dtype_of(std::string_view name) const override {
    return source_->dtype_of(name);
  }
  std::optional<Shape> shape_of(std::string_view name) const override {
    return source_->shape_of(name);
  }
  std::string file_of(std::string_view name) const override { return source_->file_of(name); }
  std::string name_in_file(std::string_view name) const override {
    return source_->name_in_file(name);
  }
  Result<std::vector<int64_t>> integers(std::string_view name, int64_t count) override {
    return source_->integers(name, count);
  }
  Result<std::optional<RepeatedTensor>> repeated(std::string_view name) override {
    return source_->repeated(name);
  }
  const GgufBlockType* block_type(std::string_view name) const override {
    return source_->block_type(name);
  }
  std::vector<const GgufBlockType*> block_types() const override { return source_->block_types(); }
  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override {
    return source_->blocks(name, expected);
  }
  void release(std::string_view name) override { source_->release(name); }
  std::vector<std::string> names() const override { return source_->names(); }
  std::vector<const MappedFile*> files() const override { return source_->files(); }

 private:
  std::unique_ptr<WeightSource> source_;
};

}  // namespace quire
