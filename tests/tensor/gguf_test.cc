#include "tensor/gguf.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace quire {
namespace {

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

std::string text(const std::string& value) {
  return bytes_of<uint64_t>(value.size()) + value;
}

// The beginning of a GGUF file with these fields of metadata.
std::string gguf(const std::vector<std::string>& fields) {
  std::string file = "GGUF" + bytes_of<uint32_t>(3) + bytes_of<uint64_t>(7);
  file += bytes_of<uint64_t>(fields.size());
  for (const std::string& field : fields) file += field;
  return file;
}

std::string architecture(const std::string& name) {
  return text("general.architecture") + bytes_of<uint32_t>(8) + text(name);
}

std::string file_type(uint32_t value) {
  return text("general.file_type") + bytes_of<uint32_t>(4) + bytes_of(value);
}

TEST(Gguf, OtherFilesAreNone) {
  EXPECT_FALSE(inspect_gguf(""));
  EXPECT_FALSE(inspect_gguf("GGU"));
  EXPECT_FALSE(inspect_gguf("PK\x03\x04"));
}

TEST(Gguf, NamesArchitectureAndScheme) {
  const std::string tags = text("general.tags") + bytes_of<uint32_t>(9) + bytes_of<uint32_t>(8) +
                           bytes_of<uint64_t>(2) + text("a") + text("bc");
  const std::string sizes = text("sizes") + bytes_of<uint32_t>(9) + bytes_of<uint32_t>(5) +
                            bytes_of<uint64_t>(1) + bytes_of<int32_t>(7);
  const auto info = inspect_gguf(gguf({architecture("llama"), tags, sizes, file_type(15)}));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->architecture, "llama");
  EXPECT_EQ(info->scheme, "Q4_K_M");
  EXPECT_EQ(inspect_gguf(gguf({file_type(99999)}))->scheme, "");
}

TEST(Gguf, FieldsBehindTheEndAreUnknown) {
  const std::string whole = gguf({architecture("qwen3"), file_type(7)});
  for (size_t size = 4; size < whole.size(); ++size) {
    const auto info = inspect_gguf(std::string_view(whole).substr(0, size));
    ASSERT_TRUE(info) << size;
    EXPECT_EQ(info->scheme, "") << size;
  }
  EXPECT_EQ(inspect_gguf(whole)->scheme, "Q8_0");
}

TEST(Gguf, BrokenFilesEndTheSearch) {
  const std::string endless =
      text("a") + bytes_of<uint32_t>(9) + bytes_of<uint32_t>(8) + bytes_of<uint64_t>(UINT64_MAX);
  EXPECT_EQ(inspect_gguf(gguf({endless, file_type(15)}))->scheme, "");
  const std::string nested = text("a") + bytes_of<uint32_t>(9) + bytes_of<uint32_t>(9) +
                             bytes_of<uint64_t>(1) + bytes_of<uint32_t>(9);
  EXPECT_EQ(inspect_gguf(gguf({nested, file_type(15)}))->scheme, "");
  std::mt19937 random(1);
  std::string noise = gguf({architecture("llama"), file_type(15)});
  for (int round = 0; round < 10'000; ++round) {
    noise[8 + random() % (noise.size() - 8)] = static_cast<char>(random());
    inspect_gguf(noise);
  }
}

}  // namespace
}  // namespace quire
