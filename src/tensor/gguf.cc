#include "tensor/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/json_writer.h"
#include "base/numbers.h"
#include "tensor/tensor.h"

namespace quire {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::string_view kDefaultAlignmentKey = "general.alignment";
constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint64_t kMaxNameBytes = 1024;
constexpr uint32_t kMaxDims = 4;
// Upper bound of the entries of a list in the metadata, because readers expand it: 16 times the
// largest vocabulary.
constexpr uint64_t kMaxEntries = 1 << 22;

// Bytes per value of the kinds 0 to 12; 0 for texts and arrays.
constexpr std::array<uint64_t, 13> kKindBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

template <typename T>
T load(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

std::optional<int64_t> load_integer(GgufKind kind, std::string_view bytes) {
  switch (kind) {
    case GgufKind::kUint8:
      return load<uint8_t>(bytes);
    case GgufKind::kInt8:
      return load<int8_t>(bytes);
    case GgufKind::kUint16:
      return load<uint16_t>(bytes);
    case GgufKind::kInt16:
      return load<int16_t>(bytes);
    case GgufKind::kUint32:
      return load<uint32_t>(bytes);
    case GgufKind::kInt32:
      return load<int32_t>(bytes);
    case GgufKind::kInt64:
      return load<int64_t>(bytes);
    case GgufKind::kUint64: {
      const auto number = load<uint64_t>(bytes);
      if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(number);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> load_number(GgufKind kind, std::string_view bytes) {
  if (kind == GgufKind::kFloat32) return load<float>(bytes);
  if (kind == GgufKind::kFloat64) return load<double>(bytes);
  if (kind == GgufKind::kBool) return load<uint8_t>(bytes) != 0 ? 1.0 : 0.0;
  const std::optional<int64_t> integer = load_integer(kind, bytes);
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

// Writes F32 numbers with only the digits that identify them among F32 numbers, so that 1e-5 does
// not become 9.9999997473787516e-06.
void write_number(GgufKind kind, std::string_view bytes, JsonWriter& json) {
  if (kind == GgufKind::kBool) return json.value(load<uint8_t>(bytes) != 0);
  if (const std::optional<int64_t> integer = load_integer(kind, bytes)) return json.value(*integer);
  const std::optional<double> number = load_number(kind, bytes);
  if (!number || !std::isfinite(*number)) return json.null();
  if (kind == GgufKind::kFloat32) return json.raw(fmt::format("{}", static_cast<float>(*number)));
  json.value(*number);
}

}  // namespace

std::optional<int64_t> GgufValue::integer() const {
  return is_array_ ? std::nullopt : load_integer(kind_, bytes_);
}

std::optional<double> GgufValue::number() const {
  return is_array_ ? std::nullopt : load_number(kind_, bytes_);
}

std::optional<bool> GgufValue::boolean() const {
  if (is_array_ || kind_ != GgufKind::kBool) return std::nullopt;
  return bytes_[0] != 0;
}

std::optional<std::string_view> GgufValue::text() const {
  if (is_array_ || kind_ != GgufKind::kString) return std::nullopt;
  return bytes_.substr(sizeof(uint64_t));
}

std::optional<std::vector<std::string_view>> GgufValue::texts() const {
  if (!is_array_ || kind_ != GgufKind::kString) return std::nullopt;
  std::vector<std::string_view> all;
  all.reserve(static_cast<size_t>(count_));
  std::string_view rest = bytes_;
  for (uint64_t i = 0; i < count_; ++i) {
    const auto size = static_cast<size_t>(load<uint64_t>(rest));
    all.push_back(rest.substr(sizeof(uint64_t), size));
    rest.remove_prefix(sizeof(uint64_t) + size);
  }
  return all;
}

std::optional<std::vector<double>> GgufValue::numbers() const {
  if (!is_array_ || kind_ == GgufKind::kString) return std::nullopt;
  const auto size = static_cast<size_t>(kKindBytes[static_cast<size_t>(kind_)]);
  std::vector<double> all;
  all.reserve(static_cast<size_t>(count_));
  for (size_t i = 0; i < count_; ++i) {
    const std::optional<double> number = load_number(kind_, bytes_.substr(i * size, size));
    if (!number) return std::nullopt;
    all.push_back(*number);
  }
  return all;
}

void GgufValue::write_json(JsonWriter& json) const {
  if (!is_array_) {
    if (const auto one = text()) return json.value(*one);
    return write_number(kind_, bytes_, json);
  }
  json.begin_array();
  if (const auto all = texts()) {
    for (const std::string_view one : *all) json.value(one);
  } else {
    const auto size = static_cast<size_t>(kKindBytes[static_cast<size_t>(kind_)]);
    for (size_t i = 0; i < count_; ++i) write_number(kind_, bytes_.substr(i * size, size), json);
  }
  json.end_array();
}

// Reads a header. After the first failure, the reader is not used.
class GgufHeaderReader {
 public:
  GgufHeaderReader(std::string_view bytes, std::string_view source) : all_(bytes), rest_(bytes) {
    header_.source_ = source;
  }

  Result<GgufHeader> read();

 private:
  Status error(std::string_view field, std::string_view got, std::string_view expected) const {
    return invalid_argument(
        fmt::format("[gguf] {}: {}; got {}, expected {}", header_.source_, field, got, expected));
  }
  Status cut_off(std::string_view field) const {
    return error(field, fmt::format("the end of the file at byte {}", all_.size()),
                 "more bytes: the file is incomplete or damaged, fetch it again");
  }

  template <typename T>
  Status take(std::string_view field, T& value) {
    if (rest_.size() < sizeof(T)) return cut_off(field);
    value = load<T>(rest_);
    rest_.remove_prefix(sizeof(T));
    return {};
  }
  Status take_text(std::string_view field, uint64_t max_bytes, std::string_view& text);
  // Fails if `count` items of at least `item_bytes` each do not fit into the rest of the file.
  Status check_count(std::string_view field, uint64_t count, uint64_t item_bytes) const;

  Status read_version();
  Status read_field();
  Status read_value(std::string_view key, uint32_t kind, GgufValue& value);
  Status skip_values(std::string_view key, GgufKind kind, uint64_t count);
  Status read_tensor();
  Status read_shape(std::string_view field, GgufTensor& tensor, uint64_t& num_elements);
  Status read_alignment();
  Status place_tensors();
  Status check_order(std::span<const size_t> order, uint64_t data_bytes) const;

  std::string_view all_;
  std::string_view rest_;
  uint64_t alignment_ = kDefaultAlignment;
  struct Range {
    uint64_t begin = 0;
    uint64_t size = 0;
  };
  std::vector<Range> ranges_;  // of the tensors, relative to the data
  GgufHeader header_;
};

Status GgufHeaderReader::check_count(std::string_view field, uint64_t count,
                                     uint64_t item_bytes) const {
  if (count <= rest_.size() / item_bytes) return {};
  return error(field, fmt::format("{} entries", count),
               fmt::format("at most {}, which fit into the rest of the file: it is incomplete or "
                           "damaged, fetch it again",
                           rest_.size() / item_bytes));
}

Status GgufHeaderReader::take_text(std::string_view field, uint64_t max_bytes,
                                   std::string_view& text) {
  uint64_t size = 0;
  QUIRE_RETURN_IF_ERROR(take(field, size));
  if (size > rest_.size()) return cut_off(field);
  if (size > max_bytes) {
    return error(field, fmt::format("a text of {} bytes", size),
                 fmt::format("at most {} bytes", max_bytes));
  }
  text = rest_.substr(0, static_cast<size_t>(size));
  rest_.remove_prefix(static_cast<size_t>(size));
  return {};
}

Status GgufHeaderReader::read_version() {
  if (rest_.empty()) return error("the file", "no bytes", "a GGUF file: fetch it again");
  if (!is_gguf(rest_)) return error("the first bytes", "another format", "\"GGUF\"");
  rest_.remove_prefix(kMagic.size());
  uint32_t version = 0;
  QUIRE_RETURN_IF_ERROR(take("version", version));
  if (version == 2 || version == 3) return {};
  const auto swapped = __builtin_bswap32(version);
  const bool is_big_endian = version > 0xFFFF && swapped <= 0xFFFF;
  const bool is_newer = !is_big_endian && version > 3;
  return unimplemented(fmt::format(
      "[gguf] {}: version; got {}{}, expected 2 or 3, little endian: {}", header_.source_,
      is_big_endian ? swapped : version, is_big_endian ? " (big endian)" : "",
      is_newer ? "the file is newer than this build, or damaged; take one in version 3"
               : "convert the checkpoint again with a current llama.cpp"));
}

Status GgufHeaderReader::skip_values(std::string_view key, GgufKind kind, uint64_t count) {
  const std::string field = fmt::format("metadata {}", quote_name(key));
  if (kind != GgufKind::kString) {
    const uint64_t size = kKindBytes[static_cast<size_t>(kind)];
    QUIRE_RETURN_IF_ERROR(check_count(field, count, size));
    rest_.remove_prefix(static_cast<size_t>(count * size));
    return {};
  }
  QUIRE_RETURN_IF_ERROR(check_count(field, count, sizeof(uint64_t)));
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view text;
    QUIRE_RETURN_IF_ERROR(take_text(field, std::numeric_limits<uint64_t>::max(), text));
  }
  return {};
}

Status GgufHeaderReader::read_value(std::string_view key, uint32_t kind, GgufValue& value) {
  const std::string field = fmt::format("metadata {}", quote_name(key));
  value.is_array_ = kind == static_cast<uint32_t>(GgufKind::kArray);
  if (value.is_array_) {
    QUIRE_RETURN_IF_ERROR(take(field, kind));
    QUIRE_RETURN_IF_ERROR(take(field, value.count_));
    if (kind == static_cast<uint32_t>(GgufKind::kArray)) {
      return error(field, "an array of arrays", "numbers, texts or booleans");
    }
    if (value.count_ > kMaxEntries) {
      return error(field, fmt::format("{} entries", value.count_),
                   fmt::format("at most {}", kMaxEntries));
    }
  }
  if (kind >= kKindBytes.size()) {
    return error(field, fmt::format("a value of kind {}", kind), "a kind from 0 to 12");
  }
  value.kind_ = static_cast<GgufKind>(kind);
  const std::string_view before = rest_;
  QUIRE_RETURN_IF_ERROR(skip_values(key, value.kind_, value.count_));
  value.bytes_ = before.substr(0, before.size() - rest_.size());
  return {};
}

Status GgufHeaderReader::read_field() {
  std::string_view key;
  QUIRE_RETURN_IF_ERROR(take_text("a metadata key", kMaxNameBytes, key));
  uint32_t kind = 0;
  QUIRE_RETURN_IF_ERROR(take("the kind of a metadata value", kind));
  GgufValue value;
  QUIRE_RETURN_IF_ERROR(read_value(key, kind, value));
  if (header_.fields_.emplace(key, value).second) return {};
  return error(fmt::format("metadata {}", quote_name(key)), "the key twice", "it once");
}

Status GgufHeaderReader::read_shape(std::string_view field, GgufTensor& tensor,
                                    uint64_t& num_elements) {
  constexpr uint64_t kMaxElements = uint64_t{1} << 56;
  uint32_t num_dims = 0;
  QUIRE_RETURN_IF_ERROR(take(field, num_dims));
  if (num_dims < 1 || num_dims > kMaxDims) {
    return error(field, fmt::format("{} dimensions", num_dims), "1 to 4");
  }
  num_elements = 1;
  for (uint32_t i = 0; i < num_dims; ++i) {
    uint64_t extent = 0;
    QUIRE_RETURN_IF_ERROR(take(field, extent));
    if (extent < 1 || extent > kMaxElements / num_elements) {
      return error(field, fmt::format("a dimension of {}", extent),
                   "at least 1, and less than 2^56 elements in all");
    }
    num_elements *= extent;
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(extent));
  }
  return {};
}

Status GgufHeaderReader::read_tensor() {
  GgufTensor tensor;
  std::string_view name;
  QUIRE_RETURN_IF_ERROR(take_text("a tensor's name", kMaxNameBytes, name));
  tensor.name = name;
  const std::string field = fmt::format("tensor {}", quote_name(name));
  uint64_t num_elements = 0;
  QUIRE_RETURN_IF_ERROR(read_shape(field, tensor, num_elements));
  uint32_t type = 0;
  QUIRE_RETURN_IF_ERROR(take(field, type));
  tensor.type = find_gguf_block_type(type);
  if (tensor.type == nullptr) {
    return unimplemented(fmt::format(
        "[gguf] {}: {} has a type that is not served; got {}, expected {}: take a file in one of "
        "these types, such as Q4_K_M or Q8_0",
        header_.source_, field, gguf_type_name(type), supported_gguf_types()));
  }
  if (tensor.shape.back() % tensor.type->block_elements != 0) {
    return error(field, fmt::format("rows of {} elements", tensor.shape.back()),
                 fmt::format("a multiple of the {} of a block of {}", tensor.type->block_elements,
                             tensor.type->name));
  }
  Range range;
  QUIRE_RETURN_IF_ERROR(take(field, range.begin));
  range.size = num_elements / static_cast<uint64_t>(tensor.type->block_elements) *
               static_cast<uint64_t>(tensor.type->block_bytes);
  ranges_.push_back(range);
  header_.tensors_.push_back(std::move(tensor));
  return {};
}

Status GgufHeaderReader::read_alignment() {
  const GgufValue* const value = header_.find(kDefaultAlignmentKey);
  if (value == nullptr) return {};
  const std::optional<int64_t> number = value->integer();
  if (number && *number >= 1 && *number <= int64_t{kMaxAlignment} &&
      std::has_single_bit(static_cast<uint64_t>(*number))) {
    alignment_ = static_cast<uint64_t>(*number);
    return {};
  }
  return error("metadata \"general.alignment\"", number ? std::to_string(*number) : "no integer",
               "a power of 2 up to 2^20");
}

Status GgufHeaderReader::place_tensors() {
  const uint64_t header_bytes = all_.size() - rest_.size();
  const uint64_t data_begin = (header_bytes + alignment_ - 1) / alignment_ * alignment_;
  const uint64_t data_bytes = data_begin <= all_.size() ? all_.size() - data_begin : 0;
  std::vector<size_t> order;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const auto [begin, size] = ranges_[i];
    GgufTensor& tensor = header_.tensors_[i];
    const std::string field = fmt::format("tensor {}", quote_name(tensor.name));
    if (begin % alignment_ != 0) {
      return error(field, fmt::format("offset {}", begin),
                   fmt::format("a multiple of the alignment, {}", alignment_));
    }
    if (size > data_bytes || begin > data_bytes - size) return cut_off(field);
    tensor.bytes = std::as_bytes(
        std::span(all_.substr(static_cast<size_t>(data_begin + begin), static_cast<size_t>(size))));
    order.push_back(i);
  }
  std::ranges::sort(order, {}, [this](size_t i) { return ranges_[i].begin; });
  return check_order(order, data_bytes);
}

// Fails unless the tensors, in the order of their offsets, follow each other with only padding to
// the alignment. A tensor with a wrong type or shape in the header leaves a hole, or overlaps.
Status GgufHeaderReader::check_order(std::span<const size_t> order, uint64_t data_bytes) const {
  constexpr std::string_view kDamaged = ": the header is damaged, fetch the file again";
  uint64_t end = 0;  // of the tensors so far, without padding
  std::string place = "the header";
  for (const size_t i : order) {
    const std::string tensor = fmt::format("tensor {}", quote_name(header_.tensors_[i].name));
    const uint64_t begin = ranges_[i].begin;
    if (begin < end) {
      return error(tensor, fmt::format("bytes of {}", place),
                   fmt::format("bytes of its own{}", kDamaged));
    }
    const uint64_t expected = round_up(end, alignment_);
    if (begin != expected) {
      return error(tensor, fmt::format("offset {}", begin),
                   fmt::format("{}, the end of {}{}", expected, place, kDamaged));
    }
    end = begin + ranges_[i].size;
    place = tensor;
  }
  if (data_bytes - end < alignment_) return {};
  return error(fmt::format("the bytes after {}", place), std::to_string(data_bytes - end),
               fmt::format("fewer than the alignment, {}{}", alignment_, kDamaged));
}

Result<GgufHeader> GgufHeaderReader::read() {
  constexpr uint64_t kLeastFieldBytes = 13;   // a key's length, the kind, one byte
  constexpr uint64_t kLeastTensorBytes = 32;  // a name's length, one dimension, type, offset
  QUIRE_RETURN_IF_ERROR(read_version());
  uint64_t num_tensors = 0;
  uint64_t num_fields = 0;
  QUIRE_RETURN_IF_ERROR(take("the number of tensors", num_tensors));
  QUIRE_RETURN_IF_ERROR(take("the number of metadata fields", num_fields));
  QUIRE_RETURN_IF_ERROR(check_count("the metadata", num_fields, kLeastFieldBytes));
  for (uint64_t i = 0; i < num_fields; ++i) QUIRE_RETURN_IF_ERROR(read_field());
  QUIRE_RETURN_IF_ERROR(read_alignment());
  QUIRE_RETURN_IF_ERROR(check_count("the tensors", num_tensors, kLeastTensorBytes));
  for (uint64_t i = 0; i < num_tensors; ++i) QUIRE_RETURN_IF_ERROR(read_tensor());
  QUIRE_RETURN_IF_ERROR(place_tensors());
  return std::move(header_);
}

Result<GgufHeader> GgufHeader::parse(std::span<const std::byte> bytes, std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return GgufHeaderReader(text, source).read();
}

const GgufValue* GgufHeader::find(std::string_view key) const {
  const auto found = fields_.find(std::string(key));
  return found == fields_.end() ? nullptr : &found->second;
}

bool is_gguf(std::string_view beginning) {
  return beginning.starts_with(kMagic);
}

}  // namespace quire
