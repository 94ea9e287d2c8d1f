// The keys that may use the server. Kept as digests: neither logs nor a core's strings have them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::server {

class ApiKeys {
 public:
  // `keys` as the flags have them, and one a line of `file` (empty: none; '#' begins a comment).
  // Refuses empty keys and such as no header can carry.
  static Result<ApiKeys> create(const std::vector<std::string>& keys, const std::string& file);

  bool empty() const { return digests_.empty(); }
  int size() const { return static_cast<int>(digests_.size()); }
  // Whose the header "Authorization: Bearer KEY" is, or "Basic" with the key as the password, which
  // is what a browser can send. Takes as long for every wrong key.
  std::optional<int> find(std::string_view authorization) const;
  // What separates the prefix cache of one key's requests from others'.
  std::string cache_salt(int key_idx) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest digest_of(std::string_view text);

  std::vector<Digest> digests_;
};

}  // namespace quire::server
