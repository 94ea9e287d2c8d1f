// How families of models write tool calls: one machine a format, fed byte by byte, so that its
// result cannot depend on how the text was cut.
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

// No tools: all is content.
class PlainText : public ToolParser {
 public:
  void push(char c, MessageWriter& out) override { out.content(std::string_view(&c, 1)); }
  void finish(MessageWriter&) override {}
};

// What the formats share: text around calls, an object that may be a call, and the way back when
// it is none.
class MarkedCalls : public ToolParser {
 public:
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter& out) override;

 protected:
  MarkedCalls(std::string_view marker, const std::vector<std::string>& tool_names, bool short_ids)
      : marker_(marker), reader_(tool_names, short_ids) {}

  // Outside of text and objects.
  virtual void push_between(char c, MessageWriter& out) = 0;
  virtual void call_ended() = 0;
  virtual void marker_found() {}

  // `c` starts an object.
  void begin_object(char c, MessageWriter& out);
  // It was no call after all: what is held, and `c`, are text.
  void back_to_text(char c, MessageWriter& out);
  void hold(char c, MessageWriter& out);

  enum class Place { kText, kBetween, kObject };
  Place place_ = Place::kText;
  // What comes as content if no call follows. A written call's own text is not kept.
  std::string held_;
  Marker marker_;
  CallReader reader_;
};

// <tool_call>{"name": …, "arguments": {…}}</tool_call> (Hermes, Qwen).
class HermesCalls final : public MarkedCalls {
 public:
  explicit HermesCalls(const std::vector<std::string>& tool_names)
      : MarkedCalls("<tool_call>", tool_names, false) {}
  void finish(MessageWriter& out) override;

 private:
  void push_between(char c, MessageWriter& out) override;
  void call_ended() override;
  void marker_found() override { after_call_ = false; }

  bool after_call_ = false;  // else before one
  size_t num_close_ = 0;     // bytes seen of </tool_call>
};

// {"name": …, "parameters": {…}}, more of them after ';', perhaps after <|python_tag|> (Llama 3).
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

// [TOOL_CALLS] [{"name": …, "arguments": {…}}, …], or [TOOL_CALLS]name[ARGS]{…} once a call, with
// [CALL_ID]… or without (Mistral).
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
  std::string name_;  // and what follows it, up to the '{'
  JsonScanner scanner_;
};

// [{"name": …, "parameters": {…}}, …] that a grammar has forced. What of it is no call, or is cut
// before it is known for one, is dropped: nobody asked for the array itself.
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

// The arguments that a grammar has forced, of a call whose name is known before the answer starts:
// the whole answer, but for the white space around it.
class ForcedArguments final : public ToolParser {
 public:
  explicit ForcedArguments(std::string name) : name_(std::move(name)) {}
  void push(char c, MessageWriter& out) override;
  void finish(MessageWriter&) override {}

 private:
  std::string name_;
  bool has_begun_ = false;
  std::string spaces_;  // that are the arguments' own if more of them follows
};

}  // namespace quire::server
