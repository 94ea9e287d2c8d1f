// Bodies of all calls: read in linear time, or refused with an error that is valid JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "cpu_bound.h"
#include "server/openai/continuation.h"
#include "server/openai/requests.h"

namespace {

using namespace quire;
using namespace quire::server;

template <typename Call>
bool is_read(const Parsed<Call>& parsed) {
  if (!parsed.error) return true;
  QUIRE_CHECK(parsed.error->http_status == 400, "a body's fault is the client's");
  const auto body = JsonDocument::parse(error_body(*parsed.error), "the error");
  QUIRE_CHECK(body.ok(), "an error is no JSON");
  return false;
}

void check_json(std::string_view text) {
  QUIRE_CHECK(JsonDocument::parse(text, "variables", {.max_depth = 256}).ok(),
              "a template's variables are no JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const RequestDefaults defaults;
  const fuzz::CpuBound bound;
  const auto completion = parse_completion_request(body, defaults);
  if (is_read(completion)) {
    QUIRE_CHECK(!completion.request.prompts.empty(), "a call without a prompt");
    const int n = completion.request.engine_request.sampling.n;
    QUIRE_CHECK(n >= 1 && n <= defaults.limits.max_sequences, "n is out of range");
  }
  const auto chat = parse_chat_request(body, defaults);
  if (is_read(chat)) {
    check_json(chat.request.template_variables);
    if (chat.request.tool_choice == ToolChoice::kRequired ||
        chat.request.tool_choice == ToolChoice::kNamed) {
      check_json(forced_call_schema(chat.request).grammar.text);
    }
    if (chat.request.continuation) {
      std::string prompt = chat.request.template_variables;
      (void)continue_from(*chat.request.continuation, prompt);
    }
  }
  const auto tokenize = parse_tokenize_request(body, defaults);
  if (is_read(tokenize) && !tokenize.request.template_variables.empty()) {
    check_json(tokenize.request.template_variables);
  }
  (void)is_read(parse_detokenize_request(body, defaults));
  bound.check(size);
  return 0;
}
