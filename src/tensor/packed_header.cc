#include "tensor/packed_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

namespace quire {
namespace {

constexpr uint64_t kMaxHeaderBytes = uint64_t{64} << 20;
constexpr std::array<char, 16> kPackedMagic = {"quire packed 1\n"};

struct Head {
  std::array<char, 16> magic = kPackedMagic;
  uint64_t header_bytes = 0;  // with the text and the entries
  uint64_t file_bytes = 0;
  uint64_t origin_bytes = 0;
  uint64_t num_entries = 0;
  Sha256Digest digest = {};  // of the header, with zeros here
};

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <typename T>
T read_at(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Sha256Digest header_digest(std::string header) {
  std::memset(header.data() + offsetof(Head, digest), 0, sizeof(Sha256Digest));
  return sha256_of(header);
}

Status damaged(std::string_view what) {
  return invalid_argument(fmt::format("it is damaged: {}", what));
}

}  // namespace

std::string make_packed_header(std::string_view origin, std::span<const PackedEntry> entries,
                               uint64_t file_bytes) {
  Head head;
  head.header_bytes = sizeof head + origin.size() + entries.size_bytes();
  head.file_bytes = file_bytes;
  head.origin_bytes = origin.size();
  head.num_entries = entries.size();
  std::string header(bytes_of(head));
  header += origin;
  header.append(reinterpret_cast<const char*>(entries.data()), entries.size_bytes());
  const Sha256Digest digest = header_digest(header);
  std::memcpy(header.data() + offsetof(Head, digest), digest.data(), digest.size());
  return header;
}

Result<PackedHeader> read_packed_header(std::span<const std::byte> file) {
  if (file.size() < sizeof(Head)) {
    return damaged(fmt::format("got {} bytes, expected at least {}", file.size(), sizeof(Head)));
  }
  const Head head = read_at<Head>(file, 0);
  if (head.magic != kPackedMagic) return damaged("it does not begin like a file of packed weights");
  if (head.file_bytes != file.size()) {
    return damaged(fmt::format("got {} bytes, expected {}", file.size(), head.file_bytes));
  }
  const bool is_possible = head.header_bytes >= sizeof(Head) &&
                           head.header_bytes <= std::min<uint64_t>(file.size(), kMaxHeaderBytes) &&
                           head.origin_bytes <= head.header_bytes - sizeof(Head) &&
                           head.num_entries <= head.header_bytes / sizeof(PackedEntry) &&
                           head.header_bytes == sizeof(Head) + head.origin_bytes +
                                                    head.num_entries * sizeof(PackedEntry);
  if (!is_possible) return damaged("the sizes in its header contradict each other");
  std::string header(reinterpret_cast<const char*>(file.data()), head.header_bytes);
  if (header_digest(header) != head.digest) return damaged("its header has another digest");
  std::vector<PackedEntry> entries(head.num_entries);
  if (!entries.empty()) {
    std::memcpy(entries.data(), header.data() + sizeof(Head) + head.origin_bytes,
                entries.size() * sizeof(PackedEntry));
  }
  for (const PackedEntry& entry : entries) {
    const bool is_inside = entry.offset % kPackedAlign == 0 && entry.offset >= head.header_bytes &&
                           entry.offset <= file.size() &&
                           entry.num_bytes <= file.size() - entry.offset;
    if (!is_inside) return damaged("a matrix lies outside the file");
  }
  return PackedHeader{header.substr(sizeof(Head), head.origin_bytes), std::move(entries)};
}

}  // namespace quire
