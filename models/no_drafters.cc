#include "engine/model_files.h"

namespace quire {

std::span<const EmbeddedDrafter> embedded_drafters() {
  return {};
}

}  // namespace quire
