// Guards for code that must not throw: the entry of a thread, a destructor, the handler of another
// exception. All but exception_text() work without free memory: they drop a log line or message
// that cannot be allocated.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "quire/status.h"

namespace quire {

inline constexpr const char* kNoStdException = "an exception that is not a std::exception";

// The text of std::thread's std::system_error does not name the exhausted resource.
inline constexpr const char* kNoThread =
    "the system starts no more threads (EAGAIN); use fewer (`num_threads`, or fewer ranks by "
    "`tensor_parallel_size`), or raise the limit of processes (ulimit -u, or the container's pids "
    "limit)";

// The exception's text, or kNoThread if no thread could be started.
inline const char* text_of(const std::exception& error) noexcept {
  const auto* const failed = dynamic_cast<const std::system_error*>(&error);
  const bool no_thread =
      failed != nullptr && failed->code() == std::errc::resource_unavailable_try_again;
  return no_thread ? kNoThread : error.what();
}

// Returns use(text) with the text of the exception being handled.
template <typename Use>
auto with_exception_text(Use&& use) {
  try {
    throw;
  } catch (const std::exception& error) {
    return use(text_of(error));
  } catch (...) {
    return use(kNoStdException);
  }
}

// Calls f, a function of the embedding program. Returns the text of the exception that f throws;
// nullopt: none.
template <typename F>
std::optional<std::string> exception_text(F&& f) {
  try {
    f();
    return std::nullopt;
  } catch (...) {
    return with_exception_text([](const char* text) { return std::optional<std::string>(text); });
  }
}

// Calls f. If f throws, logs the exception after `what_failed`. Returns whether f returned
// normally.
template <typename F>
bool run_guarded(std::string_view what_failed, F&& f) noexcept {
  try {
    std::forward<F>(f)();
    return true;
  } catch (...) {
    with_exception_text([&](const char* text) { log_error("{}; {}", what_failed, text); });
    return false;
  }
}

// The message is short enough for std::string not to allocate.
inline Status out_of_memory() noexcept {
  return resource_exhausted("out of memory");
}

// Returns make(), or out_of_memory() if there is no memory for its message.
template <typename F>
Status make_status(F&& make) noexcept {
  try {
    return std::forward<F>(make)();
  } catch (...) {
    return out_of_memory();
  }
}

// Returns make(text) with the text of the exception being handled.
template <typename F>
Status make_exception_status(F&& make) noexcept {
  return with_exception_text(
      [&](const char* text) { return make_status([&] { return make(text); }); });
}

// Returns f(). If f throws, most likely std::bad_alloc, returns kResourceExhausted with
// `what_failed` and the exception's text.
template <typename F>
Status guarded_status(std::string_view what_failed, F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return make_exception_status([&](const char* text) {
      return resource_exhausted(fmt::format("{}; {}", what_failed, text));
    });
  }
}

}  // namespace quire
