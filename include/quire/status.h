// Errors as values. No exception crosses Quire's interface.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace quire {

// Each code maps to one HTTP status (http_status below).
enum class StatusCode {
  kOk,
  kInvalidArgument,    // 400: the request, flag or file is wrong
  kNotFound,           // 404
  kResourceExhausted,  // 429: try again later
  kCancelled,          // 499: the caller cancelled the request
  kInternal,           // 500: a defect or a device fault
  kUnimplemented,      // 501: valid, but not supported
  kUnavailable,        // 503: the engine is draining or unhealthy
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  // One line: `[module] what; got X, expected Y`.
  const std::string& message() const { return message_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
inline Status not_found(std::string message) {
  return {StatusCode::kNotFound, std::move(message)};
}
inline Status resource_exhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
inline Status cancelled(std::string message) {
  return {StatusCode::kCancelled, std::move(message)};
}
inline Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}
inline Status unimplemented(std::string message) {
  return {StatusCode::kUnimplemented, std::move(message)};
}
inline Status unavailable(std::string message) {
  return {StatusCode::kUnavailable, std::move(message)};
}

int http_status(StatusCode code);

// A value, or the Status that explains why there is no value. Reading the value of a failed Result
// is a defect, and ends the program.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : state_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  Status status() const { return ok() ? Status() : std::get<Status>(state_); }

  T& value() & { return *get(); }
  const T& value() const& { return *const_cast<Result*>(this)->get(); }
  T&& value() && { return std::move(*get()); }
  T& operator*() & { return *get(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*get()); }
  T* operator->() { return get(); }
  const T* operator->() const { return &value(); }

 private:
  T* get();

  std::variant<Status, T> state_;
};

[[noreturn]] void die_on_bad_result(const Status& status);

template <typename T>
T* Result<T>::get() {
  T* value = std::get_if<T>(&state_);
  if (value == nullptr) die_on_bad_result(std::get<Status>(state_));
  return value;
}

}  // namespace quire

// Returns from the function with the Status of `expr` if that is an error.
#define QUIRE_RETURN_IF_ERROR(expr)                                                        \
  do {                                                                                     \
    if (::quire::Status quire_status_ = (expr); !quire_status_.ok()) return quire_status_; \
  } while (false)

#define QUIRE_CONCAT_INNER_(a, b) a##b
#define QUIRE_CONCAT_(a, b) QUIRE_CONCAT_INNER_(a, b)
// `QUIRE_ASSIGN_OR_RETURN(auto x, f())`: x becomes f()'s value, or the function returns f()'s
// Status.
#define QUIRE_ASSIGN_OR_RETURN(lhs, expr) \
  QUIRE_ASSIGN_OR_RETURN_IMPL_(QUIRE_CONCAT_(quire_result_, __LINE__), lhs, expr)
#define QUIRE_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = (expr);                                 \
  if (!result.ok()) return result.status();             \
  lhs = std::move(result).value()
