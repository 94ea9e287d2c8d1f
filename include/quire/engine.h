// Quire as a library: load a model, submit requests, read their outputs.
//
//   auto engine = quire::Engine::create({.model = "models/my-llama"});
//   if (!engine.ok()) …
//   quire::Request request{.prompt = "Once upon a time"};
//   auto stream = (*engine)->submit(request);
//   while (auto output = (*stream)->next()) std::cout << output->text << std::flush;
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/config.h"
#include "quire/request.h"
#include "quire/status.h"

namespace quire {

using RequestId = uint64_t;

// Totals of speculative decoding over all steps.
struct SpeculationStats {
  static constexpr int kMaxPositions = 15;

  int64_t num_spans = 0;     // verifications: one per step and sequence with drafts
  int64_t num_drafts = 0;    // tokens verified
  int64_t num_accepted = 0;  // includes drafts after the token that ended their request
  std::array<int64_t, kMaxPositions> accepted_by_position = {};  // [0]: first draft of a span
  // Seconds that the target model and sampling take, and that the drafter takes. On a GPU without a
  // drafter they are not measured, and both are 0.
  double verify_seconds = 0;
  double draft_seconds = 0;
};

struct EngineStats {
  int num_running = 0;        // sequences
  int num_waiting = 0;        // sequences
  int num_free_blocks = 0;    // of the KV cache; includes cached blocks that no sequence holds
  int num_total_blocks = 0;   // of the KV cache
  double kv_cache_usage = 0;  // used fraction of the fullest block table, 0 to 1
  int64_t num_steps = 0;
  // On a GPU, each step adds one wait and one copy (two copies with drafts under a constraint). On
  // a CPU both are 0.
  int64_t num_device_to_host_copies = 0;
  int64_t num_device_waits = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_generated_tokens = 0;
  // Estimates the remaining work: the uncached prompt tokens of sequences without output, and the
  // expected output tokens of all sequences.
  int64_t num_outstanding_tokens = 0;
  int64_t num_preemptions = 0;
  int64_t prefix_cache_queries = 0;    // tokens
  int64_t prefix_cache_hits = 0;       // tokens
  CacheMissCounts cache_misses = {};   // counted when a sequence starts for the first time
  int64_t num_kv_batches_dropped = 0;  // because the publisher's queue was full
  SpeculationStats speculation = {};
};

// One of EngineConfig::data_parallel_size replicas.
struct ReplicaState {
  EngineStats stats = {};
  Status health = {};
};

struct ModelInfo {
  std::string name;          // the directory's name, or the embedded model's
  std::string architecture;  // "LlamaForCausalLM", …
  int vocab_size = 0;
  int max_model_len = 0;       // tokens of prompt and output
  int max_num_seqs = 0;        // sequences in one step of a replica
  int data_parallel_size = 1;  // replicas
  int block_size = 0;          // tokens per KV block
  std::string file_format;     // "gguf" or "safetensors", also for dummy weights
  std::string weight_dtype;
  std::string gguf_mixture;  // of types in a GGUF file, such as "Q4_K_M"; empty: not stated
  std::string kv_cache_dtype;
  bool enable_prefix_caching = true;
  bool calculate_kv_scales = false;
  double gpu_memory_utilization = 0;  // fraction, 0 to 1
  int64_t num_parameters = 0;
  int64_t weight_bytes = 0;  // size of the weights on the device
  bool on_gpu = false;
  int embedding_size = 0;  // length of an embedding; 0: the model generates text
  std::optional<int32_t> bos_token_id;
  std::vector<int32_t> eos_token_ids;  // tokens that end a sequence
  std::string attention_backend;       // backends by phase: "decode: cpu, prefill: cpu"
  bool has_states = false;         // some layers have recurrent states instead of keys and values
  int num_speculative_tokens = 0;  // drafts verified per sequence and step; 0: no speculation
  std::string speculative_method;  // the method in `speculative_config`, or the choice of "auto"
  // Drafts are accepted at given rates, so the outputs have no meaning.
  bool has_synthetic_acceptance = false;

  // Upper bound of the sequences that run at the same time.
  int max_num_running() const { return max_num_seqs * data_parallel_size; }
};

// The sampling values for a model that states none. kNone: temperature 1, no filters. kChat:
// temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, with which a small model stays coherent.
enum class SamplingFallback { kNone, kChat };

// Sampling values for requests without their own.
struct SamplingDefaults {
  SamplingParams params = {};
  // "generation_config.json", "general.sampling.*" (of a GGUF file), "--generation-config vllm", or
  // "Quire" for a fallback.
  std::string source = {};
};

struct ChatMessage {
  std::string role;
  std::string content;
};

// The outputs of one request, in order. The destructor cancels sequences that still run.
class RequestStream {
 public:
  ~RequestStream();
  RequestStream(const RequestStream&) = delete;
  RequestStream& operator=(const RequestStream&) = delete;

  // Waits for the next output; nullopt once every sequence has ended.
  std::optional<Output> next();
  // Ends the request at the next step with FinishReason::kCancelled.
  void cancel();

 private:
  friend class Engine;
  struct Impl;
  explicit RequestStream(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// Thread-safe. submit() checks and tokenizes a request on the caller's thread and chooses the
// replica that serves it; the replica's engine thread then runs the steps of its requests and calls
// their callbacks.
class Engine {
 public:
  // Loads the model. Errors name the field of the configuration, the file or the tensor,
  // and a remedy.
  static Result<std::unique_ptr<Engine>> create(const EngineConfig& config,
                                                const LoadProgress& progress = {});
  // On a node other than node 0 (EngineConfig::nnodes): runs its ranks until the engine of node 0
  // ends (ok), a node fails, or `should_stop` returns true. Calls `should_stop` about every 100 ms
  // once the nodes are connected and the model is loaded.
  static Status run_node(const EngineConfig& config, const std::function<bool()>& should_stop,
                         const LoadProgress& progress = {});
  // Cancels all requests.
  ~Engine();

  // Fails with invalid_argument when the request is invalid, and with unavailable when health() is
  // not ok.
  Result<std::unique_ptr<RequestStream>> submit(Request request);

  // Submits a request with a callback, which runs on an engine thread: it must not block or call
  // the engine. If it throws, that output is lost and the error is logged. The request's sequences
  // then end with FinishReason::kError, with which the callback is called once more. The engine
  // stays healthy, and other requests continue.
  using OutputCallback = std::function<void(Output&& output)>;
  Result<RequestId> submit(Request request, OutputCallback on_output);
  // Ends the request at the next step with FinishReason::kCancelled.
  void cancel(RequestId id);

  // Renders a conversation with the model's chat template, as a prompt for the assistant's reply.
  // The text is for display: a text such as <|im_end|> in a message looks like a control token of
  // the template. encode_chat() gives the token ids of the same prompt, in which only the template
  // writes control tokens. Both fail if the model has no usable chat template, or if the template
  // refuses the messages.
  Result<std::string> render_chat(const std::vector<ChatMessage>& messages) const;
  Result<std::vector<int32_t>> encode_chat(const std::vector<ChatMessage>& messages) const;
  // Renders the template's variables, given as a JSON object: messages, tools,
  // add_generation_prompt and any others that the template uses.
  Result<std::string> render_chat_json(std::string_view variables) const;
  // The template's source; empty: the model has none.
  std::string_view chat_template() const;
  // Fails (invalid_argument) when the model has no tokenizer, or when its regex would take too
  // long.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens) const;
  // Returns an empty text if the model has no tokenizer.
  std::string decode(const std::vector<int32_t>& token_ids, bool skip_special_tokens) const;
  // The bytes that the token adds inside a text, which may be a part of a character; empty if the
  // model has no tokenizer.
  std::string token_bytes(int32_t token_id) const;

  // Without a tokenizer, prompts are token ids and outputs have no text.
  bool has_tokenizer() const;

  // The model's own values, or the fallback if it states neither a temperature nor a filter.
  SamplingDefaults sampling_defaults(SamplingFallback fallback) const;
  const ModelInfo& model_info() const;
  // The sums over all replicas; kv_cache_usage is their mean.
  EngineStats stats() const;
  std::vector<ReplicaState> replicas() const;
  // Not ok (unavailable) after a device fault or when a step ran out of memory. The error names the
  // replica if there are several. The engine then accepts no more requests; healthy replicas
  // complete theirs.
  Status health() const;

 private:
  struct Impl;
  friend struct EngineInternals;  // for code that is built with the engine
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
