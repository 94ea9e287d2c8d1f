#include "engine/quantized_models.h"

#include <filesystem>
#include <span>

#include "support/gguf_conversion.h"
#include "support/integer_checkpoint.h"
#include "support/source_models.h"
#include "tensor/safetensors.h"

namespace quire::testing {

std::vector<QuantizedModel> write_quantized_models(const ScratchDirectory& directory) {
  const SourceModel abacus = abacus_model();
  const std::string& config = abacus.config;
  const std::span<const std::byte> bytes = abacus.bytes();
  std::vector<QuantizedModel> models;
  for (const auto& [name, matrices] : {std::pair("q8_0", "Q8_0"), std::pair("q4_k", "Q4_K")}) {
    models.push_back({name, directory.write(std::string(name) + ".gguf",
                                            convert_to_gguf({config, bytes}, "llama", matrices))});
  }
  const IntegerCheckpoint integers = quantize_integers(
      config, bytes, {.tool = IntegerTool::kCompressedPack, .bits = 4, .group_size = 32});
  std::filesystem::create_directory(directory.path() / "w4a16");
  directory.write("w4a16/config.json", integers.config_json);
  directory.write("w4a16/model.safetensors", safetensors_file(integers.tensors));
  models.push_back({"w4a16", (directory.path() / "w4a16").string()});
  return models;
}

}  // namespace quire::testing
