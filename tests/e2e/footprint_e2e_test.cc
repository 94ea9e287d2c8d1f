// What the binary takes of a machine: resident memory, and a core's time while nobody asks. How
// soon it answers is printed, not asserted: that depends on what else the machine does.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// No output holds it, so that reading goes on to the end.
const std::string kEndOfStream(1, '\0');

// A running `quire` whose standard input stays open until close_input().
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    const char* binary = std::getenv("QUIRE_BINARY");
    arguments.insert(arguments.begin(), binary == nullptr ? "QUIRE_BINARY is not set" : binary);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[3][2];
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; ++fd) {
      if (::pipe2(ends[fd], O_CLOEXEC) != 0) std::abort();
      ::posix_spawn_file_actions_adddup2(&actions, ends[fd][fd == 0 ? 0 : 1], fd);
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
  ~Process() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      wait();
    }
    close_input();
    ::close(out_);
    ::close(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What comes until `mark` is there, or the end; without a mark, what comes first.
  std::string read_out(const std::string& mark) { return read_until(out_, mark); }
  std::string read_err(const std::string& mark) { return read_until(err_, mark); }

  void write(const std::string& text) {
    EXPECT_EQ(::write(in_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_input() {
    if (in_ >= 0) ::close(in_);
    in_ = -1;
  }

  // Seconds of a core so far, of all threads.
  double cpu_s() const {
    std::ifstream stat("/proc/" + std::to_string(pid_) + "/stat");
    std::string field;
    std::getline(stat, field, ')');  // the name may hold spaces
    for (int i = 3; i < 14; ++i) stat >> field;
    int64_t user = 0;
    int64_t system = 0;
    EXPECT_TRUE(stat >> user >> system);
    return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

  // Exit code, or -1; then the peak of resident memory is known.
  int wait() {
    int status = 0;
    rusage usage = {};
    ::wait4(std::exchange(pid_, -1), &status, 0, &usage);
    max_rss_bytes_ = static_cast<double>(usage.ru_maxrss) * 1024;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  double max_rss_bytes() const { return max_rss_bytes_; }

 private:
  static std::string read_until(int fd, const std::string& mark) {
    std::string text;
    char buffer[4096];
    do {
      const ssize_t got = ::read(fd, buffer, sizeof(buffer));
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    } while (text.find(mark) == std::string::npos);
    return text;
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  double max_rss_bytes_ = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The number behind `name` in the memory plan's line, in bytes.
double planned_bytes(const std::string& log, const std::string& name) {
  const size_t at = log.find(name + " ");
  EXPECT_NE(at, std::string::npos) << log;
  if (at == std::string::npos) return 0;
  return std::strtod(log.c_str() + at + name.size(), nullptr) * (1 << 20);
}

// Runs to the end; says how soon the answer began.
double generate(Process& process, Clock::time_point start, std::string& log) {
  EXPECT_THAT(process.read_out(""), Not(IsEmpty()));
  const double first_byte_s = seconds_since(start);
  EXPECT_THAT(process.read_out(kEndOfStream), HasSubstr("#### 12"));
  log = process.read_err(kEndOfStream);
  EXPECT_EQ(process.wait(), 0) << log;
  return first_byte_s;
}

TEST(Footprint, ResidentMemoryIsWeightsKvAnd60MB) {
  // A small KV cache bounds what can be touched of it, also where pages are huge.
  const auto start = Clock::now();
  Process process({"generate", "--max-model-len", "512", "--kv-cache-memory", "5M"});
  std::string log;
  const double first_byte_s = generate(process, start, log);
  const double weights = planned_bytes(log, "weights");
  const double kv = planned_bytes(log, "KV cache");
  EXPECT_GT(weights, 14e6);
  EXPECT_LE(process.max_rss_bytes(), weights + kv + 60e6) << log;
  std::printf("resident %.1f MB: weights %.1f, KV at most %.1f; first byte after %.3f s\n",
              process.max_rss_bytes() / 1e6, weights / 1e6, kv / 1e6, first_byte_s);
}

TEST(Footprint, StartToFirstByteIsPrinted) {
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    Process process({"generate"});
    std::string log;
    const double first_byte_s = generate(process, start, log);
    std::printf("first byte after %.3f s, resident %.1f MB\n", first_byte_s,
                process.max_rss_bytes() / 1e6);
  }
}

// Share of a core over two seconds.
double idle_load(const Process& process) {
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // workers fall asleep
  const double before = process.cpu_s();
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return (process.cpu_s() - before) / seconds_since(start);
}

TEST(Footprint, AnIdleChatSleeps) {
  Process process({"chat", "--temperature", "0"});
  EXPECT_THAT(process.read_err("[engine]"), HasSubstr("[engine]"));
  const double fresh = idle_load(process);
  process.write(
      "Zoe sleeps 7 hours a day, works 6 hours and travels 2 hours. How many free hours is that in "
      "5 days?\n");
  EXPECT_THAT(process.read_out("#### 45\n"), HasSubstr("#### 45\n"));
  EXPECT_GT(process.cpu_s(), 0.0);  // it is this process that is measured
  const double after_answer = idle_load(process);
  process.close_input();
  EXPECT_EQ(process.wait(), 0);
  std::printf("idle: %.2f %% of a core, after an answer %.2f %%\n", 100 * fresh,
              100 * after_answer);
  EXPECT_LT(fresh, 0.02);
  EXPECT_LT(after_answer, 0.02);
}

}  // namespace
}  // namespace quire
