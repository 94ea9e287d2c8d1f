#include "support/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "support/scratch_directory.h"

namespace quire::testing {
namespace {

// The folder of the records by which `quire chat` finds running servers, and of the servers'
// sockets: one per test program, since a chat of one test would talk to a server of another one.
class OwnRuntimeFolder {
 public:
  OwnRuntimeFolder() { ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }

 private:
  const ScratchDirectory folder_;
};
const OwnRuntimeFolder own_runtime_folder;

// Appends the available bytes to `to`. Closes the stream at its end.
void drain(int& fd, std::string& to) {
  char buffer[4096];
  const ssize_t got = ::read(fd, buffer, sizeof(buffer));
  if (got > 0) {
    to.append(buffer, static_cast<size_t>(got));
  } else {
    ::close(std::exchange(fd, -1));
  }
}

}  // namespace

Words::Words(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return;
    const bool is_quoted = text.front() == '\'';
    if (is_quoted) text.remove_prefix(1);
    const size_t size = std::min(text.find(is_quoted ? '\'' : ' '), text.size());
    emplace_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
}

Process::Process(Words arguments, const std::string& out_file, const std::string& err_file) {
  const char* binary = std::getenv("QUIRE_BINARY");
  arguments.insert(arguments.begin(), binary == nullptr ? "QUIRE_BINARY is not set" : binary);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string files[3] = {"", out_file, err_file};
  int ends[3][2];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (int fd = 0; fd < 3; ++fd) {
    if (::pipe2(ends[fd], O_CLOEXEC) != 0) std::abort();
    if (files[fd].empty()) {
      ::posix_spawn_file_actions_adddup2(&actions, ends[fd][fd == 0 ? 0 : 1], fd);
    } else {
      ::posix_spawn_file_actions_addopen(&actions, fd, files[fd].c_str(), O_WRONLY, 0);
    }
  }
  EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0) << argv[0];
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[0][0]);
  ::close(ends[1][1]);
  ::close(ends[2][1]);
  in_ = ends[0][1];
  out_ = ends[1][0];
  err_ = ends[2][0];
}

Process::~Process() {
  if (pid_ > 0) {
    kill(SIGKILL);
    wait();
  }
  close_input();
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

void Process::write(const std::string& text) {
  EXPECT_EQ(::write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

void Process::close_input() {
  if (in_ >= 0) ::close(std::exchange(in_, -1));
}

void Process::kill(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

bool Process::read_some(std::string& out, std::string& err) {
  constexpr int kPatienceMs = 100;
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // poll skips closed streams (-1)
  ::poll(fds, 2, kPatienceMs);
  if (fds[0].revents != 0) drain(out_, out);
  if (fds[1].revents != 0) drain(err_, err);
  return out_ >= 0 || err_ >= 0;
}

std::string Process::read_until(int fd, const std::string& mark) {
  std::string text;
  char buffer[4096];
  do {
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  } while (text.find(mark) == std::string::npos);
  return text;
}

std::string Process::threads_text() const {
  std::string text;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
    text += thread.path().filename();
    for (const char* file : {"comm", "wchan", "syscall"}) {
      std::ifstream stream(thread.path() / file);
      std::string line;
      std::getline(stream, line);
      text += " " + line;
    }
    text += "\n";
  }
  return text;
}

double Process::cpu_s() const {
  std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
  std::string field;
  std::getline(stat, field, ')');  // the process name may contain spaces
  for (int i = 3; i < 14; ++i) stat >> field;
  int64_t user = 0;
  int64_t system = 0;
  EXPECT_TRUE(stat >> user >> system);
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int Process::wait() {
  int status = 0;
  rusage usage = {};
  ::wait4(std::exchange(pid_, -1), &status, 0, &usage);
  max_rss_bytes_ = static_cast<double>(usage.ru_maxrss) * 1024;
  end_signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TerminalProcess::TerminalProcess(Words arguments, const std::vector<std::string>& environment) {
  const char* binary = std::getenv("QUIRE_BINARY");
  arguments.insert(arguments.begin(), binary == nullptr ? "QUIRE_BINARY is not set" : binary);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = 80;
  pid_ = ::forkpty(&fd_, nullptr, nullptr, &size);
  EXPECT_GE(pid_, 0);
  if (pid_ != 0) return;
  ::setenv("TERM", "xterm", 1);
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

TerminalProcess::~TerminalProcess() {
  if (pid_ > 0) {
    kill(SIGKILL);
    wait();
  }
  ::close(fd_);
}

void TerminalProcess::type(const std::string& keys) {
  EXPECT_EQ(::write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
}

void TerminalProcess::kill(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);
}

void TerminalProcess::resize(int num_columns) const {
  const winsize size = {.ws_row = 24,
                        .ws_col = static_cast<unsigned short>(num_columns),
                        .ws_xpixel = 0,
                        .ws_ypixel = 0};
  EXPECT_EQ(::ioctl(fd_, TIOCSWINSZ, &size), 0);  // sends SIGWINCH
}

bool TerminalProcess::read_some() {
  constexpr int kPatienceMs = 60'000;
  pollfd ready = {fd_, POLLIN, 0};
  if (::poll(&ready, 1, kPatienceMs) <= 0) {
    ADD_FAILURE() << "the terminal stays silent after: " << unread_;
    kill(SIGKILL);
    return false;
  }
  char buffer[4096];
  const ssize_t got = ::read(fd_, buffer, sizeof(buffer));  // fails when the process has ended
  if (got > 0) unread_.append(buffer, static_cast<size_t>(got));
  return got > 0;
}

std::string TerminalProcess::read_until(const std::string& mark) {
  size_t at = unread_.find(mark);
  while (at == std::string::npos) {
    if (!read_some()) {
      ADD_FAILURE() << "the terminal does not show '" << mark << "': " << unread_;
      return std::exchange(unread_, {});
    }
    at = unread_.find(mark);
  }
  const std::string text = unread_.substr(0, at + mark.size());
  unread_.erase(0, text.size());
  return text;
}

int TerminalProcess::wait() {
  while (read_some()) {  // a full terminal would block the process
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

SpawnResult run_quire(const Words& arguments, const SpawnOptions& options) {
  Process process(arguments, options.out_file, options.err_file);
  process.write(options.input);
  process.close_input();
  SpawnResult result;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.timeout_s);
  bool interrupted = options.interrupt_after_bytes < 0;
  while (process.read_some(result.out, result.err)) {
    if (std::chrono::steady_clock::now() > deadline) process.kill(SIGKILL);
    if (!interrupted && static_cast<int>(result.out.size()) > options.interrupt_after_bytes) {
      process.kill(options.interrupt_signal);
      interrupted = true;
    }
  }
  result.exit_code = process.wait();
  result.signal = process.end_signal();
  return result;
}

SpawnResult expect_exit(int exit_code, const Words& arguments, const SpawnOptions& options) {
  SpawnResult result = run_quire(arguments, options);
  EXPECT_EQ(result.exit_code, exit_code)
      << fmt::format("quire {}\n{}{}", fmt::join(arguments, " "), result.out, result.err);
  return result;
}

}  // namespace quire::testing
