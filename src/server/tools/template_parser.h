// Interprets response templates: a state machine that takes pieces of text.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/call_reader.h"
#include "server/tools/message_writer.h"
#include "server/tools/output_parser.h"
#include "server/tools/parser_plan.h"
#include "server/tools/tagged_arguments.h"

namespace quire::server {

// Each step decides by the text at hand, and only if more text could not change the decision;
// otherwise it waits. So the joined deltas do not depend on where the text is cut.
class TemplateParser final : public OutputParser {
 public:
  TemplateParser(std::shared_ptr<const ParserPlan> plan, const OutputParserConfig& config);

  MessageDeltas feed(std::string_view text) override;
  MessageDeltas feed_token(int32_t token_id, std::string_view text) override;
  MessageDeltas finish(TextEnd end) override;

 private:
  enum class State {
    kBegin,      // the prompt has opened the reasoning; its marker may be repeated
    kText,       // content, until a field opens
    kRegion,     // a field of text
    kObject,     // a call whose arguments are one value
    kEndObject,  // the value has ended, or the text is no value
    kTags,       // a call whose arguments are between tags
    kBody,       // a call whose arguments are read at their end
    kAfterCall,  // the form that closes the call may follow
  };

  void run();
  // Makes progress. Returns false if more text is needed.
  bool step();
  bool step_begin();
  bool step_text();
  bool step_region();
  bool step_object();
  bool step_tags();
  bool step_body();
  bool step_after_call();

  void open(const FieldMatch& match);
  void open_region(const TemplateField& field);
  void open_call(const FieldMatch& match);
  bool push_unit(std::string_view unit);
  bool end_object();
  void end_arguments(bool is_whole);
  void fail_call();
  void end_call();
  FieldMatch end_of_region(std::string_view text) const;
  void write_region(size_t end);
  void write_text(std::string_view text);
  void write_stripped(std::string_view text);
  bool end_region(size_t num_bytes);
  bool finish_region();
  bool is_call_at(size_t place) const;
  bool is_cut_ending(std::string_view text) const;

  std::string_view rest(size_t from) const { return std::string_view(buffer_).substr(from); }
  size_t after_unit(size_t place) const { return place + plan_->codes().unit(rest(place)); }
  void write_content(size_t end);
  void compact();

  std::shared_ptr<const ParserPlan> plan_;
  MessageWriter out_;
  std::string buffer_;  // with the codes of markers; everything before pos_ is done
  size_t pos_ = 0;
  bool is_end_ = false;
  TextEnd end_ = TextEnd::kModel;  // the cause of the text's end, once is_end_ is set
  bool is_trial_ = false;          // tries a call within reasoning, and makes no further trials
  State state_ = State::kText;
  Preceding before_ = {.is_start = true, .may_reason = true};
  bool has_content_ = false;  // content or a call
  bool has_reasoning_ = false;

  const TemplateField* field_ = nullptr;  // the field of the open region or call
  std::string call_name_;                 // the name of the call in kBody
  std::string call_id_;
  bool has_text_ = false;      // text of the region was written
  std::string pending_space_;  // white space of a region, written only if text follows
  // In a region or a body: the text before this place was searched for its end.
  size_t scanned_ = 0;
  // Offsets in buffer_ at which a call may begin within reasoning. They are calls if the output
  // ends before the reasoning is closed. The text from the first offset on is held.
  std::vector<size_t> calls_;

  // The text of a call that is not written yet. It becomes content if it turns out not to be a
  // call, or if it is a held call that is cut.
  std::string held_;
  std::optional<CallReader> reader_;
  std::optional<TaggedArguments> tags_;
};

}  // namespace quire::server
