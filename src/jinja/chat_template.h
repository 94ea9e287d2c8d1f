// Chat templates: the Jinja dialect of checkpoints, as transformers configures it
// (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls, its own tojson,
// raise_exception, strftime_now and generation tag). Work, memory and depth of a template are
// bounded, and it can access nothing but its variables. Methods and tags that no known template
// uses are refused, and the error names them. The module, in reading order:
//
//   budget.h       the limits of a render, and the exception Error
//   value.h        the values of templates; Python's rules for them (value.cc)
//   python_text.h  Python's text: characters and numbers; JSON (python_text.cc)
//   syntax.h       tokens (lexer.cc) and the syntax tree (parser.cc)
//   interpreter.h  the state of a render; evaluates expressions (interpreter.cc) and executes
//                  statements (statements.cc) with Python's operations (operators.cc);
//                  interpreter.cc ends with ChatTemplate's functions
//   builtins.h     builtins, their arguments; tests, methods of dicts and lists (builtins.cc)
//   filters.cc     filters of sequences and numbers
//   strings.cc     filters of text, methods of str, formats
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/marked_text.h"
#include "jinja/budget.h"
#include "jinja/value.h"
#include "quire/status.h"

namespace simdjson::dom {
class element;
}

namespace quire {

namespace jinja {
struct Program;
}

// Immutable; several threads may render from it at once.
class ChatTemplate {
 public:
  // Compiles the source. Errors read "[template] line N: …".
  static Result<ChatTemplate> parse(std::string_view source, const TemplateLimits& limits = {});

  // `variables` is a dict of messages, tools, documents, add_generation_prompt, bos_token,
  // eos_token and any others that the template reads. Errors are the request's fault:
  // raise_exception in the template, an operation that fails with these variables, or a spent
  // budget. `num_steps` receives the work charged to the budget, also if the render fails. The
  // result's marks distinguish the bytes of the variables' texts (Value::string) from the
  // template's own.
  Result<MarkedText> render(const jinja::Value& variables, const TemplateLimits& limits = {},
                            int64_t* num_steps = nullptr) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program);

  std::shared_ptr<const jinja::Program> program_;
};

// Converts JSON. Its texts count as text of a request, of the message `owner` (see ByteSpans).
// Keeps the order of keys. Integers beyond int64 become floats.
jinja::Value value_from_json(simdjson::dom::element element, uint32_t owner = 0);

}  // namespace quire
