// Chat templates: the Jinja that checkpoints carry, as transformers configures it
// (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls, its own tojson,
// raise_exception, strftime_now and generation tag), with bounds on everything a template can
// spend. A template can reach nothing but its variables.
#pragma once

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "tokenizer/template/limits.h"
#include "tokenizer/template/value.h"

namespace quire {

namespace jinja {
struct Program;
}

// Immutable, and safe to render from several threads.
class ChatTemplate {
 public:
  // Errors: `[template] line N: what is wrong with the source`.
  static Result<ChatTemplate> parse(std::string_view source, const TemplateLimits& limits = {});

  // `variables`: a dict of messages, tools, documents, add_generation_prompt, bos_token,
  // eos_token and whatever else the template reads. Errors are the request's: what the template
  // refuses by raise_exception, what it cannot do with these variables, and a spent budget.
  // `num_steps` receives the work charged to the budget, also when the render fails.
  Result<std::string> render(const jinja::Value& variables, const TemplateLimits& limits = {},
                             int64_t* num_steps = nullptr) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program);

  std::shared_ptr<const jinja::Program> program_;
};

// Keeps the order of keys. Integers past 2^63 become floats.
jinja::Value value_from_json(simdjson::dom::element element);

}  // namespace quire
