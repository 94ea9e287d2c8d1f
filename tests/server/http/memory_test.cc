// A server whose threads get no memory for a while: what came then is lost, the server is not.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "base/log.h"
#include "server/http/test_server.h"

namespace {

std::atomic<bool> is_out_of_memory = false;

bool is_io_thread() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return std::strcmp(name, "quire-http") == 0;
}

}  // namespace

void* operator new(size_t size) {
  if (is_out_of_memory && is_io_thread()) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace quire::http {
namespace {

using std::chrono::milliseconds;

TEST(HttpOutOfMemory, TheServerGoesOn) {
  TestServer server;
  HttpClient open = server.connect();
  ASSERT_EQ(open.get("/echo").status, 200);
  ASSERT_EQ(open.get("/drop").status, 500);
  {
    std::vector<HttpClient> lost;
    is_out_of_memory = true;
    open.send(get("/drop", "X-Long: " + std::string(1000, 'a') + "\r\n"));
    for (int i = 0; i < 40; ++i) {
      lost.push_back(server.connect());
      lost.back().send(get("/echo"));
      if (i % 10 == 0) std::this_thread::sleep_for(milliseconds(20));
    }
    EXPECT_EQ(open.receive_rest(), "") << "closed, rather than left until its deadline";
    is_out_of_memory = false;
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(server.connect().get("/echo").status, 200);
  EXPECT_TRUE(eventually([&] { return server.stats().num_open == 0; })) << server.stats().num_open;
}

}  // namespace
}  // namespace quire::http
