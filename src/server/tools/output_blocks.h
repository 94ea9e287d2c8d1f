// The output of one sequence as a list of blocks, for APIs that announce the begin and the end of
// each.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/tools/output_parser.h"

namespace quire::server {

// Consecutive output of one kind. Each tool call is a block of its own.
struct OutputBlock {
  enum class Kind { kReasoning, kText, kToolCall };
  Kind kind = Kind::kText;
  std::string text = {};  // of a tool call: its arguments
  std::string call_id = {};
  std::string call_name = {};
};

// Collects the blocks of a sequence from the deltas of its parser, and reports each step to
// `events`, which has these functions (`block` is that of blocks()[idx]):
//   void begin(size_t idx, const OutputBlock& block);
//   void add(size_t idx, const OutputBlock& block, std::string_view piece);  // already in its text
//   void end(size_t idx, const OutputBlock& block);
class OutputBlocks {
 public:
  template <typename Events>
  void add(const MessageDelta& delta, Events& events) {
    add_text(OutputBlock::Kind::kReasoning, delta.reasoning, events);
    add_text(OutputBlock::Kind::kText, delta.content, events);
    for (const ToolCallDelta& call : delta.tool_calls) {
      if (!call.id.empty()) {
        begin({.kind = OutputBlock::Kind::kToolCall, .call_id = call.id, .call_name = call.name},
              events);
      }
      append(call.arguments, events);
    }
  }

  // Ends the last block. Adds an empty block of text if there is none, because clients expect one.
  template <typename Events>
  void finish(Events& events) {
    if (blocks_.empty()) begin({}, events);
    end_last(events);
  }

  const std::vector<OutputBlock>& blocks() const { return blocks_; }
  bool has_tool_call() const {
    for (const OutputBlock& block : blocks_) {
      if (block.kind == OutputBlock::Kind::kToolCall) return true;
    }
    return false;
  }

 private:
  template <typename Events>
  void add_text(OutputBlock::Kind kind, std::string_view text, Events& events) {
    if (text.empty()) return;
    if (blocks_.empty() || blocks_.back().kind != kind) begin({.kind = kind}, events);
    append(text, events);
  }
  template <typename Events>
  void begin(OutputBlock&& block, Events& events) {
    if (!blocks_.empty()) end_last(events);
    blocks_.push_back(std::move(block));
    events.begin(blocks_.size() - 1, blocks_.back());
  }
  template <typename Events>
  void append(std::string_view text, Events& events) {
    if (text.empty()) return;
    blocks_.back().text += text;
    events.add(blocks_.size() - 1, blocks_.back(), text);
  }
  template <typename Events>
  void end_last(Events& events) {
    events.end(blocks_.size() - 1, blocks_.back());
  }

  std::vector<OutputBlock> blocks_;
};

}  // namespace quire::server
