// The engine's interface as the server uses it: a wrapper of quire::Engine, or a fake in tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/marked_text.h"
#include "engine/chat_format.h"
#include "jinja/value.h"
#include "quire/engine.h"
#include "server/tools/token_marker.h"

namespace quire::server {

class EngineApi {
 public:
  virtual ~EngineApi() = default;

  virtual Result<RequestId> submit(Request request, Engine::OutputCallback on_output) = 0;
  virtual void cancel(RequestId id) = 0;
  // `variables` is a dict with messages, tools, add_generation_prompt and any other variable of the
  // template. All bytes of the prompt that come from them are untrusted, unless the operator allows
  // control tokens in messages.
  virtual Result<RenderedChat> render_chat(const jinja::Value& variables) const = 0;
  virtual std::string_view chat_template() const = 0;  // source text; empty without a template
  // See Tokenizer::encode().
  virtual Result<std::vector<int32_t>> encode(std::string_view text, bool add_special_tokens,
                                              const ByteSpans& untrusted) const = 0;
  virtual std::string decode(const std::vector<int32_t>& ids, bool skip_special_tokens) const = 0;
  virtual std::string token_bytes(int32_t id) const = 0;  // may be a part of a UTF-8 character
  // The added tokens of the tokenizer; the special ones have `is_hidden`.
  virtual std::vector<TokenMarker> added_tokens() const = 0;
  virtual SamplingDefaults sampling_defaults(SamplingFallback fallback) const = 0;
  virtual const ModelInfo& model_info() const = 0;
  virtual EngineStats stats() const = 0;
  virtual std::vector<ReplicaState> replicas() const = 0;
  virtual Status health() const = 0;
};

std::unique_ptr<EngineApi> make_engine_api(Engine& engine);

}  // namespace quire::server
