#include "engine/embedded_model.h"

// .incbin puts a file into the object as it is: no generated source, no compile time.
#define QUIRE_EMBED(symbol, file)                          \
  asm(".pushsection .rodata\n"                             \
      ".balign 4096\n" #symbol                             \
      "_begin:\n"                                          \
      ".incbin \"" QUIRE_MODEL_DIR "/" file "\"\n" #symbol \
      "_end:\n"                                            \
      ".popsection\n");                                    \
  extern "C" const char symbol##_begin[];                  \
  extern "C" const char symbol##_end[];

QUIRE_EMBED(quire_model_config, "config.json")
QUIRE_EMBED(quire_model_generation, "generation_config.json")
QUIRE_EMBED(quire_model_tokenizer, "tokenizer.json")
QUIRE_EMBED(quire_model_tokenizer_config, "tokenizer_config.json")
QUIRE_EMBED(quire_model_weights, "model.safetensors")

namespace quire {
namespace {

std::string_view text(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

const EmbeddedModel& embedded_model() {
  static const EmbeddedModel model = {
      .name = QUIRE_MODEL_NAME,
      .config_json = text(quire_model_config_begin, quire_model_config_end),
      .generation_config_json = text(quire_model_generation_begin, quire_model_generation_end),
      .tokenizer_json = text(quire_model_tokenizer_begin, quire_model_tokenizer_end),
      .tokenizer_config_json =
          text(quire_model_tokenizer_config_begin, quire_model_tokenizer_config_end),
      .weights = std::as_bytes(std::span(quire_model_weights_begin, quire_model_weights_end)),
  };
  return model;
}

}  // namespace quire
