// The addresses of clients, direct or behind trusted proxies, and the limit on the connections or
// requests of each address.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quire/status.h"
#include "server/http/http.h"

namespace quire::http {

// An IPv6 address, or an IPv4 address in its IPv4-mapped form, ::ffff:1.2.3.4.
class IpAddress {
 public:
  // Parses "1.2.3.4", "2001:db8::1", and with a port "1.2.3.4:80" or "[2001:db8::1]:80". Returns
  // nothing for any other text, such as "unknown" or an address with a zone.
  static std::optional<IpAddress> parse(std::string_view text);
  // Returns nothing for other families, such as Unix sockets.
  static std::optional<IpAddress> of(const sockaddr& address);

  bool is_ipv4() const;
  std::string text() const;  // "1.2.3.4", "2001:db8::1"
  // Returns the key under which PeerLimit counts clients, in binary: the 4 bytes of an IPv4
  // address, or the first 8 bytes of an IPv6 address, which providers usually assign to one
  // customer.
  std::string network() const;

 private:
  friend class Proxies;
  std::array<uint8_t, 16> bytes_{};
};

// The proxies whose X-Forwarded-For is trusted.
class Proxies {
 public:
  // Takes addresses and networks such as "10.0.0.0/8", "2001:db8::/32" and "127.0.0.1", and "unix"
  // for the clients of a Unix socket. One text may contain several, separated by commas.
  static Result<Proxies> create(const std::vector<std::string>& networks);

  // Returns whether the other end of a connection, as named by Stream::peer(), is a trusted proxy.
  bool trusts(std::string_view peer) const;

  // Returns the client's address for a request that a trusted proxy sent: the right-most address in
  // all X-Forwarded-For fields together that is not a trusted proxy. Each proxy appends the address
  // of its own client, so a client can forge only the addresses to the left of its own. If all
  // addresses are trusted, returns the left-most one. A value that is not an address ends the
  // search, because the values to its left are not reliable. Returns nothing if no address is
  // found.
  std::optional<IpAddress> client_of(const Headers& headers) const;

 private:
  struct Network {
    IpAddress address;
    int num_bits = 0;  // prefix length in the 128-bit address
  };
  Status add(std::string_view text);
  static std::optional<Network> parse_network(std::string_view text);
  bool contains(const IpAddress& address) const;

  std::vector<Network> networks_;
  bool trusts_unix_ = false;
};

// Counts the permits that each network of clients holds. Thread-safe.
class PeerLimit {
 public:
  explicit PeerLimit(int max_permits) : max_permits_(max_permits) {}  // 0: no limit

  // Returns a permit, whose last reference releases it, or null if the limit is reached. Without a
  // limit, and for an empty network, permits are not counted. The limit must outlive its permits.
  std::shared_ptr<void> take(const std::string& network);
  bool is_off() const { return max_permits_ == 0; }

 private:
  void release(const std::string& network);

  const int max_permits_;
  std::mutex mutex_;
  std::unordered_map<std::string, int> num_held_;
};

}  // namespace quire::http
