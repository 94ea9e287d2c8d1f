// Event batches byte for byte, and the publisher with sockets of libzmq as its subscribers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zmq.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "kv_events/event_batch.h"
#include "kv_events/publisher.h"
#include "support/eventually.h"
#include "support/scratch_directory.h"
#include "support/value_of.h"
#include "support/zmq_socket.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The bytes 32 i, 32 i + 1, …
BlockHash test_hash(int i) {
  BlockHash hash;
  for (size_t j = 0; j < hash.size(); ++j) {
    hash[j] = static_cast<std::byte>(static_cast<size_t>(i) * 32 + j);
  }
  return hash;
}

std::vector<KvEvent> test_events() {
  BlocksStored windowed = {.table = 1, .hashes = {test_hash(5)}, .parent = test_hash(4)};
  for (int32_t id = 0; id < 17; ++id) windowed.token_ids.push_back(id);
  windowed.ahead = {9};
  return {BlocksStored{.table = 0,
                       .hashes = {test_hash(1), test_hash(2)},
                       .token_ids = {0, 127, 128, 255, 256, 65535, 65536, 2147483647},
                       .salt = "s"},
          BlocksRemoved{.table = 1, .hashes = {test_hash(3)}}, std::move(windowed),
          AllBlocksCleared()};
}

KvEventForm test_form() {
  return {.medium = "GPU",
          .block_size = 4,
          .tables = {{"full_attention", 0}, {"sliding_window", 1024}},
          .rank = 3};
}

// Encoded by Python's msgspec with vLLM 0.33's structs. msgspec writes the size of a BlockStored,
// which may have 16 fields, in 16 bits (de000b); here it has its shortest form (8b), as msgpack
// asks for.
TEST(EventBatch, HasTheFormOfVllm) {
  KvEventForm form = test_form();
  EXPECT_EQ(
      hex(encode_batch(1.5, test_events(), form)),
      "93cb3ff8000000000000948ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392cf"
      "38393a3b3c3d3e3fcf58595a5b5c5d5e5fb1706172656e745f626c6f636b5f68617368c0a9746f6b656e5f69"
      "647398007fcc80ccffcd0100cdffffce00010000ce7fffffffaa626c6f636b5f73697a6504a76c6f72615f69"
      "64c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b6579739291a173c0a967726f"
      "75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74696f6e84a474"
      "797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391cf78797a7b7c7d7e7fa66d656469"
      "756da3475055a967726f75705f696478018da474797065ab426c6f636b53746f726564ac626c6f636b5f6861"
      "7368657391cfb8b9babbbcbdbebfb1706172656e745f626c6f636b5f68617368cf98999a9b9c9d9e9fa9746f"
      "6b656e5f696473dc0011000102030405060708090a0b0c0d0e0f10aa626c6f636b5f73697a6504a76c6f7261"
      "5f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797391c0a967726f75"
      "705f69647801b26b765f63616368655f737065635f6b696e64ae736c6964696e675f77696e646f77bc6b765f"
      "63616368655f737065635f736c6964696e675f77696e646f77cd0400b36c6f6f6b61686561645f746f6b656e"
      "5f69647391910981a474797065b0416c6c426c6f636b73436c656172656403");
  form.has_int_hashes = false;
  EXPECT_EQ(
      hex(encode_batch(1.5, test_events(), form)),
      "93cb3ff8000000000000948ba474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657392c4"
      "20202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3fc420404142434445464748"
      "494a4b4c4d4e4f505152535455565758595a5b5c5d5e5fb1706172656e745f626c6f636b5f68617368c0a974"
      "6f6b656e5f69647398007fcc80ccffcd0100cdffffce00010000ce7fffffffaa626c6f636b5f73697a6504a7"
      "6c6f72615f6964c0a66d656469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b6579739291a1"
      "73c0a967726f75705f69647800b26b765f63616368655f737065635f6b696e64ae66756c6c5f617474656e74"
      "696f6e84a474797065ac426c6f636b52656d6f766564ac626c6f636b5f68617368657391c420606162636465"
      "666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7fa66d656469756da3475055a967726f75705f"
      "696478018da474797065ab426c6f636b53746f726564ac626c6f636b5f68617368657391c420a0a1a2a3a4a5"
      "a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebfb1706172656e745f626c6f636b5f68617368"
      "c420808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9fa9746f6b656e5f696473"
      "dc0011000102030405060708090a0b0c0d0e0f10aa626c6f636b5f73697a6504a76c6f72615f6964c0a66d65"
      "6469756da3475055a96c6f72615f6e616d65c0aa65787472615f6b65797391c0a967726f75705f69647801b2"
      "6b765f63616368655f737065635f6b696e64ae736c6964696e675f77696e646f77bc6b765f63616368655f73"
      "7065635f736c6964696e675f77696e646f77cd0400b36c6f6f6b61686561645f746f6b656e5f696473919109"
      "81a474797065b0416c6c426c6f636b73436c656172656403");
}

TEST(Endpoint, OfARankHasAnotherPort) {
  EXPECT_EQ(endpoint_of_rank("tcp://*:5557", 0), "tcp://*:5557");
  EXPECT_EQ(endpoint_of_rank("tcp://*:5557", 3), "tcp://*:5560");
  EXPECT_EQ(endpoint_of_rank("tcp://[::]:5557", 1), "tcp://[::]:5558");
  EXPECT_EQ(endpoint_of_rank("tcp://*:0", 3), "tcp://*:0");
  EXPECT_EQ(endpoint_of_rank("ipc:///run/kv", 1), "ipc:///run/kv_dp1");
  EXPECT_EQ(endpoint_of_rank("", 1), "");
}

std::string port_error(const std::string& endpoint, const std::string& replay, int num_ranks) {
  return check_ports({.endpoint = endpoint, .replay_endpoint = replay}, num_ranks).message();
}

TEST(Endpoint, OfARankTakesNoPortOfAnother) {
  EXPECT_EQ(port_error("tcp://*:5557", "tcp://*:5558", 2),
            "[kv_events] endpoint and replay_endpoint: the ports 5557 and 5558 overlap with 2 "
            "replicas, which take port + rank; expected ports that are at least 2 apart");
  EXPECT_THAT(port_error("tcp://*:5560", "tcp://127.0.0.1:5557", 4), HasSubstr("at least 4 apart"));
  EXPECT_THAT(port_error("tcp://*:5557", "tcp://*:5557", 1), HasSubstr("overlap with one replica"));
  EXPECT_EQ(port_error("tcp://*:5557", "tcp://*:5558", 1), "");
  EXPECT_EQ(port_error("tcp://*:5557", "tcp://*:5559", 2), "");
  // Ports that the system chooses, no replay, other kinds of address, and a port of another
  // machine.
  EXPECT_EQ(port_error("tcp://*:0", "tcp://*:0", 2), "");
  EXPECT_EQ(port_error("tcp://*:5557", "", 2), "");
  EXPECT_EQ(port_error("ipc:///run/kv", "tcp://*:5557", 2), "");
  EXPECT_EQ(port_error("tcp://collector:5557", "tcp://*:5557", 2), "");
}

TEST(Endpoint, OfEveryRankIsAPort) {
  EXPECT_EQ(port_error("tcp://*:65535", "", 1), "");
  EXPECT_EQ(port_error("tcp://*:65535", "", 2),
            "[kv_events] endpoint: got tcp://*:65535 with 2 replicas, which take port + rank, "
            "expected a port of at most 65534");
  EXPECT_THAT(port_error("tcp://*:1", "tcp://*:65534", 3),
              HasSubstr("replay_endpoint: got tcp://*:65534"));
}

TEST(Endpoint, IsBoundIfItIsOnThisMachine) {
  EXPECT_TRUE(binds_to("tcp://*:5557"));
  EXPECT_TRUE(binds_to("tcp://[::]:5557"));
  EXPECT_TRUE(binds_to("ipc:///run/kv"));
  EXPECT_FALSE(binds_to("tcp://indexer:5557"));
}

std::vector<KvEvent> removal(int i) {
  return {BlocksRemoved{.table = 0, .hashes = {test_hash(i)}}};
}

// A publisher on free ports.
class PublisherTest : public ::testing::Test {
 protected:
  void open(KvEventsConfig config = {}) {
    config.enable_kv_cache_events = true;
    config.publisher = "zmq";
    config.endpoint = "tcp://*:0";
    if (has_replay_) config.replay_endpoint = "tcp://*:0";
    config.topic = "kv@pod@model";
    publisher_ = value_of(KvEventPublisher::open(config, 0));
  }
  void start() { publisher_->start(test_form()); }

  ZmqSocket subscriber() { return {ZMQ_SUB, reachable(publisher_->config().endpoint)}; }
  ZmqSocket replay_client() {
    return {ZMQ_DEALER, reachable(publisher_->config().replay_endpoint)};
  }
  // Publishes removals from `first` on until the subscriber gets one, whose number it returns.
  uint64_t connect(ZmqSocket& subscriber, int first) {
    subscriber.set(ZMQ_RCVTIMEO, 20);
    for (int i = first; i < first + 500; ++i) {
      publisher_->publish(removal(i));
      const std::vector<std::string> frames = subscriber.receive();
      if (frames.size() != 3) continue;
      subscriber.set(ZMQ_RCVTIMEO, 5000);
      return static_cast<unsigned char>(frames[1][7]) +
             256 * static_cast<uint64_t>(static_cast<unsigned char>(frames[1][6]));
    }
    ADD_FAILURE() << "the subscriber gets nothing";
    return 0;
  }

  bool has_replay_ = true;
  std::unique_ptr<KvEventPublisher> publisher_;
};

TEST_F(PublisherTest, SendsTopicNumberAndBatch) {
  open();
  start();
  ZmqSocket sub = subscriber();
  const uint64_t first = connect(sub, 0);
  publisher_->publish(test_events());
  std::vector<std::string> frames;
  uint64_t last = first;
  do {
    frames = sub.receive();
    ASSERT_THAT(frames, SizeIs(3));
    EXPECT_EQ(frames[0], "kv@pod@model");
    EXPECT_EQ(frames[1], big_endian(++last)) << "the numbers have a gap";
  } while (frames[2].size() < 200);
  // The rank is the publisher's, and the time is now.
  EXPECT_EQ(hex(frames[2]).substr(0, 4), "93cb");
  EXPECT_EQ(hex(frames[2]).substr(20, 400), hex(encode_batch(0, test_events(),
                                                             [] {
                                                               KvEventForm form = test_form();
                                                               form.rank = 0;
                                                               return form;
                                                             }()))
                                                .substr(20, 400));
}

TEST_F(PublisherTest, RepeatsTheLastBatches) {
  open({.buffer_steps = 4});
  start();
  for (int i = 0; i < 6; ++i) publisher_->publish(removal(i));
  ZmqSocket client = replay_client();
  client.send({"", "x"});  // no number
  client.send({"", big_endian(3)});
  for (const uint64_t expected : {3, 4, 5}) {
    const std::vector<std::string> frames = client.receive();
    ASSERT_THAT(frames, SizeIs(4));
    EXPECT_EQ(frames[0], "");
    EXPECT_EQ(frames[1], "kv@pod@model");
    EXPECT_EQ(frames[2], big_endian(expected));
    EXPECT_THAT(frames[3], HasSubstr("BlockRemoved"));
  }
  EXPECT_THAT(client.receive(), ElementsAre("", "", big_endian(UINT64_MAX), "")) << "the end";
  client.send({"", big_endian(0)});
  EXPECT_THAT(client.receive(), SizeIs(4));  // 2, the oldest that is kept
  for (int i = 0; i < 3; ++i) EXPECT_THAT(client.receive(), SizeIs(4));
  EXPECT_THAT(client.receive(), ElementsAre("", "", big_endian(UINT64_MAX), ""));
}

TEST_F(PublisherTest, DropsBatchesBeyondItsQueue) {
  open({.max_queue_size = 2});
  // The thread that empties the queue does not run yet.
  for (int i = 0; i < 5; ++i) publisher_->publish(removal(i));
  EXPECT_EQ(publisher_->num_dropped(), 3);
  start();
  ZmqSocket client = replay_client();
  const auto replayed = [&](size_t count) {
    std::vector<std::string> numbers;
    for (int attempt = 0; attempt < 5000 && numbers.size() < count; ++attempt) {
      numbers.clear();
      client.send({"", big_endian(0)});
      while (true) {
        const std::vector<std::string> frames = client.receive();
        if (frames.size() != 4 || frames[1].empty()) break;
        numbers.push_back(frames[2]);
      }
    }
    return numbers;
  };
  EXPECT_THAT(replayed(2), ElementsAre(big_endian(0), big_endian(1)));
  publisher_->publish(removal(5));
  EXPECT_THAT(replayed(3), ElementsAre(big_endian(0), big_endian(1), big_endian(5)))
      << "the gap shows";
}

TEST_F(PublisherTest, IsNotHeldUpByASubscriberThatDoesNotRead) {
  has_replay_ = false;
  for (const int hwm : {1, 0}) {
    open({.hwm = hwm});
    start();
    ZmqSocket slow = subscriber();
    connect(slow, 0);
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 50000; ++i) publisher_->publish(test_events());
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
    begin = std::chrono::steady_clock::now();
    publisher_.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  }
}

// Requests arrive faster than they are answered.
TEST_F(PublisherTest, IsNotHeldUpByRequestsForReplaysWithoutEnd) {
  constexpr int kNumKept = 2000;
  open({.buffer_steps = kNumKept});
  start();
  ZmqSocket sub = subscriber();
  connect(sub, 0);
  for (int i = 0; i < kNumKept; ++i) publisher_->publish(removal(i));
  for (int i = 0; i < kNumKept; ++i) ASSERT_THAT(sub.receive(), SizeIs(3));
  std::atomic<int64_t> num_requests = 0;
  std::jthread client(
      [&, endpoint = publisher_->config().replay_endpoint](const std::stop_token& stop) {
        ZmqSocket socket(ZMQ_DEALER, reachable(endpoint));
        socket.set(ZMQ_SNDTIMEO, 0);
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!stop.stop_requested() && std::chrono::steady_clock::now() < end) {
          if (socket.try_send({"", big_endian(0)})) ++num_requests;
        }
      });
  EXPECT_TRUE(eventually([&] { return num_requests >= 1000; }));
  publisher_->publish(removal(7));
  EXPECT_THAT(sub.receive(), SizeIs(3));
  const auto begin = std::chrono::steady_clock::now();
  publisher_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

// A subscriber gets the batches that were published right before the end.
TEST_F(PublisherTest, SendsTheLastBatchesAtTheEnd) {
  constexpr int kNumBatches = 5000;
  open();
  start();
  ZmqSocket sub = subscriber();
  connect(sub, 0);
  for (int i = 0; i < kNumBatches; ++i) publisher_->publish(removal(i));
  publisher_.reset();
  for (int i = 0; i < kNumBatches; ++i) ASSERT_THAT(sub.receive(), SizeIs(3)) << i;
}

TEST_F(PublisherTest, RefusesEndpointsThatCannotBeUsed) {
  open();
  const auto error = [](const std::string& endpoint, const std::string& replay = "") {
    return KvEventPublisher::open({.endpoint = endpoint, .replay_endpoint = replay}, 0)
        .status()
        .message();
  };
  const std::string taken = publisher_->config().endpoint;
  EXPECT_THAT(error(taken), HasSubstr("endpoint: got " + taken));
  EXPECT_THAT(error(taken), HasSubstr("Address already in use"));
  EXPECT_THAT(error("tcp://*:0", taken), HasSubstr("replay_endpoint: got " + taken));
  for (const char* endpoint : {"", "5557", "inproc://a", "udp://*:1", "tcp://*", "tcp://*:99999",
                               "tcp://*:-1", "tcp://no host:1", "ipc:///no/such/folder/a"}) {
    EXPECT_THAT(error(endpoint), HasSubstr("which cannot be used")) << endpoint;
  }
  EXPECT_THAT(KvEventPublisher::open({.endpoint = "tcp://*:65535"}, 1).status().message(),
              HasSubstr("got tcp://*:65536"));
}

// libzmq would remove any file at the path.
TEST_F(PublisherTest, KeepsFilesAndSocketsOfOthers) {
  const ScratchDirectory scratch;
  const std::string file = scratch.write("notes", "kept");
  const std::string path = scratch.path() / "kv";
  const auto open_at = [](const std::string& at) {
    return KvEventPublisher::open({.endpoint = "ipc://" + at}, 0);
  };
  EXPECT_THAT(open_at(file).status().message(), HasSubstr("a file that is not a socket"));
  EXPECT_EQ(read_file(file, 100).value(), "kept");
  auto first = value_of(open_at(path));
  EXPECT_THAT(open_at(path).status().message(), HasSubstr("another process listens there"));
  first.reset();
  EXPECT_TRUE(open_at(path).ok());  // the file of a closed socket may remain
}

TEST_F(PublisherTest, RanksPublishAtPortsOfTheirOwn) {
  open();
  const std::string endpoint = publisher_->config().endpoint;
  const auto second = KvEventPublisher::open({.endpoint = endpoint}, 1);
  if (!second.ok()) GTEST_SKIP() << "the next port is taken";
  EXPECT_EQ((*second)->config().endpoint, endpoint_of_rank(endpoint, 1));
}

}  // namespace
}  // namespace quire::testing
