// Builds a ChatRequest for an API whose messages differ from those of chat completions. The API's
// parser reads its own fields and adds each message as a TemplateMessage.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/openai/conversation.h"
#include "server/openai/generation_fields.h"

namespace quire::server {

struct TemplateCall {
  std::string id;
  std::string name;
  jinja::Value arguments;  // a dict
  std::string text = {};   // arguments that are not an object; add_call() adds them to the content
};

// A message in the form that chat templates expect.
struct TemplateMessage {
  std::string role;
  std::string content = {};
  std::string reasoning = {};                 // of an assistant
  std::vector<TemplateCall> tool_calls = {};  // of an assistant
  std::string tool_call_id = {}, name = {};   // of the role "tool"
  std::string source = {};                    // its place in the request: "input[2]"
};

class ChatBuilder {
 public:
  ChatBuilder(ChatRequest& request, const RequestDefaults& defaults);

  // The fields of chat completions that other APIs do not honour.
  static FieldTable<ChatBuilder> table();
  // Reads a field that the API shares with chat completions, by OpenAI's name or vLLM's. Ignores
  // unknown fields.
  FieldError read(std::string_view name, Element value);
  // Reads a field of SamplingParams, whose name and place in the body depend on the API.
  FieldError read_sampling(const Path& path, std::string_view name, Element value);
  // Reads the limit of generated tokens, whose name depends on the API.
  FieldError read_max_tokens(const Path& path, Element value);
  // Reads variables of the template. As in chat completions, they replace variables from other
  // fields.
  FieldError read_template_kwargs(const Path& path, Element value);

  // Reads a tool whose `fields` contain the name, the description and the schema of the parameters.
  FieldError add_tool(const Path& path, const simdjson::dom::object& fields,
                      std::string_view parameters_name);
  // Reads a tool with free text, see tool_kinds.h.
  FieldError add_custom_tool(const Path& path, const simdjson::dom::object& fields);
  // Sets the choice of a request that states none: `auto` if it has tools, otherwise `none`. Call
  // it after the tools were read.
  void choose_by_default();
  // Forces a call of this tool, which must have been added.
  FieldError choose_tool(const Path& name_path, Element name);
  // Forces a call of any tool.
  FieldError require_tool(const Path& path, Element choice);

  // Adds the result of the call with this id. Fails if no earlier message has such a call.
  FieldError add_tool_result(const Path& id_path, std::string_view id, std::string content);
  // Sets `source` of all messages that were added since the last set_sources().
  void set_sources(const Path& path);
  // Adds a call to the last message, which is the assistant's.
  void add_call(TemplateCall call);

  // Sets the variables of the template, see add_effort(). If the template does not read the effort,
  // adds `path` to request.ignored.
  void set_reasoning_effort(const Path& path, std::string_view effort);
  // Switches reasoning on or off in templates that can do so; in others it has no effect.
  void set_thinking(bool is_wanted);

  // Checks the parts against each other and writes the request's conversation. With `continues`,
  // the response continues the last message, which is the assistant's.
  FieldError finish(const Path& messages_path, bool continues);

  ChatRequest& request;
  const RequestDefaults& defaults;
  TemplateValues values;
  std::vector<TemplateMessage> messages;

 private:
  jinja::Value message_value(const TemplateMessage& message, uint32_t owner,
                             std::string_view marker) const;

  GenerationFields shared_;
  std::vector<std::pair<std::string, jinja::Value>> tools_;  // names and values for the template
  std::vector<jinja::Dict::Entry> variables_;
  std::vector<jinja::Dict::Entry> template_kwargs_;
  std::map<std::string, std::string, std::less<>> names_by_call_;
  size_t num_with_source_ = 0;
};

}  // namespace quire::server
