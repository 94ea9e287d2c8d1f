// A reader for the part of the protobuf wire format that is needed to read one message in place
// (protobuf.dev/programming-guides/encoding).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace quire {

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // Moves to the next field. Returns false at the end of the message or if it is malformed (see
  // ok()).
  bool next();
  bool ok() const { return ok_; }

  uint32_t field() const { return field_; }
  bool is_varint() const { return wire_type_ == kVarint; }
  bool is_bytes() const { return wire_type_ == kBytes; }
  bool is_fixed32() const { return wire_type_ == kFixed32; }

  uint64_t varint() const { return number_; }
  std::string_view bytes() const { return bytes_; }
  float float32() const { return std::bit_cast<float>(static_cast<uint32_t>(number_)); }

 private:
  enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  bool read_varint(uint64_t& value);
  bool read_fixed(size_t num_bytes);

  std::string_view rest_;
  bool ok_ = true;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

inline bool ProtobufReader::read_varint(uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

inline bool ProtobufReader::read_fixed(size_t num_bytes) {
  if (rest_.size() < num_bytes) return false;
  number_ = 0;
  for (size_t i = 0; i < num_bytes; ++i) {
    number_ |= static_cast<uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
  }
  rest_.remove_prefix(num_bytes);
  return true;
}

inline bool ProtobufReader::next() {
  if (!ok_ || rest_.empty()) return false;
  uint64_t key = 0;
  ok_ = read_varint(key) && (key >> 3) != 0 && (key >> 3) < (uint64_t{1} << 29);
  if (!ok_) return false;
  field_ = static_cast<uint32_t>(key >> 3);
  wire_type_ = static_cast<uint32_t>(key & 7);
  switch (wire_type_) {
    case kVarint:
      ok_ = read_varint(number_);
      break;
    case kFixed64:
      ok_ = read_fixed(8);
      break;
    case kFixed32:
      ok_ = read_fixed(4);
      break;
    case kBytes: {
      uint64_t size = 0;
      ok_ = read_varint(size) && size <= rest_.size();
      if (!ok_) break;
      bytes_ = rest_.substr(0, static_cast<size_t>(size));
      rest_.remove_prefix(static_cast<size_t>(size));
      break;
    }
    default:
      ok_ = false;
  }
  return ok_;
}

}  // namespace quire
