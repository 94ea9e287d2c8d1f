#include "model/config_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/tensor.h"
#include "tensor/weight_source.h"

namespace quire {
namespace {

// The value of a field, shortened for an error.
std::string shown(simdjson::dom::element value) {
  std::string_view text;
  if (value.get(text)) return quote_name(simdjson::minify(value));
  return fmt::format("the string {}", quote_name(text));
}

bool are_equal(simdjson::dom::element a, simdjson::dom::element b) {
  double number_a = 0;  // Python writes 8.0 for a computed number
  double number_b = 0;
  if (!a.get(number_a) && !b.get(number_b)) return number_a == number_b;
  return simdjson::minify(a) == simdjson::minify(b);
}

}  // namespace

ConfigFields::ConfigFields(simdjson::dom::object object, std::string_view source, std::string path)
    : object_(object), source_(source), path_(std::move(path)) {
  if (const auto key = find_repeated_key(object_)) fail(quote_name(*key), "it twice", "one value");
}

void ConfigFields::add_spellings(std::string_view key,
                                 std::initializer_list<std::string_view> others) {
  for (const std::string_view other : others) {
    const std::optional<simdjson::dom::element> present = find(key);
    const std::string_view present_key = spelling_of(key);
    spellings_.push_back({key, other});
    simdjson::dom::element value;
    if (!present || object_[other].get(value) || value.is_null()) continue;
    if (are_equal(*present, value)) continue;
    keep_error(other, fmt::format("{} beside {} {}", shown(value), present_key, shown(*present)),
               "the same value in both");
  }
}

std::string_view ConfigFields::spelling_of(std::string_view key) const {
  std::string_view mentioned;
  const auto has_value = [&](std::string_view spelling) {
    simdjson::dom::element value;
    if (object_[spelling].get(value)) return false;
    if (mentioned.empty()) mentioned = spelling;
    return !value.is_null();
  };
  if (has_value(key)) return key;
  for (const Spelling& spelling : spellings_) {
    if (spelling.key == key && has_value(spelling.other)) return spelling.other;
  }
  return mentioned.empty() ? key : mentioned;
}

std::optional<simdjson::dom::element> ConfigFields::find(std::string_view key) const {
  const std::string_view spelling = spelling_of(key);
  read_.emplace(spelling);
  for (const Spelling& other : spellings_) {
    if (other.key == key) read_.emplace(other.other);  // has the same value
  }
  simdjson::dom::element value;
  if (object_[spelling].get(value) || value.is_null()) return std::nullopt;
  return value;
}

std::vector<std::string> ConfigFields::unread_keys() const {
  std::vector<std::string> unread = keys();
  std::erase_if(unread, [this](const std::string& key) { return read_.contains(key); });
  return unread;
}

bool ConfigFields::mentions(std::string_view key) const {
  return object_[spelling_of(key)].error() == simdjson::SUCCESS;
}

std::vector<std::string> ConfigFields::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, value] : object_) {
    if (!value.is_null()) all.emplace_back(key);
  }
  return all;
}

void ConfigFields::expect_only(std::initializer_list<std::string_view> known) {
  const auto is_known = [&](std::string_view key) {
    return std::ranges::any_of(known, [&](std::string_view name) {
      return name == key || std::ranges::any_of(spellings_, [&](const Spelling& spelling) {
               return spelling.key == name && spelling.other == key;
             });
    });
  };
  for (const std::string& key : keys()) {
    if (is_known(key)) continue;
    fail(quote_name(key), "an unknown field", fmt::format("one of {}", fmt::join(known, ", ")));
  }
}

bool ConfigFields::has(std::string_view key) const {
  return find(key).has_value();
}

bool ConfigFields::is_text(std::string_view key) const {
  const std::optional<simdjson::dom::element> value = find(key);
  return value && value->is_string();
}

void ConfigFields::keep(const Status& status) {
  if (status_.ok()) status_ = status;
}

void ConfigFields::fail(std::string_view key, std::string_view got, std::string_view expected) {
  keep_error(spelling_of(key), got, expected);
}

void ConfigFields::keep_error(std::string_view spelling, std::string_view got,
                              std::string_view expected) {
  const std::string place = source_.empty() ? "" : fmt::format("[config] {}: ", source_);
  keep(invalid_argument(
      fmt::format("{}{}{}; got {}, expected {}", place, path_, spelling, got, expected)));
}

std::optional<int> ConfigFields::read_integer(std::string_view key, simdjson::dom::element value,
                                              int min, int max) {
  double number = 0;  // Python writes 8192.0 for a computed number
  if (!value.get(number) && number >= min && number <= max && number == std::floor(number)) {
    return static_cast<int>(number);
  }
  fail(key, shown(value), fmt::format("a whole number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<int> ConfigFields::optional_integer(std::string_view key, int min, int max) {
  const auto value = find(key);
  return value ? read_integer(key, *value, min, max) : std::nullopt;
}

int ConfigFields::integer(std::string_view key, int min, int max, std::optional<int> fallback) {
  const int placeholder = fallback.value_or(min);
  if (const auto value = find(key)) {
    return read_integer(key, *value, min, max).value_or(placeholder);
  }
  if (!fallback) fail(key, "nothing", fmt::format("a whole number from {} to {}", min, max));
  return placeholder;
}

std::optional<double> ConfigFields::read_number(std::string_view key, simdjson::dom::element value,
                                                double min, double max) {
  double number = 0;
  if (!value.get(number) && number >= min && number <= max) return number;
  fail(key, shown(value), fmt::format("a number from {} to {}", min, max));
  return std::nullopt;
}

std::optional<double> ConfigFields::optional_number(std::string_view key, double min, double max) {
  const auto value = find(key);
  return value ? read_number(key, *value, min, max) : std::nullopt;
}

double ConfigFields::number(std::string_view key, double min, double max,
                            std::optional<double> fallback) {
  const double placeholder = fallback.value_or(min);
  if (const auto value = find(key)) {
    return read_number(key, *value, min, max).value_or(placeholder);
  }
  if (!fallback) fail(key, "nothing", fmt::format("a number from {} to {}", min, max));
  return placeholder;
}

std::optional<bool> ConfigFields::optional_boolean(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  bool flag = false;
  if (!value->get(flag)) return flag;
  fail(key, shown(*value), "true or false");
  return std::nullopt;
}

bool ConfigFields::boolean(std::string_view key, bool fallback) {
  return optional_boolean(key).value_or(fallback);
}

std::optional<std::string> ConfigFields::optional_text(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  std::string_view text;
  if (!value->get(text)) return std::string(text);
  fail(key, shown(*value), "a string");
  return std::nullopt;
}

void ConfigFields::expect_value(std::string_view key, double served, std::string_view expected) {
  const auto value = find(key);
  if (!value) return;
  double number = 0;
  bool flag = true;
  const bool is_served =
      (!value->get(number) && number == served) || (!value->get(flag) && !flag && served == 0);
  if (!is_served) fail(key, shown(*value), expected);
}

std::vector<int> ConfigFields::integers(std::string_view key, int min, int max, size_t max_count) {
  const auto value = find(key);
  std::vector<int> numbers;
  if (!value) return numbers;
  simdjson::dom::array array;
  if (value->get(array)) {
    numbers.push_back(read_integer(key, *value, min, max).value_or(min));
    return numbers;
  }
  for (const simdjson::dom::element item : array) {
    if (numbers.size() == max_count) {
      fail(key, "a longer list", fmt::format("at most {} numbers", max_count));
      break;
    }
    numbers.push_back(read_integer(key, item, min, max).value_or(min));
  }
  return numbers;
}

std::vector<double> ConfigFields::numbers(std::string_view key, double min, double max,
                                          size_t max_count) {
  const auto value = find(key);
  std::vector<double> all;
  if (!value) return all;
  simdjson::dom::array array;
  if (value->get(array) || array.size() > max_count) {
    fail(key, shown(*value), fmt::format("a list of at most {} numbers", max_count));
    return all;
  }
  for (const simdjson::dom::element item : array) {
    all.push_back(read_number(key, item, min, max).value_or(min));
  }
  return all;
}

std::vector<std::vector<int>> ConfigFields::integer_rows(std::string_view key, int min, int max,
                                                         size_t width, size_t max_count) {
  std::vector<std::vector<int>> rows;
  const auto value = find(key);
  if (!value) return rows;
  const std::string expected = fmt::format("at most {} lists of {} numbers", max_count, width);
  simdjson::dom::array outer;
  if (value->get(outer) || outer.size() > max_count) {
    fail(key, shown(*value), expected);
    return rows;
  }
  for (const simdjson::dom::element item : outer) {
    simdjson::dom::array inner;
    if (item.get(inner) || inner.size() != width) {
      fail(key, shown(item), expected);
      return {};
    }
    std::vector<int>& row = rows.emplace_back();
    for (const simdjson::dom::element number : inner) {
      row.push_back(read_integer(key, number, min, max).value_or(min));
    }
  }
  return rows;
}

std::vector<std::string> ConfigFields::texts(std::string_view key, size_t max_count) {
  const auto value = find(key);
  std::vector<std::string> items;
  if (!value) return items;
  simdjson::dom::array array;
  if (value->get(array)) {
    fail(key, shown(*value), "a list of strings");
    return items;
  }
  for (const simdjson::dom::element item : array) {
    std::string_view text;
    if (item.get(text)) {
      fail(key, fmt::format("{} in the list", shown(item)), "a list of strings");
      break;
    }
    if (items.size() == max_count) {
      fail(key, fmt::format("{} strings", array.size()), fmt::format("at most {}", max_count));
      break;
    }
    items.emplace_back(text);
  }
  return items;
}

std::optional<ConfigFields> ConfigFields::object(std::string_view key) {
  const auto value = find(key);
  if (!value) return std::nullopt;
  simdjson::dom::object nested;
  if (!value->get(nested)) {
    return ConfigFields(nested, source_, fmt::format("{}{}.", path_, spelling_of(key)));
  }
  fail(key, shown(*value), "an object");
  return std::nullopt;
}

void require_switch(ConfigFields& fields, std::string_view key, bool served) {
  if (fields.boolean(key, served) != served) {
    fields.fail(key, served ? "false" : "true", served ? "true" : "false");
  }
}

void require_text(ConfigFields& fields, std::string_view key, std::string_view served) {
  const std::optional<std::string> text = fields.optional_text(key);
  if (text && *text != served) fields.fail(key, quote_name(*text), quote_name(served));
}

bool require_one_per_layer(ConfigFields& fields, std::string_view key, size_t num_entries,
                           int num_layers) {
  if (num_entries == 0 || num_entries == static_cast<size_t>(num_layers)) return true;
  fields.fail(key, fmt::format("{} entries", num_entries),
              fmt::format("one per layer, {}", num_layers));
  return false;
}

Result<simdjson::dom::object> root_object(const JsonDocument& document, std::string_view source) {
  simdjson::dom::object object;
  if (document.root().get(object)) {
    return invalid_argument(fmt::format("[config] {}: not a JSON object", source));
  }
  return object;
}

std::optional<DType> read_dtype(ConfigFields& fields) {
  constexpr std::string_view kKey = "torch_dtype";
  fields.add_spellings(kKey, {"dtype"});
  const std::optional<std::string> name = fields.optional_text(kKey);
  if (!name) return std::nullopt;
  const std::optional<DType> dtype = parse_dtype(*name);
  if (!dtype || !is_weight_dtype(*dtype)) {
    fields.fail(kKey, quote_name(*name), "float32, float16 or bfloat16");
  }
  return dtype;
}

}  // namespace quire
