// The GGUF format of llama.cpp: a header with typed key/value pairs (metadata) and the tensors'
// types, shapes and positions, then the tensors' bytes. A model is one file or several (split).
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "quire/status.h"
#include "tensor/gguf_blocks.h"

namespace quire {

class JsonWriter;

enum class GgufKind : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// A value of the metadata, checked to be inside the file. Readers return nullopt if the value has
// another kind.
class GgufValue {
 public:
  std::optional<int64_t> integer() const;  // a value of any integer kind that fits
  std::optional<bool> boolean() const;
  std::optional<std::string_view> text() const;
  std::optional<std::vector<std::string_view>> texts() const;
  std::optional<double> number() const;  // an integer, a floating-point number, or a boolean
  // An array of integers, floating-point numbers, or booleans as 0 and 1.
  std::optional<std::vector<double>> numbers() const;
  // Writes a number, a text, a boolean, or an array of them.
  void write_json(JsonWriter& json) const;

 private:
  friend class GgufHeaderReader;

  GgufKind kind_ = GgufKind::kUint8;  // of the elements, for an array
  bool is_array_ = false;
  uint64_t count_ = 1;
  std::string_view bytes_;
};

struct GgufTensor {
  std::string name;
  std::vector<int64_t> shape;  // row-major, as in safetensors; the file stores the reverse
  const GgufBlockType* type = nullptr;
  std::span<const std::byte> bytes;
};

// One file's header, checked as a whole: counts and lengths fit the file, keys are unique, and the
// tensors' bytes are aligned, inside the file, and follow each other. GgufModel checks that the
// tensors' names are unique. Does not own the bytes.
class GgufHeader {
 public:
  // `source` names the bytes in errors. They must outlive this object.
  static Result<GgufHeader> parse(std::span<const std::byte> bytes, std::string_view source);

  const std::string& source() const { return source_; }
  // Returns null if there is no such key.
  const GgufValue* find(std::string_view key) const;
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

 private:
  friend class GgufHeaderReader;

  std::string source_;
  std::unordered_map<std::string, GgufValue> fields_;
  std::vector<GgufTensor> tensors_;
};

// Whether these are the first bytes of a GGUF file.
bool is_gguf(std::string_view beginning);

// A model's file, or all files of a split one, memory-mapped. The metadata is the first file's.
class GgufModel {
 public:
  // `path` is the only file, or the first one of a split model: NAME-00001-of-00003.gguf.
  static Result<GgufModel> open(const std::filesystem::path& path);
  // Opens one file in memory, which must outlive the model.
  static Result<GgufModel> from_memory(std::span<const std::byte> bytes, std::string_view source);

  const std::string& source() const { return parts_.front().header.source(); }
  const GgufValue* find(std::string_view key) const { return parts_.front().header.find(key); }
  // Returns null if there is no such tensor.
  const GgufTensor* tensor(std::string_view name) const;
  // All tensors, in the order of the files.
  std::vector<const GgufTensor*> tensors() const;
  std::vector<const MappedFile*> files() const;
  // Lets the kernel drop this part of the tensor's bytes from memory; they can be read again.
  void drop_pages(const GgufTensor& tensor, std::span<const std::byte> bytes) const;

 private:
  struct Part {
    std::vector<MappedFile> file;  // one, or none if the caller owns the bytes
    GgufHeader header;
  };
  struct Place {
    size_t part;
    size_t tensor;
  };

  Status add(Part part);
  Status add_other_files(const std::filesystem::path& first);
  static Result<Part> open_part(const std::filesystem::path& path);

  std::vector<Part> parts_;
  std::unordered_map<std::string, Place> places_;
};

}  // namespace quire
