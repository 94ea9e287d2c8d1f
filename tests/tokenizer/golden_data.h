// Reads the golden files that tools/golden/tokenizer.py writes, and has helpers for their tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/shared_data.h"
#include "support/value_of.h"
#include "tokenizer/tokenizer.h"

namespace quire::testing {

inline std::filesystem::path golden_path(std::string_view name) {
  return source_path("tests/tokenizer/golden") / name;
}

inline std::string read_golden(std::string_view name) {
  return value_of(read_file(golden_path(name), size_t{8} << 20));
}

inline JsonDocument load_golden(std::string_view name) {
  return JsonDocument::load(golden_path(name)).value();
}

inline std::string string_of(simdjson::dom::element object, std::string_view key) {
  return std::string(std::string_view(object[key]));
}

inline std::vector<int32_t> ids_of(simdjson::dom::element object, std::string_view key) {
  std::vector<int32_t> ids;
  for (const int64_t id : simdjson::dom::array(object[key]))
    ids.push_back(static_cast<int32_t>(id));
  return ids;
}

inline uint64_t fnv1a(std::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325U;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return hash;
}

inline uint64_t fnv1a(const std::vector<int32_t>& ids) {
  return fnv1a({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)});
}

// The golden files of whole tokenizers.
inline constexpr std::string_view kTokenizerFiles[] = {"components.json", "gemma.json"};

// The tokenizers of those files in order, with their names.
struct NamedTokenizer {
  std::string name;
  std::shared_ptr<const Tokenizer> tokenizer;
};
inline std::vector<NamedTokenizer> component_tokenizers() {
  std::vector<NamedTokenizer> result;
  for (const std::string_view file : kTokenizerFiles) {
    const JsonDocument golden = load_golden(file);
    for (const simdjson::dom::element entry : simdjson::dom::array(golden.root())) {
      const std::string json = simdjson::minify(simdjson::dom::element(entry["tokenizer"]));
      std::shared_ptr<const Tokenizer> tokenizer =
          value_of(Tokenizer::from_json(json, string_of(entry, "name")));
      result.push_back({string_of(entry, "name"), tokenizer});
    }
  }
  return result;
}

// Decodes the ids incrementally and joins the pieces, each of which is checked to be whole
// characters.
std::string decode_incrementally(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                                 bool skip_special_tokens);

}  // namespace quire::testing
