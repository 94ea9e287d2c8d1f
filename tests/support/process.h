// Runs the real binary, for tests of its external behaviour. CTest names the binary in
// QUIRE_BINARY.
#pragma once

#include <csignal>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::testing {

// The words of a command: a list, or a text that is cut at its spaces. In a text, a part in single
// quotes is one word.
class Words : public std::vector<std::string> {
 public:
  Words() = default;
  Words(std::initializer_list<std::string> words) : vector(words) {}
  // NOLINTBEGIN(google-explicit-constructor)
  Words(std::vector<std::string> words) : vector(std::move(words)) {}
  Words(std::string_view text);
  Words(const std::string& text) : Words(std::string_view(text)) {}
  Words(const char* text) : Words(std::string_view(text)) {}
  // NOLINTEND(google-explicit-constructor)

  friend Words operator+(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

// A running `quire` whose standard input stays open until close_input().
class Process {
 public:
  // If a file is named, standard output (or error) is written to it and cannot be read here.
  explicit Process(Words arguments, const std::string& out_file = "",
                   const std::string& err_file = "");
  ~Process();  // kills the process
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void write(const std::string& text);  // at most 64 KiB, the capacity of a pipe
  void close_input();
  void kill(int signal) const;
  int pid() const { return pid_; }

  // Reads until the output has `mark` or ends. With an empty mark, reads what is available first.
  std::string read_out(const std::string& mark) { return read_until(out_, mark); }
  std::string read_err(const std::string& mark) { return read_until(err_, mark); }
  // Appends the available output of both streams, if any. Returns false when both have ended.
  bool read_some(std::string& out, std::string& err);

  // The names of the threads, and the functions of the kernel in which they wait.
  std::string threads_text() const;
  // CPU seconds used so far by all threads.
  double cpu_s() const;

  // Waits for the end. Returns the exit code, or -1 after a signal. The getters below are valid
  // after that.
  int wait();
  int end_signal() const { return end_signal_; }  // 0: it exited by itself
  double max_rss_bytes() const { return max_rss_bytes_; }

 private:
  static std::string read_until(int fd, const std::string& mark);

  int pid_ = -1;
  int in_ = -1;
  int out_ = -1;  // -1 when the stream has ended
  int err_ = -1;
  int end_signal_ = 0;
  double max_rss_bytes_ = 0;
};

struct SpawnResult {
  int exit_code = -1;  // -1: ended by a signal
  int signal = 0;      // the signal that ended it, or 0
  std::string out;
  std::string err;
};

struct SpawnOptions {
  std::string input = {};          // on standard input
  int interrupt_after_bytes = -1;  // sends the signal after this many bytes of output; < 0: never
  int interrupt_signal = SIGINT;
  std::string out_file = {};  // receives standard output instead of `out`
  std::string err_file = {};
  int timeout_s = 60;  // after which SIGKILL is sent
};

// Runs `quire` with these arguments until it ends.
SpawnResult run_quire(const Words& arguments, const SpawnOptions& options = {});
// Does what run_quire() does, and fails the test if the exit code is another.
SpawnResult expect_exit(int exit_code, const Words& arguments, const SpawnOptions& options = {});

// A running `quire` whose standard streams are a terminal of 24 rows and 80 columns.
class TerminalProcess {
 public:
  // `environment` adds variables, "NAME=VALUE".
  TerminalProcess(Words arguments, const std::vector<std::string>& environment);
  ~TerminalProcess();  // kills the process
  TerminalProcess(const TerminalProcess&) = delete;
  TerminalProcess& operator=(const TerminalProcess&) = delete;

  void type(const std::string& keys);
  void kill(int signal) const;
  void resize(int num_columns) const;
  // Returns the output up to and including `mark`; the next call continues there. Fails the test if
  // the mark does not appear within a minute, or the process ends before.
  std::string read_until(const std::string& mark);
  // Waits for the end. Returns the exit code, or -1 after a signal.
  int wait();

 private:
  // Appends output to unread_; returns false at its end. Fails the test and kills the process if
  // there is none within a minute.
  bool read_some();

  int pid_ = -1;
  int fd_ = -1;
  std::string unread_;
};

}  // namespace quire::testing
