#include "support/added_tokens.h"

namespace quire::testing {
namespace {

std::string quoted(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    json += c;
  }
  return json + '"';
}

}  // namespace

std::string with_added_tokens(std::string_view tokenizer_json,
                              const std::vector<std::string>& tokens, bool are_special,
                              int32_t first_id) {
  std::string json(tokenizer_json);
  std::string added;
  for (const std::string& token : tokens) {
    const std::string own = "\"content\": " + quoted(token);
    if (const size_t at = json.find(own); at != std::string::npos) {
      json.replace(at, own.size(), "\"content\": " + quoted(token + " of the file"));
    }
    added += R"({"id":)" + std::to_string(first_id++) + R"(,"content":)" + quoted(token) +
             R"(,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":)" +
             (are_special ? "true" : "false") + "},";
  }
  const size_t list = json.find('[', json.find("\"added_tokens\""));
  return json.insert(list + 1, added);  // the file has a token of its own after these
}

}  // namespace quire::testing
