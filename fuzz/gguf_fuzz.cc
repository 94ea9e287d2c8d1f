// Opens a GGUF file in memory, and reads all that the engine reads of it: the header, the model's
// configuration, the vocabulary and the weights. For any bytes, tensors are inside the file, and
// errors are one line.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "model/gguf/gguf_weights.h"
#include "model/model_loader.h"
#include "start/gguf_files.h"
#include "tensor/gguf.h"

namespace quire {
namespace {

constexpr int64_t kMaxElements = 1 << 16;

void check_error(const Status& status) {
  if (status.ok()) return;
  QUIRE_CHECK(!status.message().empty() && status.message().size() < 4000, status.message());
  QUIRE_CHECK(status.message().find('\n') == std::string::npos, status.message());
}

// Expands every block, so that a sanitizer detects reads out of bounds.
void expand_all(const GgufTensor& tensor) {
  std::vector<float> block(static_cast<size_t>(tensor.type->block_elements));
  const auto size = static_cast<size_t>(tensor.type->block_bytes);
  for (size_t at = 0; at < tensor.bytes.size(); at += size) {
    dequantize(*tensor.type, tensor.bytes.data() + at, block.data());
  }
}

void fuzz_model(GgufModel gguf) {
  for (const GgufTensor* tensor : gguf.tensors()) expand_all(*tensor);
  check_error(read_gguf_tokenizer(gguf).status());
  check_error(gguf_tokenizer_config(gguf).status());
  const auto config = read_gguf_config(gguf);
  if (!config.ok()) return check_error(config.status());
  const auto weights = GgufWeights::open(std::move(gguf), *config);
  if (!weights.ok() || config->num_layers > 64) return check_error(weights.status());
  for (const TensorSpec& spec : list_tensors(*config)) {
    if (spec.shape.num_elements() > kMaxElements) continue;
    const auto view = (*weights)->tensor(spec.name, spec.shape);
    check_error(view.status());
    (*weights)->release(spec.name);
  }
}

}  // namespace
}  // namespace quire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  auto gguf = quire::GgufModel::from_memory(bytes, "input");
  if (!gguf.ok()) {
    quire::check_error(gguf.status());
  } else {
    quire::fuzz_model(std::move(*gguf));
  }
  return 0;
}
