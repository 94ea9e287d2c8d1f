// Bodies of all calls: read in linear time, or refused with an error that is valid JSON.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "cpu_bound.h"
#include "server/openai/continuation.h"
#include "server/openai/parse.h"

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
  const CallDefaults defaults;
  const fuzz::CpuBound bound;
  const auto completion = parse_completion_call(body, defaults);
  if (is_read(completion)) {
    QUIRE_CHECK(!completion.call.prompts.empty(), "a call without a prompt");
    const int n = completion.call.request.sampling.n;
    QUIRE_CHECK(n >= 1 && n <= defaults.limits.max_answers, "n is out of range");
  }
  const auto chat = parse_chat_call(body, defaults);
  if (is_read(chat)) {
    check_json(chat.call.template_variables);
    if (chat.call.tool_choice == ToolChoice::kRequired ||
        chat.call.tool_choice == ToolChoice::kNamed) {
      check_json(forced_call_schema(chat.call).grammar.text);
    }
    if (chat.call.continuation) {
      std::string prompt = chat.call.template_variables;
      (void)continue_from(*chat.call.continuation, prompt);
    }
  }
  const auto tokenize = parse_tokenize_call(body, defaults);
  if (is_read(tokenize) && !tokenize.call.template_variables.empty()) {
    check_json(tokenize.call.template_variables);
  }
  (void)is_read(parse_detokenize_call(body, defaults));
  bound.check(size);
  return 0;
}
