// HTTP downloads by libcurl, with redirects and the proxy variables (https_proxy, no_proxy). The
// library is opened when the first client is made. Linking it would load more than 20 further
// libraries into every command.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire::hub {

// The head of the last response, after redirects, and the result of the transfer.
struct Reply {
  int status = 0;           // of HTTP; 0: there was no response
  int64_t range_begin = 0;  // of Content-Range: the offset of the first byte
  int retry_after_s = 0;    // Retry-After; 0: not given
  std::string error_code;   // X-Error-Code, such as "GatedRepo"
  std::string error_text;   // X-Error-Message, clipped
  std::string url;          // of content, after redirects

  Status failure;  // the error of the connection or of the receiver; ok: the response is complete
  bool may_retry = false;  // the connection has failed, perhaps temporarily

  bool is_content() const { return status == 200 || status == 206; }
};

// Receives the body of a response with status 200 or 206; other bodies are dropped. A failure ends
// the transfer and becomes Reply::failure.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // Called once, before the first byte, also for an empty body.
  virtual Status begin(const Reply& head) = 0;
  virtual Status receive(std::string_view bytes) = 0;
  // The number of bytes received, from which a repeated request continues.
  virtual int64_t size() const = 0;
  // Returns whether all bytes were received, for a response that ended without an error.
  virtual bool is_complete() const = 0;
};

struct Get {
  std::string url;
  std::string token = {};   // sent to the URL's host and port only, not to targets of redirects
  int64_t offset = 0;       // the first byte to request
  std::string accept = {};  // media types; empty: any
};

struct CurlSettings {
  std::string user_agent;
  std::function<bool()> interrupted;                  // transfers end soon after this returns true
  std::string_view address_variable = "HF_ENDPOINT";  // the variable of the address, for errors
  // A file of authorities; empty: SSL_CERT_FILE, REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE, otherwise
  // libcurl's default.
  std::string certificates = {};
  std::string_view certificates_variable = {};  // the variable of `certificates`, for errors
};

// Keeps connections open between requests. Not thread-safe: one per thread.
class CurlClient {
 public:
  // Fails if libcurl is missing.
  static Result<CurlClient> create(CurlSettings settings);
  CurlClient(CurlClient&&) noexcept;
  ~CurlClient();

  Reply get(const Get& request, Receiver& receiver);

 private:
  struct State;

  explicit CurlClient(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// The URL without user, password and query, for messages.
std::string without_credentials(std::string_view url);

// Resolves `reference`, which the page `base` contains. The result gets the user and password of
// `origin`, the URL that the user gave, if both have the same scheme, host and port. Fails if the
// result is neither http nor https, or is http although `base` is https.
Result<std::string> resolve_url(const std::string& base, const std::string& reference,
                                const std::string& origin);

}  // namespace quire::hub
