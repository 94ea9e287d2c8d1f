#include <fmt/format.h>

#include <utility>

#include "tensor/gguf.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

struct SplitKeys {
  int64_t number = 0;  // of this file, from 0
  int64_t count = 1;
};

Result<SplitKeys> read_split_keys(const GgufHeader& header) {
  const auto read = [&header](std::string_view key, int64_t fallback) -> Result<int64_t> {
    const GgufValue* const value = header.find(key);
    if (value == nullptr) return fallback;
    const std::optional<int64_t> number = value->integer();
    if (number && *number >= 0 && *number <= 99999) return *number;
    return invalid_argument(
        fmt::format("[gguf] {}: metadata \"{}\"; got {}, expected an integer from 0 to 99999",
                    header.source(), key, number ? std::to_string(*number) : "no integer"));
  };
  SplitKeys keys;
  QUIRE_ASSIGN_OR_RETURN(keys.number, read("split.no", 0));
  QUIRE_ASSIGN_OR_RETURN(keys.count, read("split.count", 1));
  return keys;
}

std::string split_suffix(int64_t number, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

}  // namespace

Result<GgufModel::Part> GgufModel::open_part(const std::filesystem::path& path) {
  QUIRE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  Part part;
  QUIRE_ASSIGN_OR_RETURN(part.header, GgufHeader::parse(file.bytes(), path.string()));
  part.file.push_back(std::move(file));
  return part;
}

Status GgufModel::add(Part part) {
  const std::vector<GgufTensor>& tensors = part.header.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto [found, inserted] = places_.emplace(tensors[i].name, Place{parts_.size(), i});
    if (inserted) continue;
    const std::string& other = found->second.part < parts_.size()
                                   ? parts_[found->second.part].header.source()
                                   : part.header.source();
    return invalid_argument(
        fmt::format("[gguf] {}: tensor {}; got it twice, also in {}, expected it once",
                    part.header.source(), quote_name(tensors[i].name), other));
  }
  parts_.push_back(std::move(part));
  return {};
}

Status GgufModel::add_other_files(const std::filesystem::path& first) {
  const GgufHeader& header = parts_.front().header;
  QUIRE_ASSIGN_OR_RETURN(const SplitKeys keys, read_split_keys(header));
  if (keys.count <= 1) return {};
  const std::string name = first.filename().string();
  const std::string suffix = split_suffix(keys.number, keys.count);
  if (keys.number != 0 || !name.ends_with(suffix)) {
    return invalid_argument(fmt::format(
        "[gguf] {}: file {} of {} of a split model; expected the first of them, with a name that "
        "ends in {}",
        first.string(), keys.number + 1, keys.count, split_suffix(0, keys.count)));
  }
  const std::string stem = name.substr(0, name.size() - suffix.size());
  for (int64_t number = 1; number < keys.count; ++number) {
    const std::filesystem::path path =
        first.parent_path() / (stem + split_suffix(number, keys.count));
    QUIRE_ASSIGN_OR_RETURN(const bool exists, path_exists(path));
    if (!exists) {
      return not_found(
          fmt::format("[gguf] {}: file {} of {} of a split model is missing; expected {} beside "
                      "the first: download it",
                      first.string(), number + 1, keys.count, path.filename().string()));
    }
    QUIRE_ASSIGN_OR_RETURN(Part part, open_part(path));
    QUIRE_ASSIGN_OR_RETURN(const SplitKeys own, read_split_keys(part.header));
    if (own.number != number || own.count != keys.count) {
      return invalid_argument(fmt::format(
          "[gguf] {}: split.no and split.count; got file {} of {}, expected {} of {}: the file "
          "belongs to another model or has another's name",
          part.header.source(), own.number + 1, own.count, number + 1, keys.count));
    }
    QUIRE_RETURN_IF_ERROR(add(std::move(part)));
  }
  const GgufValue* const total = parts_.front().header.find("split.tensors.count");
  const std::optional<int64_t> expected = total != nullptr ? total->integer() : std::nullopt;
  if (total == nullptr || expected == static_cast<int64_t>(places_.size())) return {};
  return invalid_argument(fmt::format(
      "[gguf] {}: split.tensors.count; got {} tensors in {} files, expected {}: fetch the files "
      "again",
      first.string(), places_.size(), keys.count,
      expected ? std::to_string(*expected) : "an integer"));
}

Result<GgufModel> GgufModel::open(const std::filesystem::path& path) {
  GgufModel model;
  QUIRE_ASSIGN_OR_RETURN(Part part, open_part(path));
  QUIRE_RETURN_IF_ERROR(model.add(std::move(part)));
  QUIRE_RETURN_IF_ERROR(model.add_other_files(path));
  return model;
}

Result<GgufModel> GgufModel::from_memory(std::span<const std::byte> bytes,
                                         std::string_view source) {
  GgufModel model;
  Part part;
  QUIRE_ASSIGN_OR_RETURN(part.header, GgufHeader::parse(bytes, source));
  QUIRE_RETURN_IF_ERROR(model.add(std::move(part)));
  return model;
}

const GgufTensor* GgufModel::tensor(std::string_view name) const {
  const auto found = places_.find(std::string(name));
  if (found == places_.end()) return nullptr;
  return &parts_[found->second.part].header.tensors()[found->second.tensor];
}

std::vector<const GgufTensor*> GgufModel::tensors() const {
  std::vector<const GgufTensor*> all;
  for (const Part& part : parts_) {
    for (const GgufTensor& tensor : part.header.tensors()) all.push_back(&tensor);
  }
  return all;
}

void GgufModel::drop_pages(const GgufTensor& tensor, std::span<const std::byte> bytes) const {
  const Part& part = parts_[places_.at(tensor.name).part];
  if (!part.file.empty()) part.file.front().drop_pages(bytes);
}

std::vector<const MappedFile*> GgufModel::files() const {
  std::vector<const MappedFile*> all;
  for (const Part& part : parts_) {
    for (const MappedFile& file : part.file) all.push_back(&file);
  }
  return all;
}

}  // namespace quire
