// A Hugging Face checkpoint of safetensors files, memory-mapped or already in memory.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "tensor/safetensors.h"
#include "tensor/weight_source.h"

namespace quire {

// The file with all weights of a checkpoint, and the index of the files that they are split into.
inline constexpr std::string_view kWeightsFile = "model.safetensors";
inline constexpr std::string_view kWeightsIndexFile = "model.safetensors.index.json";

// The names of the files that an index lists, each once, in ascending order. Each is a plain file
// name without a path.
Result<std::vector<std::string>> read_shard_names(const std::filesystem::path& index);

class Checkpoint : public WeightSource {
 public:
  // Opens `model.safetensors`, or the shards that `model.safetensors.index.json` lists.
  static Result<std::unique_ptr<Checkpoint>> open(const std::filesystem::path& directory);
  // Opens one safetensors file in memory, which must outlive the checkpoint; `source` names it in
  // errors.
  static Result<std::unique_ptr<Checkpoint>> from_memory(std::span<const std::byte> bytes,
                                                         std::string_view source);

  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  bool has(std::string_view name) const override;
  std::optional<DType> dtype_of(std::string_view name) const override;
  std::optional<Shape> shape_of(std::string_view name) const override;
  std::string file_of(std::string_view name) const override;
  void release(std::string_view name) override;
  std::vector<std::string> names() const override;
  std::vector<const MappedFile*> files() const override;

 private:
  struct Shard {
    std::string source;
    std::vector<MappedFile> file;  // one, or none if the caller owns the bytes
    Safetensors tensors;
  };

  Checkpoint() = default;
  Status add_file(const std::filesystem::path& path);
  Status add_shard(Shard shard);
  Status add_indexed(const std::filesystem::path& directory, const std::filesystem::path& index);

  std::vector<Shard> shards_;
  std::unordered_map<std::string, size_t> shard_of_;  // tensor name → index into shards_
  // Copies of tensors that are not aligned in their file.
  std::unordered_map<std::string, Buffer> aligned_copies_;
};

}  // namespace quire
