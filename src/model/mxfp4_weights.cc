#include "model/mxfp4_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "base/numbers.h"
#include "base/thread_pool.h"

namespace quire {
namespace {

constexpr uint32_t kMxfp4Id = 39;  // in GGUF files
constexpr int64_t kHalfBytes = 8;  // half of the bytes of a group's numbers

const GgufBlockType& mxfp4() {
  static const GgufBlockType* const type = find_gguf_block_type(kMxfp4Id);
  return *type;
}

// The matrix whose values this tensor has; empty: the tensor has something else.
std::string_view matrix_of(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "";
}

// A source with some matrices in blocks, which it writes when they are requested.
class WritesBlocks : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;

  Result<BlockMatrix> blocks(std::string_view name, const Shape& expected) override {
    if (block_type(name) == nullptr) return ForwardingSource::blocks(name, expected);
    const std::string key(name);
    auto made = made_.find(key);
    if (made == made_.end()) {
      const int64_t num_blocks = expected.num_elements() / mxfp4().block_elements;
      QUIRE_ASSIGN_OR_RETURN(Buffer buffer,
                             Buffer::host(static_cast<size_t>(num_blocks * mxfp4().block_bytes)));
      QUIRE_RETURN_IF_ERROR(write_blocks(name, expected, static_cast<std::byte*>(buffer.data())));
      made = made_.emplace(key, std::move(buffer)).first;
    }
    BlockMatrix matrix;
    matrix.type = &mxfp4();
    matrix.bytes = static_cast<const std::byte*>(made->second.data());
    matrix.shape = expected;
    return matrix;
  }
  void release(std::string_view name) override {
    made_.erase(std::string(name));
    ForwardingSource::release(name);
  }
  std::vector<const GgufBlockType*> block_types() const override { return {&mxfp4()}; }

 protected:
  virtual Status write_blocks(std::string_view name, const Shape& shape, std::byte* out) = 0;

 private:
  std::unordered_map<std::string, Buffer> made_;
};

// Presents the blocks and exponents of a checkpoint as matrices in GGUF's blocks.
class StoredMxfp4 final : public WritesBlocks {
 public:
  using WritesBlocks::WritesBlocks;

  bool has(std::string_view name) const override {
    return block_type(name) != nullptr || ForwardingSource::has(name);
  }
  const GgufBlockType* block_type(std::string_view name) const override {
    const std::string_view matrix = matrix_of(name);
    const bool is_stored = !matrix.empty() && ForwardingSource::has(part(matrix, kMxfp4Blocks));
    return is_stored ? &mxfp4() : nullptr;
  }
  std::optional<DType> dtype_of(std::string_view name) const override {
    return block_type(name) != nullptr ? DType::kBF16 : ForwardingSource::dtype_of(name);
  }
  std::optional<Shape> shape_of(std::string_view name) const override {
    const std::optional<Shape> shape = ForwardingSource::shape_of(stored(name));
    if (block_type(name) == nullptr || !shape) return shape;
    return Shape{(*shape)[0], (*shape)[1] * mxfp4().block_elements};
  }
  std::string file_of(std::string_view name) const override {
    return ForwardingSource::file_of(stored(name));
  }
  std::string name_in_file(std::string_view name) const override {
    return ForwardingSource::name_in_file(stored(name));
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (std::string& name : ForwardingSource::names()) {
      if (name.ends_with(kMxfp4Scales)) continue;
      if (name.ends_with(kMxfp4Blocks)) name.resize(name.rfind('_'));
      all.push_back(std::move(name));
    }
    return all;
  }
  // Expands blocks to BF16, which has all numbers of MXFP4.
  Result<TensorView> tensor(std::string_view name, const Shape& expected) override;
  void release(std::string_view name) override {
    expanded_.erase(std::string(name));
    WritesBlocks::release(name);
  }

 protected:
  Status write_blocks(std::string_view name, const Shape& shape, std::byte* out) override;

 private:
  static std::string part(std::string_view matrix, std::string_view suffix) {
    return std::string(matrix) + std::string(suffix);
  }
  // The name of the tensor, or of the matrix's blocks.
  std::string stored(std::string_view name) const {
    return block_type(name) != nullptr ? part(matrix_of(name), kMxfp4Blocks) : std::string(name);
  }
  template <class Body>
  void for_rows(int64_t num_rows, const Body& body) {
    if (!threads_) threads_.emplace(num_usable_cpus());
    threads_->parallel_for(num_rows, body);
  }

  std::unordered_map<std::string, Tensor> expanded_;
  std::optional<ThreadPool> threads_;
};

// In the checkpoint, a byte has two adjacent columns. In a block, it has two columns whose distance
// is half a group.
Status StoredMxfp4::write_blocks(std::string_view name, const Shape& shape, std::byte* out) {
  const std::string_view matrix = matrix_of(name);
  const std::string blocks_name = part(matrix, kMxfp4Blocks);
  const std::string scales_name = part(matrix, kMxfp4Scales);
  if (shape.rank() != 2 || shape[1] % mxfp4().block_elements != 0) {
    return invalid_argument(fmt::format(
        "[model] {}: tensor {} is in MXFP4; got the shape {}, expected a matrix whose columns are "
        "a "
        "multiple of {}: download the checkpoint again",
        file_of(name), quote_name(name_in_file(name)), shape_text(shape), mxfp4().block_elements));
  }
  const int64_t groups = shape[1] / mxfp4().block_elements;
  QUIRE_ASSIGN_OR_RETURN(const TensorView blocks,
                         ForwardingSource::tensor(blocks_name, {shape[0], groups, 2 * kHalfBytes}));
  QUIRE_ASSIGN_OR_RETURN(const TensorView scales,
                         ForwardingSource::tensor(scales_name, {shape[0], groups}));
  for_rows(shape[0], [&](int64_t row) {
    for (int64_t at = row * groups; at < (row + 1) * groups; ++at) {
      const auto* const from = blocks.as<uint8_t>() + at * 2 * kHalfBytes;
      auto* const to = reinterpret_cast<uint8_t*>(out) + at * mxfp4().block_bytes;
      to[0] = scales.as<uint8_t>()[at];
      for (int64_t i = 0; i < kHalfBytes; ++i) {
        const int first = from[i];
        const int second = from[kHalfBytes + i];
        to[1 + 2 * i] = static_cast<uint8_t>((first & 0xF) | (second & 0xF) << 4);
        to[2 + 2 * i] = static_cast<uint8_t>(first >> 4 | (second & 0xF0));
      }
    }
  });
  ForwardingSource::release(blocks_name);
  ForwardingSource::release(scales_name);
  return {};
}

Result<TensorView> StoredMxfp4::tensor(std::string_view name, const Shape& expected) {
  if (block_type(name) == nullptr) return ForwardingSource::tensor(name, expected);
  QUIRE_ASSIGN_OR_RETURN(const BlockMatrix matrix, blocks(name, expected));
  QUIRE_ASSIGN_OR_RETURN(Tensor plain, Tensor::host(expected, DType::kBF16));
  for_rows(expected[0], [&](int64_t row) {
    float numbers[32];
    for (int64_t i = 0; i < matrix.blocks_per_row(); ++i) {
      dequantize(mxfp4(), matrix.row(row) + i * mxfp4().block_bytes, numbers);
      std::ranges::transform(
          numbers, plain.view.as<uint16_t>() + row * expected[1] + i * mxfp4().block_elements,
          f32_to_bf16);
    }
  });
  return expanded_.insert_or_assign(std::string(name), std::move(plain)).first->second.view;
}

// Random blocks of experts, with the deviation of the other random matrices.
class RandomMxfp4 final : public WritesBlocks {
 public:
  explicit RandomMxfp4(std::unique_ptr<WeightSource> source)
      : WritesBlocks(std::move(source)), pool_(kNumBlocks * mxfp4().block_bytes) {
    constexpr uint64_t kLeastExponent = 119;  // of 2^-8
    uint64_t bits = 0;
    for (size_t i = 0; i < pool_.size(); ++i) {
      bits = mix(bits + i);
      const bool is_exponent = i % static_cast<size_t>(mxfp4().block_bytes) == 0;
      pool_[i] = static_cast<std::byte>(is_exponent ? kLeastExponent + bits % 2 : bits & 0xFF);
    }
  }

  const GgufBlockType* block_type(std::string_view name) const override {
    const bool is_expert = name.find(".mlp.experts.") != std::string_view::npos;
    return is_expert && !matrix_of(name).empty() ? &mxfp4() : nullptr;
  }

 protected:
  Status write_blocks(std::string_view name, const Shape& shape, std::byte* out) override {
    size_t left =
        static_cast<size_t>(shape.num_elements() / mxfp4().block_elements * mxfp4().block_bytes);
    size_t from =
        std::hash<std::string_view>()(name) % kNumBlocks * static_cast<size_t>(mxfp4().block_bytes);
    for (; left > 0; from = 0) {
      const size_t count = std::min(left, pool_.size() - from);
      std::memcpy(out, pool_.data() + from, count);
      out += count;
      left -= count;
    }
    return {};
  }

 private:
  static constexpr size_t kNumBlocks = 65537;  // prime, so that the rows of a matrix differ

  std::vector<std::byte> pool_;
};

Status tensor_fault(const WeightSource& source, std::string_view name, std::string_view fault,
                    std::string_view got, std::string_view expected) {
  return invalid_argument(fmt::format(
      "[model] {}: tensor {} {}; got {}, expected {}: download the checkpoint again",
      source.file_of(name), quote_name(source.name_in_file(name)), fault, got, expected));
}

// Checks the two tensors of a matrix, and that it has no plain values.
Status check_stored_matrix(const WeightSource& source, const std::string& blocks) {
  const std::string matrix = blocks.substr(0, blocks.size() - kMxfp4Blocks.size());
  const std::string scales = matrix + std::string(kMxfp4Scales);
  const std::string plain = matrix + ".weight";
  if (source.has(plain)) {
    return tensor_fault(source, plain, "is stored twice", "it in MXFP4 as well", "one of the two");
  }
  if (!source.has(scales)) {
    return tensor_fault(source, blocks, "is in MXFP4", "no tensor of its exponents",
                        "one beside it");
  }
  for (const std::string& name : {blocks, scales}) {
    const std::optional<DType> dtype = source.dtype_of(name);
    if (dtype == DType::kU8) continue;
    return tensor_fault(source, name, "has another type than MXFP4",
                        dtype ? dtype_name(*dtype) : "quantized blocks", dtype_name(DType::kU8));
  }
  const std::optional<Shape> shape = source.shape_of(blocks);
  const std::optional<Shape> of_scales = source.shape_of(scales);
  if (!shape || !of_scales) return {};  // not known before the tensors are read
  if (shape->rank() != 3 || (*shape)[2] != 2 * kHalfBytes) {
    return tensor_fault(
        source, blocks, "has another shape than blocks of MXFP4", shape_text(*shape),
        fmt::format("[rows, columns / {}, {}]", mxfp4().block_elements, 2 * kHalfBytes));
  }
  const Shape expected = {(*shape)[0], (*shape)[1]};
  if (*of_scales == expected) return {};
  return tensor_fault(source, scales, "has not one exponent per block", shape_text(*of_scales),
                      shape_text(expected));
}

}  // namespace

Result<std::unique_ptr<WeightSource>> present_mxfp4(std::unique_ptr<WeightSource> source,
                                                    const TensorLayout& layout) {
  const std::vector<std::string> names = source->names();
  if (names.empty() && layout.has_mxfp4_experts) {
    return std::unique_ptr<WeightSource>(std::make_unique<RandomMxfp4>(std::move(source)));
  }
  bool is_stored = false;
  for (const std::string& name : names) {
    if (!name.ends_with(kMxfp4Blocks)) continue;
    QUIRE_RETURN_IF_ERROR(check_stored_matrix(*source, name));
    is_stored = true;
  }
  if (!is_stored) return source;
  return std::unique_ptr<WeightSource>(std::make_unique<StoredMxfp4>(std::move(source)));
}

}  // namespace quire
