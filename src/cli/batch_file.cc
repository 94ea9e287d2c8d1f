#include "cli/batch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "server/tools/output_blocks.h"

namespace quire::cli {
namespace {

// Bounds only the parser: each route refuses bodies beyond its own limit.
constexpr size_t kMaxDepth = 128;
constexpr std::string_view kRequestLine =
    "an object with custom_id, method, url and body, as in OpenAI's batch files";

Result<std::string> read_text(simdjson::dom::object line, std::string_view name) {
  std::string_view text;
  if (line[name].get_string().get(text) || text.empty()) {
    return invalid_argument(fmt::format("field '{}': expected a text", name));
  }
  return std::string(text);
}

Status read_url(simdjson::dom::object line, http::Request& request) {
  QUIRE_ASSIGN_OR_RETURN(request.method, read_text(line, "method"));
  if (request.method != "POST") {
    return invalid_argument(
        fmt::format("field 'method': got '{}', expected POST", clipped(request.method)));
  }
  QUIRE_ASSIGN_OR_RETURN(request.path, read_text(line, "url"));
  const bool is_versioned = request.path.starts_with("/v1/") || request.path.starts_with("/v2/");
  if (is_versioned && request.path.find_first_of("?#") == std::string::npos) return {};
  return invalid_argument(fmt::format(
      "field 'url': got '{}', expected a route such as /v1/chat/completions or /v1/embeddings",
      clipped(request.path)));
}

Status read_body(simdjson::dom::object line, http::Request& request) {
  simdjson::dom::object body;
  if (line["body"].get_object().get(body)) {
    return invalid_argument("field 'body': expected the object that the route takes");
  }
  bool streams = false;
  if (!body["stream"].get_bool().get(streams) && streams) {
    return invalid_argument("field 'body.stream': a batch has whole responses; leave it out");
  }
  request.body = simdjson::minify(body);
  return {};
}

Status read_request(simdjson::dom::object line, BatchRequest& out) {
  QUIRE_ASSIGN_OR_RETURN(out.custom_id, read_text(line, "custom_id"));
  for (const auto& [name, value] : line) {
    if (name == "custom_id" || name == "method" || name == "url" || name == "body") continue;
    return invalid_argument(
        fmt::format("field '{}': unknown; expected {}", clipped(name), kRequestLine));
  }
  QUIRE_RETURN_IF_ERROR(read_url(line, out.request));
  QUIRE_RETURN_IF_ERROR(read_body(line, out.request));
  out.request.headers = {{"content-type", "application/json"}, {"x-request-id", out.custom_id}};
  out.request.peer = "batch";
  return {};
}

BatchRequest parse_request_line(std::string_view text, const std::string& source) {
  BatchRequest result;
  const Result<JsonDocument> document = parse_json_line(text, source, kRequestLine, kMaxDepth);
  if (!document.ok()) {
    result.error = document.status();
    return result;
  }
  simdjson::dom::object line;
  if (document->root().get_object().get(line)) {
    result.error = invalid_argument(fmt::format("[input] {}: expected {}", source, kRequestLine));
    return result;
  }
  if (const Status status = read_request(line, result); !status.ok()) {
    result.error = {status.code(), fmt::format("[input] {}: {}", source, status.message())};
  }
  return result;
}

// Returns the text with which the output line of a request begins.
std::string line_begin(size_t number) {
  return fmt::format(R"({{"id":"batch_req_{}","custom_id":)", number);
}

// Begins the object of an output line, and writes the fields before the response.
void begin_output_line(JsonWriter& json, size_t number, std::string_view custom_id) {
  json.begin_object();
  json.field("id", fmt::format("batch_req_{}", number));
  json.key("custom_id");
  json.value_or_null(custom_id);
}

std::string_view header_of(const http::Response& response, std::string_view wanted) {
  for (const auto& [name, value] : response.headers) {
    if (name == wanted) return value;
  }
  return {};
}

std::string not_our_line(std::string_view text) {
  return fmt::format(
      "got '{}', expected a line that quire batch has written: name another output, or remove this "
      "one",
      clipped(text));
}

// A line of an output that an earlier run wrote.
struct WrittenLine {
  std::string custom_id;  // empty: null
  bool has_succeeded = false;
};

// The limits exceed those of a request, because a response may be larger and deeper. Repeated keys
// are accepted, because a model may write a key twice.
Result<WrittenLine> parse_output_line(std::string_view text, const std::string& source) {
  constexpr JsonLimits kLimits = {.max_bytes = size_t{1} << 30, .max_depth = 1024};
  const Result<JsonDocument> document = JsonDocument::parse(text, source, kLimits);
  simdjson::dom::element id;
  simdjson::dom::element response;
  if (!document.ok() || document->root()["custom_id"].get(id) ||
      document->root()["response"].get(response)) {
    return invalid_argument(fmt::format("[batch] {}: {}", source, not_our_line(text)));
  }
  WrittenLine line;
  std::string_view name;
  if (!id.get_string().get(name)) line.custom_id = name;
  int64_t status = 0;
  line.has_succeeded = !response["status_code"].get_int64().get(status) && status == 200;
  return line;
}

}  // namespace

BatchReader::BatchReader(std::string_view text, std::string path)
    : path_(std::move(path)), lines_(split_lines(text)) {}

BatchRequest BatchReader::next() {
  const Line& line = lines_[num_read_++];
  const std::string source = line_source(path_, line);
  BatchRequest result = parse_request_line(line.text, source);
  if (result.custom_id.empty()) return result;
  const auto [first, is_new] = line_of_id_.emplace(result.custom_id, line.number);
  if (!is_new) {
    result.error = invalid_argument(
        fmt::format("[input] {}: field 'custom_id': got '{}', which line {} has too, expected "
                    "another one for each request",
                    source, clipped(result.custom_id), first->second));
  }
  return result;
}

std::string batch_response_line(size_t number, std::string_view custom_id,
                                const http::Response& response) {
  JsonWriter json;
  begin_output_line(json, number, custom_id);
  json.key("response");
  json.begin_object();
  json.field("status_code", response.status);
  json.key("request_id");
  json.value_or_null(header_of(response, "x-request-id"));
  if (const std::string_view ignored = header_of(response, "x-quire-ignored"); !ignored.empty()) {
    json.field("ignored", ignored);
  }
  json.key("body");
  json.raw(server::in_one_line(response.body));
  json.end_object();
  json.key("error");
  json.null();
  json.end_object();
  return json.text() + "\n";
}

std::string batch_error_line(size_t number, std::string_view custom_id, const Status& error) {
  JsonWriter json;
  begin_output_line(json, number, custom_id);
  json.key("response");
  json.null();
  json.key("error");
  json.begin_object();
  json.field("code", "invalid_request");
  json.field("message", error.message());
  json.end_object();
  json.end_object();
  return json.text() + "\n";
}

Result<BatchOutput> BatchOutput::open(const std::string& path, BatchReader& requests) {
  QUIRE_ASSIGN_OR_RETURN(LockedFile file,
                         LockedFile::open(path, O_RDWR | O_CREAT | O_APPEND, "batch"));
  BatchOutput output(std::move(file), path);
  QUIRE_RETURN_IF_ERROR(output.read_back(requests));
  return output;
}

Status BatchOutput::read_back(BatchReader& requests) {
  std::ifstream file(path_);
  std::string text;
  size_t num_whole_bytes = 0;
  for (size_t number = 1; std::getline(file, text) && !file.eof(); ++number) {  // eof: no line end
    num_whole_bytes += text.size() + 1;
    const std::string source = fmt::format("{}:{}", path_, number);
    if (requests.num_read() == requests.num_requests()) {
      return invalid_argument(
          fmt::format("[batch] {}: the output has more lines than the {} requests of the input; "
                      "name another output, or remove this one",
                      source, requests.num_requests()));
    }
    QUIRE_ASSIGN_OR_RETURN(const WrittenLine written, parse_output_line(text, source));
    const BatchRequest request = requests.next();
    if (written.custom_id != request.custom_id) {
      return invalid_argument(
          fmt::format("[batch] {}: got the custom_id '{}', expected '{}' as in the input; name "
                      "another output, or remove this one",
                      source, clipped(written.custom_id), clipped(request.custom_id)));
    }
    num_failed_ += written.has_succeeded ? 0 : 1;
  }
  if (!file.is_open() || file.bad()) {
    return internal_error(fmt::format("[batch] cannot read {}; {}", path_, std::strerror(errno)));
  }
  const std::string begin = line_begin(requests.num_read() + 1);
  if (text.substr(0, begin.size()) != begin.substr(0, text.size())) {
    return invalid_argument(fmt::format("[batch] {}: {}", path_, not_our_line(text)));
  }
  if (::ftruncate(file_.fd(), static_cast<off_t>(num_whole_bytes)) == 0) return {};
  return internal_error(fmt::format("[batch] cannot change {}; {}", path_, std::strerror(errno)));
}

Status BatchOutput::append(std::string_view line, bool has_succeeded) {
  struct stat info = {};
  if (::fstat(file_.fd(), &info) != 0 || info.st_nlink == 0) {
    return internal_error(fmt::format("[batch] {} was removed while it was written", path_));
  }
  num_failed_ += has_succeeded ? 0 : 1;
  while (!line.empty()) {
    const ssize_t num_written = ::write(file_.fd(), line.data(), line.size());
    if (num_written < 0 && errno == EINTR) continue;
    if (num_written <= 0) {
      return internal_error(fmt::format(
          "[batch] cannot write {}; {}: the same command continues the batch once it can", path_,
          std::strerror(errno)));
    }
    line.remove_prefix(static_cast<size_t>(num_written));
  }
  return {};
}

}  // namespace quire::cli
