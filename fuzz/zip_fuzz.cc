// Reads arbitrary bytes as a wheel: a zip archive with one GGUF file and its licence. Contents must
// have the size that the archive states.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "hub/package/package_index.h"
#include "hub/package/wheel.h"
#include "hub/package/zip.h"

namespace {

using namespace quire;
using namespace quire::hub;

void check_archive(std::span<const std::byte> bytes) {
  constexpr uint64_t kMaxBytes = 1 << 20;
  const Result<ZipArchive> zip = ZipArchive::open(bytes);
  if (!zip.ok()) return;
  uint64_t total = 0;  // entries may share their data, so the sum of all contents may be large
  for (const ZipEntry& entry : zip->entries()) {
    uint64_t num_bytes = 0;
    const Status status = zip->extract(entry, [&](std::string_view piece) -> Status {
      num_bytes += piece.size();
      QUIRE_CHECK(num_bytes <= entry.num_bytes, "an entry has more bytes than it states");
      return num_bytes > kMaxBytes ? unavailable("enough") : Status();
    });
    QUIRE_CHECK(!status.ok() || num_bytes == entry.num_bytes, "an entry has another size");
    total += num_bytes;
    if (total > 4 * kMaxBytes) return;
  }
  const Result<const ZipEntry*> gguf = find_gguf_entry(*zip);
  if (gguf.ok()) (void)licence_text(*zip, **gguf);
}

void check_page(std::string_view page) {
  const auto files = parse_index_page(page);
  if (!files.ok()) return;
  for (const IndexFile& file : *files) {
    QUIRE_CHECK(file.url.find('#') == std::string::npos, "an address has a fragment");
    QUIRE_CHECK(file.sha256.empty() || file.sha256.size() == 64, "a hash is none");
  }
  (void)choose_wheel(*files, {"m", "1"});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  check_archive(std::as_bytes(std::span(data, size)));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_page(text);
  if (const auto package = parse_package_name(text)) {
    QUIRE_CHECK(parse_package_name(package->text()).has_value(), "a name does not parse again");
  }
  return 0;
}
