// The flags of a command as plain data: what the parser, the help and the shell completion read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/range.h"
#include "quire/status.h"

namespace quire::cli {

// What a value is, for the shell's completion.
enum class ValueKind { kNone, kText, kFile, kDirectory };

struct Flag {
  std::string name;        // "--block-size"
  std::string alias = {};  // another name, or empty
  ValueKind kind = ValueKind::kText;
  std::string value_name = {};  // "N"; empty with ValueKind::kNone
  std::string help = {};
  std::string default_text = {};  // empty: none worth showing
  std::string group = {};
  std::vector<std::string> choices = {};  // empty: any
  bool repeatable = false;
  bool takes_several = false;  // at once: all values up to the next flag
  bool hidden = false;
  // Takes the value ("true" or "false" with ValueKind::kNone); the message says what was expected
  // instead of it.
  std::function<Status(std::string_view value)> set;
};

// Pointees keep the default until a flag is given, and outlive the parse.
class FlagSet {
 public:
  // The heading in --help of the flags added from here on.
  void begin_group(std::string name) { group_ = std::move(name); }

  void toggle(std::string name, bool* target, std::string help, bool value = true);
  // vLLM's pair --NAME and --no-NAME for what is on unless it is turned off; both at once
  // contradict each other.
  void on_by_default(const std::string& name, bool* target, std::string help_off);
  void text(std::string name, std::string value_name, std::string* target, std::string help);
  void file(std::string name, std::string* target, std::string help);
  void directory(std::string name, std::string* target, std::string help);
  // A file to write: what takes minutes must not end at a folder that is not there.
  void output_file(std::string name, std::string* target, std::string help);
  void choice(std::string name, std::vector<std::string> choices, std::string* target,
              std::string help);
  void number(std::string name, int* target, Range range, std::string help);
  // As vLLM counts: 8192, 8k (8000), 8K (8192).
  void count(std::string name, int* target, Range range, std::string help);
  void number(std::string name, double* target, Range range, std::string help);
  void seed(std::string name, uint64_t* target, std::string help);
  // A count of bytes: 1048576, 512M, 4GB, 4GiB (binary multiples, all of them).
  void bytes(std::string name, int64_t* target, std::string help);
  // A value each time the flag is given.
  void texts(std::string name, std::string value_name, std::vector<std::string>* target,
             std::string help);
  // Known from elsewhere and not here: given, it is refused with `reason`.
  void refused(std::string name, std::string reason);
  void add(Flag flag);
  // Another name for the flag added last.
  void alias(std::string name);
  // The flag added last takes all values up to the next flag.
  void takes_several();

  const std::vector<Flag>& flags() const { return flags_; }
  const Flag* find(std::string_view name) const;

 private:
  void add_text(std::string name, ValueKind kind, std::string value_name, std::string* target,
                std::string help);

  std::string group_ = "Options";
  std::vector<Flag> flags_;
};

// The whole of `text` as a value, or what was expected: "got 'x', expected an integer in [0, 9]".
Result<int64_t> parse_integer(std::string_view text, const Range& range);
// An integer, also in thousands (8k), millions (1m) or in multiples of 1024 (8K, 1M).
Result<int64_t> parse_count(std::string_view text, const Range& range);
Result<double> parse_number(std::string_view text, const Range& range);
Result<uint64_t> parse_seed(std::string_view text);
Result<int64_t> parse_bytes(std::string_view text);
// "1,2,3"
Result<std::vector<int32_t>> parse_ids(std::string_view text);

Status unexpected(std::string_view got, std::string_view expected);

}  // namespace quire::cli
