#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/ascii.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "base/text.h"

namespace quire {
namespace {

bool fits_64_bits(std::string_view digits, bool is_negative) {
  uint64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return parsed.ec == std::errc() && value <= (is_negative ? uint64_t{1} << 63 : UINT64_MAX);
}

// simdjson's DOM rejects integers that do not fit 64 bits, and about half of all
// tokenizer_config.json files have one (model_max_length: 10^30). With an exponent the same value
// is read as a double.
std::string big_integers_as_doubles(std::string_view text) {
  std::string out;
  // "e0" is appended at most once per 21 bytes: an integer of 20 digits, and a separator.
  out.reserve(text.size() + text.size() / 10 + 64);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string || !is_digit(c)) {
      out += c;
      ++i;
      if (in_string && c == '\\' && i < text.size()) out += text[i++];
      if (c == '"') in_string = !in_string;
      continue;
    }
    const size_t end = std::min(text.find_first_not_of("0123456789.eE+-", i), text.size());
    const std::string_view number = text.substr(i, end - i);
    out += number;
    const bool is_integer = number.find_first_of(".eE") == std::string_view::npos;
    if (is_integer && !fits_64_bits(number, i > 0 && text[i - 1] == '-')) out += "e0";
    i = end;
  }
  return out;
}

std::optional<std::string_view> find_repeated(std::vector<std::string_view>& keys) {
  std::sort(keys.begin(), keys.end());
  const auto found = std::adjacent_find(keys.begin(), keys.end());
  if (found == keys.end()) return std::nullopt;
  return *found;
}

class RepeatedKeySearch {
 public:
  // Returns whether an object repeats a key. place() is then the path of the first such key.
  bool find(simdjson::dom::element value) {
    simdjson::dom::object object;
    simdjson::dom::array array;
    if (!value.get(object)) return find_in_object(object);
    return !value.get(array) && find_in_array(array);
  }
  const std::string& place() const { return place_; }

 private:
  bool find_in_object(simdjson::dom::object object) {
    keys_.clear();
    for (const auto& [key, member] : object) keys_.push_back(key);
    if (const auto key = find_repeated(keys_)) return found_below("." + clipped(*key));
    for (const auto& [key, member] : object) {
      if (find(member)) return found_below("." + clipped(key));
    }
    return false;
  }
  bool find_in_array(simdjson::dom::array array) {
    size_t idx = 0;
    for (const simdjson::dom::element item : array) {
      if (find(item)) return found_below(fmt::format("[{}]", idx));
      ++idx;
    }
    return false;
  }
  // Prepends `step`, because the path is built from the innermost key outwards.
  bool found_below(const std::string& step) {
    place_.insert(0, step);
    return true;
  }

  std::vector<std::string_view> keys_;  // of one object at a time
  std::string place_;
};

// Whether a JSON string contains this byte without an escape. Bytes of multi-byte characters are
// false here: they are first checked as UTF-8.
constexpr auto kIsPlain = [] {
  std::array<bool, 256> table{};
  for (size_t byte = 0x20; byte < 0x80; ++byte) table[byte] = byte != '"' && byte != '\\';
  return table;
}();

size_t num_plain_bytes(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && kIsPlain[static_cast<unsigned char>(text[count])]) ++count;
  return count;
}

void append_escape(char c, std::string& out) {
  constexpr std::string_view kFrom = "\"\\\n\r\t";
  constexpr std::string_view kTo = "\"\\nrt";
  const size_t named = kFrom.find(c);
  out += '\\';
  if (named != std::string_view::npos) {
    out += kTo[named];
  } else {
    fmt::format_to(std::back_inserter(out), "u{:04x}", static_cast<int>(c));
  }
}

}  // namespace

std::optional<std::string_view> find_repeated_key(simdjson::dom::object object) {
  std::vector<std::string_view> keys;
  for (const auto& [key, member] : object) keys.push_back(key);
  return find_repeated(keys);
}

std::optional<std::string> find_nested_repeated_key(simdjson::dom::element value) {
  RepeatedKeySearch search;
  if (!search.find(value)) return std::nullopt;
  return search.place();
}

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string_view source,
                                         const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid_argument(fmt::format("[json] {} is too large; got {} bytes, expected at most {}",
                                        source, text.size(), limits.max_bytes));
  }
  // simdjson copies from the text's address even if there is nothing to copy.
  if (text.data() == nullptr) text = "";
  JsonDocument document;
  document.parser_ = std::make_unique<simdjson::dom::parser>();
  simdjson::error_code error = document.parser_->allocate(text.size(), limits.max_depth);
  if (!error) error = document.parser_->parse(text.data(), text.size()).get(document.root_);
  if (error == simdjson::NUMBER_ERROR) {
    // A new parser, because simdjson allocates larger buffers before it frees the old ones.
    document.parser_ = std::make_unique<simdjson::dom::parser>();
    const std::string widened = big_integers_as_doubles(text);
    error = document.parser_->allocate(widened.size(), limits.max_depth);
    if (!error) error = document.parser_->parse(widened.data(), widened.size()).get(document.root_);
  }
  if (error == simdjson::MEMALLOC) {
    return resource_exhausted(
        fmt::format("[json] not enough memory to read {}; expected about {} bytes; free memory",
                    source, kJsonParserBytesPerByte * static_cast<int64_t>(text.size())));
  }
  if (error) {
    return invalid_argument(fmt::format(
        "[json] cannot parse {}; {}; expected one JSON value of at most {} levels: correct it",
        source, simdjson::error_message(error), limits.max_depth));
  }
  return document;
}

Result<JsonDocument> JsonDocument::load(const std::filesystem::path& path,
                                        const JsonLimits& limits) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits.max_bytes));
  return parse(text, path.string(), limits);
}

void JsonWriter::key(std::string_view name) {
  separate();
  append_quoted(name);
  text_ += ':';
  need_comma_ = false;
}

void JsonWriter::value(std::string_view text) {
  separate();
  append_quoted(text);
}

void JsonWriter::value(int64_t number) {
  const fmt::format_int digits(number);
  raw({digits.data(), digits.size()});
}

void JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  raw(fmt::format("{}", number));
}

void JsonWriter::ids(const std::vector<int32_t>& ids) {
  begin_array();
  for (const int32_t id : ids) value(int64_t{id});
  end_array();
}

void JsonWriter::append_quoted(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    const size_t num_plain = num_plain_bytes(text);
    text_ += text.substr(0, num_plain);
    text.remove_prefix(num_plain);
    if (text.empty()) break;
    if (static_cast<unsigned char>(text[0]) < 0x80) {
      append_escape(text[0], text_);
      text.remove_prefix(1);
      continue;
    }
    const Utf8Char c = decode_utf8(text);
    const auto num_bytes = static_cast<size_t>(c.num_bytes);
    if (c.valid) {
      text_ += text.substr(0, num_bytes);
    } else {
      append_utf8(c.code_point, text_);
    }
    text.remove_prefix(num_bytes);
  }
  text_ += '"';
}

}  // namespace quire
