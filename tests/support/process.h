// Runs the real binary, for the tests of its outside. It is what QUIRE_BINARY names (CTest sets
// it).
#pragma once

#include <csignal>
#include <string>
#include <vector>

namespace quire::testing {

// A running `quire` whose standard input stays open until close_input().
class Process {
 public:
  // Where a file is named, standard output (or error) goes there, and nothing comes to be read.
  explicit Process(std::vector<std::string> arguments, const std::string& out_file = "",
                   const std::string& err_file = "");
  ~Process();  // kills it
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void write(const std::string& text);  // at most what a pipe holds: 64 KiB
  void close_input();
  void kill(int signal) const;

  // What comes until `mark` is there, or the end; without a mark, what comes first.
  std::string read_out(const std::string& mark) { return read_until(out_, mark); }
  std::string read_err(const std::string& mark) { return read_until(err_, mark); }
  // Appends what comes next, of both; it may be nothing. False once both have ended.
  bool read_some(std::string& out, std::string& err);

  // Seconds of a core so far, of all threads.
  double cpu_s() const;

  // Exit code, or -1 where a signal ended it; from then on the rest is known.
  int wait();
  int end_signal() const { return end_signal_; }  // 0: it exited
  double max_rss_bytes() const { return max_rss_bytes_; }

 private:
  static std::string read_until(int fd, const std::string& mark);

  int pid_ = -1;
  int in_ = -1;
  int out_ = -1;  // -1 once it has ended
  int err_ = -1;
  int end_signal_ = 0;
  double max_rss_bytes_ = 0;
};

struct SpawnResult {
  int exit_code = -1;  // -1: it did not exit by itself
  int signal = 0;      // that ended it
  std::string out;
  std::string err;
};

struct SpawnOptions {
  std::string input = {};          // on standard input
  int interrupt_after_bytes = -1;  // a signal once this much has come out; < 0: never
  int interrupt_signal = SIGINT;
  std::string out_file = {};  // standard output goes there, not into the result
  std::string err_file = {};
  int timeout_s = 60;  // then SIGKILL
};

// `quire` with these arguments, to its end.
SpawnResult run_quire(const std::vector<std::string>& arguments, const SpawnOptions& options = {});

}  // namespace quire::testing
