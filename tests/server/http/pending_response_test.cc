#include "server/http/pending_response.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace quire::http {
namespace {

struct CountingWaker : Waker {
  void wake() noexcept override { ++num_wakes; }
  size_t send_now(std::string_view bytes) override {
    const size_t num_bytes = std::min(bytes.size(), room);
    sent += bytes.substr(0, num_bytes);
    room -= num_bytes;
    return num_bytes;
  }
  int num_wakes = 0;
  size_t room = 0;  // free bytes of the socket's buffer
  std::string sent;
};

struct Fixture {
  explicit Fixture(ResponseTraits traits = {}) {
    if (traits.max_buffered_bytes == 0) traits.max_buffered_bytes = 1000;
    answer = std::make_shared<PendingResponse>(traits, waker);
    exchange = make_exchange(answer);
  }
  // Drops the head, because its date changes.
  std::string take_body() {
    std::string out;
    state = answer->take_unsent(out);
    const size_t end = out.find("\r\n\r\n");
    return out.starts_with("HTTP/") && end != std::string::npos ? out.substr(end + 4) : out;
  }

  std::shared_ptr<CountingWaker> waker = std::make_shared<CountingWaker>();
  std::shared_ptr<PendingResponse> answer;
  std::shared_ptr<Exchange> exchange;
  PendingResponse::State state = PendingResponse::State::kEmpty;
};

TEST(PendingResponse, LargeOnesShareABudgetUntilTheyAreSent) {
  const auto budget = std::make_shared<ByteBudget>(150'000);
  Fixture first({.budget = budget});
  Fixture second({.budget = budget});
  Fixture small({.budget = budget});
  Fixture stream({.max_buffered_bytes = 1 << 20, .budget = budget});
  Fixture third({.budget = budget});
  const std::string large(100'000, 'x');
  first.exchange->respond({.body = large});
  EXPECT_EQ(first.take_body(), large);
  EXPECT_FALSE(second.exchange->respond({.body = large}));
  EXPECT_EQ(second.take_body(), "");
  EXPECT_TRUE(second.exchange->respond({.status = 503, .body = "no room"}));
  EXPECT_EQ(second.take_body(), "no room") << "a small response fits";
  small.exchange->respond({.body = std::string(60'000, 'y')});
  EXPECT_EQ(small.take_body().size(), 60'000U) << "a small response does not count";
  stream.exchange->start_stream(200, "text/plain", {});
  stream.exchange->write(std::string(40'000, 'z'));
  stream.exchange->write(std::string(40'000, 'z'));
  stream.take_body();
  EXPECT_EQ(stream.state, PendingResponse::State::kTooSlow);
  first.answer->finish();
  stream.answer->close();
  EXPECT_TRUE(third.exchange->respond({.body = large}));
  EXPECT_EQ(third.take_body(), large);
}

TEST(PendingResponse, JoinsPiecesAndWakesOnce) {
  Fixture f;
  f.exchange->start_stream(200, "text/event-stream", {});
  f.exchange->write("a");
  EXPECT_EQ(f.waker->num_wakes, 0) << "the connection checks after the handler";
  EXPECT_EQ(f.take_body(), "1\r\na\r\n");
  f.exchange->write("b");
  f.exchange->write("");
  f.exchange->write("cc");
  EXPECT_EQ(f.waker->num_wakes, 0) << "and after each write";
  EXPECT_EQ(f.take_body(), "1\r\nb\r\n2\r\ncc\r\n");
  EXPECT_EQ(f.take_body(), "");
  f.exchange->write("d");
  f.exchange->write("e");
  EXPECT_EQ(f.waker->num_wakes, 1);
  f.exchange->end_stream();
  f.exchange->write("late");
  EXPECT_EQ(f.take_body(), "1\r\nd\r\n1\r\ne\r\n0\r\n\r\n");
  EXPECT_EQ(f.state, PendingResponse::State::kWhole);
}

TEST(PendingResponse, SendsFromTheWritersThreadWhereTheConnectionRests) {
  Fixture f;
  f.waker->room = 9;
  f.exchange->start_stream(200, "text/event-stream", {});
  f.exchange->write("a");
  EXPECT_EQ(f.waker->sent, "") << "the connection is ready without a wake-up";
  EXPECT_EQ(f.take_body(), "1\r\na\r\n");
  f.exchange->write("b");
  EXPECT_EQ(f.waker->sent, "") << "a write is under way";
  EXPECT_EQ(f.take_body(), "1\r\nb\r\n");
  EXPECT_EQ(f.take_body(), "");
  f.exchange->write("c");
  EXPECT_EQ(f.waker->sent, "1\r\nc\r\n");
  EXPECT_EQ(f.waker->num_wakes, 0);
  f.exchange->write("d");
  EXPECT_EQ(f.waker->sent, "1\r\nc\r\n1\r\n") << "the socket is full";
  EXPECT_EQ(f.waker->num_wakes, 1);
  f.waker->room = 100;
  f.exchange->write("e");
  f.exchange->end_stream();
  EXPECT_EQ(f.take_body(), "d\r\n1\r\ne\r\n0\r\n\r\n") << "in order";
  EXPECT_EQ(f.state, PendingResponse::State::kWhole);
}

TEST(PendingResponse, CountsBytesBeingWrittenTowardsTheLimit) {
  Fixture f({.max_buffered_bytes = 300});
  f.exchange->start_stream(200, "text/plain", {});
  f.take_body();
  f.take_body();  // the head is delivered
  f.exchange->write(std::string(200, 'x'));
  EXPECT_NE(f.take_body(), "");
  f.exchange->write(std::string(60, 'x'));
  EXPECT_EQ(f.answer->state(), PendingResponse::State::kStreaming);
  const int num_wakes = f.waker->num_wakes;
  f.exchange->write(std::string(60, 'x'));
  EXPECT_EQ(f.answer->state(), PendingResponse::State::kTooSlow);
  EXPECT_EQ(f.waker->num_wakes, num_wakes + 1) << "although a write is under way";
}

TEST(PendingResponse, TakesOneLargePiece) {
  Fixture f({.max_buffered_bytes = 10});
  f.exchange->start_stream(200, "text/plain", {});
  f.take_body();
  f.take_body();
  f.exchange->write(std::string(1000, 'x'));
  EXPECT_GT(f.take_body().size(), 1000u);
}

TEST(PendingResponse, IsGivenOnce) {
  Fixture f;
  f.exchange->respond({.body = "one"});
  f.exchange->respond({.body = "two"});
  f.exchange->start_stream(200, "text/plain", {});
  EXPECT_EQ(f.take_body(), "one");
  EXPECT_EQ(f.state, PendingResponse::State::kWhole);
}

TEST(PendingResponse, KeepsLineEndsOutOfHeaders) {
  Fixture f;
  f.exchange->respond(
      {.headers = {{"x-request-id", "a\r\nset-cookie: b"}, {"x-ok", "1"}}, .body = {}});
  std::string out;
  f.answer->take_unsent(out);
  EXPECT_EQ(out.find("set-cookie"), std::string::npos);
  EXPECT_NE(out.find("\r\nx-ok: 1\r\n"), std::string::npos);
}

TEST(PendingResponse, TellsOnceThatTheClientLeft) {
  Fixture f;
  int num_calls = 0;
  f.exchange->on_closed([&] { ++num_calls; });
  f.answer->close();
  f.answer->close();
  EXPECT_EQ(num_calls, 1);
  f.exchange->on_closed([&] { ++num_calls; });
  EXPECT_EQ(num_calls, 2) << "at once if it has already happened";
  f.exchange->respond({});
  EXPECT_EQ(f.take_body(), "");
}

TEST(PendingResponse, DoesNotTellAfterDelivery) {
  Fixture f;
  int num_calls = 0;
  f.exchange->on_closed([&] { ++num_calls; });
  f.exchange->respond({});
  f.answer->finish();
  f.answer->close();
  f.exchange->on_closed([&] { ++num_calls; });
  EXPECT_EQ(num_calls, 0);
}

TEST(PendingResponse, IsRefusedByItsRequestsHeadWhenDropped) {
  const Request request{.method = "GET",
                        .path = "/x",
                        .query = "",
                        .headers = {{"authorization", "Bearer key"},
                                    {"x-request-id", "mine"},
                                    {"origin", "https://a.example"}},
                        .body = "much",
                        .peer = ""};
  std::shared_ptr<PendingResponse> answer;
  Request head;
  const Hooks hooks{.write_refusal = [&](const Request& known, const Refusal& refusal) {
    head = known;
    EXPECT_EQ(answer->state(), PendingResponse::State::kEmpty) << "the lock is free";
    return Response{.status = refusal.status, .body = "by the hook"};
  }};
  Fixture f({.hooks = &hooks, .head = head_of(request, "peer")});
  answer = f.answer;
  f.exchange.reset();
  EXPECT_EQ(f.take_body(), "by the hook");
  EXPECT_EQ(head.method + head.path + head.peer, "GET/xpeer");
  EXPECT_EQ(head.header("x-request-id"), "mine");
  EXPECT_EQ(head.header("origin"), "https://a.example");
  EXPECT_EQ(head.headers.size(), 2U) << "and no key";
}

TEST(PendingResponse, IsAnErrorWhenDropped) {
  Fixture f;
  f.exchange.reset();
  EXPECT_NE(f.take_body().find("failed to respond"), std::string::npos);
  Fixture stream;
  stream.exchange->start_stream(200, "text/plain", {});
  stream.exchange->write("x");
  stream.exchange.reset();
  EXPECT_EQ(stream.take_body(), "1\r\nx\r\n") << "without the last chunk";
  EXPECT_EQ(stream.state, PendingResponse::State::kBroken);
}

}  // namespace
}  // namespace quire::http
