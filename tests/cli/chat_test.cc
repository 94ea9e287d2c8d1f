// Tests the parts of `quire chat` that need no engine and no terminal.
#include "cli/chat.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <fstream>
#include <random>

#include "cli/answer_display.h"
#include "cli/line_editor.h"
#include "cli/live_conversation.h"
#include "cli/running_servers.h"
#include "support/scratch_directory.h"

namespace quire::cli {
namespace {

using ::testing::AllOf;
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
  EXPECT_EQ(parse_chat_line("/?")->action, ChatAction::kHelp);
  EXPECT_EQ(parse_chat_line("/?x")->action, ChatAction::kSay);
  EXPECT_EQ(parse_chat_line("/set temperature 0.2")->text, "temperature 0.2");
  EXPECT_EQ(parse_chat_line("/set systematic 1")->action, ChatAction::kSet);
  const auto system = parse_chat_line("/set  system Be brief.");
  EXPECT_EQ(system->action, ChatAction::kSystem);
  EXPECT_EQ(system->text, "Be brief.");
  EXPECT_EQ(parse_chat_line("/show")->action, ChatAction::kShow);
}

TEST(ChatLine, TextsOfSeveralLinesStandBetweenMarks) {
  for (const char* open : {R"(""")", R"("""a)", R"(  """a)", R"(/system """a "")", "\"\"\"a\nb"}) {
    EXPECT_TRUE(is_open_text(open)) << open;
  }
  for (const char* whole : {"", "a", R"(a """)", R"("""a""")", R"("""""")", R"(/save """a)"}) {
    EXPECT_FALSE(is_open_text(whole)) << whole;
  }
  EXPECT_EQ(without_text_marks("\"\"\"\na\n b\n\"\"\""), "a\n b");
  EXPECT_EQ(without_text_marks(R"("""/help""" please)"), "/help please");
  EXPECT_EQ(without_text_marks("/system \"\"\"a\nb\"\"\""), "/system a\nb");
  EXPECT_EQ(without_text_marks(R"(say """this""")"), R"(say """this""")");
  EXPECT_TRUE(is_open_text(R"(/set system """a)"));
  EXPECT_EQ(without_text_marks("/set system \"\"\"a\nb\"\"\""), "/system a\nb");
}

// --- Word wrap ---

std::string wrapped(const std::string& text, size_t num_columns, size_t piece = 1 << 20) {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  WordWrap wrap;
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    std::string part;
    for (size_t i = 0; i < piece && !rest.empty(); ++i) {
      size_t size = 1;
      while (size < rest.size() && (static_cast<unsigned char>(rest[size]) & 0xC0) == 0x80) ++size;
      part += rest.substr(0, size);
      rest.remove_prefix(size);
    }
    out += wrap.add(part, num_columns);
  }
  return out + wrap.finish(num_columns);
}

TEST(WordWrap, BreaksLinesBetweenWords) {
  EXPECT_EQ(wrapped("one two three four", 8), "one two\nthree\nfour");
  EXPECT_EQ(wrapped("one two  three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("  - item one\n\n  - two", 10), "  - item\none\n\n  - two");
  EXPECT_EQ(wrapped("aaaaaaaaaaaa b", 5), "aaaaaaaaaaaa b");  // the terminal breaks the long word
  EXPECT_EQ(wrapped("x aaaaaaaa", 5), "x\naaaaaaaa");
  EXPECT_EQ(wrapped("", 5), "");
}

TEST(WordWrap, BreaksBesideWideCharacters) {
  EXPECT_EQ(wrapped("漢字漢字", 5), "漢字\n漢字");
  EXPECT_EQ(wrapped("ab漢字c", 4), "ab漢\n字c");
  EXPECT_EQ(wrapped("e\u0301e\u0301 e\u0301", 4),
            "e\u0301e\u0301 e\u0301");  // accents have no width
}

TEST(WordWrap, LeavesCodeBlocksAlone) {
  const std::string code = "```sh\nquire chat --system  'a b'  \n```\n";
  EXPECT_EQ(wrapped(code + "one two", 6), code + "one\ntwo");
  EXPECT_EQ(wrapped("```one``` two three", 10), "```one```\ntwo three");
}

// Pieces end anywhere, and words neither vanish nor join.
TEST(WordWrap, DependsOnTheTextOnly) {
  std::mt19937 random(7);
  const std::string parts[] = {"a", "bc", " ", " ", "\n", "```", "漢", "\t", "é", "longer-word"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += parts[random() % std::size(parts)];
    const size_t num_columns = 1 + random() % 20;
    const std::string whole = wrapped(text, num_columns);
    EXPECT_EQ(wrapped(text, num_columns, 1 + random() % 3), whole) << text;
    const auto letters = [](std::string out) {
      std::erase_if(out, [](char c) { return c == ' ' || c == '\n' || c == '\t'; });
      return out;
    };
    EXPECT_EQ(letters(whole), letters(text));
  }
}

// --- Settings ---

class SilentModel final : public ChatModel {
 public:
  std::string name() const override { return "silent"; }
  int max_model_len() const override { return 64; }
  std::optional<SamplingDefaults> sampling_defaults() const override {
    if (!knows_defaults_) return std::nullopt;
    SamplingDefaults defaults;
    defaults.params.max_tokens = 64;
    return defaults;
  }
  bool can_switch_thinking() const override { return thinks_; }
  Status check_system(const std::string& /*system*/) const override { return {}; }
  Result<int> num_tokens(const std::vector<ChatMessage>& /*messages*/,
                         const ChatSettings& /*settings*/) const override {
    return 1;
  }
  Result<ChatAnswer> answer(const std::vector<ChatMessage>& /*messages*/,
                            const ChatSettings& settings, uint64_t /*attempt*/,
                            const Show& /*show*/) override {
    JsonWriter json;
    json.begin_object();
    settings.sampling.write_given(json);
    json.end_object();
    return ChatAnswer{.text = json.take(), .stats = {}};
  }

  bool thinks_ = false;
  bool knows_defaults_ = true;
};

TEST(ChatSettings, AreSetByName) {
  LiveConversation chat(std::make_unique<SilentModel>(), {}, "", false);
  for (const char* words : {"temperature 0.25", "parameter top-k 5", "seed 18446744073709551615",
                            "ignore_eos", "stop a b", "logit_bias 3:-1.5", R"(stop "\n")",
                            "parameter num_predict 9", "repeat_penalty 1.5"}) {
    EXPECT_TRUE(chat.set(words).ok()) << words;
  }
  ASSERT_TRUE(chat.say("hi").ok());
  EXPECT_EQ(chat.messages().back().content,
            R"({"max_tokens":9,"temperature":0.25,"top_k":5,"seed":18446744073709551615,)"
            R"("stop":["a b","\n"],"ignore_eos":true,"repetition_penalty":1.5,)"
            R"("logit_bias":{"3":-1.5}})");
  EXPECT_TRUE(chat.set("ignore_eos false").ok());
  EXPECT_THAT(chat.described(), HasSubstr("temperature 0.25"));
  EXPECT_THAT(chat.described(), HasSubstr("system message: none"));
}

TEST(ChatSettings, AreShownAndUnset) {
  ChatSettings flags;
  ASSERT_TRUE(flags.sampling.set(*find_sampling_field("top_k"), "5").ok());
  LiveConversation chat(std::make_unique<SilentModel>(), flags, "", false);
  EXPECT_THAT(chat.described(), AllOf(HasSubstr(" and the command line\n"), Not(HasSubstr("stop")),
                                      Not(HasSubstr("max_tokens"))));
  EXPECT_EQ(*chat.set("temperature 0.25"), "set temperature 0.25");
  EXPECT_TRUE(chat.set("stop \"END\"").ok());
  EXPECT_TRUE(chat.set("max_tokens 9").ok());
  EXPECT_TRUE(chat.set("seed 3").ok());
  EXPECT_THAT(chat.described(),
              AllOf(HasSubstr("temperature 0.25"), HasSubstr(" and the command line and /set\n"),
                    HasSubstr("stop: [\"END\"]\n"), HasSubstr("max_tokens: 9\n"),
                    HasSubstr("seed: 3\n"), HasSubstr("(/set NAME without a value: the default")));
  for (const char* name : {"temperature", "stop", "max-tokens", "seed", "top_k"}) {
    EXPECT_THAT(*chat.set(name), HasSubstr(" has its default again")) << name;
  }
  EXPECT_THAT(chat.described(), AllOf(Not(HasSubstr("stop")), Not(HasSubstr("/set")),
                                      Not(HasSubstr("command line"))));
}

TEST(ChatSettings, AreShownWithoutKnownDefaults) {
  auto model = std::make_unique<SilentModel>();
  model->knows_defaults_ = false;
  LiveConversation chat(std::move(model), {}, "", false);
  EXPECT_TRUE(chat.set("temperature 0.25").ok());
  EXPECT_THAT(chat.described(), AllOf(HasSubstr("sampling: the server's defaults\n"),
                                      HasSubstr("temperature: 0.25\n"), Not(HasSubstr("top_p"))));
}

TEST(ChatSettings, FaultsAreNamed) {
  LiveConversation chat(std::make_unique<SilentModel>(), {}, "", false);
  const auto error = [&](const char* words) { return chat.set(words).status().message(); };
  EXPECT_THAT(error("tempature 1"), HasSubstr("/set tempature: did you mean temperature?"));
  EXPECT_THAT(error("parameter num_ctx 8192"), HasSubstr("/set num_ctx: is --max-model-len of"));
  EXPECT_THAT(error("verbose"), HasSubstr("/stats shows the speed"));
  EXPECT_THAT(error("nowordwrap"), HasSubstr("is --no-word-wrap when"));
  EXPECT_THAT(error("format json"), HasSubstr("not for the terminal"));
  EXPECT_THAT(error(R"(stop "a" "b")"), HasSubstr("expected a text, or one JSON string"));
  EXPECT_THAT(error("temperature -1"), HasSubstr("/set temperature: got '-1'"));
  EXPECT_THAT(error("ignore_eos maybe"), HasSubstr("expected true or false"));
  EXPECT_THAT(error("n 2"), HasSubstr("expected think, nothink or one of"));
  EXPECT_THAT(error("logprobs 2"), HasSubstr("/set logprobs"));
  EXPECT_THAT(error("nothink"), HasSubstr("does not read enable_thinking"));
  EXPECT_THAT(error(""), HasSubstr("expected think"));
}

// --- Records of servers ---

TEST(ServerRecord, IsReadAsItWasWritten) {
  ServerRecord record;
  record.pid = 7;
  record.start_ticks = 8;
  record.boot_id = "b";
  record.address.url = "http://127.0.0.1:8000";
  record.models = {{"a \"b\"", "/models/a"}, {"c", ""}};
  const auto read = parse_server_record(server_record_json(record), "f");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->pid, 7);
  EXPECT_EQ(read->start_ticks, 8);
  EXPECT_EQ(read->boot_id, "b");
  EXPECT_EQ(read->address.text(), record.address.url);
  ASSERT_THAT(read->models, SizeIs(2));
  EXPECT_EQ(read->models[0].name, "a \"b\"");
  EXPECT_EQ(read->models[0].path, "/models/a");
  record.address = {.url = "http://localhost", .unix_socket = "/run/q"};
  EXPECT_EQ(parse_server_record(server_record_json(record), "f")->address.text(), "unix:/run/q");
}

TEST(ServerRecord, OthersAreRefused) {
  for (const char* text :
       {"", "[]", "{}", R"({"pid":0,"url":"http://a","models":[]})",
        R"({"pid":-1,"url":"http://a","models":[]})", R"({"pid":"1","url":"http://a","models":[]})",
        R"({"pid":99999999999,"url":"http://a","models":[]})",
        R"({"pid":1,"url":"file:///etc","models":[]})", R"({"pid":1,"url":"unix:","models":[]})",
        R"({"pid":1,"url":"http://u@a","models":[]})",
        R"({"pid":1,"url":"http://a","models":[{"name":"a"}]})"}) {
    EXPECT_FALSE(parse_server_record(text, "f").ok()) << text;
  }
}

// Another program may have the address of a server that has ended.
TEST(ServerRecord, IsRemovedUnlessItsProcessRuns) {
  const quire::testing::ScratchDirectory scratch;
  ::setenv("XDG_RUNTIME_DIR", scratch.path().c_str(), 1);
  const std::filesystem::path file =
      server_records_directory() / fmt::format("{}.json", ::getpid());
  {
    ServerRecord own;
    own.pid = ::getpid();
    own.address.url = "http://127.0.0.1:1";
    const PublishedServer published(own);
    const std::vector<ServerRecord> found = running_servers();
    ASSERT_THAT(found, SizeIs(1));
    EXPECT_EQ(found[0].pid, ::getpid());
    own = found[0];
    const auto is_found = [&](const ServerRecord& record) {
      std::ofstream(file) << server_record_json(record);
      return !running_servers().empty();
    };
    EXPECT_TRUE(is_found(own));
    ServerRecord other = own;
    ++other.start_ticks;
    EXPECT_FALSE(is_found(other)) << "the pid of an ended server was reused";
    EXPECT_FALSE(std::filesystem::exists(file));
    other = own;
    other.boot_id = "another";
    EXPECT_FALSE(is_found(other));
    other = own;
    other.start_ticks = 0;
    EXPECT_FALSE(is_found(other));
    std::ofstream(file) << fmt::format(R"({{"pid":{},"url":"http://a","models":[]}})", ::getpid());
    EXPECT_THAT(running_servers(), IsEmpty());
    EXPECT_FALSE(std::filesystem::exists(file));
  }
  ::unsetenv("XDG_RUNTIME_DIR");
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
