#include "base/embed.h"
#include "start/embedded.h"

QUIRE_EMBED(quire_model_config, QUIRE_MODEL_DIR "/config.json")
QUIRE_EMBED(quire_model_generation, QUIRE_MODEL_DIR "/generation_config.json")
QUIRE_EMBED(quire_model_tokenizer, QUIRE_MODEL_DIR "/tokenizer.json")
QUIRE_EMBED(quire_model_tokenizer_config, QUIRE_MODEL_DIR "/tokenizer_config.json")
QUIRE_EMBED(quire_model_weights, QUIRE_MODEL_DIR "/model.gguf")

namespace quire {
const EmbeddedModel& embedded_model() {
  static const EmbeddedModel model = {
      .name = QUIRE_MODEL_NAME,
      .config_json = QUIRE_EMBEDDED_TEXT(quire_model_config),
      .generation_config_json = QUIRE_EMBEDDED_TEXT(quire_model_generation),
      .tokenizer_json = QUIRE_EMBEDDED_TEXT(quire_model_tokenizer),
      .tokenizer_config_json = QUIRE_EMBEDDED_TEXT(quire_model_tokenizer_config),
      .weights = std::as_bytes(std::span(quire_model_weights_begin, quire_model_weights_end)),
  };
  return model;
}

}  // namespace quire
