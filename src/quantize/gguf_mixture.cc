#include "quantize/gguf_mixture.h"

#include <charconv>

#include "base/check.h"

namespace quire {
namespace {

// The numbers of the types in files.
enum TypeId : uint32_t {
  kF16 = 1,
  kQ4_0 = 2,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kBf16 = 30,
};

const GgufBlockType& type_of(TypeId id) {
  const GgufBlockType* const type = find_gguf_block_type(id);
  QUIRE_CHECK(type != nullptr, "[quantize] a type of the mixture is unknown");
  return *type;
}

TypeId main_type(GgufTarget target) {
  switch (target) {
    case GgufTarget::kF16:
      return kF16;
    case GgufTarget::kBf16:
      return kBf16;
    case GgufTarget::kQ8_0:
      return kQ8_0;
    case GgufTarget::kQ4_0:
      return kQ4_0;
    case GgufTarget::kQ4KM:
      return kQ4K;
  }
  return kF16;
}

// The layer of "blk.3.…".
int layer_of(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  int layer = -1;
  if (name.starts_with(kBlock)) {
    std::from_chars(name.data() + kBlock.size(), name.data() + name.size(), layer);
  }
  return layer;
}

// The first and the last eighth of the layers, and every third between them.
bool gets_more_bits(int layer, int num_layers) {
  return layer < num_layers / 8 || layer >= 7 * num_layers / 8 || (layer - num_layers / 8) % 3 == 2;
}

// Whether llama.cpp counts the model as one of 70B, for which it stores the matrices of values in
// more bits, because many query heads share a value head.
bool shares_values_widely(const GgufModelShape& model) {
  constexpr int kLayersOf70B = 80;
  const bool can_be = model.architecture == "llama" || model.architecture == "qwen2";
  return can_be && model.num_layers == kLayersOf70B && model.num_heads != model.num_kv_heads;
}

TypeId choose_before_fit(std::string_view name, GgufTarget target, const GgufModelShape& model) {
  const TypeId main = main_type(target);
  if (main == kF16 || main == kBf16) return main;
  if (name == (model.has_output ? "output.weight" : "token_embd.weight")) {
    return main == kQ8_0 ? kQ8_0 : kQ6K;
  }
  if (target != GgufTarget::kQ4KM) return main;
  const bool more_bits = gets_more_bits(layer_of(name), model.num_layers);
  if (name.ends_with(".ffn_down.weight") && more_bits) return kQ6K;
  if (name.ends_with(".attn_v.weight")) {
    if (more_bits) return kQ6K;
    if (shares_values_widely(model)) return kQ5K;
  }
  return main;
}

// The type with blocks of 32 elements that replaces a type whose blocks do not divide the rows.
TypeId smaller_blocks(TypeId type) {
  switch (type) {
    case kQ4K:
      return kQ5_0;
    case kQ5K:
      return kQ5_1;
    case kQ6K:
      return kQ8_0;
    default:
      return kF16;
  }
}

}  // namespace

uint32_t gguf_file_type(GgufTarget target) {
  switch (target) {
    case GgufTarget::kF16:
      return 1;
    case GgufTarget::kQ4_0:
      return 2;
    case GgufTarget::kQ8_0:
      return 7;
    case GgufTarget::kQ4KM:
      return 15;
    case GgufTarget::kBf16:
      return 32;
  }
  return 0;
}

GgufChoice choose_gguf_type(std::string_view name, int64_t columns, GgufTarget target,
                            const GgufModelShape& model) {
  TypeId id = choose_before_fit(name, target, model);
  const GgufBlockType& wanted = type_of(id);
  while (columns % type_of(id).block_elements != 0) id = smaller_blocks(id);
  GgufChoice choice;
  choice.type = &type_of(id);
  if (choice.type != &wanted) choice.unfit = &wanted;
  return choice;
}

}  // namespace quire
