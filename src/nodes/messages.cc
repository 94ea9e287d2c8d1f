#include "nodes/messages.h"

#include <fmt/format.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/byte_archive.h"
#include "base/digest.h"
#include "base/text.h"

namespace quire {
namespace {

constexpr size_t kMaxSettings = 64;
constexpr size_t kMaxNameBytes = 64;
constexpr size_t kMaxValueBytes = 320;
constexpr size_t kMaxHostBytes = 255;
constexpr size_t kMaxTextBytes = 1536;
constexpr size_t kMaxErrorBytes = 4096;  // of a kError frame

bool is_printable(std::string_view text, size_t max_bytes) {
  return text.size() <= max_bytes && one_line(text) == text;
}

std::string cut(std::string_view text, size_t max_bytes) {
  const std::string line = one_line(text);
  if (line.size() <= max_bytes) return line;
  return line.substr(0, complete_utf8_prefix(std::string_view(line).substr(0, max_bytes)));
}

// A cut value ends with a digest, so that two values that differ after the cut stay different.
std::string cut_value(std::string_view value) {
  if (std::string line = one_line(value); line.size() <= kMaxValueBytes) return line;
  const Sha256Digest digest = sha256_of(value);
  return fmt::format("{}… (SHA-256 {})", cut(value, kMaxValueBytes - 64),
                     to_hexadecimal(std::span(digest).first(16)));
}

// Compares in constant time, so that the time does not reveal the first difference.
bool are_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size() || a.empty()) return false;
  int difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

// Returns an empty text if libcrypto fails.
std::string code_of(std::string_view token, std::string_view sender, std::string_view peer_nonce,
                    std::string_view message) {
  const std::string text = fmt::format("{}\n{}{}", sender, peer_nonce, message);
  std::string code(kCodeBytes, '\0');
  unsigned int size = 0;
  const bool made =
      ::HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
             static_cast<const unsigned char*>(static_cast<const void*>(text.data())), text.size(),
             static_cast<unsigned char*>(static_cast<void*>(code.data())), &size) != nullptr;
  return made && size == kCodeBytes ? code : "";
}

std::string with_length(std::string_view message) {
  ByteWriter writer;
  writer(static_cast<uint32_t>(message.size()));
  return writer.take().append(message);
}

size_t max_bytes_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kMessage:
    case FrameKind::kGather:
      return kMaxFrameBytes;
    case FrameKind::kError:
      return kMaxErrorBytes;
    case FrameKind::kAlive:
    case FrameKind::kEnd:
      return 0;
  }
  return 0;
}

}  // namespace

template <typename Archive, typename Value>
requires std::is_same_v<std::remove_const_t<Value>, Hello>
void fields(Archive& archive, Value& hello) {
  archive(hello.nonce, hello.node, hello.num_nodes, hello.host, hello.settings);
}

// ---- Rendezvous

std::string hello_bytes(const Hello& hello) {
  Hello sent = hello;
  sent.host = cut(hello.host, kMaxHostBytes);
  for (auto& [name, value] : sent.settings) value = cut_value(value);
  ByteWriter writer;
  writer(sent);
  return writer.take();
}

std::optional<Hello> read_hello(std::string_view bytes) {
  Hello hello;
  ByteReader reader(bytes);
  reader(hello);
  const bool is_bounded = hello.nonce.size() == kNonceBytes &&
                          is_printable(hello.host, kMaxHostBytes) &&
                          hello.settings.size() <= kMaxSettings &&
                          std::ranges::all_of(hello.settings, [](const auto& setting) {
                            return is_printable(setting.first, kMaxNameBytes) &&
                                   is_printable(setting.second, kMaxValueBytes);
                          });
  if (!reader.is_complete() || !is_bounded) return std::nullopt;
  return hello;
}

std::string verdict_bytes(const Verdict& verdict) {
  ByteWriter writer;
  writer(static_cast<uint8_t>(verdict.answer), cut(verdict.text, kMaxTextBytes));
  return writer.take();
}

std::optional<Verdict> read_verdict(std::string_view bytes) {
  uint8_t answer = 0;
  Verdict verdict;
  ByteReader reader(bytes);
  reader(answer, verdict.text);
  verdict.answer = static_cast<Answer>(answer);
  if (!reader.is_complete() || answer > static_cast<uint8_t>(Answer::kWaiting) ||
      !is_printable(verdict.text, kMaxTextBytes)) {
    return std::nullopt;
  }
  return verdict;
}

std::string signed_bytes(std::string_view message, std::string_view token, std::string_view sender,
                         std::string_view peer_nonce) {
  return with_length(message) + code_of(token, sender, peer_nonce, message);
}

std::string unsigned_answer() {
  return with_length("") + std::string(kCodeBytes, '\0');
}

std::optional<size_t> signed_size(std::string_view length) {
  uint32_t size = 0;
  ByteReader reader(length.substr(0, kLengthBytes));
  reader(size);
  if (!reader.ok() || size > kMaxSignedBytes) return std::nullopt;
  return size + kCodeBytes;
}

std::optional<std::string_view> check_signed(std::string_view bytes, std::string_view token,
                                             std::string_view sender, std::string_view own_nonce) {
  if (bytes.size() < kCodeBytes) return std::nullopt;
  const std::string_view message = bytes.substr(0, bytes.size() - kCodeBytes);
  if (!are_equal(bytes.substr(message.size()), code_of(token, sender, own_nonce, message))) {
    return std::nullopt;
  }
  return message;
}

std::optional<SettingDifference> first_difference(const NodeSettings& got,
                                                  const NodeSettings& expected) {
  constexpr std::string_view kAbsent = "no such setting";
  for (size_t i = 0; i < std::max(got.size(), expected.size()); ++i) {
    if (i >= expected.size()) {
      return SettingDifference{cut(got[i].first, kMaxNameBytes), cut_value(got[i].second),
                               std::string(kAbsent)};
    }
    const auto& [name, value] = expected[i];
    const bool has_name = i < got.size() && got[i].first == name;
    if (!has_name) return SettingDifference{name, std::string(kAbsent), cut_value(value)};
    // The other node cuts long values before it sends them.
    if (cut_value(got[i].second) != cut_value(value)) {
      return SettingDifference{name, cut_value(got[i].second), cut_value(value)};
    }
  }
  return std::nullopt;
}

std::string describe(const SettingDifference& difference) {
  return fmt::format("differs from node 0 in `{}`: got {}, expected {}", difference.name,
                     difference.got, difference.expected);
}

std::string_view remedy_of(const SettingDifference& difference) {
  const std::string_view setting = difference.name;
  if (setting == "version" || setting == "build") return "run the same build of Quire on all nodes";
  if (setting.starts_with("model")) return "give all nodes the same files of the model";
  return "start all nodes with the same flags";
}

// ---- Frames

std::string head_bytes(FrameHead head) {
  ByteWriter writer;
  writer(head.num_bytes, static_cast<uint8_t>(head.kind));
  return writer.take();
}

std::optional<FrameHead> read_head(std::string_view bytes) {
  FrameHead head;
  uint8_t kind = 0;
  ByteReader reader(bytes);
  reader(head.num_bytes, kind);
  head.kind = static_cast<FrameKind>(kind);
  if (!reader.is_complete() || kind > static_cast<uint8_t>(FrameKind::kEnd) ||
      head.num_bytes > max_bytes_of(head.kind)) {
    return std::nullopt;
  }
  return head;
}

std::string error_bytes(const Status& error, bool is_passed_on) {
  ByteWriter writer;
  writer(static_cast<uint8_t>(error.code()), static_cast<uint8_t>(is_passed_on),
         cut(error.message(), kMaxTextBytes));
  return writer.take();
}

std::optional<Status> read_error(std::string_view bytes, std::string_view from) {
  uint8_t code = 0;
  uint8_t is_passed_on = 0;
  std::string text;
  ByteReader reader(bytes);
  reader(code, is_passed_on, text);
  const bool is_code = code > 0 && code <= static_cast<uint8_t>(StatusCode::kUnavailable);
  if (!reader.is_complete() || !is_code) return std::nullopt;
  text = cut(text, kMaxTextBytes);
  if (is_passed_on == 0) text = fmt::format("[nodes] {} has failed: {}", from, text);
  return Status(static_cast<StatusCode>(code), std::move(text));
}

}  // namespace quire
