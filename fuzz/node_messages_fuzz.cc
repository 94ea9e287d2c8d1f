// Parses bytes from another node. Accepted messages are bounded and printable, and give the same
// bytes when they are written again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/text.h"
#include "nodes/messages.h"

namespace {

void check_text(std::string_view text, size_t max_bytes) {
  QUIRE_CHECK(text.size() <= max_bytes, "a text is too long");
  QUIRE_CHECK(quire::one_line(text) == text, "a text is not printable");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(static_cast<const char*>(static_cast<const void*>(data)), size);
  if (const auto hello = quire::read_hello(bytes)) {
    check_text(hello->host, 255);
    for (const auto& [name, value] : hello->settings) {
      check_text(name, 64);
      check_text(value, 320);
    }
    QUIRE_CHECK(quire::hello_bytes(*hello) == bytes, "the bytes of a hello differ");
    if (const auto difference = quire::first_difference(hello->settings, {{"version", "1"}})) {
      check_text(quire::describe(*difference), 2048);
    }
  }
  if (const auto verdict = quire::read_verdict(bytes)) {
    check_text(verdict->text, 1536);
    QUIRE_CHECK(quire::verdict_bytes(*verdict) == bytes, "the bytes of a verdict differ");
  }
  if (const auto error = quire::read_error(bytes, "node 1 (host)")) {
    QUIRE_CHECK(!error->ok(), "an error is none");
    check_text(error->message(), 2048);
  }
  if (const auto head = quire::read_head(bytes)) {
    QUIRE_CHECK(quire::head_bytes(*head) == bytes, "the bytes of a head differ");
    QUIRE_CHECK(head->num_bytes <= quire::kMaxFrameBytes, "a frame is too large");
  }
  if (const auto signed_size = quire::signed_size(bytes)) {
    QUIRE_CHECK(*signed_size <= quire::kMaxSignedBytes + quire::kCodeBytes,
                "a message is too large");
  }
  (void)quire::check_signed(bytes, "token", "node", "nonce");
  return 0;
}
