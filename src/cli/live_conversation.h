// A conversation with a model: its messages, its settings, and one turn at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/chat_model.h"
#include "quire/engine.h"
#include "quire/status.h"

namespace quire::cli {

class LiveConversation {
 public:
  LiveConversation(std::unique_ptr<ChatModel> model, ChatSettings settings, std::string system,
                   bool wraps_words);

  const std::vector<ChatMessage>& messages() const { return messages_; }
  const std::string& system() const { return system_; }
  const AnswerStats& stats() const { return stats_; }
  const ChatModel& model() const { return *model_; }
  bool wraps_words() const { return wraps_words_; }

  void reset();
  // Runs one turn. On failure, or if the reply is stopped before its first word, the conversation
  // stays as it was.
  Status say(const std::string& text);
  // Answers the last message again, with another seed.
  Status regenerate();
  // Replaces the system message; empty: removes it. The other messages stay.
  Status set_system(const std::string& text);
  // Replaces the conversation if the model's template accepts it.
  Status load(std::vector<ChatMessage> messages);
  // Executes the argument of /set: "temperature 0.2", "think" or "nothink"; "temperature" alone
  // restores the default. Returns a text that describes the effect.
  Result<std::string> set(std::string_view words);
  // Returns the lines that /show prints.
  std::string described() const;

 private:
  // An empty value turns a switch on, and restores the default of any other field.
  Status set_field(const SamplingField& field, std::string_view value);
  Status answer(std::vector<ChatMessage> attempt);
  Result<int> fit(std::vector<ChatMessage>& messages) const;
  Result<ChatAnswer> ask(const std::vector<ChatMessage>& messages);
  void report_cut() const;
  SamplingDefaults sampling() const;

  std::unique_ptr<ChatModel> model_;
  ChatSettings settings_;
  std::string system_;
  bool wraps_words_;
  std::vector<ChatMessage> messages_;
  AnswerStats stats_;
  uint64_t num_attempts_ = 0;  // uses of /regenerate on the last message
};

}  // namespace quire::cli
