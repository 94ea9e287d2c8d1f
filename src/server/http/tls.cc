#include "server/http/tls.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/log.h"

namespace quire::http {

namespace ssl = boost::asio::ssl;

namespace {

constexpr off_t kMaxFileBytes = off_t{1} << 20;

// Reads a regular file. Other kinds, such as pipes, are refused, because reading them could block
// all connections.
std::string read_regular_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), path);
  const std::unique_ptr<const int, void (*)(const int*)> closer(
      &fd, [](const int* open) { ::close(*open); });
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kMaxFileBytes) {
    throw std::runtime_error(path + " is not a regular file of at most 1 MiB");
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t num_read = ::read(fd, text.data() + size, text.size() - size);
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) throw std::system_error(errno, std::generic_category(), path);
    if (num_read == 0) break;
    size += static_cast<size_t>(num_read);
  }
  text.resize(size);
  return text;
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
  context->use_certificate_chain(boost::asio::buffer(read_regular_file(certificate)));
  context->use_private_key(boost::asio::buffer(read_regular_file(key)), ssl::context::pem);
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
        log_info("[http] reloaded `ssl_certfile` {}", certificate_);
      } else {
        log_error("{}; keeping the last valid certificate and key", status.message());
      }
    }
  }
  return context_;
}

}  // namespace quire::http
