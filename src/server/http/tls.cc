#include "server/http/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include <boost/asio/buffer.hpp>
#include <exception>
#include <stdexcept>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/setting_name.h"

namespace quire::http {

namespace ssl = boost::asio::ssl;

namespace {

// Reads a regular file only, because reading a pipe could block all connections. Throws on errors,
// as the functions of ssl::context do.
std::string read_pem(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  Result<std::string> text = read_file(path, kMaxBytes);
  if (!text.ok()) throw std::runtime_error(text.status().message());
  return *std::move(text);
}

// Throws std::exception if the pair does not load.
std::shared_ptr<ssl::context> make_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  ::SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  ::SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  ::SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // less memory per idle connection
  // Without this, OpenSSL asks the terminal for the key's passphrase.
  context->set_password_callback(
      [](size_t, ssl::context::password_purpose) { return std::string(); });
  context->use_certificate_chain(boost::asio::buffer(read_pem(certificate)));
  context->use_private_key(boost::asio::buffer(read_pem(key)), ssl::context::pem);
  if (::SSL_CTX_check_private_key(native) != 1)
    throw std::runtime_error("the key does not belong to the certificate");
  return context;
}

}  // namespace

Result<std::unique_ptr<TlsIdentity>> TlsIdentity::load(std::string certificate, std::string key) {
  std::unique_ptr<TlsIdentity> identity(new TlsIdentity(std::move(certificate), std::move(key)));
  QUIRE_RETURN_IF_ERROR(identity->read());
  return identity;
}

Status TlsIdentity::read() {
  checked_at_ = std::chrono::steady_clock::now();
  loaded_stamp_ = stamp();  // before reading, so that a later change is noticed next time
  try {
    context_ = make_context(certificate_, key_);
  } catch (const std::exception& error) {
    return invalid_argument(fmt::format(
        "[http] `ssl_certfile` {} `ssl_keyfile` {}: {}; expected PEM files of one certificate and "
        "its key, without a passphrase",
        certificate_, key_, error.what()));
  }
  return {};
}

TlsIdentity::Stamp TlsIdentity::stamp() const {
  Stamp stamp;
  size_t i = 0;
  for (const std::string& path : {certificate_, key_}) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) info = {};
    stamp.values[i++] = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
    stamp.values[i++] = info.st_size;
    stamp.values[i++] = static_cast<int64_t>(info.st_ino);
  }
  return stamp;
}

std::shared_ptr<TlsIdentity::Context> TlsIdentity::context() {
  const auto now = std::chrono::steady_clock::now();
  if (now - checked_at_ >= std::chrono::seconds(1)) {
    checked_at_ = now;
    if (stamp() != loaded_stamp_) {
      const Status status = read();
      if (status.ok()) {
        log_info("[http] reloaded {} {}", SettingName{"ssl_certfile"}, certificate_);
      } else {
        log_error("{}; keeping the last valid certificate and key", status.message());
      }
    }
  }
  return context_;
}

}  // namespace quire::http
