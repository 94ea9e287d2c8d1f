#include "hub/pull/curl_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/ascii.h"
#include "base/dynamic_library.h"
#include "base/guarded.h"
#include "base/text.h"

namespace quire::hub {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectTimeoutS = 20;
constexpr long kLeastBytesPerS = 1000;  // a slower transfer counts as lost
constexpr long kStallTimeoutS = 30;     // seconds at less than this rate
// Less than libcurl's limit of 300 KiB, whose error would be mistaken for a lost connection.
constexpr size_t kMaxHeadBytes = size_t{256} << 10;

struct CurlApi {
  DynamicLibrary library;
  decltype(curl_global_init)* global_init = nullptr;
  decltype(curl_easy_init)* easy_init = nullptr;
  decltype(curl_easy_cleanup)* easy_cleanup = nullptr;
  decltype(curl_easy_setopt)* easy_setopt = nullptr;
  decltype(curl_easy_perform)* easy_perform = nullptr;
  decltype(curl_easy_getinfo)* easy_getinfo = nullptr;
  decltype(curl_easy_strerror)* easy_strerror = nullptr;
  decltype(curl_slist_append)* slist_append = nullptr;
  decltype(curl_slist_free_all)* slist_free_all = nullptr;
  decltype(curl_url)* url = nullptr;
  decltype(curl_url_cleanup)* url_cleanup = nullptr;
  decltype(curl_url_get)* url_get = nullptr;
  decltype(curl_url_set)* url_set = nullptr;
  decltype(curl_free)* free = nullptr;
};

Result<CurlApi> load_api() {
  CurlApi api;
  Result<DynamicLibrary> library = DynamicLibrary::open({"libcurl.so.4"});
  if (!library.ok()) {
    return unavailable(
        fmt::format("[hub] libcurl is missing, which downloads need: install the package libcurl4 "
                    "(libcurl4t64 on Ubuntu 24.04); {}",
                    library.status().message()));
  }
  api.library = *library;
  QUIRE_RETURN_IF_ERROR(library->find("curl_global_init", api.global_init));
  QUIRE_RETURN_IF_ERROR(library->find("curl_easy_init", api.easy_init));
  QUIRE_RETURN_IF_ERROR(library->find("curl_easy_cleanup", api.easy_cleanup));
  QUIRE_RETURN_IF_ERROR(library->find("curl_easy_setopt", api.easy_setopt));
  QUIRE_RETURN_IF_ERROR(library->find("curl_easy_perform", api.easy_perform));
  QUIRE_RETURN_IF_ERROR(library->find("curl_easy_getinfo", api.easy_getinfo));
  QUIRE_RETURN_IF_ERROR(library->find("curl_easy_strerror", api.easy_strerror));
  QUIRE_RETURN_IF_ERROR(library->find("curl_slist_append", api.slist_append));
  QUIRE_RETURN_IF_ERROR(library->find("curl_slist_free_all", api.slist_free_all));
  QUIRE_RETURN_IF_ERROR(library->find("curl_url", api.url));
  QUIRE_RETURN_IF_ERROR(library->find("curl_url_cleanup", api.url_cleanup));
  QUIRE_RETURN_IF_ERROR(library->find("curl_url_get", api.url_get));
  QUIRE_RETURN_IF_ERROR(library->find("curl_url_set", api.url_set));
  QUIRE_RETURN_IF_ERROR(library->find("curl_free", api.free));
  if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    return unavailable("[hub] libcurl cannot start");
  }
  return api;
}

// The library is opened once and never closed, because its TLS library has static destructors of
// its own.
const Result<CurlApi>& curl_api() {
  static const Result<CurlApi>& api = *new Result<CurlApi>(load_api());
  return api;
}

// Sets the file of certificates from the variables that Python's clients and curl read, unless the
// settings have a file. Otherwise libcurl uses its default.
void find_certificates(CurlSettings& settings) {
  if (!settings.certificates.empty()) return;
  settings.certificates_variable = {};
  for (const char* name : {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    settings.certificates = value;
    settings.certificates_variable = name;
    return;
  }
}

// Parses a number. A number that is too large becomes the largest one; other text and negative
// numbers become 0.
template <typename T>
T number_or_zero(std::string_view text) {
  T number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec == std::errc::result_out_of_range && !text.starts_with('-')) {
    return std::numeric_limits<T>::max();
  }
  return number > 0 ? number : T{0};
}

// Reads the fields that Quire needs from one header line.
void read_header(std::string_view line, Reply& reply) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equals_ignoring_case(name, "retry-after")) reply.retry_after_s = number_or_zero<int>(value);
  if (equals_ignoring_case(name, "x-error-code")) reply.error_code = clipped(value);
  if (equals_ignoring_case(name, "x-error-message")) reply.error_text = clipped(value);
  constexpr std::string_view kUnit = "bytes ";
  if (equals_ignoring_case(name, "content-range") && value.starts_with(kUnit)) {
    reply.range_begin = number_or_zero<int64_t>(value.substr(kUnit.size()));
  }
}

// One running transfer, the argument of the callbacks.
struct Transfer {
  const CurlApi& api;
  CURL* handle;
  Receiver& receiver;
  const std::function<bool()>& interrupted;
  Reply reply = {};
  size_t head_bytes = 0;
  bool has_begun = false;

  void read_status() {
    long code = 0;
    api.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code);
    reply.status = static_cast<int>(code);
  }

  Status begin() {
    if (std::exchange(has_begun, true)) return {};
    const char* url = nullptr;
    api.easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &url);
    if (url != nullptr) reply.url = url;
    return receiver.begin(reply);
  }

  Status receive(std::string_view bytes) {
    read_status();
    if (!reply.is_content()) return {};
    QUIRE_RETURN_IF_ERROR(begin());
    return receiver.receive(bytes);
  }
};

// libcurl is C: no exception may leave a callback. A return value other than the size ends the
// transfer.
size_t on_header(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  transfer.head_bytes += line.size();
  if (transfer.head_bytes > kMaxHeadBytes) {
    transfer.reply.failure = make_status([] {
      return invalid_argument(
          fmt::format("[hub] the head of a response is longer than {} bytes", kMaxHeadBytes));
    });
    return 0;
  }
  const auto read = [&] {
    if (line.starts_with("HTTP/")) transfer.reply = Reply();  // the next response after a redirect
    read_header(line, transfer.reply);
  };
  return run_guarded("[hub] reading a header failed", read) ? line.size() : 0;
}

size_t on_body(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view bytes(data, size * count);
  transfer.reply.failure = make_status([&] { return transfer.receive(bytes); });
  return transfer.reply.failure.ok() ? bytes.size() : 0;
}

int on_progress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<Transfer*>(user)->interrupted() ? 1 : 0;
}

// Returns the host without user and password, which errors must not contain.
std::string host_of(std::string_view url) {
  const size_t begin = url.find("://");
  const std::string_view rest = begin == std::string_view::npos ? url : url.substr(begin + 3);
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  return std::string(authority.substr(authority.rfind('@') + 1));
}

// A parsed URL.
class Url {
 public:
  explicit Url(const CurlApi& api) : api_(api), handle_(api.url()) {}
  ~Url() { api_.url_cleanup(handle_); }
  Url(const Url&) = delete;
  Url& operator=(const Url&) = delete;

  // A second call resolves the text as a reference relative to the first.
  bool set(CURLUPart part, const std::string& text) {
    return handle_ != nullptr && api_.url_set(handle_, part, text.c_str(), 0) == CURLUE_OK;
  }
  // Empty: the URL lacks this part.
  std::string get(CURLUPart part) const {
    char* text = nullptr;
    const unsigned int flags = part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0;
    if (handle_ == nullptr || api_.url_get(handle_, part, &text, flags) != CURLUE_OK) return "";
    std::string copy = text;
    api_.free(text);
    return copy;
  }
  bool has_origin_of(const Url& other) const {
    return get(CURLUPART_SCHEME) == other.get(CURLUPART_SCHEME) &&
           equals_ignoring_case(get(CURLUPART_HOST), other.get(CURLUPART_HOST)) &&
           get(CURLUPART_PORT) == other.get(CURLUPART_PORT);
  }

 private:
  const CurlApi& api_;
  CURLU* handle_;
};

struct Failure {
  Status status;
  bool may_retry = false;
};

// Returns the remedy, which depends on whether a variable already names a file of authorities.
std::string certificate_remedy(std::string_view variable) {
  if (!variable.empty()) {
    return fmt::format(
        "check the file that {} names: it must have the certificate of the server's "
        "authority",
        variable);
  }
  return "if a proxy or mirror has its own authority, set SSL_CERT_FILE to a file with its "
         "certificate";
}

// `detail` is libcurl's own text.
Failure failure_of(CURLcode code, const std::string& url, const CurlSettings& settings,
                   const std::string& detail) {
  const std::string_view variable = settings.address_variable;
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return {cancelled("[hub] interrupted")};
    case CURLE_COULDNT_RESOLVE_PROXY:
      return {unavailable(fmt::format(
          "[hub] the proxy cannot be found: {}; check the variables https_proxy and http_proxy",
          detail))};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return {
          unavailable(fmt::format("[hub] {} cannot be reached: {}; check the network, the proxy "
                                  "(https_proxy) and {}",
                                  host_of(url), detail, variable)),
          true};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return {unavailable(fmt::format("[hub] the TLS certificate of {} cannot be verified: {}; {}",
                                      host_of(url), detail,
                                      certificate_remedy(settings.certificates_variable)))};
    case CURLE_URL_MALFORMAT:
      return {invalid_argument(fmt::format("[hub] the address {} cannot be used: {}; check {}",
                                           without_credentials(url), detail, variable))};
    case CURLE_SSL_CONNECT_ERROR:
      return {unavailable(fmt::format(
                  "[hub] the TLS connection to {} failed: {}; check {}: the address of a server "
                  "without TLS begins with http:",
                  host_of(url), detail, variable)),
              true};
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return {
          unavailable(fmt::format("[hub] the connection to {} was lost: {}", host_of(url), detail)),
          true};
    case CURLE_TOO_MANY_REDIRECTS:
      return {unavailable(fmt::format("[hub] {} redirects more than {} times; check {}",
                                      host_of(url), kMaxRedirects, variable))};
    default:
      return {
          unavailable(fmt::format("[hub] the download from {} failed: {}", host_of(url), detail))};
  }
}

}  // namespace

struct CurlClient::State {
  const CurlApi& api;
  CurlSettings settings;
  CURL* handle;

  State(const CurlApi& curl, CurlSettings chosen)
      : api(curl), settings(std::move(chosen)), handle(curl.easy_init()) {
    find_certificates(settings);
  }
  ~State() {
    if (handle != nullptr) api.easy_cleanup(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  template <typename T>
  void set(CURLoption option, T value) const {
    (void)api.easy_setopt(handle, option, value);
  }

  // Sets the options that all requests share.
  void set_up() const {
    set(CURLOPT_USERAGENT, settings.user_agent.c_str());
    set(CURLOPT_NOSIGNAL, 1L);  // other threads run
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMaxRedirects);
    set(CURLOPT_CONNECTTIMEOUT, kConnectTimeoutS);
    set(CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerS);
    set(CURLOPT_LOW_SPEED_TIME, kStallTimeoutS);
    set(CURLOPT_BUFFERSIZE, long{CURL_MAX_READ_SIZE});
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, &on_progress);
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    if (!settings.certificates.empty()) {
      set(CURLOPT_CAINFO, settings.certificates.c_str());
    }
  }
};

CurlClient::CurlClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
CurlClient::CurlClient(CurlClient&&) noexcept = default;
CurlClient::~CurlClient() = default;

Result<CurlClient> CurlClient::create(CurlSettings settings) {
  const Result<CurlApi>& api = curl_api();
  if (!api.ok()) return api.status();
  auto state = std::make_unique<State>(*api, std::move(settings));
  if (state->handle == nullptr) return out_of_memory();
  // An older libcurl would ignore the option that keeps redirects from leading to other schemes.
  if (api->easy_setopt(state->handle, CURLOPT_REDIR_PROTOCOLS_STR, "https") != CURLE_OK) {
    return unavailable("[hub] libcurl.so.4 is too old; expected libcurl 7.85 or later");
  }
  state->set_up();
  return CurlClient(std::move(state));
}

Reply CurlClient::get(const Get& request, Receiver& receiver) {
  const State& state = *state_;
  Transfer transfer{state.api, state.handle, receiver, state.settings.interrupted};
  std::array<char, CURL_ERROR_SIZE> detail = {};
  const std::string range = fmt::format("{}-", request.offset);
  // libcurl drops an Authorization header when a redirect leads to another host, port or scheme.
  curl_slist* headers = nullptr;
  if (!request.token.empty()) {
    headers = state.api.slist_append(headers, ("Authorization: Bearer " + request.token).c_str());
  }
  if (!request.accept.empty()) {
    headers = state.api.slist_append(headers, ("Accept: " + request.accept).c_str());
  }
  // A redirect must not lead from an encrypted connection to a plain one, or to files.
  const char* schemes = request.url.starts_with("https:") ? "https" : "http,https";
  state.set(CURLOPT_URL, request.url.c_str());
  state.set(CURLOPT_PROTOCOLS_STR, schemes);
  state.set(CURLOPT_REDIR_PROTOCOLS_STR, schemes);
  state.set(CURLOPT_HTTPHEADER, headers);
  // CURLOPT_RESUME_FROM_LARGE would fail on a server that ignores ranges. With CURLOPT_RANGE, the
  // receiver starts again.
  state.set(CURLOPT_RANGE, request.offset > 0 ? range.c_str() : nullptr);
  state.set(CURLOPT_ERRORBUFFER, detail.data());
  state.set(CURLOPT_XFERINFODATA, &transfer);
  state.set(CURLOPT_HEADERDATA, &transfer);
  state.set(CURLOPT_WRITEDATA, &transfer);

  const CURLcode code = state.api.easy_perform(state.handle);
  transfer.read_status();
  state.set(CURLOPT_HTTPHEADER, static_cast<curl_slist*>(nullptr));
  state.set(CURLOPT_ERRORBUFFER, static_cast<char*>(nullptr));
  state.api.slist_free_all(headers);
  if (code == CURLE_OK && transfer.reply.is_content()) transfer.reply.failure = transfer.begin();
  if (code != CURLE_OK && transfer.reply.failure.ok()) {
    const std::string text = detail[0] != '\0' ? detail.data() : state.api.easy_strerror(code);
    const Failure failure = failure_of(code, request.url, state.settings, one_line(text));
    transfer.reply.failure = failure.status;
    transfer.reply.may_retry = failure.may_retry;
  }
  return std::move(transfer.reply);
}

std::string without_credentials(std::string_view url) {
  const size_t scheme = url.find("://");
  const size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  const size_t at = url.substr(0, end).rfind('@');
  const size_t host = at == std::string_view::npos || at < begin ? begin : at + 1;
  const size_t query = std::min(url.find_first_of("?#", host), url.size());
  return std::string(url.substr(0, begin)) + std::string(url.substr(host, query - host));
}

Result<std::string> resolve_url(const std::string& base, const std::string& reference,
                                const std::string& origin) {
  const Result<CurlApi>& api = curl_api();
  if (!api.ok()) return api.status();
  Url url(*api);
  const bool is_valid = url.set(CURLUPART_URL, base) && url.set(CURLUPART_URL, reference);
  const std::string scheme = url.get(CURLUPART_SCHEME);
  const bool is_safe = scheme == "https" || (scheme == "http" && !base.starts_with("https:"));
  if (!is_valid || !is_safe) {
    return invalid_argument(
        fmt::format("[hub] {} names a file at '{}'; expected an address with {}", host_of(base),
                    clipped(reference), base.starts_with("https:") ? "https" : "http or https"));
  }
  Url given(*api);
  if (given.set(CURLUPART_URL, origin) && given.has_origin_of(url)) {
    for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD}) {
      const std::string text = given.get(part);
      if (!text.empty()) url.set(part, text);
    }
  }
  return url.get(CURLUPART_URL);
}

}  // namespace quire::hub
