// Two or four ranks on GPUs that write to each other's memory.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cuda/ops/peer_sums.h"
#include "device_data.h"
#include "support/value_of.h"

namespace quire::testing {

struct Rank {
  cuda::CudaStream* stream = nullptr;
  cuda::LaunchContext context;
  cuda::PeerInboxes inboxes;
};

class SeveralGpusTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int num_gpus = 0;
    if (cudaGetDeviceCount(&num_gpus) != cudaSuccess || num_gpus < 2) {
      GTEST_SKIP() << "the test needs two GPUs";
    }
    for (int i = 0; i < (num_gpus < 4 ? 2 : 4); ++i) devices_.push_back(i);
    peers_ = value_of(cuda::PeerSums::connect(devices_));
    peers_->set_limits({.one_step = size_t{cuda::kMaxPeerRows} * cuda::kMaxPeerRowBytes,
                        .two_steps = cuda::kMaxTwoStepBytes});
    for (const int device : devices_) {
      ASSERT_TRUE(cuda::use_device(device).ok());
      streams_.push_back(cuda::CudaStream::create().value());
    }
  }

  int size() const { return static_cast<int>(devices_.size()); }

  // Runs `body` for every rank at the same time.
  void on_every_rank(const std::function<void(int rank, const Rank& at)>& body) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] {
        ASSERT_TRUE(cuda::use_device(devices_[static_cast<size_t>(rank)]).ok());
        cuda::CudaStream* const stream = streams_[static_cast<size_t>(rank)].get();
        body(rank, {stream, {.stream = stream, .overlap_start = true}, peers_->inboxes(rank)});
        EXPECT_EQ(stream->synchronize().message(), "");
      });
    }
  }

  std::vector<int> devices_;
  std::shared_ptr<cuda::PeerSums> peers_;
  std::vector<std::unique_ptr<cuda::CudaStream>> streams_;
};

}  // namespace quire::testing
