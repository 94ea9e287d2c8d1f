// Sends whole requests with long texts through the routes that parse, render, search and tokenize.
// Each request gets a response, in CPU time linear in its body. A text is written as pieces and the
// number of times that each is repeated, so that a short input makes the long runs on which a
// search can become quadratic.
//
// The first byte chooses the request, the second the chat template, and the third the options of
// the request. The rest are the texts: the user's up to 0xFF, and the assistant's after it.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "cpu_bound.h"
#include "engine/chat_format.h"
#include "server/service.h"
#include "start/model_files.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace quire;

constexpr size_t kMaxTextBytes = size_t{1} << 20;

// The embedded model's tokenizer, and templates that keep, trim, change and drop a message.
class TextEngine final : public server::EngineApi {
 public:
  TextEngine() {
    const EmbeddedModel& model = embedded_model();
    auto loaded = Tokenizer::from_json(model.tokenizer_json, "tokenizer");
    QUIRE_CHECK(loaded.ok(), loaded.status().message());
    tokenizer_ = *loaded;
    for (const char* source : {"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
                               "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}<end>\n"
                               "{% endfor %}",
                               "{% for m in messages %}{{ m.content | upper }}{% endfor %}",
                               "{{ messages[0].content }}"}) {
      auto format = ChatFormat::from_template(source);
      QUIRE_CHECK(format.ok(), format.status().message());
      formats_.push_back(std::move(*format));
    }
    info_.vocab_size = tokenizer_->vocab_size();
    info_.max_model_len = 1 << 20;
    info_.max_num_seqs = 1;
  }

  void choose_template(size_t n) { chosen_ = n % formats_.size(); }

  Result<RequestId> submit(Request /*request*/, Engine::OutputCallback /*on_output*/) override {
    return invalid_argument("[request] nothing is generated here");
  }
  void cancel(RequestId /*id*/) override {}
  Result<RenderedChat> render_chat(const jinja::Value& variables) const override {
    return formats_[chosen_].render(variables);
  }
  std::string_view chat_template() const override { return formats_[chosen_].source(); }
  Result<std::vector<int32_t>> encode(std::string_view text, bool special,
                                      const ByteSpans& untrusted) const override {
    return tokenizer_->encode(text, special, untrusted);
  }
  std::string decode(const std::vector<int32_t>& ids, bool skip_special) const override {
    return tokenizer_->decode(ids, skip_special);
  }
  std::string token_bytes(int32_t id) const override { return tokenizer_->token_bytes(id); }
  std::vector<server::TokenMarker> added_tokens() const override { return {}; }
  SamplingDefaults sampling_defaults(SamplingFallback /*fallback*/) const override { return {}; }
  const ModelInfo& model_info() const override { return info_; }
  EngineStats stats() const override { return {}; }
  std::vector<ReplicaState> replicas() const override { return {ReplicaState{}}; }
  Status health() const override { return {}; }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<ChatFormat> formats_;
  size_t chosen_ = 0;
  ModelInfo info_;
};

class WholeAnswer final : public http::Exchange {
 public:
  bool respond(http::Response response) override {
    response_.set_value(std::move(response));
    return true;
  }
  void start_stream(int, std::string, http::Headers) override {}
  void write(std::string) override {}
  void end_stream() override {}
  void on_closed(std::function<void()>) override {}
  http::Response wait() { return response_.get_future().get(); }

 private:
  std::promise<http::Response> response_;
};

TextEngine& engine() {
  static TextEngine engine;
  return engine;
}

server::Service& service() {
  static server::Service service(
      engine(), {.model_names = {"fuzz"}, .num_workers = 1, .num_grammar_threads = 1});
  return service;
}

// Repeats pieces. A piece has a count (the power of two of its repeats), a size, and its bytes.
// Most counts mean one repeat, because long texts are slow.
std::string unfold(std::string_view folded) {
  constexpr size_t kMaxPower = 20;
  constexpr size_t kMaxPieceBytes = 32;
  std::string text;
  while (folded.size() > 2) {
    const size_t power = static_cast<unsigned char>(folded[0]);
    size_t repeats = size_t{1} << (power <= kMaxPower ? power : 0);
    const size_t size = static_cast<unsigned char>(folded[1]) % kMaxPieceBytes + 1;
    const std::string_view piece = folded.substr(2, size);
    for (; repeats > 0 && text.size() + piece.size() <= kMaxTextBytes; --repeats) text += piece;
    folded.remove_prefix(2 + piece.size());
  }
  return text;
}

void write_message(std::string_view role, std::string_view content, JsonWriter& json) {
  json.begin_object();
  json.field("role", role);
  json.field("content", content);
  json.end_object();
}

void write_conversation(std::string_view texts, bool continues, JsonWriter& json) {
  constexpr char kEndOfUser = '\xff';
  const size_t end = std::min(texts.find(kEndOfUser), texts.size());
  json.key("messages");
  json.begin_array();
  write_message("user", unfold(texts.substr(0, end)), json);
  write_message("assistant", unfold(texts.substr(std::min(end + 1, texts.size()))), json);
  json.end_array();
  json.field("continue_final_message", continues);
}

void write_ids(std::string_view texts, JsonWriter& json) {
  json.key("tokens");
  json.begin_array();
  for (const char c : unfold(texts)) {
    json.value(static_cast<unsigned char>(c) % (engine().model_info().vocab_size + 1));
  }
  json.end_array();
}

struct FuzzCall {
  std::string_view path;
  std::string body;
};

FuzzCall call_of(uint8_t kind, uint8_t options, std::string_view texts) {
  JsonWriter json;
  json.begin_object();
  json.field("return_token_strs", (options & 1U) != 0);
  std::string_view path = "/tokenize";
  switch (kind % 4) {
    case 0:
      path = "/v1/chat/completions";
      [[fallthrough]];
    case 1:
      write_conversation(texts, (options & 2U) != 0, json);
      break;
    case 2:
      json.field("prompt", unfold(texts));
      break;
    default:
      path = "/detokenize";
      write_ids(texts, json);
  }
  json.end_object();
  return {path, json.text()};
}

// Returns whether the request took no more CPU time than its size allows. A worker may still free
// memory of the previous input, which counts here; so a second try decides.
bool run_call(const FuzzCall& call, bool is_second_try) {
  server::Service& served = service();
  const auto answer = std::make_shared<WholeAnswer>();
  const fuzz::CpuBound bound;
  served.handle({.method = "POST",
                 .path = std::string(call.path),
                 .query = "",
                 .headers = {{"content-type", "application/json"}},
                 .body = call.body,
                 .peer = "fuzz"},
                answer);
  const http::Response response = answer->wait();
  const bool holds = bound.holds(call.body.size());
  if (is_second_try) bound.check(call.body.size());
  QUIRE_CHECK(response.status == 200 || response.status == 400,
              fmt::format("an answer or a refusal; got {}", response.status));
  QUIRE_CHECK(JsonDocument::parse(response.body, "the answer").ok(), "the response is not JSON");
  return holds;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (set_log_level(LogLevel::kOff), true);
  if (size < 3 || !quiet) return 0;
  engine().choose_template(data[1]);
  const FuzzCall call =
      call_of(data[0], data[2], {reinterpret_cast<const char*>(data) + 3, size - 3});
  if (!run_call(call, false)) run_call(call, true);
  return 0;
}
