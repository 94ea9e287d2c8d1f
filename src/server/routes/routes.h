// The route table and the handlers. Each handler runs on the thread that its route names and gives
// the request exactly one response.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/admission_control.h"
#include "server/call_or_text.h"
#include "server/conversation_prompt.h"
#include "server/engine_api.h"
#include "server/generation.h"
#include "server/health_watch.h"
#include "server/metrics/server_metrics.h"
#include "server/openai/requests.h"
#include "server/openai/response_writer.h"
#include "server/request_context.h"
#include "server/structured_output.h"
#include "server/workers.h"

namespace quire::server {

// The state that all handlers share; it outlives all requests.
struct ServerState {
  ServerState(EngineApi& engine, ServiceConfig config);

  EngineApi& engine;
  const ServiceConfig config;
  AdmissionControl admission;
  ServerMetrics metrics;
  Generations generations;
  ResponseStore responses;
  WorkerPool workers;           // parse requests, render and tokenize their prompts
  WorkerPool tokenize_workers;  // see RunsOn::kTokenizer
  WorkerPool writers;           // format responses, which must not wait for `workers`
  WorkerPool grammar_workers;   // compile grammars, which can take seconds
  GrammarQueue grammars;
  HealthWatch health;
  std::vector<TokenRate> token_rates;  // by replica
  // How the model writes its tool calls and its reasoning; null: none.
  const ResponseTemplate* const calls;
  const ResponseTemplate* const reasoning;
  const std::vector<TokenMarker> token_markers;  // of both
  // Of the model's tool calls; null before the first request that needs it.
  std::once_flag call_opening_once;
  std::shared_ptr<const CallOpening> call_opening;
  const HistoryForm history_form;
  LogThrottle unread_requests;
  size_t max_prompt_bytes = 0;  // a longer prompt cannot fit the model's context
  // "fp_…": equal for the same build, model and configuration
  std::string system_fingerprint;
  // SHA-256 of the fingerprint in hexadecimal digits, because Ollama identifies models by a digest
  std::string model_digest;
  std::atomic<const http::Server*> transport = nullptr;
};

using Handler = void (*)(ServerState& state, RequestContext&& context);

enum class Access { kPublic, kNeedsKey };
// kTransport: the transport's thread, for handlers that take microseconds. kWorker: the worker
// pool, which parses and tokenizes. kTokenizer: a separate pool for /tokenize, /detokenize,
// /v1/messages/count_tokens and the render routes, whose texts may be long, so that no generation
// request waits behind them.
enum class RunsOn { kTransport, kWorker, kTokenizer };

// kPolled: monitors request it every few seconds, so successes are logged at debug level.
// kGeneration, kEmbedding: refused before its body is parsed if there is no capacity, or if the
// model does not generate text or embed prompts.
// kRender: the headers of a generation are checked, but it needs no capacity.
enum class RouteKind { kOther, kPolled, kGeneration, kEmbedding, kRender };

struct Route {
  std::string_view method;
  // May have one parameter, "/v1/responses/{id}". Only a {model} may contain '/'.
  std::string_view path;
  Access access;
  RunsOn runs_on;
  Handler handler;
  RouteKind kind = RouteKind::kOther;
};

// The complete list of routes. If two routes match one path, the more specific one comes first. Any
// other path is 404, with or without a key.
std::span<const Route> routes();

// Returns the path's parameter if the route matches the path; "" if the route has no parameter.
std::optional<std::string_view> match_path(const Route& route, std::string_view path);

// Returns the path of the route that a client probably means: `path` without trailing slashes, or
// the same with /v1 in front. Returns `path` if no route has either.
std::string routed_path(std::string_view path);

// Returns an alternative to a path without a route, for the error message.
std::string_view replacement_of(std::string_view path);

// info_routes.cc: state of the server and its model.
void get_health(ServerState& state, RequestContext&& context);
void get_ready(ServerState& state, RequestContext&& context);
void get_version(ServerState& state, RequestContext&& context);
void get_metrics(ServerState& state, RequestContext&& context);
void get_load(ServerState& state, RequestContext&& context);
void get_router_load(ServerState& state, RequestContext&& context);
void get_gateway_loads(ServerState& state, RequestContext&& context);
void get_server_info(ServerState& state, RequestContext&& context);
void get_kv_event_sources(ServerState& state, RequestContext&& context);
void get_openapi(ServerState& state, RequestContext&& context);
void get_models(ServerState& state, RequestContext&& context);
void get_model(ServerState& state, RequestContext&& context);
void get_tokenizer_info(ServerState& state, RequestContext&& context);

// tokenize_routes.cc: conversion between text and tokens.
void post_tokenize(ServerState& state, RequestContext&& context);
void post_detokenize(ServerState& state, RequestContext&& context);

// generation_routes.cc: text generation.
void post_completions(ServerState& state, RequestContext&& context);
void post_chat_completions(ServerState& state, RequestContext&& context);

// render_routes.cc: the prompts of generation requests.
void post_render_completions(ServerState& state, RequestContext&& context);
void post_render_chat(ServerState& state, RequestContext&& context);

// responses_routes.cc: OpenAI's Responses API.
void post_responses(ServerState& state, RequestContext&& context);
void get_response(ServerState& state, RequestContext&& context);
void delete_response(ServerState& state, RequestContext&& context);
void get_response_items(ServerState& state, RequestContext&& context);

// messages_routes.cc: Anthropic's Messages API.
void post_messages(ServerState& state, RequestContext&& context);
void post_count_tokens(ServerState& state, RequestContext&& context);

// ollama_routes.cc: Ollama's API.
void post_ollama_chat(ServerState& state, RequestContext&& context);
void post_ollama_generate(ServerState& state, RequestContext&& context);
void post_ollama_show(ServerState& state, RequestContext&& context);
void post_ollama_pull(ServerState& state, RequestContext&& context);
void get_ollama_tags(ServerState& state, RequestContext&& context);
void get_ollama_ps(ServerState& state, RequestContext&& context);
void get_ollama_version(ServerState& state, RequestContext&& context);

// pooling_routes.cc: embeddings and scores.
void post_embeddings(ServerState& state, RequestContext&& context);
void post_ollama_embed(ServerState& state, RequestContext&& context);
void post_ollama_embeddings(ServerState& state, RequestContext&& context);
void post_score(ServerState& state, RequestContext&& context);
void post_rerank(ServerState& state, RequestContext&& context);

// A parsed and validated generation request.
struct PreparedGeneration {
  std::vector<Request> requests = {};  // one per prompt
  std::unique_ptr<ResponseWriter> writer = nullptr;
  bool is_stream = false;
  std::optional<Restriction> restriction = {};
  bool reasons_first = false;  // the restriction applies after the prompt's reasoning block
  bool may_call = false;       // the output may be a tool call instead of the restricted text
  bool binds_calls = false;    // the restriction applies after the marker that opens a call
};

// The steps of every request to the engine, after its body is parsed.
//
// Isolates the requests of different keys: prefixes are cached per key, and a request's priority is
// ignored unless the operator allows it.
void isolate_by_key(const ServerState& state, const RequestContext& context, Request& request);
// Tokenizes the request's prompt into prompt_token_ids, and returns an error if it can never fit.
// Sets max_tokens to the rest of the context if it is 0. `untrusted` are the bytes of the prompt in
// which control tokens are plain text.
std::optional<ApiError> prepare_prompt(const ServerState& state, Request& request,
                                       const ByteSpans& untrusted);
// Calls prepare_prompt() for each prompt of a request, and moves the prompts to `requests`.
std::optional<ApiError> prepare_prompts(const ServerState& state, CompletionRequest& completion,
                                        std::vector<Request>& requests);
// Renders a conversation and prepares its prompt.
std::optional<ApiError> prepare_chat(const ServerState& state, ChatRequest& chat);
// Adds to an error of prepare_prompt() the index of its prompt among the field's `count` prompts.
ApiError with_prompt(ApiError error, std::string_view field, size_t idx, size_t count);
ResponseInfo response_info(const ServerState& state, const std::string& response_id,
                           const std::vector<Request>& requests);
// Admits the request and submits it to the engine, after its grammar is compiled if it has one.
void generate(ServerState& state, RequestContext&& context, PreparedGeneration&& generation);

// Make the writer of the response to a conversation or to prompts.
using MakeChatWriter =
    std::function<Result<std::unique_ptr<ResponseWriter>>(ChatRequest&& chat, ResponseInfo&& info)>;
using MakeCompletionWriter = std::function<Result<std::unique_ptr<ResponseWriter>>(
    CompletionRequest&& completion, ResponseInfo&& info)>;
// Names the parts of a request that have no effect in the header x-quire-ignored and in a line of
// the log.
void report_ignored(RequestContext& context, const GenerationRequest& request);
// Renders and tokenizes a conversation, admits it, and starts its generation. Refuses the request
// if one of these fails. Every API with conversations uses this function.
void generate_chat(ServerState& state, RequestContext&& context, ChatRequest&& chat,
                   const std::string& response_id, const MakeChatWriter& make_writer);
// Does the same for prompts; no template renders them.
void generate_completion(ServerState& state, RequestContext&& context,
                         CompletionRequest&& completion, const std::string& response_id,
                         const MakeCompletionWriter& make_writer);

// Tokenizes the text or conversation of the request, which is within the limits of /tokenize.
std::optional<ApiError> tokenize(const ServerState& state, TokenizeRequest& request,
                                 std::vector<int32_t>& ids);

// Returns whether the model has this name, see is_same_model_name(), or this path.
bool is_served(const ServerState& state, std::string_view model);
// If the request names a model that is not served, refuses it and returns true.
bool refuse_unknown_model(const ServerState& state, RequestContext& context,
                          const std::string& model);

RequestDefaults request_defaults(const ServerState& state);

// openapi.cc: the description of all routes.
//
// Returns the descriptions of the bodies of all requests, and of the objects in them.
std::vector<ObjectSchema> request_schemas();
// Returns the OpenAPI description of routes() and of `more_routes`. `more_paths` describes
// `more_routes`, in the form of the member "paths" of openapi_parts.json.
std::string openapi_json(std::span<const Route> more_routes = {},
                         std::string_view more_paths = "{}");

}  // namespace quire::server
