// The parts of Engine that are not in its public interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/chat_format.h"
#include "kv_events/publisher.h"
#include "platform/platform.h"
#include "quire/engine.h"
#include "tokenizer/tokenizer.h"

namespace quire {

namespace jinja {
class Value;
}

struct EngineInternals {
  using Impl = Engine::Impl;  // engine/engine_impl.h

  static std::unique_ptr<Engine> make(std::unique_ptr<Impl> impl);
  // The platform of the first replica. Its threads may be changed while no request runs.
  static Platform& platform(const Engine& engine);
  // Null: the model has no tokenizer.
  static const Tokenizer* tokenizer(const Engine& engine);
  // See ChatFormat; empty without a chat template.
  static std::string_view response_template(const Engine& engine);
  // The error of a chat template that cannot be used; ok: it can be used, or the model has none.
  static const Status& template_fault(const Engine& engine);
  // By data-parallel rank; empty: no KV events.
  static const std::vector<KvEventsConfig>& kv_event_sources(const Engine& engine);
  // Does the same as Engine::render_chat_json() for a dict of the template's values, and marks the
  // values' texts in the prompt.
  static Result<RenderedChat> render_chat(const Engine& engine, const jinja::Value& variables);
  // Does the same as Engine::encode() for a text with untrusted bytes.
  static Result<std::vector<int32_t>> encode(const Engine& engine, std::string_view text,
                                             bool add_special_tokens, const ByteSpans& untrusted);
};

}  // namespace quire
