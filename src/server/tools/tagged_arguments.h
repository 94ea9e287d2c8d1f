// Reads the arguments of a call that are written between tags.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "server/tools/argument_types.h"
#include "server/tools/marker_codes.h"
#include "server/tools/message_writer.h"
#include "server/tools/response_template.h"

namespace quire::server {

// Writes one argument as a member of a JSON object. Writes a string while it arrives, and any other
// value once it is whole.
class ArgumentWriter {
 public:
  // `prefix` is the text before the value: `{"key": `.
  void begin(std::string prefix, ArgumentTypes types, Trim trim);
  void push(std::string_view text, MessageWriter& out);
  void end(MessageWriter& out);

 private:
  void stream(MessageWriter& out);

  std::string prefix_;
  ArgumentTypes types_;
  Trim trim_ = Trim::kNone;
  bool is_string_ = false;
  bool has_begun_ = false;
  std::string held_;
};

// Reads <parameter=key>value</parameter>… up to the form that closes the call. A tag that closes a
// value counts only if another argument or the end of the call follows, because a value may contain
// the text of the tag.
class TaggedArguments {
 public:
  enum class Result { kMore, kDone, kNoCall };

  TaggedArguments(const TemplateField& field, const MarkerCodes& codes)
      : field_(field), codes_(codes) {}

  void reset(std::string_view name, std::string_view id, std::string_view schema);
  // Reads from the start of `text` and sets `num_read`. kDone: the call is over. kNoCall: the text
  // there is neither an argument nor the end of a call, and nothing was written. `is_cut`: a limit
  // has ended the text, so a call without its end is not over.
  Result read(std::string_view text, bool is_end, bool is_cut, size_t& num_read,
              MessageWriter& out);
  bool is_written() const { return is_written_; }

 private:
  struct End {
    Match result = Match::kNo;
    size_t length = 0;
  };

  bool read_between(std::string_view text, bool is_end, size_t& num_read, MessageWriter& out);
  bool read_value(std::string_view text, bool is_end, size_t& num_read, MessageWriter& out);
  void begin_argument(const ArgumentTag& tag, std::string_view key, MessageWriter& out);
  void finish_call(Result result, MessageWriter& out);
  void write_call(MessageWriter& out);
  End end_of_value(std::string_view text, bool is_end) const;
  Match follows(std::string_view text, bool is_end) const;
  bool may_end_value(char c) const;

  const TemplateField& field_;
  const MarkerCodes& codes_;
  std::string name_;
  std::string id_;
  std::map<std::string, ArgumentTypes, std::less<>> types_;
  std::set<std::string, std::less<>> keys_;  // the keys that were written
  const ArgumentTag* tag_ = nullptr;         // the tag of the open value; null: none is open
  bool is_repeated_ = false;                 // the open value's key was written before
  ArgumentWriter value_;
  bool is_written_ = false;
  bool is_cut_ = false;
  Result result_ = Result::kMore;
};

}  // namespace quire::server
