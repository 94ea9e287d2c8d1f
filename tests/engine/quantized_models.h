// Small random models with quantized weights, one per path of the code: each structure of layers
// from each kind of file. Unit tests prove every format: Quantization, PackedIntegers and
// GgufBlocks that it is read, IntegerLinear, QuantizedLinear and their experts that it is
// multiplied.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/config.h"
#include "quire/config.h"
#include "support/fp8_checkpoint.h"
#include "support/integer_checkpoint.h"
#include "support/reference_layer.h"
#include "support/scratch_directory.h"

namespace quire::testing {

// All have 2 layers.
enum class Structure { kDense, kExperts, kLatent, kGptOss, kDelta };

struct GgufFormat {
  std::string_view matrices;  // llama.cpp's name of their type
  bool joins_latent = false;  // as in GgufSource
};

struct QuantizedModel {
  std::string name;
  Structure structure;
  std::variant<Fp8Tool, IntegerFormat, GgufFormat> format;
  // By which log probabilities may differ from those of the model of its numbers. 0: the bits are
  // the same.
  double bound = 0;
  bool divides = true;  // among two ranks
};

inline void PrintTo(const QuantizedModel& model, std::ostream* out) {
  *out << model.name;
}

const std::vector<QuantizedModel>& quantized_models();
// The dense ones that divide, of which there is one per kind of file.
std::vector<QuantizedModel> some_quantized_models();

// The numbers of a GGUF file as a checkpoint in F32, whose value heads are in the file's order.
StoredTensors numbers_of(const std::string& file, const ModelConfig& config);

// Writes the model's files to an empty directory, and returns the configuration that loads them.
EngineConfig write_quantized(const QuantizedModel& model, const ScratchDirectory& directory);
// Writes the checkpoint of the numbers that the quantized weights stand for.
EngineConfig write_numbers(const QuantizedModel& model, const ScratchDirectory& directory);

}  // namespace quire::testing
