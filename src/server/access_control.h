// Decides which callers the server accepts: API keys, Host headers, and cross-origin requests
// (CORS).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "quire/status.h"
#include "server/http/http.h"

namespace quire::server {

// The API keys that the server accepts, stored as SHA-256 digests so that neither logs nor core
// dumps contain a key.
class ApiKeys {
 public:
  // Takes `keys` from the flags and one key per line of `file` (an empty path: no file; '#' begins
  // a comment line). Refuses empty keys, and keys that an HTTP header cannot carry.
  static Result<ApiKeys> create(const std::vector<std::string>& keys, const std::string& file);

  bool empty() const { return digests_.empty(); }
  int size() const { return static_cast<int>(digests_.size()); }
  // Returns the index of the key in the value of an Authorization header: "Bearer KEY", or "Basic",
  // which browsers send, with the key as its password. Takes equal time for all wrong keys of the
  // same length.
  std::optional<int> find(std::string_view authorization) const;
  // Returns the index of a key that is the whole value of its header (x-api-key).
  std::optional<int> find_key(std::string_view key) const;
  // Returns a salt that separates the prefix cache entries of this key's requests from those of
  // other keys. The salt does not depend on the key itself, because KV events contain it. It is
  // empty if the server has one key, so that routers find the blocks of requests without a salt.
  std::string cache_salt(int key_idx) const;

 private:
  std::vector<Sha256Digest> digests_;
};

// Returns whether users who are neither the owner of a regular file nor in its group may read it.
// Returns false for other kinds of files, such as pipes, and for a missing file.
bool others_may_read(const std::string& path);

// Returns whether a request with this Host field ("name:8000") is allowed. Accepts IP addresses,
// "localhost" and the names in `allowed` ("*": all), each with any port. Also accepts an empty
// field, which no browser sends. Without API keys this check prevents DNS rebinding: a name of
// another site that resolves to this machine would make a browser treat this server as that site.
bool is_allowed_host(std::string_view host, const std::vector<std::string>& allowed);

// Returns whether a name of --allowed-hosts can be the name in a Host field, which has no scheme,
// port or path. Also accepts "*".
bool can_be_host(std::string_view name);

// Returns the CORS headers of the response to this request: "vary: Origin" if any origin is
// allowed, because caches must not give one origin's response to another; and the headers that
// allow the request's origin, if it is among the allowed ones.
http::Headers cors_headers(const std::vector<std::string>& allowed_origins,
                           const http::Request& request);

// Returns whether a browser can send this text as an Origin: "https://example.com:8000", in lower
// case and without a path, or "null". Also accepts "*", which stands for every origin.
bool can_be_origin(std::string_view text);

// Returns whether this is a CORS preflight request (OPTIONS).
bool is_preflight(const http::Request& request);
// Returns the response to a preflight request: 204, or 403 if the origin is not allowed.
http::Response preflight_response(const std::vector<std::string>& allowed_origins,
                                  const http::Request& request);

}  // namespace quire::server
