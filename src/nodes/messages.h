// The messages between nodes as bytes. Every function is pure. Readers limit sizes, and return only
// printable texts, because the texts are logged.
//
// Rendezvous: node 0 sends kGreeting and a nonce. The node answers with a Hello. Node 0 sends
// Verdicts: kRefused at once; otherwise kWaiting about every second, and kWelcome when all nodes
// have arrived, so that all begin at the same time. Hello and Verdict are signed: their length
// precedes them, and a code that only a node with the token can compute follows them. If the node's
// code is wrong, node 0 sends unsigned_answer(), because it signs nothing for other programs.
//
// Afterwards the nodes exchange frames, each of which begins with a head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/status.h"

namespace quire {

// ---- Rendezvous

inline constexpr std::string_view kGreeting = "quire nodes 3\n";
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kCodeBytes = 32;
inline constexpr size_t kLengthBytes = 4;
// Upper bound of a Hello or a Verdict.
inline constexpr size_t kMaxSignedBytes = size_t{32} << 10;

// Names and values that are the same on all nodes.
using NodeSettings = std::vector<std::pair<std::string, std::string>>;

struct Hello {
  std::string nonce;
  int32_t node = 0;
  int32_t num_nodes = 0;
  std::string host;
  NodeSettings settings;
};

enum class Answer : uint8_t { kWelcome, kRefused, kWaiting };
struct Verdict {
  Answer answer = Answer::kRefused;
  std::string text;  // the host name of node 0, or the reason; empty for kWaiting
};

// Long texts are cut and made printable. A cut setting ends with a digest of its whole value.
std::string hello_bytes(const Hello& hello);
std::string verdict_bytes(const Verdict& verdict);
// Absent: the bytes are malformed, or a text is too long or not printable.
std::optional<Hello> read_hello(std::string_view bytes);
std::optional<Verdict> read_verdict(std::string_view bytes);

// Returns the message with its length and its code. `sender` is "node 0" or "node".
std::string signed_bytes(std::string_view message, std::string_view token, std::string_view sender,
                         std::string_view peer_nonce);
std::string unsigned_answer();
// Returns the size of message and code from the kLengthBytes before them; absent: the message
// exceeds kMaxSignedBytes.
std::optional<size_t> signed_size(std::string_view length);
// Returns the message, if its code is right. `bytes`: message and code.
std::optional<std::string_view> check_signed(std::string_view bytes, std::string_view token,
                                             std::string_view sender, std::string_view own_nonce);

struct SettingDifference {
  std::string name;
  std::string got;
  std::string expected;
};
// Returns the first setting that only one side has, or whose values differ.
std::optional<SettingDifference> first_difference(const NodeSettings& got,
                                                  const NodeSettings& expected);
// "differs from node 0 in `block_size`: got 32, expected 16".
std::string describe(const SettingDifference& difference);
// The remedy of a difference between nodes.
std::string_view remedy_of(const SettingDifference& difference);

// ---- Frames

enum class FrameKind : uint8_t { kAlive, kMessage, kGather, kError, kEnd };
struct FrameHead {
  FrameKind kind = FrameKind::kAlive;
  uint32_t num_bytes = 0;  // bytes that follow the head
};
inline constexpr size_t kFrameHeadBytes = 5;
// Upper bound of a kMessage or a kGather.
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

std::string head_bytes(FrameHead head);
// Absent: the kind is unknown, or the size exceeds the limit of the kind.
std::optional<FrameHead> read_head(std::string_view bytes);

// `is_passed_on`: the error comes from another node and names it already.
std::string error_bytes(const Status& error, bool is_passed_on);
// Returns the error of node `from`. Its message names the node, unless the error is passed on.
// Absent: the bytes are malformed.
std::optional<Status> read_error(std::string_view bytes, std::string_view from);

}  // namespace quire
