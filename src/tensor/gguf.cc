#include "tensor/gguf.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace quire {
namespace {

// The types of values in a GGUF file's metadata.
enum GgufType : uint32_t { kUint32 = 4, kString = 8, kArray = 9 };

// Bytes per value of the types 0 to 12; 0 for strings and arrays.
constexpr std::array<size_t, 13> kTypeBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// Reads little-endian values; after the first failure everything fails.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  bool skip(uint64_t count) {
    failed_ = failed_ || count > rest_.size();
    if (!failed_) rest_.remove_prefix(static_cast<size_t>(count));
    return !failed_;
  }

  template <typename T>
  T number() {
    T value = {};
    if (failed_ || sizeof(T) > rest_.size()) {
      failed_ = true;
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }

  std::string_view text() {
    const auto size = number<uint64_t>();
    const std::string_view all = rest_;
    return skip(size) ? all.substr(0, static_cast<size_t>(size)) : std::string_view();
  }

  // Skips a value that is no array of arrays, which GGUF files do not have.
  bool skip_value(uint32_t type) {
    if (type == kArray) {
      const auto item_type = number<uint32_t>();
      const auto count = number<uint64_t>();
      return item_type != kArray && skip_values(item_type, count);
    }
    return skip_values(type, 1);
  }

  bool ok() const { return !failed_; }

 private:
  bool skip_values(uint32_t type, uint64_t count) {
    if (type == kString) {
      while (count-- > 0 && !failed_) text();
      return !failed_;
    }
    const size_t size = type < kTypeBytes.size() ? kTypeBytes[type] : 0;
    failed_ = failed_ || size == 0 || count > rest_.size();
    return !failed_ && skip(count * size);
  }

  std::string_view rest_;
  bool failed_ = false;
};

// llama.cpp's names of the values of general.file_type.
std::string scheme_name(uint32_t file_type) {
  constexpr auto kNames = std::to_array<std::pair<uint32_t, const char*>>(
      {{0, "F32"},      {1, "F16"},      {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},
       {8, "Q5_0"},     {9, "Q5_1"},     {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},
       {13, "Q3_K_L"},  {14, "Q4_K_S"},  {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},
       {18, "Q6_K"},    {19, "IQ2_XXS"}, {20, "IQ2_XS"}, {21, "Q2_K_S"}, {22, "IQ3_XS"},
       {23, "IQ3_XXS"}, {24, "IQ1_S"},   {25, "IQ4_NL"}, {26, "IQ3_S"},  {27, "IQ3_M"},
       {28, "IQ2_S"},   {29, "IQ2_M"},   {30, "IQ4_XS"}, {31, "IQ1_M"},  {32, "BF16"},
       {36, "TQ1_0"},   {37, "TQ2_0"},   {38, "MXFP4"}});
  const auto found = std::ranges::find(kNames, file_type, &std::pair<uint32_t, const char*>::first);
  return found == kNames.end() ? "" : found->second;
}

}  // namespace

std::optional<GgufInfo> inspect_gguf(std::string_view beginning) {
  constexpr std::string_view kMagic = "GGUF";
  if (!beginning.starts_with(kMagic)) return std::nullopt;
  Reader reader(beginning.substr(kMagic.size()));
  reader.number<uint32_t>();  // version
  reader.number<uint64_t>();  // tensors
  const auto num_fields = reader.number<uint64_t>();
  GgufInfo info;
  for (uint64_t i = 0; i < num_fields && reader.ok(); ++i) {
    const std::string_view key = reader.text();
    const auto type = reader.number<uint32_t>();
    if (key == "general.architecture" && type == kString) {
      info.architecture = reader.text();
    } else if (key == "general.file_type" && type == kUint32) {
      const auto file_type = reader.number<uint32_t>();
      if (reader.ok()) info.scheme = scheme_name(file_type);
    } else if (!reader.skip_value(type)) {
      break;
    }
  }
  return info;
}

}  // namespace quire
