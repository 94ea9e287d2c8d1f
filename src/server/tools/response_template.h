// Response templates: how a model writes its reasoning, its content and its tool calls.
//
// The format is version 1 of the "response_template" of Hugging Face's tokenizer_config.json.
// Quire's own files (src/server/dialects) add these keys:
//   about                   a description, such as "Granite 3: a JSON list after a marker."
//   names, reasoning_names  the names that select the template; the first is the one in logs
//   detect                  {"all": […], "none": […], "priority": n}: chosen if the chat template
//                           has all and none of these texts; the highest priority wins
//   detect_reasoning        the same, for the reasoning
//   short_ids               true: the id of a call has nine characters, letters or digits
//   drop                    markers that are not a part of the content
// A field may have texts with placeholders (form.h) in place of the format's patterns:
//   open_forms   open it
//   start_forms  open it only at the start of the output, or after the reasoning
//   next_forms   open it only after a call of this field
//   end_forms    end a list of calls
//   close_forms  close it; a call may lack them
//   close_before close it and are then read again as output after it
// In content_args: tags, [{"open": form, "close": literal, "type": "schema" | "string" | "json"}],
// and trim, "none" | "newline" | "space".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "server/tools/form.h"
#include "server/tools/loose_json.h"

namespace quire::server {

// How one argument is written between tags.
struct ArgumentTag {
  enum class Type : uint8_t { kSchema, kString, kJson };
  Form open = {};
  std::string close = {};
  Type type = Type::kSchema;
};

enum class Trim : uint8_t { kNone, kNewline, kSpace };

// How arguments are read from their whole text: by a pattern, or without one in lines "key: value".
struct BodyFormat {
  std::shared_ptr<const TextPattern> tag_pattern = {};
  bool merges = false;  // a repeated key gets the list of its values; otherwise the last value
  std::string line_sep = "\n";
  std::string kv_sep = ":";
  std::string value_parser = {};  // empty: the tool's schema gives the types
};

struct TemplateField {
  enum class Target : uint8_t { kContent, kReasoning, kCalls, kIgnored };
  enum class Content : uint8_t {
    kText,
    kCallObject,  // {"name": …, "arguments": …}
    kArguments,   // the arguments alone; the opening form has the name
    kTags,        // arguments between tags; the opening form has the name
    kBody         // arguments that are read once their text is whole
  };
  std::string name = {};
  Target target = Target::kContent;
  Content content = Content::kText;
  std::vector<Form> open = {};
  std::vector<Form> start = {};
  std::vector<Form> next = {};
  std::vector<Form> end = {};
  std::vector<Form> close = {};
  std::vector<Form> close_before = {};
  JsonNotation notation = {};
  std::string name_key = "name";
  std::string arguments_key = "arguments";
  std::vector<ArgumentTag> tags = {};
  Trim trim = Trim::kNone;
  BodyFormat body = {};
  bool strips = true;     // text loses the white space around it
  std::string join = {};  // between the texts of a reasoning field that opens twice
};

// Texts that identify a chat template.
struct Detection {
  std::vector<std::string> all = {};  // empty: never
  std::vector<std::string> none = {};
  int priority = 0;

  bool fits(std::string_view chat_template) const;
};

struct ResponseTemplate {
  std::string json = {};   // the template's own JSON
  std::string about = {};  // for example "Granite 3: a JSON list after a marker."
  std::vector<std::string> names = {};
  std::vector<std::string> reasoning_names = {};
  Detection detect = {};
  Detection detect_reasoning = {};
  bool short_ids = false;
  std::vector<Form> drop = {};
  std::vector<TemplateField> fields = {};

  const TemplateField* field(TemplateField::Target target) const;
  // The literals of forms, tags and string delimiters. has_pattern: a form has a pattern, whose
  // text is not among them.
  struct Literals {
    std::vector<std::string_view> texts = {};
    bool has_pattern = false;
  };
  void add_literals(Literals& out) const;
};

// Reads a template. An error is one line that names the key and what is expected. `source` names
// the text if it is not JSON.
Result<ResponseTemplate> parse_response_template(std::string_view json, std::string_view source);

}  // namespace quire::server
