// Compares each type's numbers with those of the `gguf` package (tools/golden/gguf_blocks.py).
#include "tensor/gguf_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/shared_data.h"

namespace quire {
namespace {

std::vector<std::byte> from_hex(const std::string& digits) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

const GgufBlockType* find_by_name(const std::string& name) {
  for (const GgufBlockType& type : gguf_block_types()) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

TEST(GgufBlocks, EqualThoseOfAnotherImplementation) {
  std::ifstream golden(testing::source_path("tests/tensor/golden/gguf_blocks.txt"));
  size_t num_types = 0;
  std::string name;
  std::string packed_hex;
  std::string numbers_hex;
  while (golden >> name >> packed_hex >> numbers_hex) {
    SCOPED_TRACE(name);
    const GgufBlockType* const type = find_by_name(name);
    ASSERT_NE(type, nullptr);
    const std::vector<std::byte> packed = from_hex(packed_hex);
    const std::vector<std::byte> numbers = from_hex(numbers_hex);
    const auto count = numbers.size() / sizeof(float);
    ASSERT_EQ(static_cast<int64_t>(packed.size()) / type->block_bytes * type->block_elements,
              static_cast<int64_t>(count));
    std::vector<float> got(count);
    for (size_t block = 0; block * static_cast<size_t>(type->block_elements) < count; ++block) {
      dequantize(*type, packed.data() + block * static_cast<size_t>(type->block_bytes),
                 got.data() + block * static_cast<size_t>(type->block_elements));
    }
    for (size_t i = 0; i < count; ++i) {
      float expected = 0;
      std::memcpy(&expected, numbers.data() + i * sizeof(float), sizeof(float));
      // The order of the products may differ, so the last bits may.
      ASSERT_NEAR(got[i], expected, 1e-6F * std::abs(expected) + 1e-8F) << i;
    }
    ++num_types;
  }
  EXPECT_EQ(num_types, gguf_block_types().size());
}

TEST(GgufBlocks, TypesHaveNames) {
  EXPECT_EQ(gguf_type_name(12), "Q4_K");
  EXPECT_EQ(gguf_type_name(39), "MXFP4");
  EXPECT_EQ(gguf_type_name(1000), "type 1000");
  EXPECT_EQ(find_gguf_block_type(39), nullptr);
}

}  // namespace
}  // namespace quire
