#include "http_client/client.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <exception>
#include <optional>
#include <unordered_set>

#include "base/ascii.h"
#include "http_client/parsers.h"

namespace quire::http_client {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using ErrorCode = boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Socket = asio::basic_stream_socket<Protocol, asio::io_context::executor_type>;
using std::chrono::steady_clock;

constexpr size_t kBufferBytes = size_t{16} << 10;  // large enough for a whole head
constexpr std::chrono::seconds kTick(1);

struct Job {
  std::string bytes;  // head and body
  std::shared_ptr<ResponseHandler> handler;
};

// The parts of the client that its connections use.
class Owner {
 public:
  virtual ~Owner() = default;
  virtual const std::vector<Protocol::endpoint>& endpoints() const = 0;
  virtual const std::string& server() const = 0;  // the server's name for messages
  // Sends the job on a new connection.
  virtual void send_again(Job job) = 0;
  // Makes a TLS stream before its handshake; null without TLS.
  virtual std::unique_ptr<ssl::stream<Socket&>> make_tls(Socket& socket) = 0;
};

class Connection;
using ConnectionPtr = std::shared_ptr<Connection>;
// Called when a connection is free. `is_reusable`: whether it can send another request.
using WhenFree = std::function<void(const ConnectionPtr&, bool is_reusable)>;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& context, Owner& owner, WhenFree when_free)
      : owner_(owner), when_free_(std::move(when_free)), socket_(context) {}

  void set_job(Job job) {
    job_ = std::move(job);
    parser_.emplace(*job_.handler);
    num_idle_ticks_ = 0;
    has_response_ = false;
  }

  void start() {
    if (!job_.handler) return;  // cancelled
    if (is_connected_) {
      is_reused_ = true;
      return exchange();
    }
    connect();
  }

  bool is_for(const ResponseHandler& handler) const { return job_.handler.get() == &handler; }

  void cancel() {
    job_.handler.reset();
    close();
    when_free_(shared_from_this(), false);
  }

  // Called once per second while a request is in progress.
  void tick(std::chrono::seconds connect_limit, std::chrono::seconds idle_limit) {
    if (!job_.handler) return;
    ++num_idle_ticks_;
    const auto limit = is_connected_ ? idle_limit : connect_limit;
    if (num_idle_ticks_ * kTick <= limit) return;
    const char* what = is_connected_ ? "sent no data" : "accepted no connection";
    end(unavailable(fmt::format("[http] {} {} for {} s", owner_.server(), what, limit.count())));
  }

 private:
  void connect() {
    is_reused_ = false;
    tls_ = owner_.make_tls(socket_);
    asio::async_connect(socket_, owner_.endpoints(),
                        [self = shared_from_this()](const ErrorCode& error, const auto&) {
                          self->on_connected(error);
                        });
  }

  void on_connected(const ErrorCode& error) {
    if (!job_.handler) return;
    if (error) return fail_to_connect(error);
    const int on = 1;
    ::setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (!tls_) return on_ready();
    tls_->async_handshake(ssl::stream_base::client,
                          [self = shared_from_this()](const ErrorCode& failure) {
                            if (!self->job_.handler) return;
                            if (failure) return self->fail_to_connect(failure);
                            self->on_ready();
                          });
  }

  void fail_to_connect(const ErrorCode& error) {
    end(unavailable(
        fmt::format("[http] cannot connect to {}: {}", owner_.server(), error.message())));
  }

  void on_ready() {
    is_connected_ = true;
    num_idle_ticks_ = 0;
    exchange();
  }

  // Reads while it writes, because a refusal can come before the whole body is sent.
  void exchange() {
    begin_ = end_ = 0;
    is_written_ = false;
    const auto on_written = [self = shared_from_this()](const ErrorCode& error, size_t) {
      self->is_written_ = !error;  // the read reports the same error
    };
    with_stream(
        [&](auto& stream) { asio::async_write(stream, asio::buffer(job_.bytes), on_written); });
    read();
  }

  template <typename Use>
  void with_stream(Use use) {
    if (tls_) {
      use(*tls_);
    } else {
      use(socket_);
    }
  }

  void read() {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    if (end_ == buffer_.size())
      return end(internal_error("[http] the response's head is too large"));
    with_stream([&](auto& stream) {
      stream.async_read_some(asio::buffer(buffer_.data() + end_, buffer_.size() - end_),
                             [self = shared_from_this()](const ErrorCode& error, size_t size) {
                               self->on_read(error, size);
                             });
    });
  }

  void on_read(const ErrorCode& error, size_t size) {
    if (!job_.handler) return;  // the request has already ended
    num_idle_ticks_ = 0;
    if (error) return on_closed();
    has_response_ = true;
    end_ += size;
    begin_ += parser_->feed({buffer_.data() + begin_, end_ - begin_});
    if (parser_->state() == ResponseParser::State::kReading) return read();
    end(parser_->error());
  }

  void on_closed() {
    // The server closed the connection before it read the request.
    if (is_reused_ && !has_response_) {
      close();
      when_free_(shared_from_this(), false);
      // The job's bytes are copied, because a write from them may still be in progress on this
      // socket.
      return owner_.send_again({job_.bytes, std::move(job_.handler)});
    }
    parser_->end_of_connection();
    end(parser_->error());
  }

  void close() {
    ErrorCode ignored;
    socket_.close(ignored);
    is_connected_ = false;
  }

  void end(const Status& status) {
    const auto self = shared_from_this();
    const std::shared_ptr<ResponseHandler> handler = std::move(job_.handler);
    const bool is_reusable = status.ok() && is_connected_ && is_written_ && begin_ == end_ &&
                             parser_->state() == ResponseParser::State::kDone &&
                             parser_->keeps_alive();
    if (!is_reusable) close();
    when_free_(self, is_reusable);
    handler->on_end(status);
  }

  Owner& owner_;
  const WhenFree when_free_;
  Socket socket_;
  std::unique_ptr<ssl::stream<Socket&>> tls_;
  Job job_;
  std::optional<ResponseParser> parser_;
  std::vector<char> buffer_ = std::vector<char>(kBufferBytes);
  size_t begin_ = 0;  // start of the unparsed bytes in buffer_
  size_t end_ = 0;
  int num_idle_ticks_ = 0;
  bool is_connected_ = false;
  bool is_reused_ = false;
  bool has_response_ = false;
  bool is_written_ = false;
};

std::string server_name(const ClientConfig& config) {
  return config.unix_socket_path.empty() ? fmt::format("{}:{}", config.url.host, config.url.port)
                                         : config.unix_socket_path;
}

Result<std::vector<Protocol::endpoint>> resolve(asio::io_context& context,
                                                const ClientConfig& config) {
  std::vector<Protocol::endpoint> endpoints;
  if (!config.unix_socket_path.empty()) {
    if (config.unix_socket_path.size() >= sizeof(sockaddr_un::sun_path)) {
      return invalid_argument(fmt::format(
          "[http] the path of a Unix socket is too long; got {} bytes, expected fewer than {}",
          config.unix_socket_path.size(), sizeof(sockaddr_un::sun_path)));
    }
    endpoints.emplace_back(asio::local::stream_protocol::endpoint(config.unix_socket_path));
    return endpoints;
  }
  ErrorCode error;
  asio::ip::tcp::resolver resolver(context);
  const auto found = resolver.resolve(config.url.host, fmt::format("{}", config.url.port), error);
  if (error) {
    return unavailable(
        fmt::format("[http] cannot find the host {}: {}", config.url.host, error.message()));
  }
  for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
  return endpoints;
}

class AsioClient final : public Client, public Owner {
 public:
  explicit AsioClient(ClientConfig config)
      : config_(std::move(config)),
        server_(server_name(config_)),
        work_(context_.get_executor()),
        tls_(ssl::context::tls_client),
        ticker_(context_) {
    if (config_.url.is_tls) {
      tls_.set_default_verify_paths();
      tls_.set_verify_mode(config_.verify_peer ? ssl::verify_peer : ssl::verify_none);
    }
    write_common_head();
    tick();
  }

  Status resolve_host() {
    QUIRE_ASSIGN_OR_RETURN(endpoints_, resolve(context_, config_));
    return {};
  }

  void send(Request request, std::shared_ptr<ResponseHandler> handler) override {
    Job job;
    job.bytes = serialize(request);
    job.handler = std::move(handler);
    start(take_connection(), std::move(job));
  }

  void cancel(const ResponseHandler& handler) override {
    for (const ConnectionPtr& connection : active_) {
      if (!connection->is_for(handler)) continue;
      const ConnectionPtr held = connection;  // cancel() removes it from active_
      return held->cancel();
    }
  }

  void post(std::function<void()> call) override { asio::post(context_, std::move(call)); }

  void call_at(TimePoint when, std::function<void()> call) override {
    auto timer = std::make_shared<asio::steady_timer>(context_, when);
    timer->async_wait([timer, call = std::move(call)](const ErrorCode& error) {
      if (!error) call();
    });
  }

  void run() override {
    context_.restart();
    context_.run();
  }
  void stop() override { context_.stop(); }

 private:
  const std::vector<Protocol::endpoint>& endpoints() const override { return endpoints_; }
  const std::string& server() const override { return server_; }
  void send_again(Job job) override { start(new_connection(), std::move(job)); }

  void start(ConnectionPtr connection, Job job) {
    active_.insert(connection);
    connection->set_job(std::move(job));
    asio::post(context_, [connection = std::move(connection)] { connection->start(); });
  }

  std::unique_ptr<ssl::stream<Socket&>> make_tls(Socket& socket) override {
    if (!config_.url.is_tls) return nullptr;
    auto tls = std::make_unique<ssl::stream<Socket&>>(socket, tls_);
    ::SSL_set_tlsext_host_name(tls->native_handle(), config_.url.host.c_str());
    if (config_.verify_peer) {
      tls->set_verify_callback(ssl::host_name_verification(config_.url.host));
    }
    return tls;
  }

  void write_common_head() {
    common_head_ = fmt::format("Host: {}\r\n", host_field(config_.url));
    for (const auto& [name, value] : config_.headers) {
      common_head_ += fmt::format("{}: {}\r\n", name, value);
    }
  }

  std::string serialize(const Request& request) const {
    std::string bytes;
    bytes.reserve(request.body.size() + common_head_.size() + 256);
    fmt::format_to(std::back_inserter(bytes), "{} {}{} HTTP/1.1\r\n{}", request.method,
                   config_.url.path, request.target, common_head_);
    bool has_type = false;
    for (const auto& [name, value] : request.headers) {
      fmt::format_to(std::back_inserter(bytes), "{}: {}\r\n", name, value);
      has_type = has_type || equals_ignoring_case(name, "content-type");
    }
    if (request.method != "GET" || !request.body.empty()) {
      if (!has_type) bytes += "Content-Type: application/json\r\n";
      fmt::format_to(std::back_inserter(bytes), "Content-Length: {}\r\n", request.body.size());
    }
    bytes += "\r\n";
    bytes += request.body;
    return bytes;
  }

  ConnectionPtr take_connection() {
    if (idle_.empty()) return new_connection();
    ConnectionPtr connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  ConnectionPtr new_connection() {
    return std::make_shared<Connection>(
        context_, *this,
        [this](const ConnectionPtr& freed, bool is_reusable) { put_back(freed, is_reusable); });
  }

  void put_back(const ConnectionPtr& connection, bool is_reusable) {
    active_.erase(connection);
    if (is_reusable && idle_.size() < config_.max_idle_connections) idle_.push_back(connection);
  }

  void tick() {
    ticker_.expires_after(kTick);
    ticker_.async_wait([this](const ErrorCode& error) {
      if (error) return;
      const std::vector<ConnectionPtr> all(active_.begin(), active_.end());
      for (const ConnectionPtr& connection : all) {
        connection->tick(config_.connect_timeout, config_.idle_timeout);
      }
      tick();
    });
  }

  const ClientConfig config_;
  const std::string server_;
  std::string common_head_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  ssl::context tls_;
  asio::steady_timer ticker_;
  std::vector<Protocol::endpoint> endpoints_;
  std::vector<ConnectionPtr> idle_;
  std::unordered_set<ConnectionPtr> active_;
};

class WholeResponse final : public ResponseHandler {
 public:
  WholeResponse(Client& client, size_t max_bytes) : client_(client), max_bytes_(max_bytes) {}

  void on_head(int status) override { response.status = status; }
  bool on_body(std::string_view piece) override {
    if (result) return false;  // fetch() has given up
    is_too_large_ = response.body.size() + piece.size() > max_bytes_;
    if (!is_too_large_) response.body += piece;
    return !is_too_large_;
  }
  void on_end(const Status& status) override {
    if (result) return;  // a late response must not stop a later run()
    result = is_too_large_ ? resource_exhausted("[http] the response is too large") : status;
    client_.stop();
  }

  Response response;
  std::optional<Status> result;

 private:
  Client& client_;
  size_t max_bytes_;
  bool is_too_large_ = false;
};

void stop_if_interrupted(Client& client, const std::shared_ptr<WholeResponse>& whole,
                         const std::function<bool()>& interrupted) {
  if (whole->result) return;
  if (interrupted()) return client.stop();
  client.call_at(
      steady_clock::now() + std::chrono::milliseconds(50),
      [&client, whole, interrupted] { stop_if_interrupted(client, whole, interrupted); });
}

}  // namespace

Result<std::unique_ptr<Client>> Client::create(ClientConfig config) {
  try {
    auto client = std::make_unique<AsioClient>(std::move(config));
    QUIRE_RETURN_IF_ERROR(client->resolve_host());
    return std::unique_ptr<Client>(std::move(client));
  } catch (const std::exception& error) {  // thrown by Asio, e.g. if no descriptors are left
    return internal_error(fmt::format("[http] cannot start a client: {}", error.what()));
  }
}

Result<Response> fetch(Client& client, Request request, size_t max_body_bytes,
                       const std::function<bool()>& interrupted) {
  const auto whole = std::make_shared<WholeResponse>(client, max_body_bytes);
  client.send(std::move(request), whole);
  // The first check runs within run(), because run() undoes an earlier stop().
  client.call_at(steady_clock::now(), [&client, whole, interrupted] {
    stop_if_interrupted(client, whole, interrupted);
  });
  client.run();
  if (!whole->result) whole->result = cancelled("[http] interrupted");
  QUIRE_RETURN_IF_ERROR(*whole->result);
  return std::move(whole->response);
}

}  // namespace quire::http_client
