// The API keys that the server accepts. Stored as SHA-256 digests, so that neither logs nor core
// dumps contain a key.
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
  // Takes `keys` from the flags and one key per line of `file` (an empty path: no file; '#' begins
  // a comment line). Refuses empty keys, and keys that an HTTP header cannot carry.
  static Result<ApiKeys> create(const std::vector<std::string>& keys, const std::string& file);

  bool empty() const { return digests_.empty(); }
  int size() const { return static_cast<int>(digests_.size()); }
  // Returns the index of the key in an "Authorization: Bearer KEY" header, or in a "Basic" header,
  // which browsers send, as its password. Takes the same time for every wrong key of one length.
  std::optional<int> find(std::string_view authorization) const;
  // A salt that keeps the prefix cache entries of this key's requests apart from those of other
  // keys.
  std::string cache_salt(int key_idx) const;

 private:
  using Digest = std::array<uint8_t, 32>;
  static Digest digest_of(std::string_view text);

  std::vector<Digest> digests_;
};

}  // namespace quire::server
