#include "base/json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/utf8.h"

namespace quire {

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string_view source,
                                         const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid_argument(fmt::format("[json] {} is too large; got {} bytes, expected at most {}",
                                        source, text.size(), limits.max_bytes));
  }
  JsonDocument document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::error_code error = document.parser_->allocate(text.size(), limits.max_depth);
  if (!error) error = document.parser_->parse(text.data(), text.size()).get(document.root_);
  if (error) {
    return invalid_argument(fmt::format("[json] {} is not valid JSON (at most {} levels deep); {}",
                                        source, limits.max_depth, simdjson::error_message(error)));
  }
  return document;
}

Result<JsonDocument> JsonDocument::load(const std::filesystem::path& path,
                                        const JsonLimits& limits) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits.max_bytes));
  return parse(text, path.string(), limits);
}

void JsonWriter::separate() {
  if (need_comma_) text_ += ',';
  need_comma_ = true;
}

void JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  need_comma_ = false;
}

void JsonWriter::close(char bracket) {
  text_ += bracket;
  need_comma_ = true;
}

void JsonWriter::key(std::string_view name) {
  value(name);
  text_ += ':';
  need_comma_ = false;
}

void JsonWriter::value(std::string_view text) {
  separate();
  text_ += '"';
  const std::string valid = replace_invalid_utf8(text);
  for (const char c : valid) {
    switch (c) {
      case '"':
        text_ += "\\\"";
        break;
      case '\\':
        text_ += "\\\\";
        break;
      case '\n':
        text_ += "\\n";
        break;
      case '\r':
        text_ += "\\r";
        break;
      case '\t':
        text_ += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          text_ += fmt::format("\\u{:04x}", static_cast<int>(c));
        } else {
          text_ += c;
        }
    }
  }
  text_ += '"';
}

void JsonWriter::value(int64_t number) {
  separate();
  text_ += fmt::format("{}", number);
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  text_ += fmt::format("{}", number);
}

void JsonWriter::value(bool flag) {
  separate();
  text_ += flag ? "true" : "false";
}

void JsonWriter::null() {
  separate();
  text_ += "null";
}

void JsonWriter::ids(const std::vector<int32_t>& ids) {
  begin_array();
  for (const int32_t id : ids) value(int64_t{id});
  end_array();
}

}  // namespace quire
