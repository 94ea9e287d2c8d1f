#include "quantize/gguf_storage.h"

#include <fmt/format.h>

#include <optional>

#include "model/gguf/gguf_names.h"
#include "tensor/tensor.h"

namespace quire {

int64_t GgufStorage::source_row(int64_t row) const {
  if (rows_per_head == 0) return row;
  const int64_t in_head = row % rows_per_head;
  return row - in_head + in_head % 2 * (rows_per_head / 2) + in_head / 2;
}

Result<GgufStorage> gguf_storage(std::string_view name, std::string_view architecture,
                                 const DecoderConfig& decoder) {
  // Multimodal checkpoints have the tensors of the text model under a prefix.
  constexpr std::string_view kPrefix = "language_model.";
  const std::string_view of_text = name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
  const bool is_gemma = architecture.starts_with("gemma");
  const std::optional<std::string> in_file = GgufNames(is_gemma, decoder).in_file(of_text);
  if (!in_file) {
    return unimplemented(
        fmt::format("[quantize] tensor {} has no name in GGUF files of architecture {}",
                    quote_name(name), architecture));
  }
  GgufStorage storage;
  storage.name = *in_file;
  const auto contains = [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  // llama.cpp rotates adjacent elements of this architecture.
  if (architecture == "llama" && (contains("q_proj.") || contains("k_proj."))) {
    storage.rows_per_head = decoder.head_dim;
  }
  // llama.cpp stores the 1 that Gemma's norms add to their weights.
  if (is_gemma && name.ends_with("norm.weight")) storage.addend = 1.0F;
  return storage;
}

}  // namespace quire
