#include "hub/package/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "hub/pull/local_files.h"

namespace quire::hub {
namespace {

constexpr int kTickMs = 100;

std::atomic<pid_t> running_group = 0;  // 0: none
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler reads it");

// Returns this process's environment, in which `variables` replace variables of the same names.
std::vector<char*> environment_with(std::vector<std::string>& variables) {
  std::vector<char*> all;
  const auto name_of = [](std::string_view text) { return text.substr(0, text.find('=')); };
  for (std::string& variable : variables) all.push_back(variable.data());
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool is_replaced = false;
    for (const std::string& variable : variables) {
      is_replaced = is_replaced || name_of(variable) == name_of(*entry);
    }
    if (!is_replaced) all.push_back(*entry);
  }
  all.push_back(nullptr);
  return all;
}

// Starts the program without input, with its output to `output`. The program has the default
// actions for the signals that this process ignores. It has a process group of its own, because pip
// starts programs that would otherwise run on after pip is killed.
int spawn(std::vector<std::string> arguments, std::vector<std::string> variables, int output,
          pid_t& pid) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::vector<char*> environment = environment_with(variables);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::sigaddset(&defaults, SIGXFSZ);
  ::sigaddset(&defaults, SIGCHLD);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int error =
      ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environment.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Appends the bytes that arrive within kTickMs. Returns false at the end of the output.
bool read_some(int fd, std::string& output) {
  constexpr size_t kMaxOutputBytes = size_t{64} << 10;
  pollfd input = {fd, POLLIN, 0};
  if (::poll(&input, 1, kTickMs) <= 0) return true;
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got <= 0) return got < 0 && (errno == EINTR || errno == EAGAIN);
  output.append(buffer.data(), static_cast<size_t>(got));
  if (output.size() > kMaxOutputBytes) output.erase(0, output.size() - kMaxOutputBytes);
  return true;
}

// Waits for the end of the program. Once keep_running() returns false, sends SIGTERM to its group,
// and SIGKILL two seconds later or when the program has ended.
int wait_for(pid_t pid, const std::function<bool()>& keep_running) {
  constexpr auto kPatience = std::chrono::seconds(2);
  bool was_asked = false;
  std::chrono::steady_clock::time_point deadline;
  int status = 0;
  while (true) {
    // WNOWAIT keeps the process id in use, so that no other group can get it before the kill.
    siginfo_t ended = {};
    if (::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 &&
        errno != EINTR) {
      return -1;
    }
    if (ended.si_pid == pid) break;
    const auto now = std::chrono::steady_clock::now();
    if (!was_asked && !keep_running()) {
      was_asked = true;
      deadline = now + kPatience;
      ::kill(-pid, SIGTERM);
    }
    if (was_asked && now >= deadline) ::kill(-pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(kTickMs));
  }
  if (was_asked) ::kill(-pid, SIGKILL);
  running_group = 0;
  ::waitpid(pid, &status, 0);
  return status;
}

}  // namespace

Result<ProgramResult> run_program(const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& variables,
                                  const std::function<bool()>& keep_running) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return unavailable(fmt::format("[hub] cannot create a pipe: {}", std::strerror(errno)));
  }
  const Descriptor reader(ends[0]);
  pid_t pid = -1;
  int error = 0;
  {
    const Descriptor writer(ends[1]);
    error = spawn(arguments, variables, writer.get(), pid);
  }
  if (error == ENOENT) {
    return not_found(fmt::format("[hub] there is no program {}", arguments.front()));
  }
  if (error != 0) {
    return unavailable(
        fmt::format("[hub] cannot run {}: {}", arguments.front(), std::strerror(error)));
  }
  running_group = pid;
  ProgramResult result;
  bool goes_on = true;
  while (goes_on && read_some(reader.get(), result.output)) goes_on = keep_running();
  const int status = wait_for(pid, [&] { return goes_on = goes_on && keep_running(); });
  if (!goes_on) return cancelled("[hub] interrupted");
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

void kill_running_program() {
  const pid_t group = running_group;
  if (group > 0) ::kill(-group, SIGKILL);
}

}  // namespace quire::hub
