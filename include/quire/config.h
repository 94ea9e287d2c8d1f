// The configuration of an engine. Names and defaults follow vLLM's flags where vLLM has the
// feature.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace quire {

// Called while weights are read, after each layer.
using LoadProgress = std::function<void(int num_done, int num_layers)>;

struct EngineConfig {
  std::string model;      // a directory, a GGUF file or a model's name; empty: the embedded model
  std::string tokenizer;  // a directory or "ORG/NAME", found in the hub's cache; empty: the model's
  std::string chat_template;  // a file with a Jinja template; empty: the model's own
  bool allow_special_tokens_in_messages = false;  // lets chat messages hold control tokens
  // The source of Engine::sampling_defaults(). "auto": the model's generation_config.json, or the
  // general.sampling.* metadata of a GGUF file; "vllm": temperature 1 and no filters.
  std::string generation_config = "auto";
  std::string load_format = "auto";  // "auto", or "dummy": random weights of the config's shape
  std::string dtype = "auto";        // of dummy weights: "f32", "f16", "bf16"; auto: the config's
  // "fp8": quantizes the layers' matrices from F32, F16 or BF16 when they are loaded; on a CPU, or
  // on a GPU of compute capability 9.0 with cuBLASLt 12.9 or later.
  std::string quantization = "none";
  // "f32", "f16", "bf16", "fp8", or on a CPU "int8"; auto: the weights' type.
  std::string kv_cache_dtype = "auto";
  // With an FP8 cache: the engine calculates, at start, the scales of keys and values that the
  // checkpoint lacks. Otherwise these scales are 1.
  bool calculate_kv_scales = false;
  std::string device = "auto";  // "cpu", "cuda" or "auto"

  int max_model_len = 0;           // tokens of prompt and output; 0: the model's limit
  int max_num_seqs = 0;            // sequences in one step; 0: 64 on a CPU, 256 on a GPU
  int max_num_rule_seqs = 0;       // upper bound of the sequences with penalties, logit_bias,
                                   // allowed_token_ids, bad_words or min_tokens; 0: all on a CPU,
                                   // at most 256 on a GPU, where each takes 136 KiB and 4.4 bytes
                                   // per token of the vocabulary
  int max_num_batched_tokens = 0;  // tokens in one step; 0: 512 on a CPU, 8192 on a GPU
  int block_size = 16;             // tokens per KV page: 16, 32 or 64
  // Bytes. 0: on a CPU enough for max_num_seqs sequences, but at most 1/4 of the memory that the
  // model leaves free; on a GPU all of gpu_memory_utilization that the model leaves free.
  int64_t kv_cache_memory = 0;
  double gpu_memory_utilization = 0.9;  // fraction of a GPU's memory that the engine may use
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  // Upper bound of one prompt's tokens in a step, to leave room for other prompts; 0: no limit.
  int long_prefill_token_threshold = 0;
  bool allow_long_max_model_len = false;  // allows more than max_position_embeddings

  std::string attention_backend = "auto";  // forces one backend for each phase that it supports
  std::string prefill_attention_backend;   // the only backend for prefill; empty: attention_backend
  std::string decode_attention_backend;    // the only backend for decode; empty: attention_backend
  // A file of `quire tune`; "builtin": the build's table for the device; "measured": times that a
  // start measures (in at most 2 s) and keeps in the user's cache directory. Empty: "builtin", or
  // "measured" on a GPU for which the build has no table.
  std::string tuning_table;

  // Choices that depend on the machine's speed, such as the kernels of matrix products. "auto": a
  // start reads measurements from the user's cache directory, and measures those that are missing;
  // "again": it measures everything; "off": it measures and reads nothing, and fixed rules choose.
  std::string measure = "auto";

  // Speculative decoding: a JSON object with vLLM's keys, such as {"method": "ngram",
  // "num_speculative_tokens": 4}. Empty: none.
  std::string speculative_config;

  // KV events: a JSON object with vLLM's keys, such as {"enable_kv_cache_events": true}. Empty:
  // none.
  std::string kv_events_config;
  // vLLM with this PYTHONHASHSEED computes the same block hashes. The default is vLLM's.
  std::string block_hash_seed = "vllm-none-hash";
  bool int_block_hashes = true;  // KV events have 64-bit hashes instead of all 32 bytes

  bool enforce_eager = false;  // no CUDA graphs
  int num_threads = 0;         // of a CPU; 0: one per physical core, or as `quire tune` measured
  std::string cpu_cores = "performance";  // "all": efficiency cores, too
  // "on" binds each thread to a core, "off" binds none. "auto": "on" if the engine runs on all
  // cores that the process may use and no CPU quota limits the process (base/thread_choice.h).
  std::string cpu_pinning = "auto";
  // The type in which a CPU multiplies activations: "f32"; "bf16", which is faster with BF16
  // weights and needs AVX-512 BF16 (refused on other processors); or "int8", which is faster with
  // quantized weights and has one scale per 256 activations.
  std::string cpu_activations = "f32";
  // A CPU packs the weights into the order of its kernels, which takes seconds for a large model. A
  // directory: the first start writes the packed weights to a file there, as large as the model,
  // and later starts map it. "auto": "packed" in the user's cache directory, for models of at least
  // 256 MiB, if its disk has four times that size free. "off": no such file is read or written.
  std::string packed_weights = "auto";
  // If true, an engine that is destroyed while the file is being written completes the file. If
  // false, it stops within seconds and keeps no file.
  bool waits_for_packed_weights = true;
  // Ranks that share the model, on all nodes together: GPUs, or groups of a CPU's threads.
  int tensor_parallel_size = 1;
  // Replicas of the model, each with tensor_parallel_size ranks of its own. Each request runs on
  // one replica. Several nodes allow only one replica.
  int data_parallel_size = 1;
  // Nodes: processes, usually one per machine, that have equal numbers of ranks. All nodes need the
  // same settings, except for node_rank and settings of the machine, such as `device`. Node 0 has
  // the engine; Engine::run_node() runs the others.
  int nnodes = 1;             // 0: as many as the launcher started (Open MPI, PMI, a
                              // LeaderWorkerSet, torchrun, Slurm)
  int node_rank = -1;         // -1: the number that the launcher gives this process
  std::string master_addr;    // address of node 0; empty: MASTER_ADDR, or the launcher's
  int master_port = 0;        // 0: MASTER_PORT, or 29501
  std::string cluster_token;  // a secret that all nodes have; empty: QUIRE_CLUSTER_TOKEN. It is
                              // optional if node 0 has a loopback address
  int rank_timeout = 20;      // seconds; the engine ends if a rank makes no progress for this time
  uint64_t seed = 0;          // for requests without a seed
};

}  // namespace quire
