#include "cli/input.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/sampling_flags.h"

namespace quire::cli {
namespace {

Status field_error(std::string_view source, std::string_view field, std::string_view what) {
  return invalid_argument(fmt::format("[input] {}: field '{}': {}", source, clipped(field), what));
}

Status read_text(simdjson::dom::element value, std::string& out) {
  std::string_view text;
  if (value.get_string().get(text)) return invalid_argument("expected a string");
  out = text;
  return {};
}

Status read_priority(simdjson::dom::element value, int& out) {
  int64_t number = 0;
  if (value.get_int64().get(number) || number < INT32_MIN || number > INT32_MAX) {
    return invalid_argument("expected an integer");
  }
  out = static_cast<int>(number);
  return {};
}

Status read_bool(simdjson::dom::element value, bool& out) {
  if (value.get_bool().get(out)) return invalid_argument("expected true or false");
  return {};
}

Status set_field(std::string_view name, simdjson::dom::element value, Request& request) {
  if (name == "prompt") return read_text(value, request.prompt);
  if (name == "prompt_token_ids") {
    QUIRE_ASSIGN_OR_RETURN(request.prompt_token_ids, read_token_ids(value));
    return request.prompt_token_ids.empty() ? invalid_argument("expected at least one token id")
                                            : Status();
  }
  if (name == "priority") return read_priority(value, request.priority);
  if (name == "cache_salt") return read_text(value, request.cache_salt);
  if (name == "add_special_tokens") return read_bool(value, request.add_special_tokens);
  if (const SamplingField* field = find_sampling_field(name)) {
    return set_sampling_field(*field, value, request.sampling);
  }
  return invalid_argument(
      "unknown; expected prompt, prompt_token_ids, priority, cache_salt, add_special_tokens or a "
      "sampling field such as max_tokens");
}

constexpr std::string_view kRequest = "a JSON object with prompt or prompt_token_ids";

}  // namespace

Result<std::optional<std::string>> read_typed_line() {
  std::string line;
  errno = 0;
  for (int c = std::getc(stdin); c != '\n'; c = std::getc(stdin)) {
    if (c == EOF && std::ferror(stdin) != 0) {
      return invalid_argument(
          fmt::format("[input] cannot read standard input; {}", std::strerror(errno)));
    }
    if (c == EOF && line.empty()) return std::optional<std::string>();
    if (c == EOF) break;
    if (line.size() == kMaxTypedBytes) {
      return invalid_argument(
          fmt::format("[input] a line of standard input is too long; expected at most {} bytes",
                      kMaxTypedBytes));
    }
    line += static_cast<char>(c);
  }
  return std::optional(std::move(line));
}

Result<std::optional<std::string>> read_piped_text(std::string_view command,
                                                   std::string_view text_name) {
  struct stat info {};
  const bool has_text = ::fstat(STDIN_FILENO, &info) == 0 &&
                        (S_ISFIFO(info.st_mode) || S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode));
  if (!has_text) return std::optional<std::string>();
  constexpr int kPatienceMs = 1000;  // the parent process may never write to the pipe
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, kPatienceMs) == 0) {
    print_stderr("{}: waiting for the {} on standard input\n", command, text_name);
  }
  QUIRE_ASSIGN_OR_RETURN(std::string text, read_input("-"));
  if (is_valid_utf8(text)) return std::optional(std::move(text));
  return invalid_argument("[input] standard input is not valid UTF-8; expected a text");
}

bool has_unread_input() {
  struct stat info {};
  if (::fstat(STDIN_FILENO, &info) != 0) return false;
  if (S_ISREG(info.st_mode)) return ::lseek(STDIN_FILENO, 0, SEEK_CUR) < info.st_size;
  int num_bytes = 0;
  return (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) &&
         ::ioctl(STDIN_FILENO, FIONREAD, &num_bytes) == 0 && num_bytes > 0;
}

Result<Request> parse_request(std::string_view line, std::string_view source,
                              const Request& defaults) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, parse_json_line(line, source, kRequest));
  simdjson::dom::object fields;
  if (document.root().get_object().get(fields)) {
    return invalid_argument(fmt::format("[input] {}: expected {}", source, kRequest));
  }
  Request request = defaults;
  bool has_prompt = false;
  bool has_ids = false;
  for (const auto& [name, value] : fields) {
    has_prompt |= name == "prompt";
    has_ids |= name == "prompt_token_ids";
    const Status status = set_field(name, value, request);
    if (!status.ok()) return field_error(source, name, status.message());
  }
  if (has_prompt == has_ids) {
    return invalid_argument(
        fmt::format("[input] {}: got {}, expected either prompt or prompt_token_ids", source,
                    has_prompt ? "both prompt and prompt_token_ids" : "no prompt"));
  }
  return request;
}

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults) {
  std::vector<Prompt> prompts;
  for (const Line& line : split_lines(text)) {
    Prompt& prompt = prompts.emplace_back();
    prompt.source = line_source(path, line);
    auto request = parse_request(line.text, prompt.source, defaults);
    prompt.error = request.status();
    if (request.ok()) prompt.request = std::move(*request);
  }
  return prompts;
}

Result<std::string> parse_text_line(std::string_view line, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         parse_json_line(line, source, "a JSON string"));
  std::string_view text;
  if (document.root().get_string().get(text)) {
    return invalid_argument(fmt::format("[input] {}: expected a JSON string", source));
  }
  return std::string(text);
}

Result<std::vector<int32_t>> parse_ids_line(std::string_view line, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         parse_json_line(line, source, "a JSON list of token ids"));
  auto ids = read_token_ids(document.root());
  if (!ids.ok()) {
    return invalid_argument(fmt::format("[input] {}: {}", source, ids.status().message()));
  }
  return ids;
}

}  // namespace quire::cli
