#include "cpu/ops/rank_group.h"

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "base/numbers.h"

namespace quire {
namespace {

// The other ranks usually arrive within microseconds. After about 50 µs a rank sleeps. Until then
// it offers its core to the others, which may be waiting for it.
constexpr int kSpins = 100;

// Elements that one thread adds or copies at a time.
constexpr int64_t kElements = 4096;

}  // namespace

RankGroup::RankGroup(int size)
    : views_(static_cast<size_t>(size)), join_(size, [this] {
        num_rounds_.fetch_add(1);
        num_rounds_.notify_all();
      }) {
  QUIRE_CHECK(size > 0, "[cpu] a group of ranks is empty");
}

bool RankGroup::barrier() {
  const uint32_t round = num_rounds_.load();
  // It is read after num_rounds_, which a failure changes last: a rank that has read the changed
  // number also reads the failure, and one that has read the old number does not wait.
  if (join_.has_failed()) return false;
  if (num_arrived_.fetch_add(1) + 1 == size()) {
    num_arrived_.store(0);
    num_rounds_.fetch_add(1);
    num_rounds_.notify_all();
    return true;
  }
  for (int i = 0; i < kSpins && num_rounds_.load() == round; ++i) std::this_thread::yield();
  num_rounds_.wait(round);
  return !join_.has_failed();
}

bool RankGroup::publish(int rank, const TensorView& view) {
  views_[static_cast<size_t>(rank)] = view;
  return barrier();
}

void RankGroup::all_reduce(int rank, const TensorView& x, ThreadPool& pool) {
  QUIRE_CHECK(x.dtype == DType::kF32, "[cpu] all_reduce: x is not f32");
  if (!publish(rank, x)) return;
  // Each rank computes a part of the sum and writes it to all ranks.
  const int64_t count = x.shape.num_elements();
  const int64_t own = ceil_div(count, size());
  const int64_t begin = std::min(own * rank, count);
  const int64_t end = std::min(begin + own, count);
  const auto add = [&](int64_t block) {
    const int64_t first = begin + block * kElements;
    const int64_t last = std::min(first + kElements, end);
    float* const sum = views_.front().as<float>();
    for (size_t other = 1; other < views_.size(); ++other) {
      const float* const terms = views_[other].as<float>();
      for (int64_t i = first; i < last; ++i) sum[i] += terms[i];
    }
    for (size_t other = 1; other < views_.size(); ++other) {
      std::copy(sum + first, sum + last, views_[other].as<float>() + first);
    }
  };
  const int64_t num_blocks = ceil_div(end - begin, kElements);
  if (num_blocks == 1) {
    add(0);
  } else {
    pool.parallel_for(num_blocks, add);
  }
  barrier();
}

void RankGroup::all_gather_columns(int rank, const TensorView& part, const TensorView& whole,
                                   ThreadPool& pool) {
  QUIRE_CHECK(
      part.dtype == DType::kF32 && whole.dtype == DType::kF32 && part.shape[0] == whole.shape[0],
      "[cpu] all_gather_columns: part and whole differ in rows, or are not f32");
  if (!publish(rank, part)) return;
  int64_t num_columns = 0;
  for (const TensorView& view : views_) num_columns += view.shape[1];
  QUIRE_CHECK(num_columns == whole.shape[1],
              "[cpu] all_gather_columns: the parts are not as wide as the whole");
  pool.parallel_for(whole.shape[0], [&](int64_t row) {
    float* out = whole.as<float>() + row * num_columns;
    for (const TensorView& view : views_) {
      out = std::copy_n(view.as<float>() + row * view.shape[1], view.shape[1], out);
    }
  });
  barrier();
}

void RankGroup::broadcast(int rank, std::span<int32_t> values) {
  if (!publish(rank, {values.data(), DType::kI32, {std::ssize(values)}})) return;
  const TensorView& first = views_.front();
  QUIRE_CHECK(first.shape[0] == std::ssize(values), "[cpu] broadcast: the ranks differ in number");
  if (rank != 0) std::copy_n(first.as<int32_t>(), values.size(), values.data());
  barrier();
}

}  // namespace quire
