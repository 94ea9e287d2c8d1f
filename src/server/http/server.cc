#include "server/http/server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "base/machine.h"
#include "server/http/asio_stream.h"
#include "server/http/client_address.h"
#include "server/http/connection.h"
#include "server/http/listen.h"
#include "server/http/pending_response.h"
#include "server/http/tls.h"

namespace quire::http {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using asio::generic::stream_protocol;

// Descriptors that are not available to connections: for the files of models and certificates, and
// for the connection that each acceptor is about to refuse.
constexpr int kSpareDescriptors = 64;

// The pause between attempts to accept while descriptors or memory are exhausted.
constexpr std::chrono::milliseconds kAcceptRetryDelay{100};

// One thread and its connections; a connection stays on one thread.
struct Loop {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::thread thread;
  std::atomic<int> num_open = 0;
  // Used only on the loop's thread:
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;
  bool is_draining = false;
  // Repairs the state after an exception; returns false if it must be called again.
  std::function<bool()> repair = [] { return true; };

  // Makes Asio create the objects that a loop's first timer or socket needs. If there are no
  // descriptors for them, the server fails at its start instead of at its first connection.
  Loop() { asio::steady_timer first(context); }

  ~Loop() {
    if (!thread.joinable()) return;  // the server's start failed
    context.stop();
    thread.join();
  }

  std::vector<std::shared_ptr<Connection>> all_connections() const {
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [pointer, connection] : connections) all.push_back(connection);
    return all;
  }

  void run() {
    while (!context.stopped()) {
      run_guarded("[http] caught an exception on an I/O thread, which continues", [this] {
        if (repair()) {
          context.run();
        } else {
          context.run_for(kAcceptRetryDelay);
        }
      });
    }
  }
};

// Raises the limit of descriptors, and returns how many of `wanted` connections fit.
int fit_descriptors(int wanted) {
  const int64_t max_fds = raise_descriptor_limit();
  const int fitting = connections_within(wanted, max_fds, process_use().num_open_fds);
  if (fitting < wanted) {
    log_warning(
        "[http] the limit is {} connections instead of {}, because the process may open only {} "
        "files; raise that by ulimit -n",
        fitting, wanted, max_fds);
  }
  return fitting;
}

// Sets a flag for its lifetime. Needed because Asio drops a handler without running it if memory is
// exhausted.
class PendingCallback {
 public:
  explicit PendingCallback(std::shared_ptr<bool> flag) : flag_(std::move(flag)) { *flag_ = true; }
  PendingCallback(PendingCallback&&) noexcept = default;
  ~PendingCallback() { end(); }
  void end() {
    if (flag_ != nullptr) *std::exchange(flag_, nullptr) = false;
  }

 private:
  std::shared_ptr<bool> flag_;
};

class Acceptor {
 public:
  Acceptor(asio::io_context& context, ListeningSocket socket)
      : acceptor(context), pause(context), socket_(std::move(socket)) {
    const stream_protocol protocol(socket_.family(), 0);
    acceptor.assign(protocol, socket_.release());
    // Without this option, accept() would wait for another client if a waiting one has
    // disconnected.
    acceptor.set_option(asio::socket_base::enable_connection_aborted(true));
  }

  // Also removes the Unix socket's file, so that later clients do not find it.
  void close() {
    ErrorCode ignored;
    acceptor.close(ignored);
    pause.cancel();
    const ListeningSocket gone = std::move(socket_);
  }

  asio::basic_socket_acceptor<stream_protocol, asio::io_context::executor_type> acceptor;
  asio::steady_timer pause;
  // True while a pending accept or pause will call back.
  std::shared_ptr<bool> has_pending_callback = std::make_shared<bool>(false);
  bool has_failed = false;  // since the last admitted connection

 private:
  ListeningSocket socket_;
};

class AsioServer final : public Server {
 public:
  AsioServer(const ServerConfig& config, Handler handler, Hooks hooks, Proxies proxies,
             std::unique_ptr<TlsIdentity> tls, std::vector<ListeningSocket> sockets)
      : transport_{.limits = config.limits,
                   .handler = std::move(handler),
                   .hooks = std::move(hooks),
                   .proxies = std::move(proxies)},
        max_connections_(fit_descriptors(config.limits.max_connections)),
        tls_(std::move(tls)),
        port_(sockets.front().port()) {
    for (int i = 0; i < config.num_threads; ++i) loops_.push_back(std::make_unique<Loop>());
    for (ListeningSocket& socket : sockets) {
      acceptors_.push_back(std::make_unique<Acceptor>(loops_[0]->context, std::move(socket)));
    }
    resume_accepting();
    loops_[0]->repair = [this] { return resume_accepting(); };
    try {
      for (const auto& loop : loops_) {
        loop->thread = std::thread([&loop = *loop] { loop.run(); });
        ::pthread_setname_np(loop->thread.native_handle(), "quire-http");
      }
    } catch (...) {  // destroying a joinable std::thread would terminate the process
      stop();
      throw;
    }
  }

  ~AsioServer() override { stop(); }

  int port() const override { return port_; }

  ServerStats stats() const override {
    const Counters& counters = transport_.counters;
    return {.num_open = counters.num_open,
            .num_accepted = counters.num_accepted,
            .num_refused = counters.num_refused,
            .num_timeouts = counters.num_timeouts,
            .num_slow_readers = counters.num_slow_readers,
            .num_bad_requests = counters.num_bad_requests,
            .received_bytes = counters.received_bytes,
            .sent_bytes = counters.sent_bytes,
            .body_bytes = transport_.bodies->held_bytes(),
            .response_bytes = transport_.responses->held_bytes()};
  }

  bool drain(std::chrono::milliseconds limit) override {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    stop_accepting();
    for (const auto& loop : loops_) {
      asio::post(loop->context, [&loop = *loop] {
        loop.is_draining = true;
        for (const auto& connection : loop.all_connections()) connection->drain();
      });
    }
    std::unique_lock lock(mutex_);
    return has_no_open_.wait_until(lock, deadline,
                                   [this] { return transport_.counters.num_open == 0; });
  }

 private:
  // Ends the threads, some of which may not have started.
  void stop() {
    if (loops_[0]->thread.joinable()) stop_accepting();
    for (const auto& loop : loops_) {
      asio::post(loop->context, [&loop = *loop] {
        for (const auto& connection : loop.all_connections()) connection->close();
        loop.work.reset();
      });
    }
    for (const auto& loop : loops_) {
      if (loop->thread.joinable()) loop->thread.join();
    }
  }

  // Closes the port. Returns when the connections that waited in the system's queues are admitted
  // or refused.
  void stop_accepting() {
    std::promise<void> done;
    asio::io_context& context = loops_[0]->context;
    asio::post(context, [&] {
      for (const auto& acceptor : acceptors_) {
        run_guarded("[http] connections that were not accepted yet are lost", [&] {
          if (acceptor->acceptor.is_open()) admit_waiting(*acceptor);
        });
        acceptor->close();
      }
      // Runs after the callbacks of accepts that have already succeeded.
      const bool is_posted = run_guarded("[http] connections that were just accepted may be lost",
                                         [&] { asio::post(context, [&] { done.set_value(); }); });
      if (!is_posted) done.set_value();
    });
    done.get_future().wait();
  }

  // Admits the connections in the system's queue, because closing the acceptor would reset them.
  void admit_waiting(Acceptor& from) {
    ErrorCode error;
    from.acceptor.non_blocking(true, error);
    for (int i = 0; i < kBacklog; ++i) {
      Loop& loop = least_loaded();
      Socket socket(loop.context);
      from.acceptor.accept(socket, error);
      if (error && error != asio::error::connection_aborted) break;
      if (!error) try_admit(from, loop, std::move(socket));
    }
    if (error && error != asio::error::would_block) log_failure_once(from, error.message());
  }

  Loop& least_loaded() {
    const auto load = [](const auto& loop) { return loop->num_open.load(); };
    return **std::min_element(loops_.begin(), loops_.end(),
                              [&](const auto& a, const auto& b) { return load(a) < load(b); });
  }

  // Starts an accept on each open acceptor that has no pending callback. Returns false if an accept
  // could not be started.
  bool resume_accepting() {
    bool are_accepting = true;
    for (const auto& acceptor : acceptors_) {
      try {
        if (acceptor->acceptor.is_open() && !*acceptor->has_pending_callback) accept(*acceptor);
      } catch (const std::exception& error) {
        log_failure_once(*acceptor, error.what());
        are_accepting = false;
      }
    }
    return are_accepting;
  }

  void accept(Acceptor& from) {
    Loop& loop = least_loaded();
    from.acceptor.async_accept(
        loop.context, [this, &from, &loop, pending = PendingCallback(from.has_pending_callback)](
                          const ErrorCode& error, Socket socket) mutable {
          pending.end();
          on_accept(from, loop, error, std::move(socket));
        });
  }

  // An exception loses only this connection.
  void try_admit(Acceptor& from, Loop& loop, Socket socket) {
    try {
      admit(loop, std::move(socket));
      from.has_failed = false;
    } catch (const std::exception& fault) {
      log_failure_once(from, fault.what());
    }
  }

  // An exception here ends in Loop::run(), which starts accepting again.
  void on_accept(Acceptor& from, Loop& loop, const ErrorCode& error, Socket socket) {
    if (!error) try_admit(from, loop, std::move(socket));
    if (!from.acceptor.is_open()) return;
    const bool is_clients_fault = error == asio::error::connection_aborted;
    if (!error || is_clients_fault) return accept(from);
    log_failure_once(from, error.message());
    retry_later(from);
  }

  // Logs the first failure only, until a connection is admitted again.
  static void log_failure_once(Acceptor& from, std::string_view reason) {
    if (std::exchange(from.has_failed, true)) return;
    log_warning(
        "[http] cannot accept connections: {}; trying again; ulimit -n raises the limit of open "
        "files",
        reason);
  }

  // Pauses while descriptors or memory are exhausted: the waiting client would wake the acceptor
  // again at once.
  void retry_later(Acceptor& from) {
    from.pause.expires_after(kAcceptRetryDelay);
    from.pause.async_wait([this, &from, pending = PendingCallback(from.has_pending_callback)](
                              const ErrorCode&) mutable {
      pending.end();
      if (from.acceptor.is_open()) accept(from);
    });
  }

  // Counts a connection against the limit of its network and against the total limit. Returns null
  // if a limit is reached. The last reference to the permit releases it.
  std::shared_ptr<void> take_permit(Loop& loop, const Socket& socket) {
    std::shared_ptr<void> of_network = transport_.peer_limit.take(limited_network(socket));
    if (of_network == nullptr) return nullptr;
    Counters& counters = transport_.counters;
    {
      const std::lock_guard lock(mutex_);
      if (counters.num_open >= max_connections_) return nullptr;
      ++counters.num_open;
      ++counters.num_accepted;
      ++loop.num_open;
    }
    // If shared_ptr throws, it calls the deleter.
    return {static_cast<void*>(this),
            [this, &loop, of_network = std::move(of_network)](void*) { release_permit(loop); }};
  }

  void release_permit(Loop& loop) {
    const std::lock_guard lock(mutex_);
    --loop.num_open;
    --transport_.counters.num_open;
    has_no_open_.notify_all();
  }

  void admit(Loop& loop, Socket socket) {
    std::shared_ptr<void> permit = take_permit(loop, socket);
    if (permit == nullptr) {
      ++transport_.counters.num_refused;
      return reject(socket);
    }
    std::shared_ptr<asio::ssl::context> tls;
    if (tls_) tls = tls_->context();
    auto connection =
        std::make_shared<Connection>(transport_, make_stream(loop.context, std::move(socket), tls),
                                     [&loop, permit = std::move(permit)](Connection* gone) mutable {
                                       loop.connections.erase(gone);
                                       permit.reset();
                                     });
    asio::post(loop.context, [&loop, connection = std::move(connection)] {
      loop.connections.emplace(connection.get(), connection);
      connection->start();
      if (loop.is_draining) connection->drain();
    });
  }

  // Sends a 503 if the kernel accepts it at once. A TLS client gets no response, because it would
  // need a handshake.
  void reject(Socket& socket) const {
    if (tls_) return;
    Request head;
    head.peer = peer_name(socket);
    const Response full = refusal_response(
        &transport_.hooks, head,
        {.status = 503,
         .code = "too_many_connections",
         .message =
             "The server has reached its limit of connections, in total or for this address."});
    const std::string bytes = closing_response(full);
    ::send(socket.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  // Returns "" if there is no limit, for a Unix socket, and for a trusted proxy, whose requests are
  // counted one by one.
  std::string limited_network(const Socket& socket) const {
    if (transport_.peer_limit.is_off() || transport_.proxies.trusts(peer_name(socket))) return "";
    ErrorCode error;
    const auto endpoint = socket.remote_endpoint(error);
    if (error) return "";
    const std::optional<IpAddress> address = IpAddress::of(*endpoint.data());
    return address ? address->network() : "";
  }

  TransportState transport_;
  const int max_connections_;
  const std::unique_ptr<TlsIdentity> tls_;
  const int port_;
  std::mutex mutex_;
  std::condition_variable has_no_open_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;  // on the first loop
};

Status check_values(const ServerConfig& config) {
  if (config.num_threads < 1 || config.num_threads > 256) {
    return invalid_argument(
        fmt::format("[http] num_threads: got {}, expected 1 to 256", config.num_threads));
  }
  if (config.ssl_certfile.empty() != config.ssl_keyfile.empty()) {
    return invalid_argument("[http] `ssl_certfile` and `ssl_keyfile` go together; got one of them");
  }
  const Limits& limits = config.limits;
  if (limits.max_connections < 1 || limits.max_headers < 1 || limits.max_header_bytes < 256) {
    return invalid_argument(
        "[http] limits: expected at least 1 connection, 1 header field and 256 header bytes");
  }
  return {};
}

// Returns null if the config has no certificate.
Result<std::unique_ptr<TlsIdentity>> load_tls(const ServerConfig& config) {
  QUIRE_RETURN_IF_ERROR(check_values(config));
  if (config.ssl_certfile.empty()) return std::unique_ptr<TlsIdentity>();
  return TlsIdentity::load(config.ssl_certfile, config.ssl_keyfile);
}

}  // namespace

int connections_within(int wanted, int64_t max_fds, int64_t num_open_fds) {
  const int64_t room = max_fds - num_open_fds - kSpareDescriptors;
  return static_cast<int>(std::clamp<int64_t>(room, 1, wanted));
}

Status Server::check(const ServerConfig& config) {
  QUIRE_RETURN_IF_ERROR(Proxies::create(config.trusted_proxies).status());
  return load_tls(config).status();
}

Result<std::unique_ptr<Server>> Server::start(const ServerConfig& config, Handler handler,
                                              Hooks hooks) {
  QUIRE_RETURN_IF_ERROR(check_values(config));
  QUIRE_ASSIGN_OR_RETURN(std::vector<ListeningSocket> sockets, listen_on(config));
  return start(config, std::move(sockets), std::move(handler), std::move(hooks));
}

Result<std::unique_ptr<Server>> Server::start(const ServerConfig& config,
                                              std::vector<ListeningSocket> sockets, Handler handler,
                                              Hooks hooks) {
  QUIRE_ASSIGN_OR_RETURN(std::unique_ptr<TlsIdentity> tls, load_tls(config));
  QUIRE_ASSIGN_OR_RETURN(Proxies proxies, Proxies::create(config.trusted_proxies));
  try {
    return std::unique_ptr<Server>(
        std::make_unique<AsioServer>(config, std::move(handler), std::move(hooks),
                                     std::move(proxies), std::move(tls), std::move(sockets)));
  } catch (const std::exception& error) {
    return unavailable(fmt::format("[http] the server did not start: {}", text_of(error)));
  }
}

}  // namespace quire::http
