// Writes zip archives for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

struct ZipFile {
  std::string name;
  std::string content;
  bool deflates = false;
};

inline std::string little_endian(uint64_t value, int num_bytes) {
  std::string out;
  for (int i = 0; i < num_bytes; ++i, value >>= 8) out += static_cast<char>(value);
  return out;
}

inline std::string raw_deflate(std::string_view content) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The fields from the version to the lengths of name and extra field, which both headers have.
inline std::string zip_fields(const ZipFile& file, std::string_view data) {
  const auto checksum = ::crc32(0, reinterpret_cast<const Bytef*>(file.content.data()),
                                static_cast<uInt>(file.content.size()));
  return little_endian(20, 2) + little_endian(0, 2) + little_endian(file.deflates ? 8 : 0, 2) +
         little_endian(0, 4) + little_endian(checksum, 4) + little_endian(data.size(), 4) +
         little_endian(file.content.size(), 4) + little_endian(file.name.size(), 2) +
         little_endian(0, 2);
}

inline std::string zip_bytes(const std::vector<ZipFile>& files) {
  std::string out;
  std::string directory;
  for (const ZipFile& file : files) {
    const std::string data = file.deflates ? raw_deflate(file.content) : file.content;
    directory += "PK\1\2" + little_endian(20, 2) + zip_fields(file, data) + little_endian(0, 10) +
                 little_endian(out.size(), 4) + file.name;
    out += "PK\3\4" + zip_fields(file, data) + file.name + data;
  }
  const std::string end = "PK\5\6" + little_endian(0, 4) + little_endian(files.size(), 2) +
                          little_endian(files.size(), 2) + little_endian(directory.size(), 4) +
                          little_endian(out.size(), 4) + little_endian(0, 2);
  return out + directory + end;
}

}  // namespace quire::testing
