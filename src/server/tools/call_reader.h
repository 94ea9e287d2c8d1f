// Reads tool calls whose arguments are one value: JSON, or a notation near it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/tools/json_scanner.h"
#include "server/tools/loose_json.h"
#include "server/tools/message_writer.h"
#include "server/tools/output_parser.h"
#include "server/tools/response_template.h"

namespace quire::server {

bool has_name(const std::vector<std::string>& names, std::string_view name);

// Reads an object with a name and arguments, in any order, under the keys of `field`. Also accepts
// "parameters" for "arguments" and the reverse, ids, and "type". If the name is known, reads only
// the arguments. Writes the call as soon as it is recognized, and then its arguments as they
// arrive.
class CallReader {
 public:
  enum class Result { kMore, kDone, kNoCall };

  // `tool_names` and `field` must outlive the reader.
  CallReader(const std::vector<std::string>& tool_names, const TemplateField& field)
      : tool_names_(tool_names), field_(field), loose_(field.notation) {}

  void reset();
  // Begins a call with a known name. The bytes pushed next are its arguments, from their '{' on.
  void reset(std::string_view name, std::string_view id);
  // Begins arguments that have no '{' of their own: f(a=1).
  void open(MessageWriter& out);
  // Takes the bytes of the object from its '{' on. kNoCall: the object is not a call, or `c` is not
  // a part of the object.
  Result push(char c, MessageWriter& out);
  // Adds the closing brackets that are missing. Returns whether the value is whole then.
  bool close(MessageWriter& out);
  bool is_written() const { return is_written_; }  // the begin of the call is written
  bool has_begun() const { return scanner_.depth() > 0; }
  bool in_string() const { return scanner_.in_string(); }
  // Returns whether a string with its own delimiters is open.
  bool in_delimited() const { return loose_.in_delimited(); }
  bool has_whole_arguments() const { return scanner_.done() || has_arguments_; }

 private:
  enum class Part { kNone, kKey, kName, kArguments };
  enum class Key { kName, kArguments, kOther };

  bool accept(char c, MessageWriter& out);
  bool end_key();
  bool begin_value(char c);
  bool end_name(MessageWriter& out);
  void write_call(MessageWriter& out);
  bool track(char c, bool begins_value, MessageWriter& out);
  Result end(MessageWriter& out);

  const std::vector<std::string>& tool_names_;
  const TemplateField& field_;
  LooseJson loose_;
  JsonScanner scanner_;
  bool is_arguments_ = false;
  Part part_ = Part::kNone;
  Key key_ = Key::kOther;
  std::string text_;            // the key or name that is being read
  std::string name_;            // empty until it is read
  std::string id_;              // the id that the model wrote; empty: none
  std::string held_arguments_;  // arguments that came before the name
  bool is_written_ = false;
  bool has_arguments_ = false;
};

// Parses an output that a grammar has forced to be calls.
class ForcedParser {
 public:
  virtual ~ForcedParser() = default;
  virtual void push(char c, MessageWriter& out) = 0;
  // Ends the text, which may end within a call.
  virtual void finish(MessageWriter& out) = 0;
};

// Parses [{"name": …, "parameters": {…}}, …]. If the text ends before a call is recognized, or
// within a held call, the text of this call becomes content; for the first call, this includes the
// start of the list.
class ForcedCalls final : public ForcedParser {
 public:
  explicit ForcedCalls(const std::vector<std::string>& tool_names) : reader_(tool_names, field_) {}
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter& out) override;

 private:
  enum class ArrayState { kBetween, kObject, kEnded };
  void end_object(ArrayState next, MessageWriter& out);

  ArrayState state_ = ArrayState::kBetween;
  bool has_calls_ = false;
  std::string text_;  // the text of the object; for the first one, also the list's start
  TemplateField field_;
  CallReader reader_;
};

// Parses forced arguments of a call whose name is known in advance: the whole text except the white
// space around it.
class ForcedArguments final : public ForcedParser {
 public:
  explicit ForcedArguments(std::string name) : name_(std::move(name)) {}
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter& out) override;

 private:
  std::string name_;
  std::string text_;
  bool is_valid_ = true;  // so far
  JsonScanner scanner_;
};

}  // namespace quire::server
