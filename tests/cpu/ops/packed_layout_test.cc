// Files with packed weights outlive the build that wrote them, so the order of their numbers has a
// version.
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/quantized_linear.h"
#include "tensor/gguf_blocks.h"
#include "tensor/packed_weights.h"

namespace quire {
namespace {

constexpr int64_t kRows = 40;  // no multiple of a panel
constexpr int64_t kColumns = 768;

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

void append(const void* data, size_t num_bytes, std::string& all) {
  all.append(static_cast<const char*>(data), num_bytes);
}

// All packed bytes of matrices of every type that is packed.
std::string packed_bytes() {
  ThreadPool pool(1);
  const std::vector<std::byte> numbers = some_bytes(kRows * kColumns * sizeof(float));
  std::string all;
  for (const GgufBlockType& type : gguf_block_types()) {
    if (type.plain) continue;
    const BlockMatrix matrix = {.type = &type, .bytes = numbers.data(), .shape = {kRows, kColumns}};
    LinearSource source;
    source.blocks = std::span(&matrix, 1);
    const auto linear = cpu::QuantizedLinear::pack(source, pool, nullptr).value();
    append(linear->data(linear->panels().front()), linear->num_bytes(), all);
  }
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const WeightView matrix(
        TensorView{const_cast<std::byte*>(numbers.data()), dtype, {kRows, kColumns}});
    LinearSource source;
    source.weights = std::span(&matrix, 1);
    const auto linear = cpu::PackedLinear::pack(source, false, pool, nullptr).value();
    append(linear->panel(0), linear->num_bytes(), all);
  }
  return all;
}

TEST(PackedLayout, HasAVersion) {
  EXPECT_EQ(kPackedLayoutVersion, 1);
  EXPECT_EQ(to_hexadecimal(sha256_of(packed_bytes())),
            "50035edd1fe3d6aa35d6de987765f96f0668add24f72b80b79617b42c497504a")
      << "kernels read another order of packed weights: raise kPackedLayoutVersion, so that files "
         "with the old one are not used, and replace the digest";
}

}  // namespace
}  // namespace quire
