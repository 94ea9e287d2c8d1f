// The fields of the dialects of one request, in the form in which a parser matches them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/marker_codes.h"
#include "server/tools/output_parser.h"
#include "server/tools/response_template.h"

namespace quire::server {

// The result of matching all forms at one position of the text.
struct FieldMatch {
  Match result = Match::kNo;
  size_t length = 0;
  const TemplateField* field = nullptr;  // null: the text is dropped
  std::string_view name = {};
  std::string_view id = {};
};

// The output before the position at which forms are matched.
struct Preceding {
  bool is_start = false;                      // no content and no call came before
  bool may_reason = false;                    // no reasoning either
  const TemplateField* after_call = nullptr;  // a call of this field came directly before
};

// Thread-safe, because the plan does not change after its construction.
class ParserPlan {
 public:
  explicit ParserPlan(const OutputParserConfig& config);
  ParserPlan(const ParserPlan&) = delete;
  ParserPlan& operator=(const ParserPlan&) = delete;

  const MarkerCodes& codes() const { return codes_; }
  bool short_ids() const { return short_ids_; }
  const std::vector<std::string>& tool_names() const { return tool_names_; }
  // The JSON schema of a tool's arguments; "" if the configuration has none.
  std::string_view schema(std::string_view tool_name) const;
  const TemplateField* reasoning() const { return reasoning_; }  // null: none

  // Returns the field that begins at the start of `text`, by the longest form that matches.
  FieldMatch find(std::string_view text, bool is_end, const Preceding& before) const;
  // Does the same for calls within reasoning.
  FieldMatch find_call(std::string_view text, bool is_end) const;
  // Returns the start of a reasoning block that the prompt may have opened already.
  FieldMatch find_reasoning(std::string_view text, bool is_end) const;
  // Returns whether a form that may open anywhere can begin with the byte `c`. Forms that open only
  // at the start or after a call are not counted.
  bool may_begin(char c) const { return may_begin_[static_cast<unsigned char>(c)]; }
  // Returns whether the call may end at the start of `text`, or another call begins there.
  Match ends_call(const TemplateField& field, std::string_view text, bool is_end) const;

 private:
  struct Search;

  void add(const ResponseTemplate& dialect, bool with_calls, bool with_reasoning);
  void add_first_byte(const Form& form);
  void encode(std::vector<Form>& forms) const;
  void encode(TemplateField& field) const;
  Match begins_content(const TemplateField& field, std::string_view rest, bool is_end) const;

  MarkerCodes codes_;
  bool short_ids_ = false;
  std::vector<std::string> tool_names_;
  std::vector<std::string> schemas_;
  std::vector<TemplateField> fields_;
  std::vector<Form> drop_;
  const TemplateField* reasoning_ = nullptr;
  std::array<bool, 256> may_begin_ = {};
};

}  // namespace quire::server
