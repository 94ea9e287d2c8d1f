// Parsers for the tool call formats of model families: one state machine per format, fed byte by
// byte, so that the result does not depend on how the text is cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/call_reader.h"
#include "server/tools/marker.h"
#include "server/tools/message_writer.h"

namespace quire::server {

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
// to text if it is none.
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
  // Ends a candidate that is no call: the held text and `c` are text.
  void back_to_text(char c, MessageWriter& out);
  void hold(char c, MessageWriter& out);

  enum class Place { kText, kBetween, kObject };
  Place place_ = Place::kText;
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
    place_ = Place::kBetween;
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

// Parses [{"name": …, "parameters": {…}}, …], which a grammar has forced. Drops text that is no
// call, or that is cut before it is recognized as one, because the client did not ask for the array
// itself.
class ForcedCalls final : public ToolParser {
 public:
  explicit ForcedCalls(const std::vector<std::string>& tool_names) : reader_(tool_names, false) {}
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter&) override {}

 private:
  enum class Place { kBetween, kObject, kAfter };
  Place place_ = Place::kBetween;
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
