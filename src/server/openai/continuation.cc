#include "server/openai/continuation.h"

#include "base/text.h"
#include "jinja/python_text.h"
#include "server/openai/json_fields.h"

namespace quire::server {
namespace {

// Templates trim messages as Python does, so these trim Unicode's white space too.
std::string_view strip_left(std::string_view text) {
  return jinja::strip(text, std::nullopt, true, false);
}

std::string_view strip_right(std::string_view text) {
  return jinja::strip(text, std::nullopt, false, true);
}

}  // namespace

bool has_text_to_continue(std::string_view content) {
  return !strip_left(content).empty();
}

std::string with_marker(std::string_view content, std::string_view marker) {
  std::string marked(content);
  marked.insert(strip_right(content).size(), marker);
  return marked;
}

std::optional<ApiError> continue_from(const Continuation& continuation, std::string& rendered) {
  const std::string& marker = continuation.marker;
  const std::string_view text = strip_right(continuation.content);
  const std::string_view space = std::string_view(continuation.content).substr(text.size());
  const std::string_view all = rendered;
  const size_t at = find_text(all, marker);
  const bool is_there =
      at != std::string_view::npos && all.substr(0, at).ends_with(strip_left(text));
  if (!is_there || find_text(all, marker, at + marker.size()) != std::string_view::npos) {
    return field_error(
        "messages",
        "the template changes or drops the last message, expected one that it writes "
        "once and as it is; send another last message, or no continue_final_message");
  }
  // If the template kept the message's trailing white space, it belongs to the message.
  const bool keeps_space = all.substr(at + marker.size()).starts_with(space);
  rendered.resize(at);
  if (keeps_space) rendered += space;
  return std::nullopt;
}

}  // namespace quire::server
