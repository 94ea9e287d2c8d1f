#include "tensor/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/json.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

struct FileType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype;  // absent: Quire does not compute with it
};

// All known types of the format, so that sizes can also be checked for types that Quire does not
// compute with.
constexpr std::array kFileTypes = {
    FileType{"F32", 32, DType::kF32},
    FileType{"F16", 16, DType::kF16},
    FileType{"BF16", 16, DType::kBF16},
    FileType{"F64", 64, {}},
    FileType{"I64", 64, DType::kI64},
    FileType{"I32", 32, DType::kI32},
    FileType{"I16", 16, {}},
    FileType{"I8", 8, DType::kI8},
    FileType{"U64", 64, {}},
    FileType{"U32", 32, {}},
    FileType{"U16", 16, {}},
    FileType{"U8", 8, DType::kU8},
    FileType{"BOOL", 8, {}},
    FileType{"F8_E4M3", 8, DType::kF8E4M3},
    FileType{"F8_E5M2", 8, {}},
    FileType{"F8_E8M0", 8, {}},
    FileType{"F6_E2M3", 6, {}},
    FileType{"F6_E3M2", 6, {}},
    FileType{"F4", 4, {}},
    FileType{"C64", 64, {}},
};

const FileType* find_type(std::string_view name) {
  for (const FileType& type : kFileTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

struct TensorRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string_view name;
};

// Reads the header of one file; every error names the file.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, std::string_view source)
      : bytes_(bytes), source_(source) {}

  Result<std::string_view> header_text();
  Result<SafetensorsEntry> read_entry(std::string_view name, simdjson::dom::element value);
  // Called after all entries: checks that their ranges cover the data exactly once.
  Status check_ranges();
  const std::vector<TensorRange>& ranges() const { return ranges_; }

 private:
  template <typename... Args>
  Status error(fmt::format_string<Args...> format, Args&&... args) const {
    return invalid_argument(fmt::format("[safetensors] {}: {}", source_,
                                        fmt::format(format, std::forward<Args>(args)...)));
  }
  Status read_shape(std::string_view name, simdjson::dom::object object, SafetensorsEntry& entry);
  Status read_range(std::string_view name, simdjson::dom::object object, SafetensorsEntry& entry);
  Status check_size(std::string_view name, const SafetensorsEntry& entry) const;

  std::span<const std::byte> bytes_;
  std::span<const std::byte> data_;
  std::string_view source_;
  std::vector<TensorRange> ranges_;
};

Result<std::string_view> HeaderReader::header_text() {
  static_assert(std::endian::native == std::endian::little);
  uint64_t length = 0;
  if (bytes_.size() < sizeof(length)) {
    return error("the file is too short; got {} bytes, expected at least 8; download it again",
                 bytes_.size());
  }
  std::memcpy(&length, bytes_.data(), sizeof(length));
  if (length > kMaxSafetensorsHeader) {
    return error(
        "not a safetensors file, or a damaged one; got {} as the bytes of the header, expected at "
        "most {}; download it again",
        length, kMaxSafetensorsHeader);
  }
  const size_t rest = bytes_.size() - sizeof(length);
  if (length > rest) {
    return error(
        "the header does not fit the file; got a length of {} bytes, expected at most {}; the file "
        "is truncated, download it again",
        length, rest);
  }
  data_ = bytes_.subspan(sizeof(length) + length);
  return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + sizeof(length), length);
}

Result<SafetensorsEntry> HeaderReader::read_entry(std::string_view name,
                                                  simdjson::dom::element value) {
  simdjson::dom::object object;
  if (value.get(object)) return error("tensor {} is not described by an object", quote_name(name));
  if (const auto key = find_repeated_key(object)) {
    return error("tensor {} has the key {} twice; expected it once", quote_name(name),
                 quote_name(*key));
  }
  SafetensorsEntry entry;
  std::string_view dtype;
  if (object["dtype"].get(dtype)) return error("tensor {} has no dtype", quote_name(name));
  entry.dtype = dtype;
  QUIRE_RETURN_IF_ERROR(read_shape(name, object, entry));
  QUIRE_RETURN_IF_ERROR(read_range(name, object, entry));
  QUIRE_RETURN_IF_ERROR(check_size(name, entry));
  return entry;
}

Status HeaderReader::read_shape(std::string_view name, simdjson::dom::object object,
                                SafetensorsEntry& entry) {
  constexpr size_t kMaxAxes = 32;
  simdjson::dom::array shape;
  if (object["shape"].get(shape)) return error("tensor {} has no shape", quote_name(name));
  for (const simdjson::dom::element axis : shape) {
    uint64_t extent = 0;
    if (axis.get(extent) || extent > std::numeric_limits<int64_t>::max()) {
      return error("tensor {} has an extent that is not a whole number of at least 0",
                   quote_name(name));
    }
    if (entry.shape.size() == kMaxAxes) {
      return error("tensor {} has more than {} axes", quote_name(name), kMaxAxes);
    }
    entry.shape.push_back(static_cast<int64_t>(extent));
  }
  return {};
}

Status HeaderReader::read_range(std::string_view name, simdjson::dom::object object,
                                SafetensorsEntry& entry) {
  simdjson::dom::array offsets;
  uint64_t begin = 0;
  uint64_t end = 0;
  if (object["data_offsets"].get(offsets) || offsets.size() != 2 || offsets.at(0).get(begin) ||
      offsets.at(1).get(end)) {
    return error("tensor {} has no data_offsets of two whole numbers", quote_name(name));
  }
  if (begin > end || end > data_.size()) {
    return error(
        "tensor {} lies outside the file; got bytes [{}, {}), expected a range inside [0, {}); the "
        "file may be truncated",
        quote_name(name), begin, end, data_.size());
  }
  entry.bytes = data_.subspan(begin, end - begin);
  ranges_.push_back({begin, end, name});
  return {};
}

Status HeaderReader::check_size(std::string_view name, const SafetensorsEntry& entry) const {
  const FileType* type = find_type(entry.dtype);
  if (type == nullptr) return {};  // unknown type: an error only when it is requested
  uint64_t expected = type->bits;
  bool overflow = false;
  for (const int64_t extent : entry.shape) {
    overflow |= __builtin_mul_overflow(expected, static_cast<uint64_t>(extent), &expected);
  }
  if (overflow || expected % 8 != 0 || expected / 8 != entry.bytes.size()) {
    return error(
        "tensor {} of type {} and shape [{}] does not fill its range; got {} bytes, "
        "expected {}",
        quote_name(name), quote_name(entry.dtype), fmt::join(entry.shape, ", "), entry.bytes.size(),
        overflow ? std::string("more than fit 64 bits") : std::to_string(expected / 8));
  }
  return {};
}

Status HeaderReader::check_ranges() {
  std::ranges::sort(ranges_, [](const TensorRange& a, const TensorRange& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  for (const TensorRange& range : ranges_) {
    if (range.begin < covered) {
      return error("tensor {} overlaps another; got a begin of {}, expected {}",
                   quote_name(range.name), range.begin, covered);
    }
    if (range.begin > covered) {
      return error("there is a hole before tensor {}; got a begin of {}, expected {}",
                   quote_name(range.name), range.begin, covered);
    }
    covered = range.end;
  }
  if (covered != data_.size()) {
    return error(
        "bytes after the last tensor; got {} bytes of data, expected {}; the file is damaged, "
        "download it again",
        data_.size(), covered);
  }
  return {};
}

}  // namespace

Result<Safetensors> Safetensors::parse(std::span<const std::byte> bytes, std::string_view source) {
  HeaderReader reader(bytes, source);
  QUIRE_ASSIGN_OR_RETURN(const std::string_view text, reader.header_text());
  const Result<JsonDocument> document =
      JsonDocument::parse(text, fmt::format("the header of {}", source),
                          {.max_bytes = kMaxSafetensorsHeader, .max_depth = 8});
  if (!document.ok()) {
    const bool is_damaged = document.status().code() == StatusCode::kInvalidArgument;
    return Status(document.status().code(),
                  document.status().message() + (is_damaged ? ", or download it again" : ""));
  }
  simdjson::dom::object header;
  if (document->root().get(header)) {
    return invalid_argument(
        fmt::format("[safetensors] {}: the header is not a JSON object", source));
  }
  Safetensors file;
  file.source_ = source;
  for (const auto& [name, value] : header) {
    if (name == "__metadata__") continue;
    QUIRE_ASSIGN_OR_RETURN(SafetensorsEntry entry, reader.read_entry(name, value));
    if (!file.entries_.emplace(name, std::move(entry)).second) {
      return invalid_argument(
          fmt::format("[safetensors] {}: tensor {} is there twice", source, quote_name(name)));
    }
  }
  QUIRE_RETURN_IF_ERROR(reader.check_ranges());
  for (const TensorRange& range : reader.ranges()) file.names_.emplace_back(range.name);
  return file;
}

const SafetensorsEntry* Safetensors::find(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  return found == entries_.end() ? nullptr : &found->second;
}

Result<TensorView> Safetensors::view(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    return not_found(
        fmt::format("[safetensors] {}: there is no tensor {}", source_, quote_name(name)));
  }
  const FileType* type = find_type(entry->dtype);
  if (type == nullptr || !type->dtype) {
    return unimplemented(
        fmt::format("[safetensors] {}: tensor {} has an unsupported type; got {}, expected F32, "
                    "F16, BF16, F8_E4M3, I8, I32, I64 or U8; convert the checkpoint",
                    source_, quote_name(name), quote_name(entry->dtype)));
  }
  if (entry->shape.size() > kMaxRank) {
    return invalid_argument(
        fmt::format("[safetensors] {}: tensor {} has too many axes; got {}, expected at most {}",
                    source_, quote_name(name), entry->shape.size(), kMaxRank));
  }
  // TensorView has no const version; weights are never written through their views.
  return TensorView{const_cast<std::byte*>(entry->bytes.data()), *type->dtype, Shape(entry->shape)};
}

}  // namespace quire
