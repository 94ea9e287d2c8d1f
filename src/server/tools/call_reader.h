// Reads one tool call, a JSON object, as it streams.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/tools/json_scanner.h"
#include "server/tools/message_writer.h"

namespace quire::server {

// Reads {"name": "f", "arguments": {…}}, with keys in any order, "parameters" in place of
// "arguments", and optional "id" and "type". Writes the call as soon as it is recognized, and then
// its arguments as they come.
class CallReader {
 public:
  enum class Result { kMore, kDone, kNoCall };

  CallReader(const std::vector<std::string>& tool_names, bool short_ids)
      : tool_names_(tool_names), short_ids_(short_ids) {}

  void reset();
  // Takes the bytes of the object from its '{' on. kNoCall: the object is no call, or `c` is not
  // part of it.
  Result push(char c, MessageWriter& out);
  bool is_written() const { return is_written_; }  // at least a part of the call
  bool has_arguments() const { return has_arguments_; }

 private:
  enum class Part { kNone, kKey, kName, kArguments };
  enum class Key { kName, kArguments, kOther };

  bool end_key();
  bool begin_value(char c);
  bool end_name(MessageWriter& out);
  void write_call(MessageWriter& out);
  bool track(char c, bool begins_value, MessageWriter& out);

  const std::vector<std::string>& tool_names_;
  bool short_ids_;
  JsonScanner scanner_;
  Part part_ = Part::kNone;
  Key key_ = Key::kOther;
  std::string text_;            // the key or name that is being read
  std::string name_;            // empty until it is read
  std::string held_arguments_;  // arguments that came before the name
  bool is_written_ = false;
  bool has_arguments_ = false;
};

}  // namespace quire::server
