#include "start/embedded.h"

namespace quire {

std::span<const EmbeddedDrafter> embedded_drafters() {
  return {};
}

}  // namespace quire
