// The header of a file of packed weights (tensor/packed_weights.h): a Head, the text of the file's
// origin, and the entries, one per matrix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "quire/status.h"

namespace quire {

inline constexpr uint64_t kPackedAlign = 4096;  // of a matrix in the file

struct PackedEntry {
  Sha256Digest key = {};
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
  uint64_t form = 0;
};

struct PackedHeader {
  std::string origin;  // what the matrices were made from
  std::vector<PackedEntry> entries;
};

// file_bytes: the size of the whole file.
std::string make_packed_header(std::string_view origin, std::span<const PackedEntry> entries,
                               uint64_t file_bytes);
// Reads and checks the header of a whole file. Every number may be wrong until it is checked.
Result<PackedHeader> read_packed_header(std::span<const std::byte> file);

}  // namespace quire
