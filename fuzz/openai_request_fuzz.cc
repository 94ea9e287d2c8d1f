// Parses bodies of all requests in linear time, or refuses them with an error that is valid JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "cpu_bound.h"
#include "server/openai/requests.h"

namespace {

using namespace quire;
using namespace quire::server;

template <typename Body>
bool is_read(const Parsed<Body>& parsed) {
  if (!parsed.error) return true;
  QUIRE_CHECK(parsed.error->http_status == 400, "a body's error is the client's");
  const auto body = JsonDocument::parse(error_body(*parsed.error), "the error");
  QUIRE_CHECK(body.ok(), "an error is not JSON");
  return false;
}

void check_variables(const jinja::Value& variables) {
  QUIRE_CHECK(variables.is_dict(), "a template's variables are not a dict");
  constexpr int kMaxDepth = 64;
  QUIRE_CHECK(variables.depth() <= kMaxDepth + 1, "a template's variables are too deep");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  const RequestDefaults defaults;
  const fuzz::CpuBound bound;
  const auto completion = parse_completion_request(body, defaults);
  if (is_read(completion)) {
    QUIRE_CHECK(!completion.request.prompts.empty(), "a request without a prompt");
    const int n = completion.request.engine_request.sampling.n;
    QUIRE_CHECK(n >= 1 && n <= defaults.limits.max_sequences, "n is out of range");
  }
  const auto chat = parse_chat_request(body, defaults);
  if (is_read(chat)) {
    check_variables(chat.request.conversation.variables);
    if (chat.request.tool_choice == ToolChoice::kRequired ||
        chat.request.tool_choice == ToolChoice::kNamed) {
      const std::string schema = forced_call_schema(chat.request).grammar.text;
      QUIRE_CHECK(JsonDocument::parse(schema, "schema", {.max_depth = 256}).ok(),
                  "a forced call's schema is no JSON");
    }
    if (const auto& continuation = chat.request.conversation.continuation) {
      MarkedText prompt = {continuation->content + continuation->marker, {}};
      (void)continue_from(*continuation, prompt);
    }
  }
  const auto tokenize = parse_tokenize_request(body, defaults);
  if (is_read(tokenize) && tokenize.request.conversation) {
    check_variables(tokenize.request.conversation->variables);
  }
  (void)is_read(parse_detokenize_request(body, defaults));
  bound.check(size);
  return 0;
}
