// Tests `quire chat` from outside, at a terminal and at a pipe.
#include <gmock/gmock.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/scratch_directory.h"

namespace quire::cli {
namespace {

namespace fs = std::filesystem;
using quire::testing::expect_exit;
using quire::testing::run_quire;
using quire::testing::ScratchDirectory;
using quire::testing::SpawnResult;
using quire::testing::TerminalProcess;
using quire::testing::Words;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kUp = "\x1b[A";
constexpr const char* kRight = "\x1b[C";
constexpr const char* kCtrlC = "\x03";
constexpr const char* kCtrlD = "\x04";
constexpr const char* kCtrlR = "\x12";
// The terminal asks for marks around pasted text whenever a message is read.
constexpr const char* kPrompt = "\x1b[?2004h";
constexpr const char* kPromptEnd = "\x1b[?2004l";

class ChatAtATerminal : public ::testing::Test {
 protected:
  std::unique_ptr<TerminalProcess> start(const Words& more = {}) const {
    auto chat = std::make_unique<TerminalProcess>(
        "chat --temperature 0" + more,
        Words{"XDG_STATE_HOME=" + state_.string(), "XDG_RUNTIME_DIR=" + state_.string()});
    chat->read_until(kPrompt);
    return chat;
  }

  // Types a line and returns the output up to the next prompt.
  static std::string enter(TerminalProcess& chat, const std::string& line) {
    chat.type(line + "\r");
    return chat.read_until(kPrompt);
  }

  static int leave(TerminalProcess& chat) {
    chat.type(kCtrlD);
    return chat.wait();
  }

  const ScratchDirectory scratch_;
  fs::path state_ = scratch_.path() / "state";
  fs::path history_ = state_ / "quire" / "chat_history.jsonl";
};

TEST_F(ChatAtATerminal, EditsTheLine) {
  const auto chat = start();
  std::string keys = "/systm Be brief.\x01";  // Ctrl-A: to the beginning
  for (int i = 0; i < 5; ++i) keys += kRight;
  enter(*chat, keys + "e");
  EXPECT_THAT(enter(*chat, "/sys\t"), HasSubstr("Be brief.\r\n"));
  EXPECT_THAT(enter(*chat, "/nonsense"), HasSubstr("unknown command /nonsense; expected one of"));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, APasteOfSeveralLinesIsOneMessage) {
  const auto chat = start();
  chat->type("\x1b[200~/system first\rsecond\x1b[201~");
  enter(*chat, "");
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr("first\r\nsecond\r\n"));
  chat->type("\x1b[200~/system caf\u00e9 \u20ac\U0001f600\x1b[201~");
  enter(*chat, "");
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr("caf\u00e9 \u20ac\U0001f600\r\n"));
  enter(*chat, "/system third\x1b\rfourth");
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr("third\r\nfourth\r\n"));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, RemembersMessagesOverSessions) {
  auto chat = start();
  enter(*chat, "/system remembered");
  enter(*chat, "/stats");
  EXPECT_EQ(leave(*chat), 0);
  EXPECT_EQ(fs::status(history_).permissions() & fs::perms::mask,
            fs::perms::owner_read | fs::perms::owner_write);

  chat = start();
  enter(*chat, std::string(kUp) + kUp);  // past /stats
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr("remembered\r\n"));
  enter(*chat, "/system -");
  enter(*chat, std::string(kCtrlR) + "remem");
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr("remembered\r\n"));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, KeepsNoHistoryOnDemand) {
  const auto chat = start({"--no-history"});
  enter(*chat, "/system forgotten");
  EXPECT_EQ(leave(*chat), 0);
  EXPECT_FALSE(fs::exists(history_));
}

TEST_F(ChatAtATerminal, CtrlCAsksOnceAndThenLeaves) {
  const auto chat = start();
  chat->type(std::string("half a message") + kCtrlC);
  EXPECT_THAT(chat->read_until(kPrompt), HasSubstr("Ctrl-C again leaves"));
  enter(*chat, "/stats");  // so the next one asks again
  chat->type(kCtrlC);
  EXPECT_THAT(chat->read_until(kPrompt), HasSubstr("Ctrl-C again leaves"));
  chat->type(kCtrlC);
  EXPECT_EQ(chat->wait(), 0);
}

TEST_F(ChatAtATerminal, CtrlCStopsAnAnswer) {
  const auto chat = start({"--ignore-eos", "--max-tokens", "3500"});
  chat->type("Hello!\r");
  chat->read_until(kPromptEnd);
  chat->read_until("e");  // a letter of the answer
  chat->type(std::string("/sys") + kCtrlC);
  EXPECT_THAT(chat->read_until(kPrompt),
              AllOf(HasSubstr("\r\n(stopped)\r\n"), Not(HasSubstr("^C"))));
  EXPECT_THAT(enter(*chat, "tem"), HasSubstr("(no system message)"));  // keys before Ctrl-C stay
  EXPECT_THAT(enter(*chat, "/stats"), AllOf(HasSubstr("output tokens"), HasSubstr("2 messages")));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, KeysOfAnAnswersTimeBelongToTheNextMessage) {
  const auto chat = start({"--ignore-eos", "--max-tokens", "40"});
  chat->type("Hello!\r");
  chat->read_until(kPromptEnd);
  chat->read_until("e");
  chat->type("/sys");
  EXPECT_THAT(chat->read_until(kPrompt), Not(HasSubstr("/sys")));
  EXPECT_THAT(enter(*chat, "tem"), HasSubstr("(no system message)"));
  chat->type("Hello!\r");
  chat->read_until(kPromptEnd);
  chat->type("/show\r");
  chat->read_until(kPrompt);
  EXPECT_THAT(chat->read_until(kPrompt), HasSubstr("max_tokens: 40"));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, WrapsAnswersAtTheEdge) {
  const auto chat = start();
  chat->resize(24);
  const std::string answer = enter(*chat, "Hello!");
  EXPECT_THAT(answer, HasSubstr("Hello! I calculate and\r\nsolve word problems."));
  const auto plain = start({"--no-word-wrap"});
  plain->resize(24);
  EXPECT_THAT(enter(*plain, "Hello!"), HasSubstr("calculate and solve word"));
}

TEST_F(ChatAtATerminal, DrawsAMessageAnewForAnotherWidth) {
  const auto chat = start();
  const std::string words = "one two three four five six seven eight";
  chat->type("/system " + words);
  chat->read_until("eight");
  chat->resize(20);
  chat->read_until("\x1b[2A\r\x1b[J> /system one");  // from the first of its rows
  chat->read_until("eight");
  chat->resize(60);
  EXPECT_THAT(chat->read_until("eight"), HasSubstr("\r\x1b[J> /system " + words));
  enter(*chat, "");
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr(words + "\r\n"));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, ReadsATextBetweenMarks) {
  const auto chat = start();
  chat->type("/system \"\"\"first\r");
  chat->read_until("... ");
  EXPECT_THAT(enter(*chat, "second\"\"\""), HasSubstr("(the system message is set)"));
  EXPECT_THAT(enter(*chat, "/system"), HasSubstr("first\r\nsecond\r\n"));
  chat->type("\"\"\"dropped\r");
  chat->read_until("... ");
  chat->type(kCtrlC);
  EXPECT_THAT(chat->read_until(kPrompt), HasSubstr("Ctrl-C again leaves"));
  EXPECT_THAT(enter(*chat, "/stats"), HasSubstr("nothing was answered"));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, OtherSignalsEndTheChatDuringAnAnswer) {
  for (const auto& [signal, exit_code] : {std::pair(SIGTERM, 143), std::pair(SIGHUP, 129)}) {
    const auto chat = start({"--ignore-eos", "--max-tokens", "3500"});
    chat->type("Hello!\r");
    chat->read_until(kPromptEnd);
    chat->read_until("e");  // a letter of the answer
    chat->kill(signal);
    EXPECT_EQ(chat->wait(), exit_code);
  }
}

TEST_F(ChatAtATerminal, SaysThatAnAnswerIsCut) {
  const auto chat = start({"--max-tokens", "3", "--ignore-eos"});
  EXPECT_THAT(enter(*chat, "Hello!"), HasSubstr("(the answer is cut off after max_tokens 3; "));
  EXPECT_EQ(leave(*chat), 0);
}

TEST_F(ChatAtATerminal, SigtermEndsThePrompt) {
  const auto chat = start();
  chat->kill(SIGTERM);
  EXPECT_EQ(chat->wait(), 143);
}

class ChatAtAPipe : public ::testing::Test {
 protected:
  // Other servers of the user take no part.
  void SetUp() override { ::setenv("XDG_RUNTIME_DIR", scratch_.path().c_str(), 1); }

  static SpawnResult chat(const std::string& input) {
    return run_quire("chat --temperature 0 --log-level error", {.input = input});
  }

  const ScratchDirectory scratch_;
  fs::path file_ = scratch_.path() / "chat.json";
};

TEST_F(ChatAtAPipe, SaysByWhichMethodItDrafts) {
  const SpawnResult plain = chat("What is 12*34?\n");
  EXPECT_THAT(plain.err, Not(HasSubstr("drafts")));
  const SpawnResult drafting = expect_exit(
      0,
      R"(chat --temperature 0 --log-level error --speculative-config '{"method": "eagle3", "num_speculative_tokens": 4}')",
      {.input = "What is 12*34?\n"});
  EXPECT_THAT(drafting.err, HasSubstr("(drafts by eagle3, up to 4 tokens per step)\n"));
  EXPECT_EQ(drafting.out, plain.out);
}

TEST_F(ChatAtAPipe, SavesAndLoadsAConversation) {
  const std::string question = "Tom has 3 apples and buys 5. How many?\n";
  const SpawnResult saved =
      chat("/system Be brief.\n" + question + "/save " + file_.string() + "\n");
  EXPECT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_THAT(saved.err,
              AllOf(HasSubstr("(the system message is set)"), HasSubstr("(saved 3 messages)")));
  EXPECT_EQ(fs::status(file_).permissions() & fs::perms::mask,
            fs::perms::owner_read | fs::perms::owner_write);
  const SpawnResult loaded = chat("/load " + file_.string() + "\n/system\n/regenerate\n");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_THAT(loaded.err, AllOf(HasSubstr("(loaded 3 messages)"), HasSubstr("Be brief."),
                                HasSubstr("temperature is 0")));
  EXPECT_EQ(loaded.out, saved.out);  // the greedy answer to the same conversation
}

TEST_F(ChatAtAPipe, ReplacesOnlyTheFileOfItsConversation) {
  const std::string save = "/save " + file_.string() + "\n";
  EXPECT_EQ(chat(save + save).exit_code, 0);
  EXPECT_THAT(chat(save).err, HasSubstr("exists; expected the path of a new file"));
  const fs::path folder = scratch_.path() / "none";
  EXPECT_THAT(chat("/save " + (folder / "x.json").string() + "\n").err,
              HasSubstr(folder.string() + " is no folder"));
  EXPECT_FALSE(fs::exists(folder));
  const SpawnResult reset = chat("/load " + file_.string() + "\n/reset\n" + save);
  EXPECT_EQ(reset.exit_code, 1);
  EXPECT_THAT(reset.err, HasSubstr("exists; expected the path of a new file"));
}

TEST_F(ChatAtAPipe, ReplacesAnEmptySystemMessage) {
  std::ofstream(file_) << R"({"messages": [{"role": "system", "content": ""}]})";
  const std::string name = file_.string() + "\n";
  const SpawnResult result = chat("/load " + name + "/system Be brief.\n/save " + name);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("(saved 1 message)"));
}

TEST_F(ChatAtAPipe, CommandsWithoutAConversationSaySo) {
  const SpawnResult result = chat("/stats\n/regenerate\n/load /no/such/file\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, AllOf(HasSubstr("(nothing was answered yet)"),
                                HasSubstr("expected a message first"), HasSubstr("/no/such/file")));
}

TEST_F(ChatAtAPipe, ATextWithoutItsEndIsAnError) {
  const SpawnResult result = chat("\"\"\"What is\n3 + 4?\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the input ends within a text; expected \"\"\""));
  EXPECT_EQ(chat("\"\"\"What is\n3 + 4?\"\"\"\n").out, chat("What is 3 + 4?\n").out);
}

// A server of this user that has the embedded model.
class ChatWithAServer : public ChatAtAPipe {
 protected:
  void SetUp() override {
    ChatAtAPipe::SetUp();
    server_ = std::make_unique<quire::testing::Process>(
        Words{"serve", "--model", "embedded", "--uds", socket_});
    EXPECT_THAT(server_->read_out("\n"), HasSubstr("serving"));
  }

  static SpawnResult ask(const Words& flags) {
    return expect_exit(0, "chat --temperature 0 --max-tokens 24" + flags,
                       {.input = "/system Be brief.\nWhat is 3 + 4?\n/stats\n"});
  }

  const std::string socket_ = (scratch_.path() / "server").string();
  std::unique_ptr<quire::testing::Process> server_;
};

TEST_F(ChatWithAServer, UsesItInPlaceOfASecondCopy) {
  const SpawnResult local = ask({"--no-server"});
  EXPECT_THAT(local.err, Not(HasSubstr("using the server")));
  const SpawnResult found = ask({});
  EXPECT_THAT(found.err, AllOf(HasSubstr("using the server at unix:" + socket_),
                               HasSubstr("(the system message is set)"),
                               HasSubstr("output tokens; first token after"),
                               HasSubstr(" of 4096 tokens; 3 messages")));
  EXPECT_EQ(found.out, local.out);
  const SpawnResult named = ask({"--url", "unix:" + socket_});
  EXPECT_EQ(named.out, local.out);
  EXPECT_THAT(ask({"--max-model-len", "2048"}).err,
              HasSubstr("(not using the server at unix:" + socket_ +
                        ", which has its own --max-model-len)"));
  EXPECT_THAT(
      expect_exit(1, Words{"chat", "other", "--url", "unix:" + socket_}, {.input = "hi\n"}).err,
      HasSubstr("does not have the model other; expected one of quire-abacus"));
}

TEST_F(ChatWithAServer, FindsItByAName) {
  const SpawnResult local = ask({"--no-server"});
  const SpawnResult found = expect_exit(
      0, Words{"chat", "quire-abacus:latest", "--temperature", "0", "--max-tokens", "24"},
      {.input = "/system Be brief.\nWhat is 3 + 4?\n/stats\n"});
  EXPECT_THAT(found.err, HasSubstr("using the server at unix:" + socket_));
  EXPECT_EQ(found.out, local.out);
  expect_exit(0, Words{"chat", "quire-abacus:latest", "--url", "unix:" + socket_},
              {.input = "/stats\n"});
}

TEST_F(ChatAtAPipe, UsesAServerOfSeveralModels) {
  const fs::path models = scratch_.path() / "models.ini";
  std::ofstream(models) << "[sums]\nmodel = embedded\nalias = adder\n[other]\nmodel = embedded\n";
  const std::string socket = (scratch_.path() / "server").string();
  quire::testing::Process server(Words{"serve", "--models", models.string(), "--uds", socket});
  EXPECT_THAT(server.read_out("\n"), HasSubstr("serving 2 models"));
  const auto ask = [](const std::string& name, const Words& flags) {
    return expect_exit(0, Words{"chat", name, "--temperature", "0", "--max-tokens", "24"} + flags,
                       {.input = "What is 3 + 4?\n/stats\n"});
  };
  const SpawnResult local = ask("embedded", {"--no-server"});
  for (const char* name : {"sums", "adder", "embedded", "Sums:latest"}) {
    const SpawnResult found = ask(name, {});
    EXPECT_THAT(found.err, AllOf(HasSubstr("using the server at unix:" + socket),
                                 HasSubstr(" of 4096 tokens; 2 messages")));
    EXPECT_EQ(found.out, local.out) << name;
  }
  EXPECT_EQ(ask("adder", {"--url", "unix:" + socket}).out, local.out);
  server.kill(SIGTERM);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_TRUE(fs::is_empty(scratch_.path() / "quire"));
}

TEST_F(ChatWithAServer, IgnoresRecordsOfServersThatHaveEnded) {
  const fs::path records = scratch_.path() / "quire";
  const auto num_records = [&] {
    return std::distance(fs::directory_iterator(records), fs::directory_iterator());
  };
  EXPECT_EQ(num_records(), 1);
  EXPECT_EQ(fs::status(records).permissions() & fs::perms::mask, fs::perms::owner_all);
  server_->kill(SIGKILL);
  server_->wait();
  EXPECT_EQ(num_records(), 1);
  std::ofstream(records / "1.json") << "{";
  std::ofstream(records / "2.json") << R"({"pid":1,"url":"http://127.0.0.1:1","models":[]})";
  EXPECT_THAT(ask({}).err, Not(HasSubstr("server")));
  EXPECT_EQ(num_records(), 2);
}

TEST_F(ChatWithAServer, ARecordIsRemovedAtTheEnd) {
  server_->kill(SIGTERM);
  EXPECT_EQ(server_->wait(), 0);
  EXPECT_TRUE(fs::is_empty(scratch_.path() / "quire"));
}

TEST_F(ChatWithAServer, AnAnswerStopsWithTheClient) {
  TerminalProcess chat("chat --temperature 0 --ignore-eos --max-tokens 3500",
                       Words{"XDG_STATE_HOME=" + scratch_.path().string()});
  chat.read_until(kPrompt);
  chat.type("Hello!\r");
  chat.read_until("lculate");
  chat.type(kCtrlC);
  EXPECT_THAT(chat.read_until(kPrompt), HasSubstr("(stopped)"));
  chat.type("/stats\r");
  EXPECT_THAT(chat.read_until(kPrompt), HasSubstr("2 messages"));
  server_->kill(SIGKILL);
  server_->wait();
  chat.type("Hello!\r");
  const std::string error = chat.read_until("--no-server");  // wrapped between words
  EXPECT_THAT(error, ContainsRegex("quire chat: .*\\[http\\]\\s+cannot\\s+connect\\s+to"));
  EXPECT_THAT(error, ContainsRegex("start\\s+the\\s+server\\s+again,"));
}

}  // namespace
}  // namespace quire::cli
