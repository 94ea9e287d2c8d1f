// Chat templates: the Jinja that checkpoints carry, as transformers configures it
// (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls, its own tojson,
// raise_exception, strftime_now and generation tag), with bounds on everything a template can
// spend. A template can reach nothing but its variables.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "quire/status.h"
#include "tokenizer/template/value.h"

namespace quire {

namespace jinja {
struct Program;
}

struct TemplateLimits {
  int64_t max_steps = 2'000'000;           // nodes evaluated, items visited, 64 bytes of text read
  size_t max_output_bytes = size_t{8} << 20;
  size_t max_source_bytes = size_t{1} << 20;
  int max_depth = 100;                     // nesting of the source, and of macro calls
  size_t max_live_bytes = size_t{64} << 20;  // memory made by the template: strings, lists
  // What strftime_now reads, in seconds since the epoch and in UTC; when absent, the machine's
  // clock in its time zone.
  std::optional<int64_t> now_unix_s = std::nullopt;
};

// Immutable, and safe to render from several threads.
class ChatTemplate {
 public:
  // Errors: `[template] line N: what is wrong with the source`.
  static Result<ChatTemplate> parse(std::string_view source, const TemplateLimits& limits = {});

  // `variables`: a dict of messages, tools, documents, add_generation_prompt, bos_token,
  // eos_token and whatever else the template reads. Errors are the request's: what the template
  // refuses by raise_exception, what it cannot do with these variables, and a spent budget.
  Result<std::string> render(const jinja::Value& variables,
                             const TemplateLimits& limits = {}) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const jinja::Program> program);

  std::shared_ptr<const jinja::Program> program_;
};

// Keeps the order of keys. Integers past 2^63 become floats.
jinja::Value value_from_json(simdjson::dom::element element);

}  // namespace quire
