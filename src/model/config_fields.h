// Typed, range-checked reading of a configuration's fields.
#pragma once

#include <fmt/format.h>
#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quire/status.h"

namespace quire {

// Reads one JSON object. The first field at fault is kept in status(), and reading goes on with
// harmless values, so that a parser reads as a list of fields. A null field counts as absent.
class ConfigFields {
 public:
  // `path` stands before a field's name in errors: "" or "rope_scaling.".
  // A key that is there twice is a fault: readers differ in which value they take.
  ConfigFields(simdjson::dom::object object, std::string_view source, std::string path = "");

  const Status& status() const { return status_; }
  bool has(std::string_view key) const;
  // There, if only as null.
  bool mentions(std::string_view key) const;

  // Absent and no fallback: an error that says that the field is missing.
  int integer(std::string_view key, int min, int max, std::optional<int> fallback = {});
  // Absent: nothing.
  std::optional<int> optional_integer(std::string_view key, int min, int max);
  double number(std::string_view key, double min, double max, std::optional<double> fallback = {});
  std::optional<double> optional_number(std::string_view key, double min, double max);
  bool boolean(std::string_view key, bool fallback);
  std::optional<bool> optional_boolean(std::string_view key);
  std::optional<std::string> optional_text(std::string_view key);
  // A whole number or a list of them, as eos_token_id is; absent: empty.
  std::vector<int> integers(std::string_view key, int min, int max, size_t max_count);
  // A list of strings; absent: empty.
  std::vector<std::string> texts(std::string_view key, size_t max_count);
  // The fields of a nested object; absent: nothing.
  std::optional<ConfigFields> object(std::string_view key);

  // `[config] SOURCE: FIELD got X, expected Y`, kept unless there already was a fault.
  void fail(std::string_view key, std::string_view got, std::string_view expected);
  void keep(const Status& status);

 private:
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  std::optional<int> read_integer(std::string_view key, simdjson::dom::element value, int min,
                                  int max);

  simdjson::dom::object object_;
  std::string source_;
  std::string path_;
  Status status_;
};

}  // namespace quire
