// The server's threads cannot allocate memory for a while: connections of that time are lost, and
// the server continues.
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "base/log.h"
#include "server/http/test_server.h"
#include "support/scarce_memory.h"

namespace quire::http {
namespace {

using std::chrono::milliseconds;
using testing::fail_allocations_if;
using testing::ScarceMemory;

bool is_io_thread() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return std::strcmp(name, "quire-http") == 0;
}

TEST(HttpOutOfMemory, TheServerContinues) {
  TestServer server;
  HttpClient open = server.connect();
  ASSERT_EQ(open.get("/echo").status, 200);
  ASSERT_EQ(open.get("/drop").status, 500);
  {
    std::vector<HttpClient> lost;
    fail_allocations_if(is_io_thread);
    open.send(get("/drop", "X-Long: " + std::string(1000, 'a') + "\r\n"));
    for (int i = 0; i < 40; ++i) {
      lost.push_back(server.connect());
      lost.back().send(get("/echo"));
      // Pauses, so that the server runs out of memory in several rounds of its loop.
      if (i % 10 == 0) std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_EQ(open.receive_rest(), "") << "the connection closes before its deadline";
    fail_allocations_if(nullptr);
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(server.connect().get("/echo").status, 200);
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; })) << server.stats().num_open;
}

// Writes a response with memory for `num_left` allocations. Returns whether it was written
// completely.
bool answer_with(const std::shared_ptr<Exchange>& exchange, bool is_stream, int num_left) {
  Response response = {.content_type = "text/plain", .headers = {}, .body = "the whole body"};
  std::string body = response.body;
  std::string type = response.content_type;
  const ScarceMemory scarce(num_left);
  try {
    if (!is_stream) return exchange->respond(std::move(response));
    exchange->start_stream(200, std::move(type), {});
    exchange->write(std::move(body));
    exchange->end_stream();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// If neither a response nor a refusal can be written, the connection is closed.
TEST(HttpOutOfMemory, AClientIsNeverLeftWaiting) {
  TestServer server;
  for (const bool is_stream : {false, true}) {
    bool is_whole = false;
    for (int num_left = 0; !is_whole; ++num_left) {
      ASSERT_LT(num_left, 1000);
      HttpClient client = server.connect();
      client.send(get("/hold", "Connection: close\r\n"));
      std::shared_ptr<Exchange> exchange = server.held();
      is_whole = answer_with(exchange, is_stream, num_left);
      {
        const ScarceMemory scarce(num_left % 8);  // the refusal runs out of memory as well
        exchange.reset();
      }
      const auto received = client.receive_rest();
      ASSERT_TRUE(received) << "after " << num_left << " allocations the client waits";
      if (received->empty()) continue;
      EXPECT_TRUE(received->starts_with("HTTP/1.1 ")) << *received;
      EXPECT_EQ(received->find("HTTP/1.1 ", 1), std::string::npos) << *received;
      EXPECT_NE(received->find("\r\n\r\n"), std::string::npos) << *received;
      EXPECT_EQ(received->find("the whole body") != std::string::npos, is_whole) << *received;
    }
  }
}

}  // namespace
}  // namespace quire::http
