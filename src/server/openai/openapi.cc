#include "base/embed.h"
#include "server/openai/requests.h"

QUIRE_EMBED(quire_openapi, QUIRE_OPENAPI_DIR "/openapi.json")

namespace quire::server {

std::string_view openapi_json() {
  return QUIRE_EMBEDDED_TEXT(quire_openapi);
}

}  // namespace quire::server
