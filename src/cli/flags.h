// The flags of a command as data, which the parser, the help and the shell completion read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers.h"
#include "quire/status.h"

namespace quire::cli {

// Collects the mistakes of a command line, so that all are reported at once.
class Complaints {
 public:
  // Adds the message of a failure; ignores success.
  void add(const Status& status) {
    if (!status.ok()) messages_.push_back(status.message());
  }
  void add(std::string message) { messages_.push_back(std::move(message)); }

  bool empty() const { return messages_.empty(); }
  const std::vector<std::string>& messages() const { return messages_; }

 private:
  std::vector<std::string> messages_;
};

// The kind of value, for shell completion.
enum class ValueKind { kNone, kText, kFile, kDirectory };

struct Flag {
  std::string name;        // "--block-size"
  std::string alias = {};  // another name, or empty
  std::string field = {};  // the library's name of the setting; empty: "block_size"
  ValueKind kind = ValueKind::kText;
  std::string value_name = {};  // "N"; empty with ValueKind::kNone
  std::string help = {};
  std::string default_text = {};  // empty: not shown
  std::string group = {};
  std::vector<std::string> choices = {};   // empty: any
  std::vector<std::string> reserved = {};  // values that are words, not paths: "off"
  bool takes_model_name = false;           // the value may also be a model's name
  // The flag is about the address or the clients of a server. A server for several models does not
  // pass it to the processes of the models.
  bool belongs_to_server = false;
  bool repeatable = false;
  bool takes_several = false;  // takes all values up to the next flag
  bool hidden = false;
  // Parses the value ("true" or "false" with ValueKind::kNone). On failure the error says what was
  // expected.
  std::function<Status(std::string_view value)> set;
};

// The targets keep their defaults unless the flag is given. They must outlive the parse.
class FlagSet {
 public:
  // Sets the --help heading for the flags added after this call, and Flag::belongs_to_server.
  void begin_group(std::string name, bool belongs_to_server = false) {
    group_ = std::move(name);
    belongs_to_server_ = belongs_to_server;
  }

  void toggle(std::string name, bool* target, std::string help, bool value = true);
  // Adds vLLM's pair --NAME and --no-NAME for a setting that is on by default. Giving both is an
  // error.
  void on_by_default(const std::string& name, bool* target, std::string help_off);
  void text(std::string name, std::string value_name, std::string* target, std::string help);
  void file(std::string name, std::string* target, std::string help);
  void directory(std::string name, std::string* target, std::string help);
  // Adds a flag for a file to write. Its folder must exist and be writable, so that a command does
  // not run for minutes and then fail.
  void output_file(std::string name, std::string* target, std::string help);
  // Adds a flag for one of the choices, which may be given by a synonym (pairs of synonym and
  // choice). The error for a name in `remedies` (pairs of name and remedy) ends with its remedy.
  // The last pair may be for kAnyOther name.
  using Synonyms = std::vector<std::pair<std::string, std::string>>;
  static constexpr std::string_view kAnyOther = "*";
  void choice(std::string name, std::vector<std::string> choices, std::string* target,
              std::string help, Synonyms synonyms = {}, Synonyms remedies = {});
  void number(std::string name, int* target, Range range, std::string help);
  // Adds a flag for a count with vLLM's suffixes: 8192, 8k (8000), 8K (8192).
  void count(std::string name, int* target, Range range, std::string help);
  void number(std::string name, double* target, Range range, std::string help);
  void seed(std::string name, uint64_t* target, std::string help);
  // Adds a flag for bytes: 1048576, 512M, 4GB, 4GiB (all suffixes are powers of 1024).
  void bytes(std::string name, int64_t* target, std::string help);
  // Adds a flag whose value `parse` reads. `parse` returns a Result of a type that converts to T.
  template <typename T, typename Parse>
  void value(std::string name, std::string value_name, T* target, std::string default_text,
             std::string help, Parse parse) {
    add({.name = std::move(name),
         .value_name = std::move(value_name),
         .help = std::move(help),
         .default_text = std::move(default_text),
         .set = [target, parse = std::move(parse)](std::string_view text) -> Status {
           QUIRE_ASSIGN_OR_RETURN(auto parsed, parse(text));
           *target = static_cast<T>(std::move(parsed));
           return {};
         }});
  }
  // Adds a flag that may be repeated; each use appends one value.
  void texts(std::string name, std::string value_name, std::vector<std::string>* target,
             std::string help);
  void add(Flag flag);
  // Makes all flags added so far call `observer` with each value, before the value is parsed.
  using Observer = std::function<void(const std::string& name, std::string_view value)>;
  void observe(const Observer& observer);
  // Adds a check of several flags together, which runs if all flags have valid values.
  using Check = std::function<void(Complaints& complaints)>;
  void add_check(Check check) { checks_.push_back(std::move(check)); }
  void check(Complaints& complaints) const {
    for (const Check& check : checks_) check(complaints);
  }
  // The flag added last, to set its further members, such as its alias, choices or field.
  Flag& last() { return flags_.back(); }

  const std::vector<Flag>& flags() const { return flags_; }
  const Flag* find(std::string_view name) const;
  // Replaces the fields that a message of the library names by their flags: "`max_num_seqs`"
  // anywhere, and "max_num_seqs:" at the start or after "[module] ".
  std::string name_flags(std::string_view message) const;

 private:
  std::string group_ = "Options";
  bool belongs_to_server_ = false;
  std::vector<Flag> flags_;
  std::vector<Check> checks_;
};

// Fails unless the text is valid UTF-8.
Result<std::string> parse_text(std::string_view text);
// Parses the whole of `text`. The error reads "got 'x', expected an integer in [0, 9]".
Result<int64_t> parse_integer(std::string_view text, const Range& range);
// Parses an integer with an optional suffix: k and m are powers of 1000, K and M powers of 1024.
Result<int64_t> parse_count(std::string_view text, const Range& range);
Result<double> parse_number(std::string_view text, const Range& range);
Result<uint64_t> parse_seed(std::string_view text);
Result<int64_t> parse_bytes(std::string_view text);
// The inverse of parse_bytes(), for example "32M"; empty if `count` is 0.
std::string bytes_text(int64_t count);
// Splits a list at commas; "1, 2" has the parts "1" and " 2".
std::vector<std::string_view> split_list(std::string_view text);
// Parses ids such as "1,2,3".
Result<std::vector<int32_t>> parse_ids(std::string_view text);

// Returns the flag that a mistyped name, such as "--tempurature", probably means: the most similar
// flag (nearest_word()), otherwise the first that begins with `name`, if `name` has at least three
// letters. Empty: no flag is similar, or `name` is one of `names`.
std::string nearest_flag(std::string_view name, std::span<const std::string> names);

// Returns the error "got 'x', expected …".
Status unexpected(std::string_view got, std::string_view expected);

}  // namespace quire::cli
