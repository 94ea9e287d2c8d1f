#include "tensor/checkpoint.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

// Shards must be in the checkpoint's own directory, because a name with a path could reach any
// file.
bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

using ShardLists = std::map<std::string, std::vector<std::string>>;  // shard → its tensors

Result<ShardLists> read_index(const std::filesystem::path& path) {
  constexpr size_t kMaxShards = 4096;
  const std::string source = path.string();
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::load(path, {.max_bytes = kMaxSafetensorsHeader}));
  simdjson::dom::object weight_map;
  if (document.root()["weight_map"].get(weight_map) || weight_map.size() == 0) {
    return invalid_argument(
        fmt::format("[checkpoint] {}: weight_map is missing or empty; expected an object of tensor "
                    "names and the files they are in",
                    source));
  }
  ShardLists shards;
  for (const auto& [name, value] : weight_map) {
    std::string_view shard;
    if (value.get(shard) || !is_plain_file_name(shard)) {
      return invalid_argument(fmt::format(
          "[checkpoint] {}: weight_map does not give tensor {} a file of the same directory; got "
          "{}, expected a plain file name",
          source, quote_name(name), value.is_string() ? quote_name(shard) : "no string"));
    }
    shards[std::string(shard)].emplace_back(name);
    if (shards.size() > kMaxShards) {
      return invalid_argument(
          fmt::format("[checkpoint] {}: more than {} shards are listed", source, kMaxShards));
    }
  }
  return shards;
}

}  // namespace

Result<std::vector<std::string>> read_shard_names(const std::filesystem::path& index) {
  QUIRE_ASSIGN_OR_RETURN(const ShardLists lists, read_index(index));
  std::vector<std::string> names;
  for (const auto& [name, tensors] : lists) names.push_back(name);
  return names;
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::open(const std::filesystem::path& directory) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  QUIRE_ASSIGN_OR_RETURN(const bool has_single, path_exists(directory / kWeightsFile));
  QUIRE_ASSIGN_OR_RETURN(const bool has_index, path_exists(directory / kWeightsIndexFile));
  if (has_single) {
    QUIRE_RETURN_IF_ERROR(checkpoint->add_file(directory / kWeightsFile));
  } else if (has_index) {
    QUIRE_RETURN_IF_ERROR(checkpoint->add_indexed(directory, directory / kWeightsIndexFile));
  } else {
    return not_found(fmt::format(
        "[checkpoint] no weights in {}; expected {} or {}; set `load_format` to dummy for "
        "random weights, or convert the checkpoint to safetensors",
        directory.string(), kWeightsFile, kWeightsIndexFile));
  }
  return checkpoint;
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::from_memory(std::span<const std::byte> bytes,
                                                            std::string_view source) {
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  QUIRE_ASSIGN_OR_RETURN(Safetensors tensors, Safetensors::parse(bytes, source));
  QUIRE_RETURN_IF_ERROR(checkpoint->add_shard({std::string(source), {}, std::move(tensors)}));
  return checkpoint;
}

Status Checkpoint::add_file(const std::filesystem::path& path) {
  QUIRE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  Shard shard;
  shard.source = path.string();
  QUIRE_ASSIGN_OR_RETURN(shard.tensors, Safetensors::parse(file.bytes(), shard.source));
  shard.file.push_back(std::move(file));
  return add_shard(std::move(shard));
}

Status Checkpoint::add_shard(Shard shard) {
  for (const std::string& name : shard.tensors.names()) {
    const auto [found, inserted] = shard_of_.emplace(name, shards_.size());
    if (!inserted) {
      return invalid_argument(fmt::format(
          "[checkpoint] tensor {} is both in {} and in {}; expected it in one file: the checkpoint "
          "is mixed from several; download it again",
          quote_name(name), shards_[found->second].source, shard.source));
    }
  }
  shards_.push_back(std::move(shard));
  return {};
}

Status Checkpoint::add_indexed(const std::filesystem::path& directory,
                               const std::filesystem::path& index) {
  QUIRE_ASSIGN_OR_RETURN(const ShardLists lists, read_index(index));
  for (const auto& [file_name, names] : lists) {
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(directory / file_name));
    if (!exists) {
      return not_found(fmt::format(
          "[checkpoint] {}: the file {}, which the index lists, is missing; expected it beside the "
          "index: download it again",
          index.string(), quote_name(file_name)));
    }
    QUIRE_RETURN_IF_ERROR(add_file(directory / file_name));
    const Shard& shard = shards_.back();
    for (const std::string& name : names) {
      if (shard.tensors.find(name) == nullptr) {
        return invalid_argument(fmt::format(
            "[checkpoint] {} says that tensor {} is in {}, which lacks it; expected the "
            "index and the files of one checkpoint: download both again",
            index.string(), quote_name(name), quote_name(file_name)));
      }
    }
  }
  return {};
}

Result<TensorView> Checkpoint::tensor(std::string_view name, const Shape& expected) {
  const auto found = shard_of_.find(std::string(name));
  if (found == shard_of_.end()) {
    return not_found(fmt::format(
        "[checkpoint] tensor {} of shape {} is missing in {}{}; expected every tensor of the model "
        "that config.json describes: download the checkpoint again",
        quote_name(name), shape_text(expected), shards_.front().source,
        shards_.size() > 1 ? " and the other shards" : ""));
  }
  const Shard& shard = shards_[found->second];
  QUIRE_ASSIGN_OR_RETURN(TensorView view, shard.tensors.view(name));
  const bool is_number = view.shape.num_elements() == 1 && expected.num_elements() == 1;
  if (is_number) view.shape = expected;
  if (view.shape != expected) {
    return invalid_argument(fmt::format(
        "[checkpoint] {}: tensor {} has another shape than config.json says; got {}, expected {}",
        shard.source, quote_name(name), shape_text(view.shape), shape_text(expected)));
  }
  if (reinterpret_cast<uintptr_t>(view.data) % dtype_bytes(view.dtype) != 0) {
    QUIRE_ASSIGN_OR_RETURN(Buffer copy, Buffer::host(view.num_bytes()));
    if (view.num_bytes() > 0) std::memcpy(copy.data(), view.data, view.num_bytes());
    view.data = copy.data();
    aligned_copies_.insert_or_assign(std::string(name), std::move(copy));
  }
  return view;
}

bool Checkpoint::has(std::string_view name) const {
  return shard_of_.contains(std::string(name));
}

std::optional<DType> Checkpoint::dtype_of(std::string_view name) const {
  const auto found = shard_of_.find(std::string(name));
  if (found == shard_of_.end()) return std::nullopt;
  const Result<TensorView> view = shards_[found->second].tensors.view(name);
  return view.ok() ? std::optional(view->dtype) : std::nullopt;
}

std::optional<Shape> Checkpoint::shape_of(std::string_view name) const {
  const auto found = shard_of_.find(std::string(name));
  if (found == shard_of_.end()) return std::nullopt;
  const SafetensorsEntry* const entry = shards_[found->second].tensors.find(name);
  return entry->shape.size() > kMaxRank ? std::nullopt : std::optional(Shape(entry->shape));
}

std::string Checkpoint::file_of(std::string_view name) const {
  const auto found = shard_of_.find(std::string(name));
  return found == shard_of_.end() ? std::string() : shards_[found->second].source;
}

void Checkpoint::release(std::string_view name) {
  const std::string key(name);
  aligned_copies_.erase(key);
  const auto found = shard_of_.find(key);
  if (found == shard_of_.end()) return;
  const Shard& shard = shards_[found->second];
  if (!shard.file.empty()) shard.file.front().drop_pages(shard.tensors.find(name)->bytes);
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> all;
  for (const Shard& shard : shards_) {
    all.insert(all.end(), shard.tensors.names().begin(), shard.tensors.names().end());
  }
  return all;
}

std::vector<const MappedFile*> Checkpoint::files() const {
  std::vector<const MappedFile*> all;
  for (const Shard& shard : shards_) {
    for (const MappedFile& file : shard.file) all.push_back(&file);
  }
  return all;
}

}  // namespace quire
