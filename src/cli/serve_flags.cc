#include "cli/serve_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/engine_flags.h"
#include "server/access_control.h"
#include "server/http/client_address.h"
#include "server/tools/output_parser.h"

namespace quire::cli {
namespace {

// Refuses empty and repeated names, and paths if no model is given: --served-model-name takes
// several values, as in vLLM, so that a MODEL after it counts as a name.
Status check_model_names(const ServeOptions& options) {
  const std::vector<std::string>& names = options.service.model_names;
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty()) {
      return invalid_argument("--served-model-name: expected a name, got an empty one");
    }
    if (std::find(names.begin(), name, *name) != name) {
      return invalid_argument(fmt::format(
          "--served-model-name: got {} twice, expected a different name each time", *name));
    }
  }
  if (!options.engine.model.empty()) return {};
  for (const std::string& name : names) {
    std::error_code error;
    if (!std::filesystem::exists(name, error)) continue;
    return invalid_argument(
        fmt::format("--served-model-name: got the path {}, expected a name; to serve that model, "
                    "put it first: quire serve {} …",
                    name, name));
  }
  return {};
}

void check_names(const ServeOptions& options, Complaints& complaints) {
  for (const std::string& origin : options.service.allowed_origins) {
    if (server::can_be_origin(origin)) continue;
    complaints.add(
        fmt::format("--allowed-origins: got '{}', expected '*' or an origin in lower case without "
                    "a path, such as https://example.com",
                    origin));
  }
  for (const std::string& host : options.service.allowed_hosts) {
    if (server::can_be_host(host)) continue;
    complaints.add(
        fmt::format("--allowed-hosts: got '{}', expected '*' or a name without scheme and port, "
                    "such as example.com",
                    host));
  }
}

void check_sizes(const ServeOptions& options, Complaints& complaints) {
  if (options.max_request_bytes < 1) {
    complaints.add("--max-request-bytes: got 0, expected at least 1");
  }
  if (options.max_tokenize_bytes < 1) {
    complaints.add("--max-tokenize-bytes: got 0, expected at least 1");
  }
  const bool sets_stored_bytes = options.max_stored_response_bytes !=
                                 static_cast<int64_t>(server::ResponseStoreLimits().max_bytes);
  if (sets_stored_bytes && options.service.stored_responses.max_responses == 0) {
    complaints.add("--max-stored-response-bytes: expected --max-stored-responses with it");
  }
  if (options.max_total_request_bytes < options.max_request_bytes) {
    complaints.add("expected --max-total-request-bytes to be at least --max-request-bytes");
  }
}

void check_address(const http::ServerConfig& transport, Complaints& complaints) {
  if (transport.host.empty()) {
    complaints.add("--host: got '', expected an address; 0.0.0.0 listens on all interfaces");
  }
  if (transport.ssl_certfile.empty() != transport.ssl_keyfile.empty()) {
    complaints.add("expected --ssl-certfile and --ssl-keyfile together");
  }
  const Result<http::Proxies> proxies = http::Proxies::create(transport.trusted_proxies);
  if (!proxies.ok()) complaints.add(proxies.status());
  if (transport.uds.empty()) return;
  const bool knows_clients = proxies.ok() && proxies->trusts("unix");
  if (transport.limits.max_connections_per_peer > 0 && !knows_clients) {
    complaints.add(
        "expected --uds or --max-connections-per-peer, not both: a Unix socket's clients have no "
        "address, unless --trusted-proxies unix names one");
  }
  const http::ServerConfig unset;
  if (transport.host != unset.host || transport.port != unset.port) {
    complaints.add("expected --uds, or --host and --port, not both");
  }
}

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), {"auto", "none"});
  return names;
}

void add_network_flags(FlagSet& flags, ServeOptions* options) {
  http::ServerConfig& transport = options->transport;
  flags.begin_group("Network", /*belongs_to_server=*/true);
  flags.text("--host", "ADDRESS", &transport.host, "Address to listen on");
  flags.number("--port", &transport.port, {.min = 0, .max = 65535}, "Port; 0: any free one");
  flags.file("--uds", &transport.uds, "Listen on this Unix socket instead of --host and --port");
  flags.file("--ssl-certfile", &transport.ssl_certfile,
             "TLS certificate (PEM); read again when it changes");
  flags.file("--ssl-keyfile", &transport.ssl_keyfile, "Private key of the TLS certificate (PEM)");
  flags.number("--max-connections", &transport.limits.max_connections, {.min = 1, .max = 1 << 20},
               "Most open connections");
  flags.number("--max-connections-per-peer", &transport.limits.max_connections_per_peer,
               {.min = 0, .max = 1 << 20}, "Most open connections from one address; 0: no limit");
  flags.texts("--trusted-proxies", "CIDR", &transport.trusted_proxies,
              "Proxies whose X-Forwarded-For names the client: addresses, networks or 'unix'; "
              "separated by commas, or repeated");
  flags.texts("--allowed-origins", "ORIGIN", &options->service.allowed_origins,
              "Web origins whose pages may send requests (CORS); '*': all; may be repeated");
  flags.texts("--allowed-hosts", "NAME", &options->service.allowed_hosts,
              "Names allowed in the Host field, besides addresses and localhost; '*': all; may be "
              "repeated");
  flags.number("--num-io-threads", &transport.num_threads, {.min = 1, .max = 256},
               "Threads that read and write sockets");
  flags.begin_group("Network");
  flags.bytes("--max-request-bytes", &options->max_request_bytes, "Largest request body");
  flags.bytes("--max-total-request-bytes", &options->max_total_request_bytes,
              "Largest sum of request bodies that are not parsed yet");
  add_setting(flags, &options->engine, "kv_events_config");
}

void add_access_flags(FlagSet& flags, ServeOptions* options) {
  server::AdmissionConfig& admission = options->service.admission;
  flags.begin_group("Access", /*belongs_to_server=*/true);
  flags.texts("--api-key", "KEY", &options->api_keys,
              "Key that every route but /health, /ready and /ping needs; may be repeated");
  flags.file("--api-key-file", &options->api_key_file, "File with more keys, one per line");
  flags.begin_group("Access");
  flags.number("--max-num-queued-reqs", &options->max_num_queued_reqs, {.min = 0, .max = 1 << 20},
               "Most sequences that may wait to run; further requests get 429");
  flags.last().default_text =
      fmt::format("{}; {} for a model that embeds", kMaxQueuedGenerations, kMaxQueuedEmbeddings);
  flags.number("--max-num-queued-tokens", &options->max_num_queued_tokens,
               {.min = 0, .max = 1 << 30}, "Most prompt tokens that may wait; 0: no limit");
  flags.bytes("--max-tokenize-bytes", &options->max_tokenize_bytes,
              "Largest text of /tokenize and /detokenize");
  server::ResponseStoreLimits& stored = options->service.stored_responses;
  flags.number("--max-stored-responses", &stored.max_responses, {.min = 0, .max = 1 << 20},
               "Responses of /v1/responses to keep for later requests; 0: none");
  flags.bytes("--max-stored-response-bytes", &options->max_stored_response_bytes,
              "Most memory of stored responses");
  flags.number("--max-concurrency-per-key", &admission.max_concurrency_per_key,
               {.min = 0, .max = 1 << 20},
               "Most sequences that run or wait for one key; 0: no limit");
  flags.toggle("--allow-request-priority", &options->service.allow_request_priority,
               "Use the priority field of requests, which is otherwise ignored");
  flags.number("--drain-timeout", &options->drain_timeout, {.min = 0, .max = 86400},
               "Seconds that running requests get when the server stops");
}

void add_response_flags(FlagSet& flags, ServeOptions* options) {
  flags.begin_group("Responses");
  flags.texts("--served-model-name", "NAME", &options->service.model_names,
              "Name or names of the model in requests and responses; without it, the directory's");
  flags.last().takes_several = true;
  flags.last().belongs_to_server = true;
  add_chat_flags(flags, &options->engine);
  add_setting(flags, &options->engine, "generation_config");
  flags.choice("--tool-call-parser", with_auto(server::tool_call_parser_names()),
               &options->tool_call_parser, "Format of the model's tool calls");
  flags.choice("--reasoning-parser", with_auto(server::reasoning_parser_names()),
               &options->reasoning_parser, "Format of the model's reasoning");
  flags.toggle("--generic-tools", &options->generic_tools,
               "Write tools into the prompt if the model's chat template has no place for them");
  flags.number("--num-workers", &options->service.num_workers, {.min = 1, .max = 1024},
               "Threads that parse and tokenize, and as many that write responses");
  flags.number("--num-grammar-threads", &options->service.num_grammar_threads,
               {.min = 1, .max = 1024}, "Threads that compile grammars");
}

}  // namespace

void add_serve_flags(FlagSet& flags, ServeOptions* options) {
  add_network_flags(flags, options);
  add_access_flags(flags, options);
  add_response_flags(flags, options);
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
  flags.toggle("--headless", &options->headless,
               "Refuse to be node 0; vLLM starts the other nodes with it");
  flags.last().belongs_to_server = true;
}

void add_batch_flags(FlagSet& flags, ServeOptions* options) {
  add_response_flags(flags, options);
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
}

void check_batch(const ServeOptions& options, Complaints& complaints) {
  complaints.add(check_model_names(options));
}

void check_serve(const ServeOptions& options, Complaints& complaints) {
  complaints.add(check_model_names(options));
  complaints.add(server::ApiKeys::create(options.api_keys, "").status());
  if (options.service.admission.max_concurrency_per_key > 0 && options.api_keys.empty() &&
      options.api_key_file.empty()) {
    complaints.add("--max-concurrency-per-key: expected --api-key or --api-key-file with it");
  }
  if (!options.engine.enable_prefix_caching && !options.engine.kv_events_config.empty()) {
    complaints.add(
        "--kv-events-config needs the prefix cache; leave out --no-enable-prefix-caching");
  }
  check_sizes(options, complaints);
  check_address(options.transport, complaints);
  check_names(options, complaints);
}

}  // namespace quire::cli
