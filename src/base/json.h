// Parses JSON by simdjson's DOM, with limits of size and depth. This header takes two seconds to
// compile, so headers that only pass a value on declare simdjson's types instead of including it.
// json_writer.h writes JSON.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "quire/status.h"

namespace quire {

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  size_t max_depth = 64;
};

// Upper bound of the memory that parsing takes per byte of text. For n bytes, simdjson's buffers
// have 8 n of tape, 4 n of indexes, 5/3 n of strings and a padded copy. If an integer exceeds 64
// bits, a second text of up to 1.1 n is parsed instead, and the first one's copy remains.
inline constexpr int64_t kJsonParserBytesPerByte = 18;

// A parsed document. root() and everything reached through it stay valid while this object lives,
// also after a move.
class JsonDocument {
 public:
  // Fails with kInvalidArgument for invalid JSON and beyond the limits, and with kResourceExhausted
  // without memory. `source` names the text in errors: a path, "line 3 of FILE", "request body".
  static Result<JsonDocument> parse(std::string_view text, std::string_view source,
                                    const JsonLimits& limits = {});
  static Result<JsonDocument> load(const std::filesystem::path& path,
                                   const JsonLimits& limits = {});

  simdjson::dom::element root() const { return root_; }

 private:
  JsonDocument() = default;

  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::dom::element root_;
};

// Returns a key that the object has twice, if any. JSON readers differ in which value they take, so
// requests and configurations with such a key are rejected. The time is O(n log n) in the bytes of
// the keys, even if a client chooses them to collide in a hash table.
std::optional<std::string_view> find_repeated_key(simdjson::dom::object object);
// Does the same for every object within the value, and returns the key's path relative to the
// value, such as ".json_schema.type" or "[2].content".
std::optional<std::string> find_nested_repeated_key(simdjson::dom::element value);

}  // namespace quire
