// Runs a connection without sockets. An input is a script of the actions of a client, the clock and
// the handlers. For every script, calls to the stream follow its rules, and responses are well
// formed and in order. At the end all memory is released, and no on_closed() was called twice.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "server/http/connection.h"

namespace quire::http {
namespace {

class Script {
 public:
  explicit Script(std::string_view bytes) : bytes_(bytes) {}
  bool is_over() const { return bytes_.empty(); }
  uint8_t next() {
    if (bytes_.empty()) return 0;
    const char c = bytes_[0];
    bytes_.remove_prefix(1);
    return static_cast<uint8_t>(c);
  }
  std::string_view take(size_t size) {
    const std::string_view piece = bytes_.substr(0, size);
    bytes_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view bytes_;
};

// The state of a stream. It must outlive the stream, which the connection owns.
struct Wire {
  std::shared_ptr<StreamUser> user;
  char* read_to = nullptr;
  size_t read_size = 0;
  std::string_view writing;
  std::string sent;
  bool has_deadline = false;
  bool is_shut = false;
  bool is_closed = false;
  int num_wakes = 0;
  size_t room_now = 0;  // the bytes that the client's window accepts at once
};

class FakeStream final : public Stream {
 public:
  explicit FakeStream(Wire& wire) : wire_(wire) {}

  void open(std::shared_ptr<StreamUser> user) override { wire_.user = std::move(user); }
  void read_some(char* to, size_t size) override {
    QUIRE_CHECK(!wire_.is_closed && wire_.read_to == nullptr && size > 0, "one read at a time");
    std::memset(to, 'R', size);
    wire_.read_to = to;
    wire_.read_size = size;
  }
  void write_some(std::string_view bytes) override {
    QUIRE_CHECK(!wire_.is_closed && !wire_.is_shut && wire_.writing.empty() && !bytes.empty(),
                "one write at a time");
    wire_.writing = bytes;
  }
  void shut_down() override {
    QUIRE_CHECK(!wire_.is_closed && !wire_.is_shut && wire_.writing.empty(), "all has been sent");
    wire_.is_shut = true;
  }
  void close() override {
    QUIRE_CHECK(!wire_.is_closed, "closed once");
    wire_.is_closed = true;
  }
  void set_deadline(TimePoint when) override { wire_.has_deadline = when != TimePoint::max(); }
  void wake() noexcept override {
    QUIRE_CHECK(!wire_.is_closed, "no wake-up after the end");
    ++wire_.num_wakes;
  }
  size_t send_now(std::string_view bytes) override {
    QUIRE_CHECK(!wire_.is_closed && !wire_.is_shut && wire_.writing.empty() && !bytes.empty(),
                "nothing overtakes a write");
    const std::string_view sent = bytes.substr(0, wire_.room_now);
    wire_.room_now -= sent.size();
    wire_.sent += sent;
    return sent.size();
  }
  std::string peer() const override { return "fuzz"; }

 private:
  Wire& wire_;
};

struct Held {
  std::shared_ptr<Exchange> exchange;
  std::shared_ptr<void> body_share = nullptr;
  std::shared_ptr<int> num_closed = std::make_shared<int>(0);
};

constexpr size_t kMaxTotalBodyBytes = 1500;
constexpr size_t kMaxTotalAnswerBytes = size_t{128} << 10;

class Play {
 public:
  explicit Play(Script script) : script_(script) {
    transport_.limits.max_header_bytes = 512;
    transport_.limits.max_headers = 8;
    transport_.limits.max_body_bytes = 1024;
    transport_.limits.max_buffered_bytes = 600;
    transport_.bodies = std::make_shared<ByteBudget>(kMaxTotalBodyBytes);
    transport_.responses = std::make_shared<ByteBudget>(kMaxTotalAnswerBytes);
    transport_.hooks = {
        .check_head = [this](const Request& head) { return check_head(head); },
        .write_refusal = [this](const Request&, const Refusal& why) { return write_refusal(why); }};
    transport_.handler = [this](Request&& request, std::shared_ptr<Exchange> exchange) {
      handle(request, std::move(exchange));
    };
    connection_ = std::make_shared<Connection>(transport_, std::make_unique<FakeStream>(wire_),
                                               [this](Connection*) { ++num_gone_; });
    connection_->start();
    wire_.user->on_open(OpenResult::kDone);
  }

  void run() {
    while (!script_.is_over() && !wire_.is_closed) step(script_.next());
    connection_->close();
    finish_io();
    QUIRE_CHECK(num_gone_ == 1, "gone once");
    for (const Held& held : held_) {
      held.exchange->write("late");
      held.exchange->respond({});
    }
    for (const Held& held : all_)
      QUIRE_CHECK(*held.num_closed <= 1, "on_closed() is called at most once");
    held_.clear();
    wire_.user.reset();
    QUIRE_CHECK(connection_.use_count() == 1, "a reference to a closed connection is left");
    connection_.reset();
    QUIRE_CHECK(transport_.bodies->reserve(kMaxTotalBodyBytes),
                "memory of a request body is not released");
    QUIRE_CHECK(transport_.responses->reserve(kMaxTotalAnswerBytes),
                "memory of a response is not released");
    check_output();
  }

 private:
  void step(uint8_t action) {
    const size_t amount = script_.next();
    switch (action % 12) {
      case 0:
      case 1:
      case 2:
        return receive(script_.take(std::min(amount * 2, wire_.read_size)));
      case 3:
        return write(amount);
      case 4:
        return wake();
      case 5:
        return answer(amount);
      case 6:
        if (amount % 4 == 0) read_done(0);  // the client closes its side
        return;
      case 7:
        if (amount % 4 == 0 && wire_.has_deadline) {
          wire_.has_deadline = false;
          wire_.user->on_deadline();
        }
        return;
      case 8:
        if (amount % 8 == 0) connection_->drain();
        return;
      case 9:
        return write(100'000);
      case 10:
        wire_.room_now = amount;
        return;
      default:
        return answer_at_length(amount << 10);
    }
  }

  void receive(std::string_view bytes) {
    if (wire_.read_to == nullptr || bytes.empty()) return;
    bytes.copy(wire_.read_to, bytes.size());
    read_done(bytes.size());
  }
  void read_done(size_t num_bytes) {
    if (std::exchange(wire_.read_to, nullptr) != nullptr) wire_.user->on_read(num_bytes);
  }
  void write(size_t amount) {
    if (wire_.writing.empty()) return;
    const std::string_view taken = std::exchange(wire_.writing, {}).substr(0, amount);
    wire_.sent += taken;
    wire_.user->on_written(taken.size());  // 0: the client is gone
  }
  void wake() {
    if (wire_.num_wakes == 0) return;
    --wire_.num_wakes;
    wire_.user->on_wake();
  }

  // Ends the pending calls, as a real stream does after close().
  void finish_io() {
    read_done(0);
    if (!std::exchange(wire_.writing, {}).empty()) wire_.user->on_written(0);
    while (wire_.num_wakes > 0) wake();
  }

  // Refuses a request, as if it had no key: no byte of its body may reach a handler.
  std::optional<Response> check_head(const Request& head) {
    QUIRE_CHECK(!std::exchange(is_checked_, true), "asked once per request");
    QUIRE_CHECK(head.body.empty() && !head.method.empty(), "a complete head without a body");
    if (!head.query.starts_with('n')) return std::nullopt;
    is_refused_ = true;
    return Response{.status = 401, .body = "{}"};
  }
  Response write_refusal(const Refusal& why) {
    QUIRE_CHECK(why.status >= 400 && !why.code.empty() && !why.message.empty(), "a reason");
    return {.status = why.status, .body = std::string(why.code)};
  }

  void handle(const Request& request, std::shared_ptr<Exchange> exchange) {
    QUIRE_CHECK(!is_refused_, "neither a refused request nor one after it is handled");
    is_checked_ = false;
    Held held{std::move(exchange), request.body_share};
    all_.push_back({.num_closed = held.num_closed});
    held.exchange->on_closed([count = held.num_closed] { ++*count; });
    switch (request.path.size() % 5) {
      case 0:
        QUIRE_CHECK(held.exchange->respond({.status = 200, .body = request.body}),
                    "a small response fits");
        return;
      case 1:
        return;  // dropped
      case 2:
        throw std::runtime_error("a handler's fault");
      default:
        held_.push_back(std::move(held));
    }
  }

  void answer(size_t amount) {
    if (held_.empty()) return;
    const std::shared_ptr<Exchange> exchange = held_[amount % held_.size()].exchange;
    switch (amount / 4 % 5) {
      case 0:
        exchange->respond({.status = 200, .body = std::string(amount, 'b')});
        return;
      case 1:
        return exchange->start_stream(200, "text/event-stream", {});
      case 2:
        return exchange->write(std::string(amount, 's'));
      case 3:
        return exchange->end_stream();
      default:
        held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(amount % held_.size()));
    }
  }

  void answer_at_length(size_t num_bytes) {
    if (held_.empty()) return;
    Exchange& exchange = *held_.back().exchange;
    exchange.write(std::string(num_bytes, 'l'));  // if it is a stream
    if (exchange.respond({.status = 200, .body = std::string(num_bytes, 'l')})) return;
    QUIRE_CHECK(exchange.respond({.status = 503, .body = "full"}), "a small response fits");
  }

  // Checks that the output is a sequence of complete responses, the last of which may be cut.
  void check_output() const {
    std::string_view left = wire_.sent;
    while (!left.empty()) {
      const std::string_view start = left.substr(0, 9);
      QUIRE_CHECK(std::string_view("HTTP/1.1 ").starts_with(start), "a response starts here");
      const size_t end = left.find("\r\n\r\n");
      if (end == std::string_view::npos) return;
      const std::string_view head = left.substr(0, end + 4);
      QUIRE_CHECK(head.find("text/plain") == std::string_view::npos, "the hook writes refusals");
      left.remove_prefix(head.size());
      if (!skip_body(head, left)) return;
    }
  }

  // Returns false if the length of the body is unknown: for HEAD, for HTTP/1.0, or if the output is
  // cut.
  static bool skip_body(std::string_view head, std::string_view& left) {
    if (head.starts_with("HTTP/1.1 100")) return true;
    constexpr std::string_view kLength = "\r\ncontent-length: ";
    if (const size_t at = head.find(kLength); at != std::string_view::npos) {
      const size_t size = std::stoul(std::string(head.substr(at + kLength.size())));
      if (left.size() < size || left.starts_with("HTTP/")) return false;
      left.remove_prefix(size);
      return true;
    }
    if (head.find("transfer-encoding: chunked") == std::string_view::npos) return false;
    for (;;) {
      const size_t line = left.find("\r\n");
      if (line == std::string_view::npos || left.starts_with("HTTP/")) return false;
      const size_t size = std::stoul(std::string(left.substr(0, line)), nullptr, 16);
      if (left.size() < line + 4 + size) return false;
      QUIRE_CHECK(left.substr(line + 2 + size, 2) == "\r\n",
                  "a chunk has the length of its header");
      left.remove_prefix(line + 4 + size);
      if (size == 0) return true;
    }
  }

  Script script_;
  TransportState transport_;
  Wire wire_;
  std::shared_ptr<Connection> connection_;
  std::vector<Held> held_;
  std::vector<Held> all_;  // only the counts
  int num_gone_ = 0;
  bool is_checked_ = false;  // the head was checked, and the body has not arrived yet
  bool is_refused_ = false;  // by check_head()
};

}  // namespace
}  // namespace quire::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  quire::set_log_level(quire::LogLevel::kOff);
  quire::http::Play(quire::http::Script({reinterpret_cast<const char*>(data), size})).run();
  return 0;
}
