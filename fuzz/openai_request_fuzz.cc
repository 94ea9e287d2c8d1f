// Parses bodies of all requests in linear time, or refuses them with an error that is valid JSON.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "cpu_bound.h"
#include "server/messages_api/messages_request.h"
#include "server/ollama_api/ollama_request.h"
#include "server/openai/requests.h"
#include "server/pooling_api/pooling_requests.h"
#include "server/responses_api/responses_request.h"

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

void check_conversation(const ChatRequest& chat) {
  check_variables(chat.conversation.variables);
  if (is_forced(chat)) {
    const std::string schema = forced_call_schema(chat).grammar.text;
    QUIRE_CHECK(JsonDocument::parse(schema, "schema", {.max_depth = 256}).ok(),
                "a forced call's schema is no JSON");
  }
  if (const auto& continuation = chat.conversation.continuation) {
    MarkedText prompt = {continuation->content + continuation->marker, {}};
    (void)continue_from(*continuation, prompt);
  }
}

// Returns the stored response, which is the same for every previous_response_id.
std::shared_ptr<const StoredResponse> previous_response(std::string_view /*id*/) {
  const auto item = [](const char* text) { return std::make_shared<const std::string>(text); };
  static const auto response = std::make_shared<const StoredResponse>(StoredResponse{
      .items = {item(R"({"id":"a","type":"message","role":"user","content":"q"})")},
      .output = {item(
          R"({"id":"b","type":"function_call","call_id":"c","name":"f","arguments":"{}"})")},
      .body = "{}"});
  return response;
}

// Checks the fields that the response repeats, which must therefore be JSON.
void check_given(const ResponsesRequest& request) {
  for (const std::string* const json :
       {&request.instructions, &request.max_output_tokens, &request.metadata, &request.reasoning,
        &request.text, &request.tool_choice, &request.tools}) {
    QUIRE_CHECK(JsonDocument::parse("[" + *json + "]", "field", {.max_depth = 128}).ok(),
                "a field that the response repeats is no JSON");
  }
  for (const ItemText& item : request.items) {
    QUIRE_CHECK(JsonDocument::parse(*item, "item", {.max_depth = 128}).ok(),
                "a stored item is no JSON");
  }
}

// Checks that a reranker's prompt marks the texts of the request as untrusted.
void check_scores(const ScoreRequest& scores) {
  QUIRE_CHECK(!scores.documents.empty(), "a request without a document");
  const MarkedText prompt = reranker_prompt(scores, 0);
  size_t num_marked = 0;
  for (size_t i = 0; i < prompt.untrusted.count(); ++i) {
    num_marked += prompt.untrusted[i].end - prompt.untrusted[i].begin;
  }
  const size_t num_given = scores.instruction.size() + scores.query_of(0).size();
  QUIRE_CHECK(num_marked == num_given + scores.documents.front().size(),
              "a text of the request is not marked");
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
    check_conversation(chat.request);
  }
  const auto responses =
      parse_responses_request(body, defaults, {.is_enabled = true, .find = previous_response});
  if (is_read(responses)) {
    check_conversation(responses.request.chat);
    check_given(responses.request);
  }
  for (const MessagesUse use : {MessagesUse::kGenerate, MessagesUse::kCountTokens}) {
    const auto messages = parse_messages_request(body, defaults, use);
    if (is_read(messages)) check_conversation(messages.request);
  }
  for (const OllamaUse use : {OllamaUse::kChat, OllamaUse::kGenerate}) {
    constexpr int kMaxModelLen = 4096;
    const auto ollama =
        parse_ollama_request(body, defaults, use, {.max_model_len = kMaxModelLen, .reasons = true});
    if (is_read(ollama) && !ollama.request.only_loads) check_conversation(ollama.request.chat);
  }
  (void)is_read(parse_ollama_show(body, defaults.limits));
  const auto tokenize = parse_tokenize_request(body, defaults);
  if (is_read(tokenize) && tokenize.request.conversation) {
    check_variables(tokenize.request.conversation->variables);
  }
  (void)is_read(parse_detokenize_request(body, defaults));
  const auto embeddings = parse_embeddings_request(body, defaults);
  if (is_read(embeddings)) {
    QUIRE_CHECK(!embeddings.request.inputs.empty(), "a request without an input");
  }
  for (const auto parse : {parse_score_request, parse_rerank_request}) {
    const auto scores = parse(body, defaults);
    if (is_read(scores)) check_scores(scores.request);
  }
  bound.check(size);
  return 0;
}
