#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

// Returns a safetensors file with this header and this many bytes of data, which count 0, 1, 2, ….
inline std::vector<std::byte> safetensors_bytes(std::string_view header, size_t num_data_bytes) {
  const uint64_t length = header.size();
  std::vector<std::byte> bytes(sizeof(length) + header.size() + num_data_bytes);
  std::memcpy(bytes.data(), &length, sizeof(length));
  std::memcpy(bytes.data() + sizeof(length), header.data(), header.size());
  for (size_t i = 0; i < num_data_bytes; ++i) {
    bytes[sizeof(length) + header.size() + i] = static_cast<std::byte>(i);
  }
  return bytes;
}

inline void write_file(const std::filesystem::path& path, const void* data, size_t num_bytes) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<const char*>(data), static_cast<std::streamsize>(num_bytes));
}

}  // namespace quire::testing
