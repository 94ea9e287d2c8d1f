#include "cpu/ops/rank_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/byte_archive.h"
#include "base/check.h"
#include "base/numbers.h"

namespace quire {
namespace {

// The number of times that a rank yields its core before it sleeps, about 50 µs in total. The other
// ranks usually arrive within microseconds. A rank yields, because another rank's thread may need
// its core.
constexpr int kSpins = 100;

// Elements that one thread adds or copies at a time.
constexpr int64_t kElements = 4096;

// The width of a tensor of rows.
int64_t num_columns(const Shape& shape) {
  return shape.num_elements() / std::max<int64_t>(shape[0], 1);
}

}  // namespace

template <typename Archive, typename Value>
requires std::is_same_v<std::remove_const_t<Value>, NodeTensor>
void fields(Archive& archive, Value& tensor) {
  archive(tensor.num_rows, tensor.num_columns, tensor.bytes);
}

RankGroup::RankGroup(int num_local, std::shared_ptr<Nodes> nodes)
    : num_local_(num_local),
      nodes_(std::move(nodes)),
      views_(static_cast<size_t>(nodes_ == nullptr ? num_local : num_local * nodes_->size())),
      join_(
          num_local,
          [this](const Status& error) {
            num_rounds_.fetch_add(1);
            num_rounds_.notify_all();
            if (nodes_ != nullptr) nodes_->fail(error);
          },
          [this](std::string bytes) -> Result<std::string> {
            if (nodes_ == nullptr) return bytes;
            return nodes_->broadcast("join", bytes);
          }) {
  QUIRE_CHECK(num_local > 0, "[cpu] a group of ranks needs at least one rank");
  if (nodes_ == nullptr) return;
  nodes_->set_failure_handler([this](const Status& error) { (void)join(error); });
}

RankGroup::~RankGroup() {
  if (nodes_ != nullptr) nodes_->set_failure_handler(nullptr);
}

bool RankGroup::barrier() {
  const uint32_t round = num_rounds_.load();
  // join_ is read after num_rounds_, because a failure changes num_rounds_ last. So a rank that has
  // read the changed number also reads the failure, and a rank that has read the old number does
  // not wait.
  if (join_.has_failed()) return false;
  if (num_arrived_.fetch_add(1) + 1 == num_local_) {
    num_arrived_.store(0);
    num_rounds_.fetch_add(1);
    num_rounds_.notify_all();
    return true;
  }
  for (int i = 0; i < kSpins && num_rounds_.load() == round; ++i) std::this_thread::yield();
  num_rounds_.wait(round);
  return !join_.has_failed();
}

bool RankGroup::publish(int rank, const TensorView& view, Widths widths) {
  views_[static_cast<size_t>(rank)] = view;
  if (!barrier()) return false;
  if (rank == first_rank()) num_collectives_.fetch_add(1);
  if (nodes_ == nullptr) return true;
  if (rank == first_rank()) {
    const Status exchanged = exchange_views(widths);
    if (!exchanged.ok()) (void)join(exchanged);
  }
  return barrier();
}

Status RankGroup::exchange_views(Widths widths) {
  ByteWriter writer;
  for (const TensorView& view : local_views()) {
    const auto* bytes = view.as<const uint8_t>();
    writer(NodeTensor{.num_rows = view.shape[0],
                      .num_columns = num_columns(view.shape),
                      .bytes = {bytes, bytes + view.num_bytes()}});
  }
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> nodes,
                         nodes_->all_gather("tensors", writer.take()));
  const TensorView own = local_views().front();
  received_.resize(views_.size());
  for (size_t rank = 0; rank < views_.size(); ++rank) {
    const auto node = rank / static_cast<size_t>(num_local_);
    if (node == static_cast<size_t>(nodes_->node())) continue;
    NodeTensor& tensor = received_[rank];
    if (rank % static_cast<size_t>(num_local_) == 0) {
      ByteReader reader(nodes[node]);
      for (int i = 0; i < num_local_; ++i) reader(received_[rank + static_cast<size_t>(i)]);
      if (!reader.is_complete()) tensor = {};
    }
    const int64_t own_columns = num_columns(own.shape);
    const auto row_bytes = static_cast<uint64_t>(tensor.num_columns) * dtype_bytes(own.dtype);
    if (tensor.num_rows != own.shape[0] || tensor.num_columns < 0 ||
        (widths == Widths::kSame && tensor.num_columns != own_columns) ||
        tensor.num_columns > int64_t{1} << 32 ||
        tensor.bytes.size() != static_cast<uint64_t>(tensor.num_rows) * row_bytes) {
      return internal_error(fmt::format(
          "[cpu] rank {} has sent a tensor of {} rows and {} columns in {} bytes, expected {} rows "
          "and {} columns",
          rank, tensor.num_rows, tensor.num_columns, tensor.bytes.size(), own.shape[0],
          own_columns));
    }
    views_[rank] = {
        .data = tensor.bytes.data(),
        .dtype = own.dtype,
        .shape = own.shape.rank() == 1 ? own.shape : Shape{tensor.num_rows, tensor.num_columns}};
  }
  return {};
}

void RankGroup::all_reduce(int rank, const TensorView& x, ThreadPool& pool) {
  QUIRE_CHECK(x.dtype == DType::kF32, "[cpu] all_reduce: x is not f32");
  if (!publish(rank, x, Widths::kSame)) return;
  // Each rank computes a part of the sum and writes it to all ranks of its node.
  const int64_t count = x.shape.num_elements();
  const int64_t own = ceil_div(count, num_local_);
  const int64_t begin = std::min(own * (rank - first_rank()), count);
  const int64_t end = std::min(begin + own, count);
  const auto add = [&](int64_t block) {
    const int64_t first = begin + block * kElements;
    const int64_t last = std::min(first + kElements, end);
    float* const sum = views_.front().as<float>();
    for (size_t other = 1; other < views_.size(); ++other) {
      const float* const terms = views_[other].as<float>();
      for (int64_t i = first; i < last; ++i) sum[i] += terms[i];
    }
    for (const TensorView& local : local_views()) {
      if (local.data == sum) continue;
      std::copy(sum + first, sum + last, local.as<float>() + first);
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
  if (!publish(rank, part, Widths::kAny)) return;
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

void RankGroup::all_gather(int rank, std::span<std::byte> part, std::span<std::byte> whole) {
  QUIRE_CHECK(whole.size() == part.size() * views_.size(),
              "[cpu] all_gather: the parts are not as large as the whole");
  if (!publish(rank, {part.data(), DType::kI8, {std::ssize(part)}}, Widths::kSame)) return;
  std::byte* out = whole.data();
  for (const TensorView& view : views_) {
    QUIRE_CHECK(view.num_bytes() == part.size(), "[cpu] all_gather: the ranks differ in size");
    out = std::copy_n(view.as<std::byte>(), part.size(), out);
  }
  barrier();
}

void RankGroup::broadcast(int rank, std::span<int32_t> values) {
  if (!publish(rank, {values.data(), DType::kI32, {std::ssize(values)}}, Widths::kSame)) return;
  const TensorView& first = views_.front();
  QUIRE_CHECK(first.shape[0] == std::ssize(values), "[cpu] broadcast: the ranks differ in number");
  if (rank != 0) std::copy_n(first.as<int32_t>(), values.size(), values.data());
  barrier();
}

}  // namespace quire
