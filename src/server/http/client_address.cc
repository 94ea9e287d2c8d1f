#include "server/http/client_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace quire::http {
namespace {

constexpr size_t kIpv4Begin = 12;  // of ::ffff:1.2.3.4
constexpr int kIpv4PrefixBits = 96;
constexpr std::array<uint8_t, kIpv4Begin> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_port(std::string_view text) {
  constexpr size_t kMaxDigits = 5;
  return !text.empty() && text.size() <= kMaxDigits && std::ranges::all_of(text, is_digit);
}

// Returns the address of "ADDRESS", "IPV4:PORT", "[IPV6]" or "[IPV6]:PORT"; otherwise "".
std::string_view without_port(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return "";
    const std::string_view rest = text.substr(end + 1);
    const bool is_whole = rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
    return is_whole ? text.substr(1, end - 1) : "";
  }
  const size_t colon = text.find(':');
  const bool has_port = colon != std::string_view::npos && colon == text.rfind(':');
  if (!has_port) return text;
  return is_port(text.substr(colon + 1)) ? text.substr(0, colon) : "";
}

bool equal_bits(const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b, int num_bits) {
  const auto num_bytes = static_cast<size_t>(num_bits / 8);
  if (std::memcmp(a.data(), b.data(), num_bytes) != 0) return false;
  const int rest = num_bits % 8;
  return rest == 0 || (a[num_bytes] ^ b[num_bytes]) >> (8 - rest) == 0;
}

}  // namespace

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string address(without_port(text));
  IpAddress parsed;
  if (::inet_pton(AF_INET6, address.c_str(), parsed.bytes_.data()) == 1) return parsed;
  std::ranges::copy(kIpv4Prefix, parsed.bytes_.begin());
  if (::inet_pton(AF_INET, address.c_str(), parsed.bytes_.data() + kIpv4Begin) == 1) return parsed;
  return std::nullopt;
}

std::optional<IpAddress> IpAddress::of(const sockaddr& address) {
  IpAddress found;
  if (address.sa_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    std::ranges::copy(kIpv4Prefix, found.bytes_.begin());
    std::memcpy(found.bytes_.data() + kIpv4Begin, &ipv4, sizeof(ipv4));
    return found;
  }
  if (address.sa_family != AF_INET6) return std::nullopt;
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  std::memcpy(found.bytes_.data(), &ipv6, sizeof(ipv6));
  return found;
}

bool IpAddress::is_ipv4() const {
  return std::equal(kIpv4Prefix.begin(), kIpv4Prefix.end(), bytes_.begin());
}

std::string IpAddress::text() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4()) {
    ::inet_ntop(AF_INET, bytes_.data() + kIpv4Begin, text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, bytes_.data(), text, sizeof(text));
  }
  return text;
}

std::string IpAddress::network() const {
  constexpr ptrdiff_t kIpv6NetworkBytes = 8;
  if (is_ipv4()) return {bytes_.begin() + kIpv4Begin, bytes_.end()};
  return {bytes_.begin(), bytes_.begin() + kIpv6NetworkBytes};
}

std::optional<Proxies::Network> Proxies::parse_network(std::string_view text) {
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string_view address = text.substr(0, slash);
  const std::optional<IpAddress> parsed = IpAddress::parse(address);
  if (!parsed || without_port(address) != address) return std::nullopt;
  const bool is_ipv4 = address.find(':') == std::string_view::npos;
  const int max_bits = is_ipv4 ? 32 : 128;
  int num_bits = max_bits;
  if (slash < text.size()) {
    const std::optional<int> given = parse_whole<int>(text.substr(slash + 1));
    if (!given || *given < 0 || *given > max_bits) return std::nullopt;
    num_bits = *given;
  }
  return Network{.address = *parsed, .num_bits = num_bits + (is_ipv4 ? kIpv4PrefixBits : 0)};
}

Result<Proxies> Proxies::create(const std::vector<std::string>& networks) {
  Proxies proxies;
  for (const std::string& list : networks) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      QUIRE_RETURN_IF_ERROR(
          proxies.add(trimmed(std::string_view(list).substr(begin, end - begin))));
      begin = end + 1;
    }
  }
  return proxies;
}

Status Proxies::add(std::string_view text) {
  if (text == "unix") {
    trusts_unix_ = true;
    return {};
  }
  const std::optional<Network> network = parse_network(text);
  if (!network) {
    return invalid_argument(
        fmt::format("[http] `trusted_proxies`: got '{}', expected an address, a network such as "
                    "10.0.0.0/8, or unix",
                    clipped(text)));
  }
  networks_.push_back(*network);
  return {};
}

bool Proxies::contains(const IpAddress& address) const {
  return std::ranges::any_of(networks_, [&](const Network& network) {
    return equal_bits(address.bytes_, network.address.bytes_, network.num_bits);
  });
}

bool Proxies::trusts(std::string_view peer) const {
  if (peer == "unix") return trusts_unix_;
  if (networks_.empty()) return false;
  const std::optional<IpAddress> address = IpAddress::parse(peer);
  return address && contains(*address);
}

std::optional<IpAddress> Proxies::client_of(const Headers& headers) const {
  std::optional<IpAddress> client;
  for (auto field = headers.rbegin(); field != headers.rend(); ++field) {
    if (field->first != "x-forwarded-for") continue;
    std::string_view list = field->second;
    while (true) {
      const size_t comma = list.rfind(',');
      const size_t begin = comma == std::string_view::npos ? 0 : comma + 1;
      const std::optional<IpAddress> address = IpAddress::parse(trimmed(list.substr(begin)));
      if (!address) return client;
      client = address;
      if (!contains(*address)) return client;
      if (begin == 0) break;
      list = list.substr(0, comma);
    }
  }
  return client;
}

std::shared_ptr<void> PeerLimit::take(const std::string& network) {
  const bool is_counted = !is_off() && !network.empty();
  if (is_counted) {
    const std::lock_guard lock(mutex_);
    int& num_held = num_held_[network];
    if (num_held >= max_permits_) return nullptr;
    ++num_held;
  }
  // Copying `network` allocates nothing: its at most 8 bytes fit into the string object itself. If
  // shared_ptr throws, it calls the deleter.
  return {static_cast<void*>(this), [this, is_counted, network](void*) {
            if (is_counted) release(network);
          }};
}

void PeerLimit::release(const std::string& network) {
  const std::lock_guard lock(mutex_);
  const auto found = num_held_.find(network);
  if (--found->second == 0) num_held_.erase(found);
}

}  // namespace quire::http
