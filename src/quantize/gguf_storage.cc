#include "quantize/gguf_storage.h"

#include <fmt/format.h>

#include <optional>

#include "base/check.h"
#include "model/gguf/gguf_names.h"
#include "tensor/tensor.h"

namespace quire {

int64_t GgufStorage::source_row(int64_t row) const {
  const int64_t rows = changes.paired_rows;
  if (rows == 0) return row;
  const int64_t in_head = row % rows;
  return row - in_head + in_head % 2 * (rows / 2) + in_head / 2;
}

Result<GgufStorage> gguf_storage(std::string_view name, std::string_view architecture,
                                 const DecoderConfig& decoder) {
  const GgufArchitecture* const row = find_gguf_architecture(architecture);
  QUIRE_CHECK(row != nullptr, "[quantize] an unknown architecture");
  const GgufNames names(*row, decoder);
  const std::optional<std::string> in_file = names.in_file(name);
  if (!in_file) {
    return unimplemented(
        fmt::format("[quantize] tensor {} has no name in GGUF files of architecture {}",
                    quote_name(name), architecture));
  }
  GgufStorage storage;
  storage.name = *in_file;
  storage.changes = names.changes(name);
  return storage;
}

}  // namespace quire
