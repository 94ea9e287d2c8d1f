// The ChatModel of a server with OpenAI's API.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/model_name.h"
#include "base/text.h"
#include "cli/chat_model.h"
#include "cli/interrupt.h"
#include "http_client/client.h"

namespace quire::cli {
namespace {

using http_client::Client;
using Clock = std::chrono::steady_clock;
using Element = simdjson::dom::element;

constexpr int kOk = 200;
constexpr int kUnauthorized = 401;
constexpr int kForbidden = 403;
constexpr size_t kMaxResponseBytes = size_t{64} << 20;
constexpr std::chrono::milliseconds kInterruptTick{50};
constexpr std::chrono::seconds kConnectPatience{5};
constexpr std::chrono::seconds kTokenizePatience{60};

// Returns the text of a member; empty if the member is absent or is not a text.
std::string_view text_of(Element value, std::string_view name) {
  std::string_view text;
  return value[name].get_string().get(text) ? std::string_view() : text;
}

int int_of(Element value, std::string_view name) {
  int64_t number = 0;
  const bool is_valid = !value[name].get_int64().get(number) && number >= 0 && number <= INT32_MAX;
  return is_valid ? static_cast<int>(number) : 0;
}

// Returns the error of a response. OpenAI's form is {"error": {"message": …}}; other servers have
// {"message": …}.
Status error_of(const std::string& server, int http_status, std::string_view body) {
  std::string message;
  if (const auto document = JsonDocument::parse(body, "response"); document.ok()) {
    Element error;
    if (!document->root()["error"].get(error)) message = text_of(error, "message");
    if (message.empty()) message = text_of(document->root(), "message");
  }
  const bool needs_key = http_status == kUnauthorized || http_status == kForbidden;
  return {needs_key ? StatusCode::kInvalidArgument : StatusCode::kUnavailable,
          fmt::format("[chat] the server at {} answers HTTP {}{}{}", server, http_status,
                      message.empty() ? "" : ": " + one_line(message),
                      needs_key ? "; --api-key KEY, or OPENAI_API_KEY, is the key" : "")};
}

// Returns whether an entry of /v1/models has the name. In requests, servers also accept other names
// of a model: aliases, and the same name in another case or with ":latest".
bool has_name(Element entry, std::string_view model) {
  const auto is_name = [&](std::string_view own) { return is_same_model_name(own, model); };
  if (is_name(text_of(entry, "id"))) return true;
  simdjson::dom::array aliases;
  if (entry["aliases"].get_array().get(aliases)) return false;
  return std::ranges::any_of(aliases, [&](Element alias) {
    std::string_view name;
    return !alias.get_string().get(name) && is_name(name);
  });
}

// Adds the remedy to the error of a server that was reachable before.
Status lost(const Status& error) {
  if (error.code() != StatusCode::kUnavailable) return error;
  return unavailable(error.message() +
                     "; start the server again, or continue without it: /save FILE here, and "
                     "/load FILE in quire chat --no-server");
}

// Reads the stream of a chat completion.
class AnswerReader final : public http_client::ResponseHandler {
 public:
  AnswerReader(Client& client, std::string server, const ChatModel::Show& show)
      : client_(client), server_(std::move(server)), show_(show) {}

  void on_head(int status) override { http_status_ = status; }

  bool on_body(std::string_view piece) override {
    if (http_status_ != kOk) {
      error_body_ +=
          piece.substr(0, kMaxResponseBytes - std::min(kMaxResponseBytes, error_body_.size()));
      return true;
    }
    const bool is_whole = events_.feed(piece, [&](std::string_view event) { read_event(event); });
    if (!is_whole) error_ = unavailable("[chat] an event of the server's stream is too large");
    return error_.ok() && can_show_;
  }

  void on_end(const Status& status) override {
    if (!has_ended_ && error_.ok() && can_show_) error_ = status;
    has_ended_ = true;
    client_.stop();
  }

  bool has_ended() const { return has_ended_; }

  // Call it after the end, or after an interrupt.
  Result<ChatAnswer> take(bool was_interrupted) {
    if (http_status_ != 0 && http_status_ != kOk)
      return error_of(server_, http_status_, error_body_);
    close_reasoning();
    if (was_interrupted || !can_show_) {
      answer_.finish_reason = FinishReason::kCancelled;
    } else {
      QUIRE_RETURN_IF_ERROR(http_status_ == 0 ? lost(error_) : error_);
    }
    if (num_pieces_ > 0) {
      using Seconds = std::chrono::duration<double>;
      answer_.stats.first_token_s = Seconds(first_ - sent_).count();
      answer_.stats.decode_s = Seconds(last_ - first_).count();
    }
    // A stream that was stopped early has no usage; its pieces approximate the tokens.
    if (answer_.stats.num_output_tokens == 0) answer_.stats.num_output_tokens = num_pieces_;
    return std::move(answer_);
  }

 private:
  void read_event(std::string_view event) {
    if (event == "[DONE]" || !error_.ok()) return;
    const auto document = JsonDocument::parse(event, "event of the server's stream");
    if (!document.ok()) {
      error_ = document.status();
      return;
    }
    const Element root = document->root();
    Element part;
    if (!root["error"].get(part) && part.is_object()) {
      error_ = unavailable(fmt::format("[chat] the server at {} ended the answer: {}", server_,
                                       one_line(text_of(part, "message"))));
      return;
    }
    if (!root["usage"].get(part) && part.is_object()) read_usage(part);
    simdjson::dom::array choices;
    if (root["choices"].get_array().get(choices) || choices.size() == 0) return;
    const Element choice = choices.at(0).value_unsafe();
    if (text_of(choice, "finish_reason") == "length") answer_.finish_reason = FinishReason::kLength;
    if (!choice["delta"].get(part)) read_delta(part);
  }

  void read_usage(Element usage) {
    answer_.stats.num_prompt_tokens = int_of(usage, "prompt_tokens");
    answer_.stats.num_output_tokens = int_of(usage, "completion_tokens");
    Element details;
    if (usage["prompt_tokens_details"].get(details)) return;
    answer_.stats.num_cached_tokens = int_of(details, "cached_tokens");
  }

  void read_delta(Element delta) {
    std::string_view reasoning = text_of(delta, "reasoning_content");
    if (reasoning.empty()) reasoning = text_of(delta, "reasoning");
    const std::string_view text = text_of(delta, "content");
    if (reasoning.empty() && text.empty()) return;
    last_ = Clock::now();
    if (num_pieces_++ == 0) first_ = last_;
    if (!reasoning.empty()) {
      if (!std::exchange(in_reasoning_, true)) show("<think>\n");
      show(reasoning);
    }
    if (text.empty()) return;
    close_reasoning();
    answer_.text += text;
    show(text);
  }

  // Prints the marks of the reasoning, which a server omits when it separates the reasoning.
  void close_reasoning() {
    if (std::exchange(in_reasoning_, false)) show("\n</think>\n\n");
  }

  void show(std::string_view text) { can_show_ = can_show_ && show_(text); }

  Client& client_;
  const std::string server_;
  const ChatModel::Show& show_;
  http_client::SseReader events_;
  ChatAnswer answer_;
  Status error_;
  std::string error_body_;
  int http_status_ = 0;  // 0: no response yet
  int num_pieces_ = 0;
  bool has_ended_ = false;
  bool can_show_ = true;
  bool in_reasoning_ = false;
  Clock::time_point sent_ = Clock::now();
  Clock::time_point first_;
  Clock::time_point last_;
};

void stop_if_interrupted(Client& client, const std::shared_ptr<AnswerReader>& reader) {
  if (reader->has_ended()) return;
  if (CancelScope::interrupted()) return client.stop();
  client.call_at(Clock::now() + kInterruptTick,
                 [&client, reader] { stop_if_interrupted(client, reader); });
}

class ServerModel final : public ChatModel {
 public:
  ServerModel(http_client::ClientConfig config, std::string server)
      : config_(std::move(config)), server_(std::move(server)) {}

  Status connect(const std::string& model) {
    QUIRE_RETURN_IF_ERROR(read_model(model));
    is_connected_ = true;
    return read_template();
  }

  std::string name() const override { return name_; }
  int max_model_len() const override { return context_; }
  std::optional<SamplingDefaults> sampling_defaults() const override { return defaults_; }
  bool can_switch_thinking() const override { return can_switch_thinking_; }

  Status check_system(const std::string& system) const override {
    std::vector<ChatMessage> messages = {{"user", "hello"}};
    if (!system.empty()) messages.insert(messages.begin(), {"system", system});
    return num_tokens(messages, {}).status();
  }

  Result<int> num_tokens(const std::vector<ChatMessage>& messages,
                         const ChatSettings& settings) const override {
    if (context_ == 0) return 0;  // neither Quire nor vLLM, so there is no /tokenize
    JsonWriter json;
    json.begin_object();
    write_conversation(messages, settings, json);
    json.end_object();
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                           fetch("POST", "/tokenize", json.take(), kTokenizePatience));
    return int_of(document.root(), "count");
  }

  Result<ChatAnswer> answer(const std::vector<ChatMessage>& messages, const ChatSettings& settings,
                            uint64_t attempt, const Show& show) override {
    JsonWriter json;
    json.begin_object();
    write_conversation(messages, settings, json);
    json.field("stream", true);
    json.key("stream_options");
    json.raw(R"({"include_usage":true})");
    ChatSettings varied = settings;
    if (attempt > 0) {
      const uint64_t seed = settings.sampling.applied_to(SamplingParams()).seed.value_or(0);
      QUIRE_RETURN_IF_ERROR(
          varied.sampling.set(*find_sampling_field("seed"), std::to_string(seed + attempt)));
    }
    varied.sampling.write_given(json);
    json.end_object();
    QUIRE_ASSIGN_OR_RETURN(const auto client, Client::create(config_));
    const auto reader = std::make_shared<AnswerReader>(*client, server_, show);
    client->send({.method = "POST", .target = "/v1/chat/completions", .body = json.take()}, reader);
    stop_if_interrupted(*client, reader);
    client->run();
    Result<ChatAnswer> answer = reader->take(CancelScope::interrupted() && !reader->has_ended());
    if (answer.ok() && is_unloaded_) (void)read_model(name_);
    return answer;
  }

 private:
  // Chooses the model, and reads its context and defaults.
  Status read_model(const std::string& model) {
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                           fetch("GET", "/v1/models", "", kConnectPatience));
    simdjson::dom::array models;
    if (document.root()["data"].get_array().get(models)) {
      return unavailable(
          fmt::format("[chat] the server at {} lists no models; expected OpenAI's API", server_));
    }
    std::vector<std::string> names;
    for (const Element one : models) {
      names.emplace_back(text_of(one, "id"));
      if (!model.empty() && !has_name(one, model)) continue;
      name_ = names.back();
      context_ = int_of(one, "max_model_len");
      Element values;
      is_unloaded_ = context_ == 0 && !one["status"].get(values);
      if (!one["sampling_defaults"].get(values)) read_defaults(values);
      return {};
    }
    return not_found(
        fmt::format("[chat] the server at {} does not have the model {}; expected one "
                    "of {}",
                    server_, model.empty() ? "that was asked for" : clipped(model),
                    one_line(fmt::format("{}", fmt::join(names, ", ")))));
  }

  void write_conversation(const std::vector<ChatMessage>& messages, const ChatSettings& settings,
                          JsonWriter& json) const {
    json.field("model", std::string_view(name_));
    json.key("messages");
    json.begin_array();
    for (const ChatMessage& message : messages) {
      json.begin_object();
      json.field("role", std::string_view(message.role));
      json.field("content", std::string_view(message.content));
      json.end_object();
    }
    json.end_array();
    if (!settings.thinks) return;
    json.key("chat_template_kwargs");
    json.raw(fmt::format(R"({{"enable_thinking":{}}})", *settings.thinks));
  }

  Result<JsonDocument> fetch(std::string method, std::string target, std::string body,
                             std::chrono::seconds patience) const {
    http_client::ClientConfig config = config_;
    config.idle_timeout = patience;
    QUIRE_ASSIGN_OR_RETURN(const auto client, Client::create(std::move(config)));
    const Result<http_client::Response> response = http_client::fetch(
        *client,
        {.method = std::move(method), .target = std::move(target), .body = std::move(body)},
        kMaxResponseBytes, CancelScope::interrupted);
    if (!response.ok()) return is_connected_ ? lost(response.status()) : response.status();
    if (response->status != kOk) return error_of(server_, response->status, response->body);
    return JsonDocument::parse(response->body, "response of " + server_);
  }

  void read_defaults(Element values) {
    SamplingDefaults defaults;
    for (const SamplingField& field : sampling_fields()) {
      Element value;
      if (!values[field.name].get(value)) (void)set_sampling_field(field, value, defaults.params);
    }
    defaults.params.max_tokens = context_;
    defaults.source = text_of(values, "source");
    defaults_ = std::move(defaults);
  }

  // Only Quire and vLLM report their template. For other servers, thinking counts as switchable.
  Status read_template() {
    const auto info = fetch("GET", "/tokenizer_info", "", kConnectPatience);
    if (!info.ok()) return {};
    const std::string_view source = text_of(info->root(), "chat_template");
    can_switch_thinking_ =
        source.empty() || source.find("enable_thinking") != std::string_view::npos;
    return {};
  }

  const http_client::ClientConfig config_;
  const std::string server_;
  bool is_connected_ = false;
  std::string name_;
  int context_ = 0;
  // A server with several models reports a model's context only while the model is loaded, so
  // answer() reads it again after the first request.
  bool is_unloaded_ = false;
  std::optional<SamplingDefaults> defaults_;
  bool can_switch_thinking_ = true;
};

}  // namespace

Result<std::unique_ptr<ChatModel>> connect_to_server(const ServerAddress& address,
                                                     const std::string& api_key,
                                                     const std::string& model) {
  http_client::ClientConfig config;
  QUIRE_ASSIGN_OR_RETURN(config.url, http_client::parse_url(address.url));
  // A base URL often ends with /v1, with which each route here begins.
  if (config.url.path.ends_with("/v1")) config.url.path.resize(config.url.path.size() - 3);
  config.unix_socket_path = address.unix_socket;
  config.verify_peer = address.verifies_peer;
  config.connect_timeout = kConnectPatience;
  if (!api_key.empty()) config.headers.emplace_back("Authorization", "Bearer " + api_key);
  auto server = std::make_unique<ServerModel>(std::move(config), address.text());
  QUIRE_RETURN_IF_ERROR(server->connect(model));
  return std::unique_ptr<ChatModel>(std::move(server));
}

}  // namespace quire::cli
