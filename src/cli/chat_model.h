// The model of a `quire chat`: an engine in this process, or a server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/running_servers.h"
#include "cli/sampling_flags.h"
#include "quire/engine.h"
#include "quire/status.h"

namespace quire::cli {

// Settings that a user may change between two answers.
struct ChatSettings {
  SamplingFlags sampling{"the rest of the context"};
  std::optional<bool> thinks;  // absent: the chat template decides
};

// The numbers that /stats prints.
struct AnswerStats {
  int num_prompt_tokens = 0;
  int num_cached_tokens = 0;
  int num_output_tokens = 0;
  double first_token_s = 0;  // from the message to the first token
  double decode_s = 0;       // from the first token to the last

  int num_tokens() const { return num_prompt_tokens + num_output_tokens; }
};

struct ChatAnswer {
  std::string text;
  FinishReason finish_reason = FinishReason::kStop;
  AnswerStats stats;
};

// Describes the sampling defaults of a server that does not report them.
inline constexpr const char* kUnknownDefaults = "the server's defaults";

class ChatModel {
 public:
  virtual ~ChatModel() = default;

  virtual std::string name() const = 0;
  virtual int max_model_len() const = 0;  // 0: unknown
  // The values without the user's flags; max_tokens is the context length. nullopt: unknown.
  virtual std::optional<SamplingDefaults> sampling_defaults() const = 0;
  // Whether the template reads enable_thinking; true if the template is unknown.
  virtual bool can_switch_thinking() const = 0;
  // Fails if the template does not accept this system message.
  virtual Status check_system(const std::string& system) const = 0;
  // Returns the number of tokens of a conversation in the chat template; 0: unknown.
  virtual Result<int> num_tokens(const std::vector<ChatMessage>& messages,
                                 const ChatSettings& settings) const = 0;

  // Returns false once the output cannot be written.
  using Show = std::function<bool(std::string_view piece)>;
  // Generates the reply to the last message. `attempt` above 0 changes the seed. An interrupt in a
  // CancelScope ends the answer with FinishReason::kCancelled.
  virtual Result<ChatAnswer> answer(const std::vector<ChatMessage>& messages,
                                    const ChatSettings& settings, uint64_t attempt,
                                    const Show& show) = 0;
};

// `engine` must outlive the model.
std::unique_ptr<ChatModel> make_local_model(Engine& engine);

// Connects to a server with OpenAI's API. Fails if the server does not respond, refuses the key, or
// does not have the model. `model` is a name or alias that the server lists; empty: its first
// model.
Result<std::unique_ptr<ChatModel>> connect_to_server(const ServerAddress& address,
                                                     const std::string& api_key,
                                                     const std::string& model);

}  // namespace quire::cli
