// A template, a NUL byte, and its variables as JSON: a text within its bounds or one clear error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/utf8.h"
#include "tokenizer/template/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t nul = input.find('\0');
  const std::string_view source = input.substr(0, nul);
  const std::string_view json = nul == std::string_view::npos ? "{}" : input.substr(nul + 1);

  const auto parsed = quire::ChatTemplate::parse(source);
  if (!parsed.ok()) return 0;
  const auto document = quire::JsonDocument::parse(json, "variables");
  const quire::jinja::Value variables = document.ok() && document->root().is_object()
                                            ? quire::value_from_json(document->root())
                                            : quire::jinja::Value::dict({});
  // Small bounds, so that what runs away ends soon.
  quire::TemplateLimits limits;
  limits.max_steps = 20'000;
  limits.max_output_bytes = size_t{1} << 20;
  limits.max_live_bytes = size_t{4} << 20;
  limits.now_unix_s = 0;
  const auto text = parsed->render(variables, limits);
  if (text.ok()) {
    QUIRE_CHECK(text->size() <= limits.max_output_bytes, "the output is within its bound");
    QUIRE_CHECK(quire::is_valid_utf8(*text), "the output is UTF-8");
  } else {
    QUIRE_CHECK(text.status().message().starts_with("[template] "), text.status().message());
  }
  return 0;
}
