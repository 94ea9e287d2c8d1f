#include "quire/engine.h"

#include <condition_variable>
#include <list>
#include <mutex>
#include <utility>

#include "base/json.h"
#include "engine/engine_impl.h"
#include "engine/engine_internals.h"
#include "engine/sampling_defaults.h"

namespace quire {

// ---- RequestStream

struct RequestStream::Impl {
  explicit Impl(std::weak_ptr<Replicas> engine) : replicas(std::move(engine)) {}

  const std::weak_ptr<Replicas> replicas;
  RequestId id = 0;
  std::mutex mutex;
  std::condition_variable arrived;
  std::list<Output> outputs;
  // Preallocated nodes for last outputs, so that delivering an end does not allocate.
  std::list<Output> ends;
  size_t num_running = 0;  // samples that have not ended

  void expect(const Submission& submission) {
    id = submission.id;
    num_running = submission.sample_outputs.size();
    ends.resize(num_running);
  }

  void push(Output&& output) {
    {
      const std::lock_guard lock(mutex);
      if (output.finish_reason) {
        ends.front() = std::move(output);
        outputs.splice(outputs.end(), ends, ends.begin());
        --num_running;
      } else {
        outputs.push_back(std::move(output));
      }
    }
    arrived.notify_all();
  }
};

RequestStream::RequestStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

RequestStream::~RequestStream() {
  cancel();
}

std::optional<Output> RequestStream::next() {
  std::unique_lock lock(impl_->mutex);
  impl_->arrived.wait(lock, [&] { return !impl_->outputs.empty() || impl_->num_running == 0; });
  if (impl_->outputs.empty()) return std::nullopt;
  Output output = std::move(impl_->outputs.front());
  impl_->outputs.pop_front();
  return output;
}

void RequestStream::cancel() {
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->num_running == 0) return;
  }
  if (const auto replicas = impl_->replicas.lock()) replicas->cancel(impl_->id);
}

// ---- Engine

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Stops the replicas' threads here, because a stream may outlive the engine and keep them alive.
Engine::~Engine() {
  impl_->replicas->stop();
}

Result<std::unique_ptr<RequestStream>> Engine::submit(Request request) {
  QUIRE_RETURN_IF_ERROR(health());
  auto stream = std::make_shared<RequestStream::Impl>(impl_->replicas);
  QUIRE_ASSIGN_OR_RETURN(Submission submission, impl_->input_processor->prepare(
                                                    std::move(request), [stream](Output&& output) {
                                                      stream->push(std::move(output));
                                                    }));
  stream->expect(submission);
  QUIRE_RETURN_IF_ERROR(impl_->replicas->submit(std::move(submission)));
  return std::unique_ptr<RequestStream>(new RequestStream(std::move(stream)));
}

Result<RequestId> Engine::submit(Request request, OutputCallback on_output) {
  QUIRE_RETURN_IF_ERROR(health());
  QUIRE_ASSIGN_OR_RETURN(Submission submission,
                         impl_->input_processor->prepare(std::move(request), std::move(on_output)));
  const RequestId id = submission.id;
  QUIRE_RETURN_IF_ERROR(impl_->replicas->submit(std::move(submission)));
  return id;
}

void Engine::cancel(RequestId id) {
  impl_->replicas->cancel(id);
}

Result<std::string> Engine::render_chat(const std::vector<ChatMessage>& messages) const {
  if (!impl_->text.chat) return impl_->text.chat_error;
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, impl_->text.chat->render(messages));
  return std::move(prompt.text);
}

Result<std::vector<int32_t>> Engine::encode_chat(const std::vector<ChatMessage>& messages) const {
  if (!impl_->text.chat) return impl_->text.chat_error;
  QUIRE_ASSIGN_OR_RETURN(const MarkedText prompt, impl_->text.chat->render(messages));
  return EngineInternals::encode(*this, prompt.text, false, prompt.untrusted);
}

Result<std::string> Engine::render_chat_json(std::string_view variables) const {
  if (!impl_->text.chat) return impl_->text.chat_error;
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(variables, "the template's variables"));
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, impl_->text.chat->render(document.root()));
  return std::move(prompt.text);
}

std::string_view Engine::chat_template() const {
  return impl_->text.chat ? impl_->text.chat->source() : std::string_view();
}

std::string Engine::token_bytes(int32_t token_id) const {
  return impl_->text.tokenizer == nullptr ? "" : impl_->text.tokenizer->token_bytes(token_id);
}

Result<std::vector<int32_t>> Engine::encode(std::string_view text, bool add_special_tokens) const {
  return EngineInternals::encode(*this, text, add_special_tokens, {});
}

std::string Engine::decode(const std::vector<int32_t>& token_ids, bool skip_special_tokens) const {
  if (impl_->text.tokenizer == nullptr) return {};
  return impl_->text.tokenizer->decode(token_ids, skip_special_tokens);
}

std::unique_ptr<Engine> EngineInternals::make(std::unique_ptr<Impl> impl) {
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Platform& EngineInternals::platform(const Engine& engine) {
  return *engine.impl_->parts.front()->platform;
}

const Tokenizer* EngineInternals::tokenizer(const Engine& engine) {
  return engine.impl_->text.tokenizer.get();
}

std::string_view EngineInternals::response_template(const Engine& engine) {
  const auto& chat = engine.impl_->text.chat;
  return chat ? chat->response_template() : std::string_view();
}

const Status& EngineInternals::template_fault(const Engine& engine) {
  return engine.impl_->text.template_fault;
}

const std::vector<KvEventsConfig>& EngineInternals::kv_event_sources(const Engine& engine) {
  return engine.impl_->kv_event_sources;
}

Result<RenderedChat> EngineInternals::render_chat(const Engine& engine,
                                                  const jinja::Value& variables) {
  const ModelText& text = engine.impl_->text;
  return text.chat ? text.chat->render(variables) : text.chat_error;
}

Result<std::vector<int32_t>> EngineInternals::encode(const Engine& engine, std::string_view text,
                                                     bool add_special_tokens,
                                                     const ByteSpans& untrusted) {
  const Tokenizer* tokenizer = EngineInternals::tokenizer(engine);
  if (tokenizer == nullptr) {
    return invalid_argument("[request] the model has no tokenizer; expected token ids, not text");
  }
  return tokenizer->encode(text, add_special_tokens, untrusted);
}

bool Engine::has_tokenizer() const {
  return impl_->text.tokenizer != nullptr;
}

SamplingDefaults Engine::sampling_defaults(SamplingFallback fallback) const {
  return choose_sampling_defaults(impl_->text.generation, fallback);
}

const ModelInfo& Engine::model_info() const {
  return impl_->parts.front()->info;
}

EngineStats Engine::stats() const {
  return impl_->replicas->stats();
}

std::vector<ReplicaState> Engine::replicas() const {
  std::vector<ReplicaState> states = impl_->replicas->states();
  if (states.size() == 1) states.front().health = health();
  return states;
}

// Also asks the nodes, because a node may fail while no step runs.
Status Engine::health() const {
  QUIRE_RETURN_IF_ERROR(impl_->replicas->health());
  const std::shared_ptr<Nodes>& nodes = impl_->parts.front()->nodes;
  return nodes == nullptr ? Status() : nodes->status();
}

}  // namespace quire
