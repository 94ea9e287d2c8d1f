// Parsers for the tool call formats of model families: one state machine per format, fed byte by
// byte, so that the result does not depend on how the text is cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tools/json_scanner.h"
#include "server/tools/output_parser.h"

namespace quire::server {

// Searches for a fixed text in text that arrives in pieces, by Knuth, Morris and Pratt: the time is
// linear in the text, and at most the marker's length is held back.
class Marker {
 public:
  explicit Marker(std::string_view text) : text_(text), fallback_(text.size(), 0) {
    for (size_t i = 1; i < text_.size(); ++i) {
      size_t length = fallback_[i - 1];
      while (length > 0 && text_[i] != text_[length]) length = fallback_[length - 1];
      fallback_[i] = length + (text_[i] == text_[length] ? 1 : 0);
    }
  }

  std::string_view text() const { return text_; }

  // Returns whether `c` completes the marker. Otherwise passes the bytes that can no longer be part
  // of it to `release`, in order, as views of earlier bytes and of `c`.
  template <typename Release>
  bool push(char c, Release release) {
    while (num_matched_ > 0 && text_[num_matched_] != c) {
      const size_t length = fallback_[num_matched_ - 1];
      release(text_.substr(0, num_matched_ - length));
      num_matched_ = length;
    }
    if (text_[num_matched_] != c) {
      release(std::string_view(&c, 1));
      return false;
    }
    if (++num_matched_ < text_.size()) return false;
    num_matched_ = 0;
    return true;
  }

  // The state of the search: the number of bytes of the marker that the newest bytes match.
  size_t num_matched() const { return num_matched_; }
  void resume(size_t num_matched) { num_matched_ = num_matched; }

  // Returns the held text and restarts the search.
  std::string_view take_held() {
    const std::string_view held = text_.substr(0, num_matched_);
    num_matched_ = 0;
    return held;
  }

 private:
  std::string_view text_;  // must refer to a literal
  std::vector<size_t> fallback_;
  size_t num_matched_ = 0;
};

// Collects the delta of one feed() and tracks which call is being written.
class MessageWriter {
 public:
  MessageWriter(std::string (*make_id)(), bool keeps_first_call_only)
      : make_id_(make_id), keeps_first_call_only_(keeps_first_call_only) {}

  void reasoning(std::string_view text) { delta_.reasoning += text; }
  // Adds content. White space next to a call or at the start of the content is held until the
  // following text is known. It is dropped before a call, and at the end after a call.
  void content(std::string_view text);
  void begin_call(std::string_view name, bool short_id);
  void arguments(std::string_view text);
  void finish();
  MessageDelta take() { return std::exchange(delta_, {}); }

 private:
  bool is_dropped() const { return keeps_first_call_only_ && num_calls_ > 1; }

  std::string (*make_id_)();
  bool keeps_first_call_only_;
  int num_calls_ = 0;
  bool at_boundary_ = true;
  std::string spaces_;
  MessageDelta delta_;
};

// Reads {"name": "f", "arguments": {…}}, with keys in any order, "parameters" in place of
// "arguments", and optional "id" and "type". Writes the call as soon as it is recognized, and then
// its arguments as they come.
class CallReader {
 public:
  enum class Result { kMore, kDone, kNoCall };

  CallReader(const std::vector<std::string>& tool_names, bool short_ids)
      : tool_names_(tool_names), short_ids_(short_ids) {}

  void reset();
  // Takes the bytes of the object from its '{' on. kNoCall: the object is not a call, or `c` is not
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

class ToolParser {
 public:
  virtual ~ToolParser() = default;
  virtual void push(char c, MessageWriter& out) = 0;
  virtual void finish(MessageWriter& out) = 0;
};

// The parser without tools: all text is content.
class NoToolParser : public ToolParser {
 public:
  void push(char c, MessageWriter& out) override { out.content(std::string_view(&c, 1)); }
  void finish(MessageWriter&) override {}
};

// The common part of the formats: text around calls, an object that may be a call, and the return
// to text if it is not a call.
class MarkedCalls : public ToolParser {
 public:
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter& out) override;

 protected:
  MarkedCalls(std::string_view marker, const std::vector<std::string>& tool_names, bool short_ids)
      : marker_(marker), reader_(tool_names, short_ids) {}

  // Handles a byte outside of text and objects.
  virtual void push_between(char c, MessageWriter& out) = 0;
  virtual void call_ended() = 0;
  virtual void marker_found() {}

  // Starts an object with `c`.
  void begin_object(char c, MessageWriter& out);
  // Ends a candidate that is not a call: the held text and `c` are text.
  void back_to_text(char c, MessageWriter& out);
  void hold(char c, MessageWriter& out);

  enum class Region { kText, kBetween, kObject };
  Region region_ = Region::kText;
  // Text that becomes content if no call follows. Does not include the text of a written call.
  std::string held_;
  Marker marker_;
  CallReader reader_;
};

// Parses <tool_call>{"name": …, "arguments": {…}}</tool_call> (Hermes, Qwen).
class HermesCalls final : public MarkedCalls {
 public:
  explicit HermesCalls(const std::vector<std::string>& tool_names)
      : MarkedCalls("<tool_call>", tool_names, false) {}
  void finish(MessageWriter& out) override;

 private:
  void push_between(char c, MessageWriter& out) override;
  void call_ended() override;
  void marker_found() override { after_call_ = false; }

  bool after_call_ = false;  // false: before a call
  size_t num_close_ = 0;     // matched bytes of </tool_call>
};

// Parses {"name": …, "parameters": {…}}, and more objects after ';' or white space, optionally
// after <|python_tag|> (Llama 3).
class LlamaCalls final : public MarkedCalls {
 public:
  explicit LlamaCalls(const std::vector<std::string>& tool_names)
      : MarkedCalls("<|python_tag|>", tool_names, false) {
    region_ = Region::kBetween;
  }

 private:
  void push_between(char c, MessageWriter& out) override;
  void call_ended() override { after_call_ = true; }

  bool after_call_ = false;
};

// Parses [TOOL_CALLS] [{"name": …, "arguments": {…}}, …], or [TOOL_CALLS]name[ARGS]{…} once per
// call, with or without [CALL_ID]… (Mistral).
class MistralCalls final : public MarkedCalls {
 public:
  explicit MistralCalls(const std::vector<std::string>& tool_names)
      : MarkedCalls("[TOOL_CALLS]", tool_names, true), tool_names_(tool_names) {}

 private:
  enum class Step { kOpen, kItem, kAfterItem, kName, kArguments };

  void push_between(char c, MessageWriter& out) override;
  void push_name(char c, MessageWriter& out);
  void push_arguments(char c, MessageWriter& out);
  void call_ended() override { step_ = Step::kAfterItem; }
  void marker_found() override { step_ = Step::kOpen; }

  const std::vector<std::string>& tool_names_;
  Step step_ = Step::kOpen;
  std::string name_;  // the name and the text after it, up to the '{'
  JsonScanner scanner_;
};

// Parses [{"name": …, "parameters": {…}}, …], which a grammar has forced. Drops text that is not a
// call, or that is cut before it is recognized as a call, because the client did not ask for the
// array itself.
class ForcedCalls final : public ToolParser {
 public:
  explicit ForcedCalls(const std::vector<std::string>& tool_names) : reader_(tool_names, false) {}
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter&) override {}

 private:
  enum class ArrayState { kBetween, kObject, kEnded };
  ArrayState state_ = ArrayState::kBetween;
  CallReader reader_;
};

// Parses forced arguments of a call whose name is known in advance: the whole text except the white
// space around it.
class ForcedArguments final : public ToolParser {
 public:
  explicit ForcedArguments(std::string name) : name_(std::move(name)) {}
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter&) override {}

 private:
  std::string name_;
  bool has_begun_ = false;
  std::string spaces_;  // belong to the arguments if more text follows
};

}  // namespace quire::server
