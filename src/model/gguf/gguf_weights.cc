#include "model/gguf/gguf_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/machine.h"
#include "base/numbers.h"
#include "base/thread_pool.h"
#include "model/decoder_config.h"
#include "model/gguf/gguf_config.h"

namespace quire {
namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view checkpoint;
};

constexpr std::array kEndNames = {
    NamePair{"token_embd", "model.embed_tokens"},
    NamePair{"output_norm", "model.norm"},
    NamePair{"output", "lm_head"},
};

// Behind "blk.N." and "model.layers.N.".
constexpr std::array kLayerNames = {
    NamePair{"attn_norm", "input_layernorm"},    NamePair{"attn_q", "self_attn.q_proj"},
    NamePair{"attn_k", "self_attn.k_proj"},      NamePair{"attn_v", "self_attn.v_proj"},
    NamePair{"attn_output", "self_attn.o_proj"}, NamePair{"attn_q_norm", "self_attn.q_norm"},
    NamePair{"attn_k_norm", "self_attn.k_norm"}, NamePair{"ffn_gate", "mlp.gate_proj"},
    NamePair{"ffn_up", "mlp.up_proj"},           NamePair{"ffn_down", "mlp.down_proj"},
};

// The norms after attention and around the MLP.
constexpr std::array kLlamaNorms = {NamePair{"ffn_norm", "post_attention_layernorm"}};
constexpr std::array kGemmaNorms = {
    NamePair{"post_attention_norm", "post_attention_layernorm"},
    NamePair{"ffn_norm", "pre_feedforward_layernorm"},
    NamePair{"post_ffw_norm", "post_feedforward_layernorm"},
};

std::optional<std::string_view> translate(std::span<const NamePair> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &NamePair::gguf);
  if (found == names.end()) return std::nullopt;
  return found->checkpoint;
}

// The name in the checkpoint of a tensor in the file, for example
// "model.layers.3.mlp.up_proj.weight" of "blk.3.ffn_up.weight"; the same name if there is no other.
std::string checkpoint_name(std::string_view name, bool is_gemma) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::string(name);
  const std::string_view suffix = name.substr(dot);  // ".weight", ".bias"
  const std::string_view stem = name.substr(0, dot);
  if (const auto end = translate(kEndNames, stem)) return fmt::format("{}{}", *end, suffix);
  constexpr std::string_view kBlock = "blk.";
  const size_t layer_end = stem.find('.', kBlock.size());
  if (!stem.starts_with(kBlock) || layer_end == std::string_view::npos) return std::string(name);
  const std::string_view layer = stem.substr(kBlock.size(), layer_end - kBlock.size());
  const std::string_view part = stem.substr(layer_end + 1);
  auto found = translate(kLayerNames, part);
  const std::span<const NamePair> norms =
      is_gemma ? std::span<const NamePair>(kGemmaNorms) : std::span<const NamePair>(kLlamaNorms);
  if (!found) found = translate(norms, part);
  return found ? fmt::format("model.layers.{}.{}{}", layer, *found, suffix) : std::string(name);
}

// Stores the numbers of a block from element `first` on.
void store(std::span<const float> block, DType dtype, std::byte* out, int64_t first) {
  if (dtype == DType::kF32) {
    std::ranges::copy(block, reinterpret_cast<float*>(out) + first);
  } else {
    std::ranges::transform(block, reinterpret_cast<uint16_t*>(out) + first,
                           dtype == DType::kF16 ? f32_to_f16 : f32_to_bf16);
  }
}

// Expands rows [first, last).
void expand_rows(const BlockMatrix& matrix, float addend, int64_t first, int64_t last,
                 const TensorView& out) {
  const GgufBlockType& type = *matrix.type;
  std::vector<float> block(static_cast<size_t>(type.block_elements));
  for (int64_t row = first; row < last; ++row) {
    const std::byte* bytes = matrix.row(row);
    for (int64_t i = 0; i < matrix.blocks_per_row(); ++i) {
      dequantize(type, bytes + i * type.block_bytes, block.data());
      for (float& value : block) value += addend;
      store(block, out.dtype, out.as<std::byte>(), row * matrix.shape[1] + i * type.block_elements);
    }
  }
}

void expand(const BlockMatrix& matrix, float addend, const TensorView& out) {
  constexpr int64_t kElementsPerTask = 1 << 18;
  const int64_t rows = matrix.shape[0];
  const int64_t task_rows = std::max<int64_t>(1, kElementsPerTask / matrix.shape[1]);
  const int64_t num_tasks = ceil_div(rows, task_rows);
  ThreadPool threads(static_cast<int>(std::min<int64_t>(num_usable_cores(), num_tasks)));
  threads.parallel_for(num_tasks, [&](int64_t task) {
    expand_rows(matrix, addend, task * task_rows, std::min(rows, (task + 1) * task_rows), out);
  });
}

}  // namespace

Result<std::unique_ptr<GgufWeights>> GgufWeights::open(GgufModel gguf, const ModelConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view architecture, gguf_architecture(gguf));
  const bool is_gemma = architecture.starts_with("gemma");
  const bool is_paired = architecture == "llama";
  const DecoderConfig& decoder = decoder_config(config);
  const DType matrix_dtype = gguf_weight_dtype(gguf);
  std::unique_ptr<GgufWeights> weights(new GgufWeights(std::move(gguf), matrix_dtype));
  for (const GgufTensor* tensor : weights->gguf_.tensors()) {
    if (tensor->name == "rope_freqs.weight") continue;  // part of the configuration
    Entry entry;
    entry.tensor = tensor;
    const std::string name = checkpoint_name(tensor->name, is_gemma);
    if (is_paired && name.find("q_proj.") != std::string::npos) entry.num_heads = decoder.num_heads;
    if (is_paired && name.find("k_proj.") != std::string::npos) {
      entry.num_heads = decoder.num_kv_heads;
    }
    // llama.cpp adds the 1 of Gemma's norms when it converts; the family adds it at load.
    if (is_gemma && name.ends_with("norm.weight")) entry.addend = -1.0F;
    if (!weights->entries_.emplace(name, entry).second) {
      return invalid_argument(
          fmt::format("[gguf] {}: tensor {}; got two tensors for {}, expected one",
                      weights->gguf_.source(), quote_name(tensor->name), quote_name(name)));
    }
  }
  return weights;
}

DType GgufWeights::dtype_of(const Entry& entry) const {
  if (entry.tensor->shape.size() > 1) return matrix_dtype_;
  const std::optional<DType> plain = entry.tensor->type->plain;
  return plain && entry.addend == 0.0F ? *plain : DType::kF32;
}

bool GgufWeights::is_in_place(const Entry& entry) const {
  const DType dtype = dtype_of(entry);
  return entry.num_heads == 0 && entry.addend == 0.0F && entry.tensor->type->plain == dtype &&
         reinterpret_cast<uintptr_t>(entry.tensor->bytes.data()) % dtype_bytes(dtype) == 0;
}

BlockMatrix GgufWeights::matrix_of(const Entry& entry) {
  const Shape shape(entry.tensor->shape);
  // A vector that is reordered per head is a matrix of one column.
  const bool is_column = entry.num_heads > 0 && shape.rank() == 1;
  const int64_t columns = is_column ? 1 : shape[shape.rank() - 1];
  BlockMatrix matrix;
  matrix.type = entry.tensor->type;
  matrix.bytes = entry.tensor->bytes.data();
  matrix.shape = {shape.num_elements() / columns, columns};
  if (entry.num_heads > 0) matrix.paired_rows = matrix.shape[0] / entry.num_heads;
  return matrix;
}

Result<const GgufWeights::Entry*> GgufWeights::find(std::string_view name,
                                                    const Shape& expected) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) {
    return not_found(
        fmt::format("[gguf] {}: no tensor for {}; expected one: the file is of another "
                    "model or incomplete",
                    gguf_.source(), quote_name(name)));
  }
  const Entry& entry = found->second;
  const Shape shape(entry.tensor->shape);
  if (shape != expected || (entry.num_heads > 0 && shape[0] % (2 * entry.num_heads) != 0)) {
    return invalid_argument(fmt::format(
        "[gguf] {}: tensor {}; got shape {}, expected {} by the metadata", gguf_.source(),
        quote_name(entry.tensor->name), shape_text(shape), shape_text(expected)));
  }
  return &entry;
}

Result<TensorView> GgufWeights::tensor(std::string_view name, const Shape& expected) {
  QUIRE_ASSIGN_OR_RETURN(const Entry* const entry, find(name, expected));
  TensorView view;
  view.dtype = dtype_of(*entry);
  view.shape = expected;
  if (is_in_place(*entry)) {
    view.data = const_cast<std::byte*>(entry->tensor->bytes.data());
    return view;
  }
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, Buffer::host(view.num_bytes()));
  view.data = buffer.data();
  expand(matrix_of(*entry), entry->addend, view);
  expanded_.insert_or_assign(std::string(name), std::move(buffer));
  return view;
}

const GgufBlockType* GgufWeights::block_type(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end() || found->second.addend != 0.0F) return nullptr;
  const GgufTensor& tensor = *found->second.tensor;
  return tensor.type->plain || tensor.shape.size() != 2 ? nullptr : tensor.type;
}

Result<BlockMatrix> GgufWeights::blocks(std::string_view name, const Shape& expected) {
  if (block_type(name) == nullptr) return WeightSource::blocks(name, expected);
  QUIRE_ASSIGN_OR_RETURN(const Entry* const entry, find(name, expected));
  return matrix_of(*entry);
}

bool GgufWeights::has(std::string_view name) const {
  return entries_.contains(std::string(name));
}

std::optional<DType> GgufWeights::dtype_of(std::string_view name) const {
  const auto found = entries_.find(std::string(name));
  if (found == entries_.end()) return std::nullopt;
  return dtype_of(found->second);
}

void GgufWeights::release(std::string_view name) {
  const std::string key(name);
  expanded_.erase(key);
  const auto found = entries_.find(key);
  if (found != entries_.end()) gguf_.drop_pages(*found->second.tensor);
}

std::vector<std::string> GgufWeights::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) all.push_back(name);
  std::ranges::sort(all);
  return all;
}

}  // namespace quire
