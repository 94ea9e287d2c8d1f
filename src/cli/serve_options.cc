#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/engine_flags.h"
#include "server/access_control.h"
#include "server/tools/output_parser.h"

namespace quire::cli {
namespace {

Status take_model_dir(ServeOptions& options) {
  std::string& model = options.engine.model;
  if (options.model_dir.empty()) return {};
  if (!model.empty() && model != options.model_dir) {
    return invalid_argument(
        fmt::format("expected one model, got {} and --model {}", options.model_dir, model));
  }
  model = options.model_dir;
  return {};
}

// Rejects a directory among the names: --served-model-name takes several values, as in vLLM, so a
// model directory after it would be taken as a name.
Status check_model_names(const ServeOptions& options) {
  if (std::ranges::find(options.service.model_names, "") != options.service.model_names.end()) {
    return invalid_argument("--served-model-name: expected a name, got an empty one");
  }
  if (!options.engine.model.empty()) return {};
  for (const std::string& name : options.service.model_names) {
    std::error_code error;
    if (!std::filesystem::is_directory(name, error)) continue;
    return invalid_argument(
        fmt::format("--served-model-name: {} is taken for a name and is a directory; where it is "
                    "the model, expected it first: quire serve {} …",
                    name, name));
  }
  return {};
}

// Rejects flags that could never have an effect.
Status check_effect(const ServeOptions& options) {
  const server::ServiceConfig& service = options.service;
  if (options.max_request_bytes < 1) {
    return invalid_argument("--max-request-bytes: expected at least 1; got 0: no call has a body");
  }
  if (options.max_tokenize_bytes < 1) {
    return invalid_argument("--max-tokenize-bytes: got 0, expected at least 1");
  }
  if (service.admission.max_concurrency_per_key > 0 && options.api_keys.empty() &&
      options.api_key_file.empty()) {
    return invalid_argument(
        "expected --api-key or --api-key-file beside --max-concurrency-per-key");
  }
  if (!options.transport.unix_socket_path.empty() &&
      options.transport.limits.max_connections_per_peer > 0) {
    return invalid_argument(
        "expected --uds or --max-connections-per-peer, not both: a Unix socket's peers have no "
        "address");
  }
  for (const std::string& origin : service.allowed_origins) {
    if (server::can_be_origin(origin)) continue;
    return invalid_argument(fmt::format(
        "--allowed-origins: got '{}', expected '*' or what a browser says, in lower case and "
        "without a path: https://example.com",
        origin));
  }
  for (const std::string& host : service.allowed_hosts) {
    if (server::can_be_host(host)) continue;
    return invalid_argument(fmt::format(
        "--allowed-hosts: got '{}', expected '*' or a name without scheme and port: example.com",
        host));
  }
  return {};
}

Status check(const ServeOptions& options) {
  QUIRE_RETURN_IF_ERROR(check_model_names(options));
  QUIRE_RETURN_IF_ERROR(check_effect(options));
  QUIRE_RETURN_IF_ERROR(server::ApiKeys::create(options.api_keys, "").status());
  const http::ServerConfig& transport = options.transport;
  if (transport.host.empty()) {
    return invalid_argument("expected --host to name an address; 0.0.0.0 is all of this machine");
  }
  if (transport.tls_certificate.empty() != transport.tls_key.empty()) {
    return invalid_argument("expected --ssl-certfile and --ssl-keyfile together");
  }
  if (options.max_total_request_bytes < options.max_request_bytes) {
    return invalid_argument(
        "expected --max-total-request-bytes to be no less than --max-request-bytes");
  }
  const bool is_elsewhere =
      transport.host != http::ServerConfig().host || transport.port != http::ServerConfig().port;
  if (!transport.unix_socket_path.empty() && is_elsewhere) {
    return invalid_argument("expected --uds, or --host and --port, not both");
  }
  return {};
}

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), {"auto", "none"});
  return names;
}

void add_network_flags(FlagSet& flags, ServeOptions* options) {
  http::ServerConfig& transport = options->transport;
  flags.begin_group("Network");
  flags.text("--host", "ADDRESS", &transport.host, "Address to listen at");
  flags.number("--port", &transport.port, {.min = 0, .max = 65535}, "Port; 0: any free one");
  flags.file("--uds", &transport.unix_socket_path,
             "Listen at this Unix socket instead of --host and --port");
  flags.file("--ssl-certfile", &transport.tls_certificate,
             "TLS certificate (PEM); read again when it changes");
  flags.file("--ssl-keyfile", &transport.tls_key, "Private key of the TLS certificate (PEM)");
  flags.number("--max-connections", &transport.limits.max_connections, {.min = 1, .max = 1 << 20},
               "Open connections");
  flags.number("--max-connections-per-peer", &transport.limits.max_connections_per_peer,
               {.min = 0, .max = 1 << 20}, "Open connections from one address; 0: no bound");
  flags.bytes("--max-request-bytes", &options->max_request_bytes, "Largest body of a request");
  flags.bytes("--max-total-request-bytes", &options->max_total_request_bytes,
              "Bodies of all requests that are not parsed yet");
  flags.texts("--allowed-origins", "ORIGIN", &options->service.allowed_origins,
              "Other sites whose pages may call (CORS); '*': all; may be repeated");
  flags.texts("--allowed-hosts", "NAME", &options->service.allowed_hosts,
              "Names in calls' Host, beside addresses and localhost; '*': all; may be repeated");
}

void add_access_flags(FlagSet& flags, ServeOptions* options) {
  server::AdmissionConfig& admission = options->service.admission;
  flags.begin_group("Access");
  flags.texts("--api-key", "KEY", &options->api_keys,
              "Key that every route but /health and /ready needs; may be repeated");
  flags.file("--api-key-file", &options->api_key_file, "File with more keys, one a line");
  flags.number("--max-num-queued-reqs", &admission.max_num_queued_reqs, {.min = 0, .max = 1 << 20},
               "Answers that may wait for a place; beyond it: 429");
  flags.number("--max-num-queued-tokens", &options->max_num_queued_tokens,
               {.min = 0, .max = 1 << 30}, "Prompt tokens that may wait; 0: no bound");
  flags.bytes("--max-tokenize-bytes", &options->max_tokenize_bytes,
              "Longest text of /tokenize and /detokenize");
  flags.number("--max-concurrency-per-key", &admission.max_concurrency_per_key,
               {.min = 0, .max = 1 << 20}, "Answers in work for one key; 0: no bound");
  flags.toggle("--allow-request-priority", &options->service.allow_request_priority,
               "Heed the priority that calls ask for; else it is ignored");
  flags.number("--drain-timeout", &options->drain_timeout, {.min = 0, .max = 86400},
               "Seconds for what is in work when the server is to stop");
}

void add_answer_flags(FlagSet& flags, ServeOptions* options) {
  flags.begin_group("Answers");
  flags.texts("--served-model-name", "NAME", &options->service.model_names,
              "The model's name in calls and answers, or several; without it, the directory's");
  flags.takes_several();
  add_chat_template_flag(flags, &options->engine);
  flags.choice("--tool-call-parser", with_auto(server::tool_call_parser_names()),
               &options->tool_call_parser, "How the model writes tool calls");
  flags.choice("--reasoning-parser", with_auto(server::reasoning_parser_names()),
               &options->reasoning_parser, "How the model marks its reasoning");
  flags.number("--num-workers", &options->service.num_workers, {.min = 1, .max = 1024},
               "Threads that parse and tokenize, and as many that write answers");
  flags.number("--num-grammar-threads", &options->service.num_grammar_threads,
               {.min = 1, .max = 1024}, "Threads that compile grammars");
  flags.number("--num-io-threads", &options->transport.num_threads, {.min = 1, .max = 256},
               "Threads that read and write sockets");
}

}  // namespace

void add_serve_flags(FlagSet& flags, ServeOptions* options) {
  add_network_flags(flags, options);
  add_access_flags(flags, options);
  add_answer_flags(flags, options);
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
}

Status settle(ServeOptions& options) {
  QUIRE_RETURN_IF_ERROR(take_model_dir(options));
  return check(options);
}

}  // namespace quire::cli
