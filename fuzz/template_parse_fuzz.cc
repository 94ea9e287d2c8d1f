// Parses any text as a chat template, or returns a one-line error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "jinja/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = quire::ChatTemplate::parse(source);
  QUIRE_CHECK(parsed.ok() || parsed.status().message().starts_with("[template] line "),
              parsed.status().message());
  return 0;
}
