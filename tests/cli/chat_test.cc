// Tests the parts of `quire chat` that need no engine and no terminal.
#include "cli/chat.h"

#include <gmock/gmock.h>

#include "cli/line_editor.h"

namespace quire::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(ChatLine, TellsCommandsFromMessages) {
  for (const char* message : {"hi", " /help", "/tmp/x", "/5", "/", "//", "what is /reset?"}) {
    const auto line = parse_chat_line(message);
    ASSERT_TRUE(line.ok()) << message;
    EXPECT_EQ(line->action, ChatAction::kSay) << message;
    EXPECT_EQ(line->text, message);
  }
  EXPECT_EQ(parse_chat_line("/help")->action, ChatAction::kHelp);
  EXPECT_EQ(parse_chat_line("/reset \t\r")->action, ChatAction::kReset);
  EXPECT_EQ(parse_chat_line("/exit")->action, ChatAction::kExit);
  EXPECT_EQ(parse_chat_line("/quit")->action, ChatAction::kExit);
}

TEST(ChatLine, CommandsHaveArguments) {
  EXPECT_EQ(parse_chat_line("/save  a b.json ")->text, "a b.json");
  EXPECT_EQ(parse_chat_line("/system")->text, "");
  EXPECT_EQ(parse_chat_line("/system Be\nbrief.")->text, "Be\nbrief.");
  EXPECT_EQ(parse_chat_line("/load").status().message(), "[chat] expected /load FILE");
  EXPECT_THAT(parse_chat_line("/reset now").status().message(),
              HasSubstr("got /reset with 'now', expected it alone"));
}

TEST(ChatLine, UnknownCommandsAreRefusedWithTheList) {
  EXPECT_THAT(parse_chat_line("/regenrate").status().message(),
              HasSubstr("unknown command /regenrate; did you mean /regenerate? expected one of "
                        "/help, /reset, /system"));
  EXPECT_THAT(parse_chat_line("/frob").status().message(), Not(HasSubstr("did you mean")));
  EXPECT_THAT(parse_chat_line("a\xff").status().message(), HasSubstr("UTF-8"));
  for (const std::string& name : chat_command_names()) EXPECT_THAT(chat_help(), HasSubstr(name));
}

std::vector<std::string> roles(const std::vector<ChatMessage>& messages) {
  std::vector<std::string> all;
  for (const ChatMessage& message : messages) all.push_back(message.role);
  return all;
}

TEST(ConversationFile, IsReadAsItWasWritten) {
  const std::vector<ChatMessage> messages = {
      {"system", "s"}, {"user", "a\n\"b\" é"}, {"assistant", ""}};
  const auto read = parse_conversation(conversation_json(messages), "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(roles(*read), ElementsAre("system", "user", "assistant"));
  EXPECT_EQ((*read)[1].content, messages[1].content);
  EXPECT_THAT(*parse_conversation(conversation_json({}), "f"), IsEmpty());
  EXPECT_THAT(*parse_conversation(R"([{"role":"user","content":"a","name":"x"},
                                      {"role":"assistant","content":"b"}])",
                                  "f"),
              SizeIs(2));
}

TEST(ConversationFile, FaultsAreNamed) {
  const auto error = [](const char* json) {
    return parse_conversation(json, "file.json").status().message();
  };
  EXPECT_THAT(error("{"), HasSubstr("file.json"));
  EXPECT_THAT(error("3"), HasSubstr("file.json: expected an object with a list of messages"));
  EXPECT_THAT(error(R"({"messages": 3})"), HasSubstr("a list of messages"));
  EXPECT_THAT(error(R"([{"role":"user"}])"), HasSubstr("message 0: expected an object"));
  EXPECT_THAT(error(R"([{"role":"user","content":["a"]}])"), HasSubstr("message 0"));
  EXPECT_THAT(error(R"([{"role":"user","content":"a"}])"), HasSubstr("has no answer"));
  EXPECT_THAT(error(R"([{"role":"tool","content":"a"}])"),
              HasSubstr("message 0: got the role 'tool', expected user"));
}

// Counts one token per letter, and one per message.
Result<int> count_letters(const std::vector<ChatMessage>& messages) {
  size_t count = 0;
  for (const ChatMessage& message : messages) count += message.content.size() + 1;
  return static_cast<int>(count);
}

std::vector<ChatMessage> conversation() {
  return {{"system", "s"}, {"user", "old"}, {"assistant", "yes"}, {"user", "new"}};
}

TEST(TrimHistory, DropsTheOldestExchange) {
  auto messages = conversation();
  EXPECT_EQ(*trim_history(messages, 14, count_letters), 0);
  EXPECT_EQ(*trim_history(messages, 13, count_letters), 2);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].content, "new");
}

TEST(TrimHistory, MakesRoomForMoreThanOneTurn) {
  std::vector<ChatMessage> messages = {{"system", "s"}};
  for (int turn = 0; turn < 10; ++turn) {
    messages.push_back({"user", "abcd"});
    messages.push_back({"assistant", "efgh"});
  }
  messages.push_back({"user", "last"});
  // The conversation has 2 + 10 * 10 + 5 tokens. Dropping five exchanges leaves more than half of
  // 106; dropping six leaves less.
  EXPECT_EQ(*trim_history(messages, 107, count_letters), 0);
  EXPECT_EQ(*trim_history(messages, 106, count_letters), 12);
  EXPECT_EQ(*count_letters(messages), 47);
  EXPECT_EQ(messages[0].role, "system");
  EXPECT_EQ(messages[1].role, "user");
  EXPECT_EQ(messages.back().content, "last");
}

TEST(TrimHistory, AMessageThatFitsAloneIsEnough) {
  auto messages = conversation();
  messages.back().content = "a long question";
  EXPECT_EQ(*trim_history(messages, 20, count_letters), 2);  // 18 exceeds half of the limit
}

TEST(TrimHistory, CountsALongConversationAFewTimes) {
  std::vector<ChatMessage> messages;
  for (int turn = 0; turn < 100'000; ++turn) {
    messages.push_back({"user", "ab"});
    messages.push_back({"assistant", "cd"});
  }
  messages.push_back({"user", "last"});
  int num_counts = 0;
  const auto count = [&](const std::vector<ChatMessage>& candidate) {
    ++num_counts;
    return count_letters(candidate);
  };
  EXPECT_EQ(*trim_history(messages, 100, count), 2 * (100'000 - 7));
  EXPECT_EQ(*count_letters(messages), 47);
  EXPECT_LT(num_counts, 25);
}

TEST(TrimHistory, RefusesAMessageThatNeverFits) {
  auto messages = conversation();
  EXPECT_FALSE(trim_history(messages, 3, count_letters).ok());
}

TEST(History, KeepsWholeMessages) {
  const std::vector<std::string> entries = {"a", "two\nlines", "\"é\"\t", ""};
  std::string file;
  for (const std::string& entry : entries) file += history_line(entry);
  EXPECT_EQ(std::count(file.begin(), file.end(), '\n'), 4);
  EXPECT_EQ(parse_history(file), entries);
}

TEST(History, SkipsBrokenLines) {
  EXPECT_THAT(parse_history("\"a\"\n{\n\n3\n\"b\"\n\"cut"), ElementsAre("a", "b"));
  EXPECT_THAT(parse_history(""), IsEmpty());
}

TEST(History, IsBoundedByEntriesAndBytes) {
  std::string many;
  for (size_t i = 0; i < kMaxHistoryEntries + 5; ++i) many += history_line(std::to_string(i));
  const std::vector<std::string> newest = parse_history(many);
  EXPECT_THAT(newest, SizeIs(kMaxHistoryEntries));
  EXPECT_EQ(newest.front(), "5");
  const std::string half = history_line(std::string(kMaxHistoryBytes / 2 - 16, 'x'));
  EXPECT_THAT(parse_history(half + half + half), SizeIs(2));
}

TEST(History, IsInTheStateDirectory) {
  EXPECT_EQ(history_path("/s", "/h"), "/s/quire/chat_history.jsonl");
  EXPECT_EQ(history_path(nullptr, "/h"), "/h/.local/state/quire/chat_history.jsonl");
  EXPECT_EQ(history_path("relative", "/h"), "/h/.local/state/quire/chat_history.jsonl");
  EXPECT_EQ(history_path("", ""), "");
  EXPECT_EQ(history_path(nullptr, nullptr), "");
}

TEST(CleanedPaste, HasLinesAndNoControls) {
  EXPECT_EQ(cleaned_paste("a\rb\r\nc\nd\te"), "a\nb\nc\nd\te");
  EXPECT_EQ(cleaned_paste("x\x1b[31my\x7f\b é"), "x[31my é");
}

}  // namespace
}  // namespace quire::cli
