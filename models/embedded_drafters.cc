#include <array>

#include "base/embed.h"
#include "start/embedded.h"

QUIRE_EMBED(quire_eagle3_config, QUIRE_MODEL_DIR "/eagle3/config.json")
QUIRE_EMBED(quire_eagle3_weights, QUIRE_MODEL_DIR "/eagle3/model.safetensors")
QUIRE_EMBED(quire_dflash_config, QUIRE_MODEL_DIR "/dflash/config.json")
QUIRE_EMBED(quire_dflash_weights, QUIRE_MODEL_DIR "/dflash/model.safetensors")

namespace quire {

std::span<const EmbeddedDrafter> embedded_drafters() {
  static const std::array<EmbeddedDrafter, 2> drafters = {{
      {.method = "eagle3",
       .config_json = QUIRE_EMBEDDED_TEXT(quire_eagle3_config),
       .weights = std::as_bytes(std::span(quire_eagle3_weights_begin, quire_eagle3_weights_end))},
      {.method = "dflash",
       .config_json = QUIRE_EMBEDDED_TEXT(quire_dflash_config),
       .weights = std::as_bytes(std::span(quire_dflash_weights_begin, quire_dflash_weights_end))},
  }};
  return drafters;
}

}  // namespace quire
