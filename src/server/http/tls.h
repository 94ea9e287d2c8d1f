// The server's certificate and key, read again when their files change.
#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "quire/status.h"

namespace quire::http {

class TlsIdentity {
 public:
  using Context = boost::asio::ssl::context;

  // Reads both PEM files. Connections then use TLS 1.2 or later. Error: invalid_argument, which
  // names the settings.
  static Result<std::unique_ptr<TlsIdentity>> load(std::string certificate, std::string key);

  // Returns the context for the next connection. Checks the files at most once per second. If a
  // changed pair does not load, keeps the last good one and logs the error. Used by one thread
  // only.
  std::shared_ptr<Context> context();

 private:
  // Modification time, size and inode of both files.
  struct Stamp {
    std::array<int64_t, 6> values{};
    bool operator==(const Stamp&) const = default;
  };

  TlsIdentity(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}

  Status read();
  Stamp stamp() const;

  const std::string certificate_;
  const std::string key_;
  std::shared_ptr<Context> context_;
  Stamp loaded_stamp_;  // at the last attempt to load
  std::chrono::steady_clock::time_point checked_at_;
};

}  // namespace quire::http
