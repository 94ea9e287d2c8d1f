// Reads zip archives of unknown origin from memory: stored and deflated entries without encryption,
// up to 4 GiB (no zip64). Names of entries are texts to compare and show, never paths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::hub {

// An entry as the central directory states it. The name is safe to print.
struct ZipEntry {
  std::string name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint64_t num_compressed = 0;  // bytes
  uint64_t num_bytes = 0;       // of the content
  uint64_t header_offset = 0;
};

class ZipArchive {
 public:
  // Reads the central directory. `bytes` must outlive the archive.
  static Result<ZipArchive> open(std::span<const std::byte> bytes);

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // Passes the content to `sink` in pieces. Fails if the sink fails, or if the size or the checksum
  // differs from the stated one; the checksum is known only after the sink got all bytes.
  using Sink = std::function<Status(std::string_view bytes)>;
  Status extract(const ZipEntry& entry, const Sink& sink) const;
  // Returns the content of a small entry. Fails above max_bytes.
  Result<std::string> read(const ZipEntry& entry, size_t max_bytes) const;

 private:
  // Returns the compressed bytes. Fails if the local header contradicts the directory.
  Result<std::string_view> data_of(const ZipEntry& entry) const;

  std::string_view bytes_;
  uint64_t directory_offset_ = 0;  // all entries end before it
  std::vector<ZipEntry> entries_;
};

}  // namespace quire::hub
