#include "cuda/tune/device_batch.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/numbers.h"
#include "cuda/base/stream.h"
#include "platform/runner.h"

namespace quire::cuda {
namespace {

template <typename T>
Result<Buffer> upload(const std::vector<T>& values) {
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(values.size() * sizeof(T)));
  QUIRE_CUDA_RETURN_IF_ERROR(
      cudaMemcpy(buffer.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return buffer;
}

// Random numbers around 1 in any of the formats: the exponent bits are fixed near the middle.
Result<Buffer> random_memory(size_t num_bytes, DType dtype) {
  std::mt19937 random(1);
  std::vector<uint16_t> chunk(std::min(size_t{16} << 20, (num_bytes + 1) / 2));
  for (uint16_t& x : chunk) {
    const auto bits = static_cast<uint16_t>(random());
    x = dtype == DType::kF8E4M3 ? bits & 0xBFBF : static_cast<uint16_t>((bits & 0x80FF) | 0x3F00);
  }
  QUIRE_ASSIGN_OR_RETURN(Buffer buffer, device_memory(num_bytes));
  auto* bytes = static_cast<std::byte*>(buffer.data());
  size_t done = std::min(chunk.size() * sizeof(uint16_t), num_bytes);
  QUIRE_CUDA_RETURN_IF_ERROR(cudaMemcpy(bytes, chunk.data(), done, cudaMemcpyHostToDevice));
  for (; done < num_bytes; done = std::min(2 * done, num_bytes)) {
    QUIRE_CUDA_RETURN_IF_ERROR(cudaMemcpy(bytes + done, bytes, std::min(done, num_bytes - done),
                                          cudaMemcpyDeviceToDevice));
  }
  return buffer;
}

// `count` distinct pages, contiguous in memory, in random order.
std::vector<int32_t> distinct_pages(int64_t count, std::mt19937_64& random) {
  std::vector<int32_t> pages(static_cast<size_t>(count));
  std::iota(pages.begin(), pages.end(), 1);
  std::shuffle(pages.begin(), pages.end(), random);
  return pages;
}

std::vector<int32_t> drawn_pages(int64_t count, int64_t num_pages, std::mt19937_64& random) {
  std::vector<int32_t> pages(static_cast<size_t>(count));
  for (int32_t& page : pages) {
    page = 1 + static_cast<int32_t>(random() % static_cast<uint64_t>(num_pages));
  }
  return pages;
}

}  // namespace

int64_t page_bytes(const AttentionShape& shape) {
  return kv_layout(shape).page_bytes();
}

int64_t wanted_pages(const AttentionWorkload& workload, const AttentionShape& shape) {
  return workload.pool_pages > 0 ? workload.pool_pages
                                 : quire::num_pages(workload, shape.page_size);
}

Result<Buffer> random_pages(const AttentionShape& shape, int64_t num_pages) {
  return random_memory(static_cast<size_t>((num_pages + 1) * page_bytes(shape)), shape.kv);
}

Status DeviceBatch::fill(const Buffer& pages, int64_t num_pages) {
  for (int req = 0; req <= workload_.num_reqs(); ++req) {
    query_start_.push_back(req * workload_.q_len);
  }
  QUIRE_ASSIGN_OR_RETURN(device_block_table_, upload(block_table(num_pages)));
  QUIRE_ASSIGN_OR_RETURN(device_seq_lens_, upload(workload_.kv_lens));
  QUIRE_ASSIGN_OR_RETURN(device_query_start_, upload(query_start_));
  const size_t num_rows = static_cast<size_t>(num_tokens()) * static_cast<size_t>(shape_.num_heads);
  QUIRE_ASSIGN_OR_RETURN(
      q_, random_memory(num_rows * static_cast<size_t>(shape_.head_dim) * dtype_bytes(shape_.q),
                        shape_.q));
  QUIRE_ASSIGN_OR_RETURN(out_, device_memory(num_rows * static_cast<size_t>(shape_.head_dim_v) *
                                             dtype_bytes(shape_.out)));
  kv_ = kv_cache_view(kv_layout(shape_), pages.data());
  describe();
  return {};
}

// [num_reqs, max_pages]; entries after a request's pages are page 0.
std::vector<int32_t> DeviceBatch::block_table(int64_t num_pages) const {
  std::mt19937_64 random(2);
  const int64_t count = quire::num_pages(workload_, shape_.page_size);
  const bool are_distinct = workload_.pool_pages == 0 && count <= num_pages;
  const std::vector<int32_t> pages =
      are_distinct
          ? distinct_pages(count, random)
          : drawn_pages(count, std::min(wanted_pages(workload_, shape_), num_pages), random);
  const auto row_size = static_cast<size_t>(max_pages());
  std::vector<int32_t> table(workload_.kv_lens.size() * row_size, 0);
  auto next = pages.begin();
  for (size_t req = 0; req < workload_.kv_lens.size(); ++req) {
    const int used = ceil_div(workload_.kv_lens[req], shape_.page_size);
    std::copy_n(next, used, table.begin() + static_cast<std::ptrdiff_t>(req * row_size));
    next += used;
  }
  return table;
}

void DeviceBatch::describe() {
  const bool decodes = workload_.phase == Phase::kDecode;
  const PhaseRange all{.num_reqs = workload_.num_reqs(),
                       .num_tokens = num_tokens(),
                       .max_q_len = workload_.q_len,
                       .max_kv_len = workload_.longest()};
  PhaseRange none_behind;
  none_behind.first_req = workload_.num_reqs();
  none_behind.first_token = num_tokens();
  batch_ = {
      .decode = decodes ? all : PhaseRange(),
      .prefill = decodes ? none_behind : all,
      .query_start = {query_start_.data(), static_cast<const int32_t*>(device_query_start_.data())},
      .seq_lens = static_cast<const int32_t*>(device_seq_lens_.data()),
      .kv_len_bound = workload_.kv_lens,
      .block_table = static_cast<const int32_t*>(device_block_table_.data()),
      .max_pages = max_pages()};
}

PlanLimits DeviceBatch::limits() const {
  return {.use = use_of(workload_),
          .max_num_reqs = workload_.num_reqs(),
          .max_num_tokens = num_tokens(),
          .max_kv_len = workload_.longest()};
}

AttentionCall DeviceBatch::call(std::span<std::byte> workspace) const {
  return {.q = {q_.data(), shape_.q, {num_tokens(), shape_.num_heads, shape_.head_dim}},
          .out = {out_.data(), shape_.out, {num_tokens(), shape_.num_heads, shape_.head_dim_v}},
          .kv = kv_,
          .sinks = nullptr,
          .workspace = workspace};
}

}  // namespace quire::cuda
