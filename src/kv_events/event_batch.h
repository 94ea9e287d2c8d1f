// The KV events of one step in the form of vLLM 0.33: msgpack of [timestamp, events, rank], where
// an event is a map with its type, as msgspec encodes vLLM's structs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kv/kv_events.h"

namespace quire {

// A block table of the engine, as events describe it.
struct KvEventTable {
  std::string kind;  // "full_attention", "sliding_window", "mla_attention", "sliding_window_mla"
  int window = 0;    // 0: none
};

// The fields that all events of an engine share.
struct KvEventForm {
  std::string medium = "GPU";  // "GPU" or "CPU"
  int block_size = 16;
  std::vector<KvEventTable> tables;
  int rank = 0;                // data-parallel rank
  bool has_int_hashes = true;  // a hash is sent as the integer of its last 8 bytes only
};

// `timestamp`: seconds since 1970.
std::string encode_batch(double timestamp, std::span<const KvEvent> events,
                         const KvEventForm& form);

}  // namespace quire
