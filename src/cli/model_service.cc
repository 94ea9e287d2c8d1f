#include "cli/model_service.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "engine/engine_internals.h"
#include "server/conversation_prompt.h"
#include "server/openai/conversation.h"
#include "server/structured_output.h"
#include "server/tools/dialect_choice.h"
#include "server/tools/output_parser.h"
#include "start/kv_event_sources.h"

namespace quire::cli {
namespace {

// Sets the dialects in which the model writes its tool calls and its reasoning, and logs them.
void choose_dialects(const ServeOptions& options, const Engine& engine,
                     server::ServiceConfig& config) {
  server::DialectChoices chosen =
      server::choose_dialects(options.tool_call_parser, options.reasoning_parser,
                              engine.chat_template(), EngineInternals::response_template(engine));
  server::RequestDefaults defaults;
  defaults.chat_template = engine.chat_template();
  const bool ignores_tools = server::template_ignores(defaults, "tools");
  config.has_generic_tools = options.generic_tools && ignores_tools;
  if (options.generic_tools && !ignores_tools) {
    log_warning("[server] --generic-tools has no effect: {}",
                defaults.chat_template.empty() ? "the model has no chat template"
                                               : "the chat template has its own tools");
  }
  if (config.has_generic_tools && options.tool_call_parser == "auto") {
    chosen.calls = {.name = std::string(server::kGenericDialect), .reason = "--generic-tools"};
  }
  log_info("[server] tool calls: {}; reasoning: {}", chosen.calls.description(),
           chosen.reasoning.description());
  config.lacks_dialect = options.tool_call_parser == "auto" && chosen.calls.is_none() &&
                         !defaults.chat_template.empty() && !ignores_tools;
  if (config.lacks_dialect) {
    log_warning(
        "[server] the chat template has tools, but the format of its calls is not known: requests "
        "with tools are refused; --tool-call-parser NAME names the format");
  }
  config.tool_call_parser = std::move(chosen.calls.name);
  config.call_template = std::move(chosen.calls.checkpoint_template);
  config.reasoning_parser = std::move(chosen.reasoning.name);
  config.reasoning_template = std::move(chosen.reasoning.checkpoint_template);
}

}  // namespace

server::ServiceConfig model_service_config(const ServeOptions& options, const Engine& engine) {
  server::ServiceConfig config = options.service;
  if (config.model_names.empty()) {
    config.model_names = {engine.model_info().name};
    config.model_path = options.engine.model;  // clients of other servers send the path as the name
  }
  config.admission.max_num_seqs = engine.model_info().max_num_running();
  if (options.max_num_queued_reqs >= 0) {
    config.admission.max_num_queued_reqs = options.max_num_queued_reqs;
  } else {
    config.admission.max_num_queued_reqs =
        engine.model_info().embedding_size > 0 ? kMaxQueuedEmbeddings : kMaxQueuedGenerations;
  }
  config.admission.max_num_queued_tokens = options.max_num_queued_tokens;
  config.max_tokenize_bytes = static_cast<size_t>(options.max_tokenize_bytes);
  config.stored_responses.max_bytes = static_cast<size_t>(options.max_stored_response_bytes);
  choose_dialects(options, engine, config);
  config.constraints = server::make_constraint_compiler(engine);
  config.tensor_parallel_size = options.engine.tensor_parallel_size;
  config.kv_event_sources = EngineInternals::kv_event_sources(engine);
  return config;
}

}  // namespace quire::cli
