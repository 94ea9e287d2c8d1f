#include "quire/engine.h"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <utility>

#include "base/guarded.h"
#include "base/json.h"
#include "base/log.h"
#include "engine/engine_parts.h"
#include "engine/input_processor.h"
#include "engine/kv_event_sources.h"
#include "engine/model_files.h"
#include "engine/node_setup.h"
#include "engine/replicas.h"
#include "engine/sampling_defaults.h"
#include "platform/remote_ranks.h"
#include "sample/sampling_fields.h"

namespace quire {

struct Engine::Impl {
  ModelFiles files;
  std::vector<KvEventsConfig> kv_event_sources;     // by data-parallel rank; empty: no events
  std::vector<std::unique_ptr<EngineParts>> parts;  // by replica
  std::unique_ptr<InputProcessor> input_processor;
  std::shared_ptr<Replicas> replicas;  // last member: its threads use everything above
};

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

Result<std::unique_ptr<Engine>> Engine::create(const EngineConfig& config,
                                               const LoadProgress& progress) {
  try {
    const Result<Speculation> speculation = read_speculation(config.speculative_config);
    if (!speculation.ok()) {
      return invalid_argument("[config] `speculative_config`: " + speculation.status().message());
    }
    return EngineInternals::create(config, *speculation, progress);
  } catch (const std::exception& error) {  // e.g. no thread or no memory
    return resource_exhausted(fmt::format("[engine] cannot start; {}", text_of(error)));
  }
}

Status Engine::run_node(const EngineConfig& config, const std::function<bool()>& should_stop,
                        const LoadProgress& progress) {
  try {
    QUIRE_ASSIGN_OR_RETURN(const EngineConfig placed, place_node(config));
    if (placed.node_rank < 1) {
      return invalid_argument(
          "[nodes] `node_rank`: got 0, expected at least 1: node 0 has the engine");
    }
    QUIRE_ASSIGN_OR_RETURN(const Speculation speculation,
                           read_speculation(config.speculative_config));
    QUIRE_ASSIGN_OR_RETURN(ModelFiles files, open_model_files(placed));
    QUIRE_ASSIGN_OR_RETURN(const auto replicas,
                           assemble_replicas(placed, speculation, files, progress));
    const std::unique_ptr<EngineParts>& parts = replicas.front();
    files.weights.reset();  // the model has copied its weights
    log_info("[engine] node {} of {} runs its ranks of {}", placed.node_rank, placed.nnodes,
             parts->info.name);
    const SchedulerConfig& scheduler = parts->scheduler;
    PlanBounds bounds = {.max_num_seqs = scheduler.max_num_seqs,
                         .max_num_batched_tokens = scheduler.max_num_batched_tokens,
                         .vocab_size = parts->info.vocab_size,
                         .max_model_len = scheduler.max_model_len,
                         .block_size = scheduler.block_size,
                         .num_drafts = scheduler.num_drafts};
    for (const auto& table : scheduler.tables) bounds.num_blocks.push_back(table.num_blocks);
    return serve_remote_ranks(*parts->nodes, *parts->runner, bounds, should_stop);
  } catch (const std::exception& error) {  // e.g. no thread or no memory
    return resource_exhausted(fmt::format("[engine] cannot run; {}", text_of(error)));
  }
}

Result<std::unique_ptr<Engine>> EngineInternals::create(const EngineConfig& wanted,
                                                        const Speculation& speculation,
                                                        const LoadProgress& progress) {
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig config, place_node(wanted));
  if (config.node_rank > 0) {
    return invalid_argument(fmt::format(
        "[nodes] `node_rank`: got {}, expected 0; the other nodes run quire serve with the same "
        "flags, or Engine::run_node()",
        config.node_rank));
  }
  auto impl = std::make_unique<Engine::Impl>();
  QUIRE_ASSIGN_OR_RETURN(auto kv_events, open_kv_events(config, config.data_parallel_size));
  QUIRE_ASSIGN_OR_RETURN(impl->files, open_model_files(config));
  QUIRE_ASSIGN_OR_RETURN(impl->parts,
                         assemble_replicas(config, speculation, impl->files, progress));
  impl->files.weights.reset();  // the models have copied their weights
  const ModelInfo& info = impl->parts.front()->info;
  log_info("[engine] {} ({}, {:.1f} M parameters{}), context {}, attention {}", info.name,
           info.architecture, static_cast<double>(info.num_parameters) / 1e6,
           info.embedding_size > 0 ? ", embeds prompts" : "", info.max_model_len,
           info.attention_backend);
  if (info.has_synthetic_acceptance) {
    log_warning(
        "[engine] drafts are accepted at synthetic rates, whatever the model computes: the outputs "
        "have no meaning, and only times can be measured; leave out rejection_sample_method "
        "synthetic to serve requests");
  }
  InputProcessor::Limits limits = {
      .vocab_size = info.vocab_size,
      .max_model_len = info.max_model_len,
      .eos_ids = info.eos_token_ids,
      .seed = config.seed,
      .embedding_size = info.embedding_size,
      .normalizes = impl->files.embedding.value_or(EmbeddingModules()).normalizes,
      .num_replicas = info.data_parallel_size};
  for (const int32_t id : limits.eos_ids) {
    if (id >= 0 && id < info.vocab_size) continue;
    log_warning(
        "[model] {}: eos_token_id {} is not in the vocabulary of {}: no sequence ends at it",
        impl->files.generation.eos_token_ids.empty() ? "config.json" : "generation_config.json", id,
        info.vocab_size);
  }
  impl->input_processor = std::make_unique<InputProcessor>(impl->files.tokenizer, std::move(limits),
                                                           impl->parts.front()->platform.get());
  std::vector<std::unique_ptr<EngineCore>> cores;
  int64_t num_prefix_tokens = 0;
  for (const auto& parts : impl->parts) {
    if (config.enable_prefix_caching) num_prefix_tokens += parts->num_kv_tokens;
    parts->scheduler.block_hash_seed = config.block_hash_seed;
    std::unique_ptr<KvEventPublisher> publisher;
    if (!kv_events.empty()) {
      publisher = std::move(kv_events[cores.size()]);
      impl->kv_event_sources.push_back(publisher->config());
      start_kv_events(config, *parts, *publisher);
      log_info("[kv_events] publishing at {}{}", publisher->config().endpoint,
               publisher->config().replay_endpoint.empty()
                   ? ""
                   : ", replay at " + publisher->config().replay_endpoint);
    }
    cores.push_back(std::make_unique<EngineCore>(parts->scheduler, std::move(parts->runner),
                                                 static_cast<int>(cores.size()),
                                                 std::move(publisher)));
  }
  impl->replicas = std::make_shared<Replicas>(std::move(cores), num_prefix_tokens);
  std::unique_ptr<Engine> engine(new Engine(std::move(impl)));
  const Status defaults =
      validate_sampling_params(engine->default_sampling(), info.vocab_size, info.max_model_len);
  if (!defaults.ok()) {
    return invalid_argument(
        fmt::format("[model] {}: {}", engine->impl_->files.generation.source, defaults.message()));
  }
  return engine;
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
  if (!impl_->files.chat) return impl_->files.chat_error;
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, impl_->files.chat->render(messages));
  return std::move(prompt.text);
}

Result<std::vector<int32_t>> Engine::encode_chat(const std::vector<ChatMessage>& messages) const {
  if (!impl_->files.chat) return impl_->files.chat_error;
  QUIRE_ASSIGN_OR_RETURN(const MarkedText prompt, impl_->files.chat->render(messages));
  return EngineInternals::encode(*this, prompt.text, false, prompt.untrusted);
}

Result<std::string> Engine::render_chat_json(std::string_view variables) const {
  if (!impl_->files.chat) return impl_->files.chat_error;
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(variables, "the template's variables"));
  QUIRE_ASSIGN_OR_RETURN(MarkedText prompt, impl_->files.chat->render(document.root()));
  return std::move(prompt.text);
}

std::string_view Engine::chat_template() const {
  return impl_->files.chat ? impl_->files.chat->source() : std::string_view();
}

std::string Engine::token_bytes(int32_t token_id) const {
  return impl_->files.tokenizer == nullptr ? "" : impl_->files.tokenizer->token_bytes(token_id);
}

Result<std::vector<int32_t>> Engine::encode(std::string_view text, bool add_special_tokens) const {
  return EngineInternals::encode(*this, text, add_special_tokens, {});
}

std::string Engine::decode(const std::vector<int32_t>& token_ids, bool skip_special_tokens) const {
  if (impl_->files.tokenizer == nullptr) return {};
  return impl_->files.tokenizer->decode(token_ids, skip_special_tokens);
}

Platform& EngineInternals::platform(const Engine& engine) {
  return *engine.impl_->parts.front()->platform;
}

const Tokenizer* EngineInternals::tokenizer(const Engine& engine) {
  return engine.impl_->files.tokenizer.get();
}

const std::vector<KvEventsConfig>& EngineInternals::kv_event_sources(const Engine& engine) {
  return engine.impl_->kv_event_sources;
}

Result<MarkedText> EngineInternals::render_chat(const Engine& engine,
                                                const jinja::Value& variables) {
  const ModelFiles& files = engine.impl_->files;
  return files.chat ? files.chat->render(variables) : files.chat_error;
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
  return impl_->files.tokenizer != nullptr;
}

SamplingDefaults Engine::sampling_defaults(SamplingFallback fallback) const {
  return choose_sampling_defaults(impl_->files.generation, fallback);
}

SamplingParams Engine::default_sampling() const {
  return sampling_defaults(SamplingFallback::kNone).params;
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

// A node may fail while no step runs.
Status Engine::health() const {
  QUIRE_RETURN_IF_ERROR(impl_->replicas->health());
  const std::shared_ptr<Nodes>& nodes = impl_->parts.front()->nodes;
  return nodes == nullptr ? Status() : nodes->status();
}

}  // namespace quire
