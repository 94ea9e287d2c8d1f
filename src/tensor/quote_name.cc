#include "tensor/quote_name.h"

#include "base/json.h"

namespace quire {

std::string quote_name(std::string_view name) {
  constexpr size_t kMaxShown = 160;
  JsonWriter writer;
  if (name.size() <= kMaxShown) {
    writer.value(name);
  } else {
    writer.value(std::string(name.substr(0, kMaxShown)) + "…");
  }
  return writer.text();
}

}  // namespace quire
