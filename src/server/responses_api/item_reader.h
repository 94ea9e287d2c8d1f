// Turns the items of the Responses API into messages.
#pragma once

#include <string>

#include "server/openai/chat_builder.h"

namespace quire::server {

class ItemReader {
 public:
  explicit ItemReader(ChatBuilder& chat) : chat_(chat) {}

  // Adds a message of another role than the assistant's.
  void add_message(std::string role, std::string content);
  FieldError read(const Path& path, Element value);

 private:
  // Returns the message that collects the assistant's turn. `begins_another`: the turn has this
  // part already, so the item belongs to the next turn.
  TemplateMessage& turn(bool begins_another);
  bool has_content_or_calls() const;

  FieldError read_message(const Path& path, const simdjson::dom::object& fields);
  FieldError read_reasoning(const Path& path, const simdjson::dom::object& fields);
  FieldError read_call(const Path& path, const simdjson::dom::object& fields);
  FieldError read_custom_call(const Path& path, const simdjson::dom::object& fields);
  // Reads the call of a hosted tool, such as "web_search_call", and its result if the item has it.
  // `name` is the tool's type.
  FieldError read_hosted_call(const Path& path, const simdjson::dom::object& fields,
                              std::string_view name);
  FieldError read_call_output(const Path& path, const simdjson::dom::object& fields);
  FieldError read_hosted_output(const Path& path, const simdjson::dom::object& fields);
  FieldError add_result(const Path& id_path, std::string_view id, std::string content);

  ChatBuilder& chat_;
  bool is_open_ = false;  // the last message is the assistant's, and its turn has not ended
};

}  // namespace quire::server
