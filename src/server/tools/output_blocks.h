// The output of one sequence as a list of blocks, for APIs that announce the begin and the end of
// each block.
#pragma once

#include <algorithm>
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
  std::string text = {};  // for a tool call, its arguments
  std::string call_id = {};
  std::string call_name = {};
  bool is_cut = false;  // the arguments of a call end before they are whole
};

// Joins the lines of a call's arguments, because a response may be one line of a stream or a file.
// JSON has line ends only between its tokens, where a space is equivalent.
inline std::string in_one_line(std::string_view json) {
  std::string line(json);
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

// Collects the blocks of a sequence from the deltas of its parser. Passes each step to a
// writer, which appends its events to `out`. The writer has these functions, where `block` is
// blocks()[idx]:
//   void begin_block(size_t idx, const OutputBlock& block, std::string& out);
//   // `piece` is already at the end of the block's text.
//   void add_to_block(size_t idx, const OutputBlock& block, std::string_view piece,
//                     std::string& out);
//   void end_block(size_t idx, const OutputBlock& block, std::string& out);
class OutputBlocks {
 public:
  template <typename Writer>
  void add(const MessageDelta& delta, Writer& writer, std::string& out) {
    add_text(OutputBlock::Kind::kReasoning, delta.reasoning, writer, out);
    add_text(OutputBlock::Kind::kText, delta.content, writer, out);
    for (const ToolCallDelta& call : delta.tool_calls) {
      if (!call.id.empty()) {
        begin({.kind = OutputBlock::Kind::kToolCall, .call_id = call.id, .call_name = call.name},
              writer, out);
      }
      append(call.arguments, writer, out);
    }
    if (delta.cut == CutCall::kBegun) blocks_.back().is_cut = true;
    has_cut_call_ |= delta.cut != CutCall::kNone;
  }

  // Ends the last block. Adds an empty block of text if there is none, because clients expect one.
  template <typename Writer>
  void finish(Writer& writer, std::string& out) {
    if (blocks_.empty()) begin({}, writer, out);
    end_last(writer, out);
  }

  const std::vector<OutputBlock>& blocks() const { return blocks_; }
  // Returns whether there are calls, and all of them are whole.
  bool calls_tools() const {
    const auto is_call = [](const OutputBlock& block) {
      return block.kind == OutputBlock::Kind::kToolCall;
    };
    return !has_cut_call_ && std::ranges::any_of(blocks_, is_call);
  }

 private:
  template <typename Writer>
  void add_text(OutputBlock::Kind kind, std::string_view text, Writer& writer, std::string& out) {
    if (text.empty()) return;
    if (blocks_.empty() || blocks_.back().kind != kind) begin({.kind = kind}, writer, out);
    append(text, writer, out);
  }
  template <typename Writer>
  void begin(OutputBlock&& block, Writer& writer, std::string& out) {
    if (!blocks_.empty()) end_last(writer, out);
    blocks_.push_back(std::move(block));
    writer.begin_block(blocks_.size() - 1, blocks_.back(), out);
  }
  template <typename Writer>
  void append(std::string_view text, Writer& writer, std::string& out) {
    if (text.empty()) return;
    blocks_.back().text += text;
    writer.add_to_block(blocks_.size() - 1, blocks_.back(), text, out);
  }
  template <typename Writer>
  void end_last(Writer& writer, std::string& out) {
    writer.end_block(blocks_.size() - 1, blocks_.back(), out);
  }

  std::vector<OutputBlock> blocks_;
  bool has_cut_call_ = false;  // includes a held call that became text
};

}  // namespace quire::server
