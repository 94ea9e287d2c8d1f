#include "server/conversation_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/digest.h"
#include "base/json.h"
#include "base/text.h"
#include "server/openai/conversation.h"
#include "server/openai/json_fields.h"
#include "server/tools/call_template.h"
#include "server/tools/output_parser.h"

namespace quire::server {
namespace {

using jinja::Value;
using Entries = std::vector<jinja::Dict::Entry>;

// Writes calls in the form in which a grammar lets a model without a dialect write forced calls,
// see forced_call_schema(). Also used for a dialect whose calls cannot be written.
constexpr std::string_view kCallsAsText =
    R"([{% for call in calls %}{"name": {{ call.function.name | tojson }}, )"
    R"("parameters": {{ (call.function.arguments or {}) | tojson }}})"
    R"({{ ", " if not loop.last }}{% endfor %}])";

// Returns the member of a dict; null if there is none.
const Value* find_member(const Value& dict, std::string_view name) {
  if (!dict.is_dict()) return nullptr;
  for (const auto& [key, member] : dict.dict()->entries()) {
    if (key.is_string() && key.as_string() == name) return &member;
  }
  return nullptr;
}

std::string_view role_of(const Value& message) {
  const Value* const role = find_member(message, "role");
  return role != nullptr && role->is_string() ? std::string_view(role->as_string()) : "";
}

MarkedText content_of(const Value& message) {
  const Value* const content = find_member(message, "content");
  if (content == nullptr || !content->is_string()) return {};
  return *content->text();
}

bool has_calls(const Value& message) {
  const Value* const calls = find_member(message, "tool_calls");
  return calls != nullptr && calls->is_sequence() && !calls->items().empty();
}

// Returns whether the last message has calls.
bool ends_with_calls(const Value& variables) {
  const Value* const messages = find_member(variables, "messages");
  return messages != nullptr && messages->is_sequence() && !messages->items().empty() &&
         has_calls(messages->items().back());
}

bool is_system(const Value& message) {
  return role_of(message) == "system" || role_of(message) == "developer";
}

// Returns the dict with another value of a member.
Value with_member(const Value& dict, std::string_view name, Value member) {
  Entries entries = dict.dict()->entries();
  entries.emplace_back(Value::literal(name), std::move(member));  // replaces the earlier value
  return Value::of(Value::DictPtr(jinja::Dict::build(std::move(entries))));
}

void join(const MarkedText& more, std::string_view separator, MarkedText& out) {
  if (!out.text.empty()) out.text += separator;
  out.append(more);
}

// --- Histories with calls ---

Value message_of(std::string_view role, std::string_view content, uint32_t owner = 0) {
  return Value::dict({{"role", Value::string(role)}, {"content", Value::string(content, owner)}});
}

Value message_of_calls(std::vector<Value> calls) {
  return with_member(message_of("assistant", ""), "tool_calls", Value::list(std::move(calls)));
}

// The owners (see ByteSpans) of the parts of a trial.
constexpr uint32_t kFirstCallOwner = 1;
constexpr uint32_t kSecondCallOwner = 2;
constexpr uint32_t kContentOwner = 3;
constexpr uint32_t kResultOwner = 4;

// The ids of the calls. Some templates require nine characters.
constexpr size_t kShortId = 9;
constexpr std::string_view kFirstId = "trialcall";
constexpr std::string_view kSecondId = "trialnext";
constexpr std::string_view kLongId = "call_trialtrialtrialtrialtria";

// The call has all fields that the request parsers set, because a template may read any of them.
Value trial_call(std::string_view id, uint32_t owner) {
  const Value function =
      Value::dict({{"name", Value::string("trial")},
                   {"arguments", Value::dict({{"part", Value::string("one", owner)}})}});
  return Value::dict(
      {{"id", Value::string(id)}, {"type", Value::string("function")}, {"function", function}});
}

Value trial_result(std::string_view id) {
  return with_member(
      with_member(message_of("tool", "done", kResultOwner), "tool_call_id", Value::string(id)),
      "name", Value::string("trial"));
}

Value empty_parameters() {
  return Value::dict({{"type", Value::string("object")}, {"properties", Value::dict({})}});
}

// Some templates fail without tools, others with a tool that lacks one of these fields.
Result<RenderedChat> render_trial(const EngineApi& engine, std::vector<Value> messages,
                                  bool has_description = true, bool has_parameters = true) {
  Entries function = {{Value::literal("name"), Value::string("trial")}};
  if (has_description) add_entry("description", Value::string("A trial."), function);
  if (has_parameters) add_entry("parameters", empty_parameters(), function);
  const Value tool = Value::dict(
      {{"type", Value::string("function")}, {"function", make_dict(std::move(function))}});
  return engine.render_chat(Value::dict({{"messages", Value::list(std::move(messages))},
                                         {"tools", Value::list({tool})},
                                         {"add_generation_prompt", Value::boolean(true)}}));
}

// Returns whether the template writes the parts up to this owner.
bool writes(const EngineApi& engine, std::vector<Value> messages, uint32_t last_owner) {
  const Result<RenderedChat> prompt = render_trial(engine, std::move(messages));
  return prompt.ok() && (prompt->dropped == 0 || prompt->dropped > last_owner);
}

// Removes the continuation's marker from the content. Returns whether the content had it;
// `continuation` is null if there is no continuation.
bool take_marker(const Continuation* continuation, MarkedText& content) {
  if (continuation == nullptr) return false;
  const std::string_view text = content.text;
  const size_t at = text.find(continuation->marker);
  if (at == std::string_view::npos) return false;
  MarkedText without = copy_part(content, text.substr(0, at));
  without.append(content, text.substr(at + continuation->marker.size()));
  content = std::move(without);
  return true;
}

// Returns whether the dialect's parser reads the calls that the source writes.
bool is_read_back(const ChatTemplate& source, const ResponseTemplate& dialect) {
  const Value function = Value::dict(
      {{"name", Value::string("trial")},
       {"arguments", Value::dict({{"part", Value::string("one")}, {"count", Value::integer(2)}})}});
  const Value call = Value::dict({{"function", function}});
  const Result<MarkedText> text =
      source.render(Value::dict({{"calls", Value::list({call, call})}}));
  OutputParserConfig config;
  config.call_template = std::shared_ptr<const ResponseTemplate>(&dialect, [](const auto*) {});
  config.tool_names = {"trial"};
  config.tool_schemas = {R"({"properties":{"part":{"type":"string"},"count":{"type":"integer"}}})"};
  const auto parser = make_output_parser(config);
  if (!text.ok() || !parser.ok()) return false;
  const ParsedMessage message = parse_output(**parser, text->text);
  const auto is_trial = [](const ToolCall& one) {
    const auto arguments = JsonDocument::parse(one.arguments, "arguments");
    return one.name == "trial" && arguments.ok() &&
           simdjson::minify(arguments->root()) == R"({"part":"one","count":2})";
  };
  return message.content.empty() && message.tool_calls.size() == 2 &&
         std::ranges::all_of(message.tool_calls, is_trial);
}

std::shared_ptr<const ChatTemplate> calls_as_text(const ResponseTemplate* dialect) {
  if (dialect != nullptr) {
    const std::string source = call_template(*dialect);
    auto parsed = ChatTemplate::parse(source);
    if (!source.empty() && parsed.ok() && is_read_back(*parsed, *dialect)) {
      return std::make_shared<const ChatTemplate>(std::move(*parsed));
    }
  }
  return std::make_shared<const ChatTemplate>(ChatTemplate::parse(kCallsAsText).value());
}

Result<Value> with_calls_as_text(const HistoryForm& form, const Value& message,
                                 Continuation* continuation) {
  QUIRE_ASSIGN_OR_RETURN(
      const MarkedText calls,
      form.calls_as_text->render(Value::dict({{"calls", *find_member(message, "tool_calls")}})));
  MarkedText content = content_of(message);
  const bool is_continued = take_marker(continuation, content);
  join(calls, "\n", content);
  if (is_continued) {
    continuation->content = content.text;
    content.append_untrusted(continuation->marker);
  }
  Entries entries = message.dict()->entries();
  std::erase_if(entries, [](const auto& entry) { return entry.first.as_string() == "tool_calls"; });
  return with_member(Value::of(Value::DictPtr(jinja::Dict::build(std::move(entries)))), "content",
                     Value::marked(std::move(content)));
}

// Returns whether the message is the result of the call.
bool is_result_of(const Value& message, const Value& call) {
  const Value* const id = find_member(call, "id");
  const Value* const called = find_member(message, "tool_call_id");
  return id != nullptr && called != nullptr && id->is_string() && called->is_string() &&
         id->as_string() == called->as_string();
}

bool has_parallel_calls(const Value& message) {
  return has_calls(message) && find_member(message, "tool_calls")->items().size() > 1;
}

// Returns the messages with one call per message, followed by the call's result. Results that
// belong to no call come after the last call.
std::vector<Value> with_single_calls(const std::vector<Value>& messages) {
  std::vector<Value> parted;
  for (auto message = messages.begin(); message != messages.end();) {
    const Value& first = *message++;
    if (!has_parallel_calls(first)) {
      parted.push_back(first);
      continue;
    }
    const auto end = std::find_if(message, messages.end(),
                                  [](const Value& other) { return role_of(other) != "tool"; });
    std::vector<Value> results(message, end);
    message = end;
    bool is_first = true;
    for (const Value& call : find_member(first, "tool_calls")->items()) {
      parted.push_back(is_first ? with_member(first, "tool_calls", Value::list({call}))
                                : message_of_calls({call}));
      is_first = false;
      const auto result = std::ranges::find_if(
          results, [&](const Value& other) { return is_result_of(other, call); });
      if (result == results.end()) continue;
      parted.push_back(*result);
      results.erase(result);
    }
    std::ranges::copy(results, std::back_inserter(parted));
  }
  return parted;
}

// Returns the id if it is nine letters or digits, otherwise nine digits of its hash, so that equal
// ids stay equal.
std::string short_id(std::string_view id) {
  const bool is_short = id.size() == kShortId && std::ranges::all_of(id, is_alphanumeric);
  return is_short ? std::string(id) : to_hexadecimal(sha256_of(id)).substr(0, kShortId);
}

// Returns the dict with a short id in this member, if it has the member.
Value with_short_id(const Value& dict, std::string_view name) {
  const Value* const id = find_member(dict, name);
  if (id == nullptr || !id->is_string()) return dict;
  return with_member(dict, name, Value::string(short_id(id->as_string())));
}

// Returns the message with short ids of its calls, or of the call whose result it is.
Value with_short_ids(const Value& message) {
  Value shortened = with_short_id(message, "tool_call_id");
  if (!has_calls(message)) return shortened;
  std::vector<Value> calls;
  for (const Value& call : find_member(message, "tool_calls")->items()) {
    calls.push_back(with_short_id(call, "id"));
  }
  return with_member(shortened, "tool_calls", Value::list(std::move(calls)));
}

// Returns the variables with the history in the template's form: with text in place of calls and
// results that the template cannot write, with one call per message if it refuses several, and with
// short ids if it refuses long ones.
Result<Value> with_history_in_form(const HistoryForm& form, const TemplateInput& input,
                                   const Value& variables, Continuation* continuation) {
  const Value* const messages = find_member(variables, "messages");
  if (messages == nullptr || !messages->is_sequence()) return variables;
  std::vector<Value> written;
  bool is_changed = false;
  bool is_after_result = false;
  bool is_after_dropped = false;
  for (size_t idx = 0; idx < messages->items().size(); ++idx) {
    const Value& message = messages->items()[idx];
    const bool is_tool = role_of(message) == "tool";
    // The template would drop the content, which has the text of unread arguments, so the calls
    // become text. Then their results must too, because some templates refuse a result without a
    // call.
    const bool is_dropped = !form.has_content_beside_calls &&
                            std::ranges::binary_search(input.messages_with_unread, idx);
    is_after_dropped = is_dropped || (is_after_dropped && is_tool);
    const bool is_result = is_tool && (!form.has_results || is_after_dropped);
    const bool is_call = has_calls(message) && (!form.has_calls || is_dropped);
    is_changed = is_changed || is_result || is_call;
    const bool is_joined = !form.has_successive_users && !written.empty() &&
                           role_of(written.back()) == "user" &&
                           (is_result || (is_after_result && role_of(message) == "user"));
    is_after_result = is_result;
    if (is_joined) {
      MarkedText content = content_of(written.back());
      join(content_of(message), "\n", content);
      written.back() = with_member(written.back(), "content", Value::marked(std::move(content)));
    } else if (is_result) {
      written.push_back(Value::dict(
          {{"role", Value::string("user")}, {"content", Value::marked(content_of(message))}}));
    } else if (is_call) {
      QUIRE_ASSIGN_OR_RETURN(Value text, with_calls_as_text(form, message, continuation));
      written.push_back(std::move(text));
    } else {
      written.push_back(message);
    }
  }
  if (!form.has_parallel_calls && std::ranges::any_of(written, has_parallel_calls)) {
    written = with_single_calls(written);
    is_changed = true;
  }
  if (!form.has_long_ids) {
    std::ranges::transform(written, written.begin(), with_short_ids);
    is_changed = true;
  }
  if (!is_changed) return variables;
  return with_member(variables, "messages", Value::list(std::move(written)));
}

// Returns the variables with the generic prompt of tools in place of the tools.
Result<Value> with_tools_as_text(const HistoryForm& form, const Value& variables) {
  const Value* const tools = find_member(variables, "tools");
  const Value* const messages = find_member(variables, "messages");
  if (form.has_tools || tools == nullptr || !tools->is_sequence() || messages == nullptr ||
      !messages->is_sequence()) {
    return variables;
  }
  static const ChatTemplate prompt = ChatTemplate::parse(kToolsAsText).value();
  QUIRE_ASSIGN_OR_RETURN(MarkedText text, prompt.render(Value::dict({{"tools", *tools}})));
  std::vector<Value> written = messages->items();
  const auto target = std::ranges::find_if(written, [&](const Value& message) {
    return form.has_system ? is_system(message) : role_of(message) == "user";
  });
  if (target == written.end()) {
    const Value content = Value::marked(std::move(text));
    written.insert(written.begin(),
                   Value::dict({{"role", Value::string(form.has_system ? "system" : "user")},
                                {"content", content}}));
  } else {
    // A system message keeps its beginning; a message of the user ends with the question.
    MarkedText content = content_of(*target);
    if (form.has_system) std::swap(content, text);
    join(content, "\n\n", text);
    *target = with_member(*target, "content", Value::marked(std::move(text)));
  }
  return with_member(with_member(variables, "messages", Value::list(std::move(written))), "tools",
                     Value::none());
}

// Returns the variables with a description and parameters for all tools, if the template fails
// without them.
Value with_tool_fields(const HistoryForm& form, const Value& variables) {
  const Value* const tools = find_member(variables, "tools");
  const bool is_kept = form.has_tools_without_description && form.has_tools_without_parameters;
  if (is_kept || tools == nullptr || !tools->is_sequence()) return variables;
  std::vector<Value> completed;
  for (const Value& tool : tools->items()) {
    const Value* const function = find_member(tool, "function");
    if (function == nullptr || !function->is_dict()) {
      completed.push_back(tool);
      continue;
    }
    const auto lacks = [&](std::string_view name) {
      const Value* const field = find_member(*function, name);
      return field == nullptr || field->is_none();
    };
    Value whole = *function;
    if (!form.has_tools_without_description && lacks("description")) {
      whole = with_member(whole, "description", Value::literal(""));
    }
    if (!form.has_tools_without_parameters && lacks("parameters")) {
      whole = with_member(whole, "parameters", empty_parameters());
    }
    completed.push_back(with_member(tool, "function", std::move(whole)));
  }
  return with_member(variables, "tools", Value::list(std::move(completed)));
}

// The message's path in the request; `owner` is its index in the template's list, plus 1.
std::string source_of(const TemplateInput& input, size_t owner) {
  if (owner <= input.sources.size()) return input.sources[owner - 1];
  return fmt::format("messages[{}]", owner - 1);
}

ApiError dropped_message(const TemplateInput& input, size_t owner) {
  const Value* const messages = find_member(input.variables, "messages");
  const bool is_known = messages != nullptr && owner <= messages->items().size();
  const std::string role(is_known ? role_of(messages->items()[owner - 1]) : "");
  return *field_error(
      Path(source_of(input, owner)),
      fmt::format(
          "got a message of the role '{}' of which the model's chat template writes nothing, "
          "expected a role that the template reads at this place",
          clipped(role)));
}

}  // namespace

HistoryForm find_history_form(const EngineApi& engine, const ResponseTemplate* calls,
                              bool has_generic_tools) {
  HistoryForm form;
  form.calls_as_text = calls_as_text(calls);
  form.has_tools = !has_generic_tools;
  if (engine.chat_template().empty()) return form;
  const Value user = message_of("user", "go");
  form.has_system =
      writes(engine, {message_of("system", "trial", kFirstCallOwner), user}, kFirstCallOwner);
  const Value call = trial_call(kFirstId, kFirstCallOwner);
  const Value next_call = trial_call(kSecondId, kSecondCallOwner);
  const Value result = trial_result(kFirstId);
  const Value called = message_of_calls({call});
  form.has_calls = writes(engine, {user, called, result}, kFirstCallOwner) ||
                   writes(engine, {user, called, user}, kFirstCallOwner);
  const Value answer = form.has_calls ? called : message_of("assistant", "trial");
  form.has_results = writes(engine, {user, answer, result}, kResultOwner);
  const Value called_long =
      form.has_calls ? message_of_calls({trial_call(kLongId, kFirstCallOwner)}) : answer;
  form.has_long_ids = form.has_results
                          ? writes(engine, {user, called_long, trial_result(kLongId)}, kResultOwner)
                          : writes(engine, {user, called_long, user}, kFirstCallOwner);
  const Value called_twice = message_of_calls({call, next_call});
  form.has_parallel_calls =
      !form.has_calls ||
      writes(engine, {user, called_twice, result, trial_result(kSecondId)}, kSecondCallOwner) ||
      writes(engine, {user, called_twice, user}, kSecondCallOwner);
  const Value called_beside =
      with_member(called, "content", Value::string("So I call it.", kContentOwner));
  form.has_content_beside_calls =
      !form.has_calls ||
      writes(engine, {user, called_beside, form.has_results ? result : user}, kContentOwner);
  form.has_successive_users = writes(engine, {user, user}, kResultOwner);
  form.has_tools_without_description = render_trial(engine, {user}, false, true).ok();
  form.has_tools_without_parameters = render_trial(engine, {user}, true, false).ok();
  return form;
}

std::optional<Value> with_merged_system(const Value& variables) {
  const Value* const messages = find_member(variables, "messages");
  if (messages == nullptr || !messages->is_sequence() || messages->items().empty()) return {};
  MarkedText joined;
  std::vector<Value> merged;
  const Value* first_system = nullptr;
  bool is_any_later = false;
  for (const Value& message : messages->items()) {
    const Value* const content = find_member(message, "content");
    if (!is_system(message) || content == nullptr || !content->is_string()) {
      merged.push_back(message);
      continue;
    }
    is_any_later = is_any_later || &message != &messages->items().front();
    if (first_system == nullptr) first_system = &message;
    join(*content->text(), "\n\n", joined);
  }
  if (!is_any_later) return {};
  merged.insert(merged.begin(),
                with_member(*first_system, "content", Value::marked(std::move(joined))));
  return with_member(variables, "messages", Value::list(std::move(merged)));
}

std::optional<ApiError> render_conversation(const EngineApi& engine, const HistoryForm& form,
                                            TemplateInput& input, MarkedText& out) {
  Continuation* const continuation = input.continuation ? &*input.continuation : nullptr;
  if (continuation != nullptr && form.has_calls && ends_with_calls(input.variables)) {
    return make_api_error(
        400,
        fmt::format("got tool_calls in the last message, expected only text to continue; leave the "
                    "calls out, or {}",
                    continuation->alternative),
        "messages");
  }
  const Result<Value> tooled = with_tools_as_text(form, with_tool_fields(form, input.variables));
  if (!tooled.ok()) return api_error(tooled.status());
  const Result<Value> variables = with_history_in_form(form, input, *tooled, continuation);
  if (!variables.ok()) return api_error(variables.status());
  Result<RenderedChat> prompt = engine.render_chat(*variables);
  const auto is_whole = [](const Result<RenderedChat>& result) {
    return result.ok() && result->dropped == 0;
  };
  if (!is_whole(prompt)) {
    if (const std::optional<Value> merged = with_merged_system(*variables)) {
      Result<RenderedChat> other = engine.render_chat(*merged);
      if (is_whole(other)) prompt = std::move(other);
    }
  }
  if (!prompt.ok()) return api_error(prompt.status());
  if (prompt->dropped != 0) return dropped_message(input, prompt->dropped);
  out = std::move(*prompt);
  return std::nullopt;
}

}  // namespace quire::server
