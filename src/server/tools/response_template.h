// Response templates: how a model writes its reasoning, its content and its tool calls.
//
// The format is version 1 of the "response_template" of Hugging Face's tokenizer_config.json.
// Quire's own files (src/server/dialects) add these keys. Most of them replace a pattern of the
// format by literals:
//   names, reasoning_names  the names that select the template; the first is the one in logs
//   detect                  {"all": […], "none": […], "priority": n}: the literals of a chat
//                           template that has this dialect; the highest priority wins
//   detect_reasoning        the same, for the reasoning
//   short_ids               true: the id of a call has nine characters, letters or digits
//   drop                    markers that are no part of the content
// In a field:
//   open_forms   texts with placeholders (form.h) that open it
//   start_forms  open it only at the start of the output, or after the reasoning
//   next_forms   open it only after a call of this field
//   end_forms    end a list of calls
//   close_forms  close it; a call may lack them
//   close_before texts that close it and belong to what follows
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

// How arguments are read from their whole text: by a pattern, otherwise in lines "key: value".
struct BodyFormat {
  std::shared_ptr<const TextPattern> tag_pattern = {};
  bool merges = false;  // a key that comes twice has a list
  std::string line_sep = "\n";
  std::string kv_sep = ":";
  std::string value_parser = {};  // empty: by the tool's schema
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
  std::string join = {};  // between the texts of a field that opens twice
};

// Literals by which a chat template is known.
struct Detection {
  std::vector<std::string> all = {};  // empty: never
  std::vector<std::string> none = {};
  int priority = 0;

  bool fits(std::string_view chat_template) const;
};

struct ResponseTemplate {
  std::string json = {};   // its text
  std::string about = {};  // "MODELS: FORM"
  std::vector<std::string> names = {};
  std::vector<std::string> reasoning_names = {};
  Detection detect = {};
  Detection detect_reasoning = {};
  bool short_ids = false;
  std::vector<Form> drop = {};
  std::vector<TemplateField> fields = {};

  const TemplateField* field(TemplateField::Target target) const;
  // The literals of all forms. A form may instead be a pattern, whose text is not among them.
  struct Literals {
    std::vector<std::string_view> texts = {};
    bool has_pattern = false;
  };
  void add_literals(Literals& out) const;
};

// Reads a template. Errors name the key, the value and the remedy in one line.
Result<ResponseTemplate> parse_response_template(std::string_view json, std::string_view source);

}  // namespace quire::server
