// The responses that POST /v1/responses keeps for later requests.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "server/responses_api/responses_request.h"

namespace quire::server {

struct ResponseStoreLimits {
  int max_responses = 0;  // 0: no response is stored
  size_t max_bytes = size_t{256} << 20;
};

// Keeps the latest responses within the limits. Only the key that made a response finds it; all
// keys share the limits. Thread-safe.
class ResponseStore {
 public:
  explicit ResponseStore(const ResponseStoreLimits& limits) : limits_(limits) {}

  bool is_enabled() const { return limits_.max_responses > 0; }
  // Removes the oldest responses to make room. A response that exceeds the limit alone is not kept.
  void add(int key_idx, std::string_view id, StoredResponse&& response);
  std::shared_ptr<const StoredResponse> find(int key_idx, std::string_view id) const;
  bool remove(int key_idx, std::string_view id);  // false: not found

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const StoredResponse> response;
    size_t num_bytes = 0;
  };
  using Entries = std::list<Entry>;

  void remove_entry(Entries::iterator entry);

  const ResponseStoreLimits limits_;
  mutable std::mutex mutex_;
  Entries entries_;                                                 // the oldest first
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // views of the entries' keys
  size_t num_bytes_ = 0;
};

}  // namespace quire::server
