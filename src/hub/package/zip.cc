#include "hub/package/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/guarded.h"
#include "base/text.h"

namespace quire::hub {
namespace {

// Sizes and signatures of the format's records (PKWARE APPNOTE 6.3, sections 4.3.7 to 4.3.16).
constexpr size_t kEndBytes = 22;
constexpr size_t kMaxCommentBytes = 65535;
constexpr size_t kDirectoryEntryBytes = 46;
constexpr size_t kLocalHeaderBytes = 30;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kDirectorySignature = 0x02014b50;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kInZip64 = 0xffffffff;  // the value is in an extra field

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kEncryptedFlag = 1;

constexpr uint64_t kMaxDeflateRatio = 1032;  // the format's maximum: 258 bytes from 2 bits

// Copies a number. The caller has checked that it is within `bytes`.
template <typename T>
T number_at(std::string_view bytes, size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

Status damaged(std::string_view what) {
  return invalid_argument(fmt::format(
      "[hub] the package is no readable zip archive: {}; expected a wheel; download it again",
      what));
}

// Returns the offset of the end record, whose comment must end with the archive.
std::optional<size_t> find_end(std::string_view bytes) {
  if (bytes.size() < kEndBytes) return std::nullopt;
  const size_t last = bytes.size() - kEndBytes;
  const size_t first = last - std::min(last, kMaxCommentBytes);
  for (size_t at = last + 1; at-- > first;) {
    if (number_at<uint32_t>(bytes, at) == kEndSignature &&
        number_at<uint16_t>(bytes, at + 20) == last - at) {
      return at;
    }
  }
  return std::nullopt;
}

// Inflates a raw deflate stream into a sink.
class Inflater {
 public:
  Inflater() { is_ready_ = ::inflateInit2(&stream_, -MAX_WBITS) == Z_OK; }
  ~Inflater() {
    if (is_ready_) ::inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Status run(std::string_view data, const ZipArchive::Sink& sink) {
    if (!is_ready_) return out_of_memory();
    constexpr size_t kPieceBytes = size_t{256} << 10;
    const auto piece = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    // The cast is safe, because zlib does not write to its input. The size fits, because an archive
    // has less than 4 GiB.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream_.avail_in = static_cast<uInt>(data.size());
    for (int code = Z_OK; code != Z_STREAM_END;) {
      stream_.next_out = reinterpret_cast<Bytef*>(piece.get());
      stream_.avail_out = kPieceBytes;
      code = ::inflate(&stream_, Z_NO_FLUSH);
      const size_t num = kPieceBytes - stream_.avail_out;
      if (num > 0) QUIRE_RETURN_IF_ERROR(sink({piece.get(), num}));
      if (code == Z_MEM_ERROR) return out_of_memory();
      // Z_BUF_ERROR: the input ended before the stream did.
      if (code != Z_OK && code != Z_STREAM_END) return damaged("an entry cannot be decompressed");
    }
    return stream_.avail_in == 0 ? Status() : damaged("bytes follow a compressed entry");
  }

 private:
  z_stream stream_ = {};
  bool is_ready_ = false;
};

}  // namespace

Result<ZipArchive> ZipArchive::open(std::span<const std::byte> bytes) {
  ZipArchive archive;
  archive.bytes_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const std::string_view all = archive.bytes_;
  if (all.size() >= kInZip64) return damaged("it is larger than 4 GiB");
  const std::optional<size_t> end = find_end(all);
  if (!end) return damaged("its last record is missing, so it may be cut off");
  const auto num_entries = number_at<uint16_t>(all, *end + 10);
  const uint64_t num_directory_bytes = number_at<uint32_t>(all, *end + 12);
  archive.directory_offset_ = number_at<uint32_t>(all, *end + 16);
  const bool is_one_disk =
      number_at<uint32_t>(all, *end + 4) == 0 && number_at<uint16_t>(all, *end + 8) == num_entries;
  if (!is_one_disk || archive.directory_offset_ + num_directory_bytes != *end) {
    return damaged("its directory does not lie before its last record");
  }
  std::string_view rest = all.substr(archive.directory_offset_, num_directory_bytes);
  for (int i = 0; i < num_entries; ++i) {
    if (rest.size() < kDirectoryEntryBytes || number_at<uint32_t>(rest, 0) != kDirectorySignature) {
      return damaged("its directory has fewer entries than it states");
    }
    const size_t num_name = number_at<uint16_t>(rest, 28);
    const size_t size = kDirectoryEntryBytes + num_name + number_at<uint16_t>(rest, 30) +
                        number_at<uint16_t>(rest, 32);
    if (rest.size() < size) return damaged("an entry of its directory is cut off");
    archive.entries_.push_back({.name = one_line(rest.substr(kDirectoryEntryBytes, num_name)),
                                .flags = number_at<uint16_t>(rest, 8),
                                .method = number_at<uint16_t>(rest, 10),
                                .crc32 = number_at<uint32_t>(rest, 16),
                                .num_compressed = number_at<uint32_t>(rest, 20),
                                .num_bytes = number_at<uint32_t>(rest, 24),
                                .header_offset = number_at<uint32_t>(rest, 42)});
    rest.remove_prefix(size);
  }
  if (!rest.empty()) return damaged("its directory has more bytes than entries");
  return archive;
}

Result<std::string_view> ZipArchive::data_of(const ZipEntry& entry) const {
  if ((entry.flags & kEncryptedFlag) != 0 ||
      (entry.method != kStored && entry.method != kDeflated)) {
    return unimplemented(
        fmt::format("[hub] the package compresses {} by method {}{}; expected stored (0) or "
                    "deflated (8) without encryption",
                    clipped(entry.name), entry.method,
                    (entry.flags & kEncryptedFlag) != 0 ? " and encrypts it" : ""));
  }
  if (entry.num_bytes == kInZip64 || entry.num_compressed == kInZip64) {
    return unimplemented(fmt::format(
        "[hub] {} is larger than 4 GiB or stored as zip64; expected a smaller file in the package",
        clipped(entry.name)));
  }
  const bool is_possible = entry.method == kStored
                               ? entry.num_bytes == entry.num_compressed
                               : entry.num_bytes <= kMaxDeflateRatio * entry.num_compressed;
  if (!is_possible) {
    return damaged(fmt::format("it states {} bytes for {}, from {} compressed ones",
                               entry.num_bytes, clipped(entry.name), entry.num_compressed));
  }
  const std::string_view before = bytes_.substr(0, directory_offset_);
  if (before.size() < kLocalHeaderBytes ||
      entry.header_offset > before.size() - kLocalHeaderBytes ||
      number_at<uint32_t>(before, entry.header_offset) != kLocalSignature ||
      number_at<uint16_t>(before, entry.header_offset + 8) != entry.method) {
    return damaged(fmt::format("{} has no header", clipped(entry.name)));
  }
  const uint64_t begin = entry.header_offset + kLocalHeaderBytes +
                         number_at<uint16_t>(before, entry.header_offset + 26) +
                         number_at<uint16_t>(before, entry.header_offset + 28);
  if (begin > before.size() || entry.num_compressed > before.size() - begin) {
    return damaged(fmt::format("{} is outside of it", clipped(entry.name)));
  }
  return before.substr(begin, entry.num_compressed);
}

Status ZipArchive::extract(const ZipEntry& entry, const Sink& sink) const {
  QUIRE_ASSIGN_OR_RETURN(const std::string_view data, data_of(entry));
  uint64_t num_bytes = 0;
  uLong checksum = ::crc32(0, nullptr, 0);
  const auto check_and_pass = [&](std::string_view piece) -> Status {
    num_bytes += piece.size();
    if (num_bytes > entry.num_bytes) {
      return damaged(fmt::format("{} has more than the {} bytes that it states",
                                 clipped(entry.name), entry.num_bytes));
    }
    checksum = ::crc32(checksum, reinterpret_cast<const Bytef*>(piece.data()),
                       static_cast<uInt>(piece.size()));
    return sink(piece);
  };
  if (entry.method == kDeflated) {
    QUIRE_RETURN_IF_ERROR(Inflater().run(data, check_and_pass));
  } else {
    constexpr size_t kPieceBytes = size_t{1} << 20;
    for (size_t at = 0; at < data.size(); at += kPieceBytes) {
      QUIRE_RETURN_IF_ERROR(check_and_pass(data.substr(at, kPieceBytes)));
    }
  }
  if (num_bytes != entry.num_bytes || checksum != entry.crc32) {
    return damaged(fmt::format("{} has {} bytes with checksum {:08x}, expected {} with {:08x}",
                               clipped(entry.name), num_bytes, checksum, entry.num_bytes,
                               entry.crc32));
  }
  return {};
}

Result<std::string> ZipArchive::read(const ZipEntry& entry, size_t max_bytes) const {
  if (entry.num_bytes > max_bytes) {
    return invalid_argument(fmt::format("[hub] {} has {} bytes; expected at most {}",
                                        clipped(entry.name), entry.num_bytes, max_bytes));
  }
  std::string content;
  QUIRE_RETURN_IF_ERROR(extract(entry, [&](std::string_view bytes) -> Status {
    content += bytes;
    return {};
  }));
  return content;
}

}  // namespace quire::hub
