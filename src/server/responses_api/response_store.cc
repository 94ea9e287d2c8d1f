#include "server/responses_api/response_store.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace quire::server {
namespace {

std::string key_of(int key_idx, std::string_view id) {
  return fmt::format("{} {}", key_idx, id);
}

// An item that several responses share is counted once for each of them.
size_t bytes_of(const StoredResponse& response) {
  constexpr size_t kOverhead = 64;  // of a string on the heap
  size_t num_bytes = sizeof(StoredResponse) + response.body.size();
  for (const auto* const items : {&response.items, &response.output}) {
    for (const ItemText& item : *items) num_bytes += kOverhead + item->size();
  }
  return num_bytes;
}

}  // namespace

void ResponseStore::add(int key_idx, std::string_view id, StoredResponse&& response) {
  const size_t num_bytes = bytes_of(response);
  if (!is_enabled() || num_bytes > limits_.max_bytes) return;
  Entry entry = {.key = key_of(key_idx, id),
                 .response = std::make_shared<const StoredResponse>(std::move(response)),
                 .num_bytes = num_bytes};
  const std::lock_guard lock(mutex_);
  const auto same = by_key_.find(entry.key);
  if (same != by_key_.end()) remove_entry(same->second);
  const auto max_responses = static_cast<size_t>(limits_.max_responses);
  while (entries_.size() >= max_responses || num_bytes_ > limits_.max_bytes - num_bytes) {
    remove_entry(entries_.begin());
  }
  entries_.push_back(std::move(entry));
  by_key_.emplace(entries_.back().key, std::prev(entries_.end()));
  num_bytes_ += num_bytes;
}

std::shared_ptr<const StoredResponse> ResponseStore::find(int key_idx, std::string_view id) const {
  const std::string key = key_of(key_idx, id);
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second->response;
}

bool ResponseStore::remove(int key_idx, std::string_view id) {
  const std::string key = key_of(key_idx, id);
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return false;
  remove_entry(found->second);
  return true;
}

void ResponseStore::remove_entry(Entries::iterator entry) {
  num_bytes_ -= entry->num_bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace quire::server
