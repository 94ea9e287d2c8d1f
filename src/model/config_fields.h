// Reads and checks the fields of config.json and generation_config.json.
#pragma once

#include <simdjson.h>

#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire {

// Reads one JSON object. status() keeps the first error, and later reads return valid placeholder
// values, so that a parser is a plain list of fields. A null field counts as absent.
class ConfigFields {
 public:
  // `path` precedes a field's name in errors: "" or "rope_scaling.". A key that appears twice is an
  // error, because JSON readers differ in which value they take. With an empty source, errors begin
  // with the field, and the caller adds the place.
  ConfigFields(simdjson::dom::object object, std::string_view source, std::string path = "");

  const Status& status() const { return status_; }
  bool has(std::string_view key) const;
  // Also accepts each of `others` as a spelling of `key`; errors name the spelling that is present.
  // Fails if two spellings are present with different values. The names must outlive the fields, as
  // literals do.
  void add_spellings(std::string_view key, std::initializer_list<std::string_view> others);
  // Whether the key is present, even with a null value.
  bool mentions(std::string_view key) const;
  // The keys whose values are not null, in the order of the text.
  std::vector<std::string> keys() const;
  // The keys whose values nothing has read, in the order of the text.
  std::vector<std::string> unread_keys() const;
  // Fails if there is a key besides these.
  void expect_only(std::initializer_list<std::string_view> known);

  // If the field is absent, returns the fallback; without a fallback, the error says that it is
  // missing.
  int integer(std::string_view key, int min, int max, std::optional<int> fallback = {});
  // Returns nullopt if the field is absent.
  std::optional<int> optional_integer(std::string_view key, int min, int max);
  double number(std::string_view key, double min, double max, std::optional<double> fallback = {});
  std::optional<double> optional_number(std::string_view key, double min, double max);
  bool boolean(std::string_view key, bool fallback);
  std::optional<bool> optional_boolean(std::string_view key);
  std::optional<std::string> optional_text(std::string_view key);
  bool is_text(std::string_view key) const;
  // Fails if the field is present and its value is not `served`; false counts as 0.
  void expect_value(std::string_view key, double served, std::string_view expected);
  // Reads an integer or a list of integers, as in eos_token_id; empty if absent.
  std::vector<int> integers(std::string_view key, int min, int max, size_t max_count);
  // Reads a list of numbers; empty if absent.
  std::vector<double> numbers(std::string_view key, double min, double max, size_t max_count);
  // Reads a list of lists of `width` integers; empty if absent.
  std::vector<std::vector<int>> integer_rows(std::string_view key, int min, int max, size_t width,
                                             size_t max_count);
  // Reads a list of strings; empty if absent.
  std::vector<std::string> texts(std::string_view key, size_t max_count);
  // Reads a nested object; nullopt if absent.
  std::optional<ConfigFields> object(std::string_view key);

  // Records the error `[config] SOURCE: FIELD got X, expected Y`, unless there already is one.
  void fail(std::string_view key, std::string_view got, std::string_view expected);
  void keep(const Status& status);

 private:
  struct Spelling {
    std::string_view key;
    std::string_view other;
  };

  // The spelling that is present, with a value rather than with a null; otherwise the key.
  std::string_view spelling_of(std::string_view key) const;
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  void keep_error(std::string_view spelling, std::string_view got, std::string_view expected);
  std::optional<int> read_integer(std::string_view key, simdjson::dom::element value, int min,
                                  int max);
  std::optional<double> read_number(std::string_view key, simdjson::dom::element value, double min,
                                    double max);

  simdjson::dom::object object_;
  std::string source_;
  std::string path_;
  std::vector<Spelling> spellings_;
  mutable std::set<std::string, std::less<>> read_;  // the spellings that were looked for
  Status status_;
};

// Record an error if the field is present and its value is not `served`.
void require_switch(ConfigFields& fields, std::string_view key, bool served);
void require_text(ConfigFields& fields, std::string_view key, std::string_view served);
// If a list has entries, but not one per layer, records an error and returns false.
bool require_one_per_layer(ConfigFields& fields, std::string_view key, size_t num_entries,
                           int num_layers);

inline constexpr JsonLimits kConfigLimits = {.max_bytes = size_t{16} << 20, .max_depth = 32};

// The object of a config.json; the document must outlive it and its fields.
Result<simdjson::dom::object> root_object(const JsonDocument& document, std::string_view source);
// The checkpoint's type of weights, if its config.json states it.
std::optional<DType> read_dtype(ConfigFields& fields);

}  // namespace quire
