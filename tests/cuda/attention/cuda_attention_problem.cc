#include "cuda_attention_problem.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>

#include "base/check.h"
#include "base/numbers.h"
#include "base/thread_pool.h"
#include "cpu/attention/reference.h"
#include "cuda/base/memory.h"
#include "late_copy.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

constexpr int kPoisonByte = 0xFF;  // a NaN in F32, F16 and BF16 alike
constexpr size_t kGuardBytes = 4096;

void check(cudaError_t error) {
  QUIRE_CHECK(error == cudaSuccess, cudaGetErrorString(error));
}

Buffer allocate(size_t num_bytes, int fill) {
  Result<Buffer> buffer = cuda::device_memory(std::max(num_bytes, size_t{16}));
  QUIRE_CHECK(buffer.ok(), buffer.status().message());
  check(cudaMemset(buffer->data(), fill, buffer->num_bytes()));
  return std::move(*buffer);
}

// Poisoned memory follows the data.
Buffer upload(const void* data, size_t num_bytes) {
  Buffer buffer = allocate(num_bytes + kGuardBytes, kPoisonByte);
  check(cudaMemcpy(buffer.data(), data, num_bytes, cudaMemcpyHostToDevice));
  return buffer;
}

template <typename T>
Buffer upload(const std::vector<T>& values) {
  return upload(values.data(), values.size() * sizeof(T));
}

std::vector<char> download(const Buffer& buffer, size_t offset, size_t num_bytes) {
  std::vector<char> bytes(num_bytes);
  check(cudaMemcpy(bytes.data(), static_cast<char*>(buffer.data()) + offset, num_bytes,
                   cudaMemcpyDeviceToHost));
  return bytes;
}

uint16_t to_half(float value, DType dtype) {
  return dtype == DType::kBF16 ? f32_to_bf16(value) : f32_to_f16(value);
}

float from_half(uint16_t bits, DType dtype) {
  return dtype == DType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
}

Buffer upload_as(const std::vector<float>& values, DType dtype) {
  if (dtype == DType::kF32) return upload(values);
  std::vector<uint16_t> halves;
  for (const float value : values) halves.push_back(to_half(value, dtype));
  return upload(halves);
}

std::vector<float> download_floats(const Buffer& buffer, DType dtype, size_t count) {
  const std::vector<char> bytes = download(buffer, 0, count * dtype_bytes(dtype));
  std::vector<float> values(count);
  if (dtype == DType::kF32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, &bytes[2 * i], 2);
    values[i] = from_half(bits, dtype);
  }
  return values;
}

// Upper bounds of lengths, as the engine has them: a request whose end is still in flight is
// shorter than its bound.
std::vector<int32_t> upper_bounds(std::vector<int32_t> seq_lens, int longest) {
  for (size_t i = 0; i < seq_lens.size(); ++i) {
    if (seq_lens[i] > 0) seq_lens[i] = std::min(longest, seq_lens[i] + static_cast<int>(i % 3));
  }
  return seq_lens;
}

// The oracle takes most of a test's time.
ThreadPool& oracle_threads() {
  static ThreadPool threads(static_cast<int>(std::thread::hardware_concurrency()));
  return threads;
}

bool all_bytes_are(const std::vector<char>& bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [value](char byte) { return static_cast<unsigned char>(byte) == value; });
}

}  // namespace

CudaAttentionProblem::CudaAttentionProblem(const AttentionCase& spec, DType q)
    : host_(spec), shape_(spec.shape), batch_(host_.batch()), rounded_queries_(host_.queries()) {
  shape_.q = shape_.out = q;
  if (q != DType::kF32) {
    for (float& value : rounded_queries_) value = from_half(to_half(value, q), q);
  }
  for (const AttentionRequest& req : spec.reqs) seq_lens_.push_back(req.kv_len);
  Result<std::unique_ptr<cuda::CudaStream>> stream = cuda::CudaStream::create();
  QUIRE_CHECK(stream.ok(), stream.status().message());
  stream_ = std::move(*stream);
  upload_cache();
  const AttentionBatch& batch = host_.batch();
  const size_t num_reqs = spec.reqs.size();
  queries_ = upload_as(rounded_queries_, q);
  sinks_ = upload(host_.sinks());
  query_start_ = upload(batch.query_start.host, (num_reqs + 1) * sizeof(int32_t));
  lengths_ = upload(seq_lens_);
  settled_lens_ = upload(seq_lens_);
  block_table_ =
      upload(batch.block_table, num_reqs * static_cast<size_t>(batch.max_pages) * sizeof(int32_t));
  kv_slots_ = upload(batch.kv_slots, static_cast<size_t>(host_.num_tokens()) * sizeof(int64_t));
  out_ = allocate(call().out.num_bytes() + kGuardBytes, kPoisonByte);
  batch_.query_start.device = static_cast<const int32_t*>(query_start_.data());
  batch_.seq_lens = static_cast<const int32_t*>(lengths_.data());
  batch_.settled_lens = static_cast<const int32_t*>(settled_lens_.data());
  batch_.block_table = static_cast<const int32_t*>(block_table_.data());
  batch_.kv_slots = static_cast<const int64_t*>(kv_slots_.data());
}

// Uploads only pages that a request uses, because a pool may be far larger.
void CudaAttentionProblem::upload_cache() {
  const KvCacheView& view = host_.cache();
  const auto page_bytes = static_cast<size_t>(view.page_stride_k) * dtype_bytes(view.dtype);
  cache_ = allocate(host_.cache_memory().num_bytes(), kPoisonByte);
  const auto copy_page = [&](int32_t page) {
    const size_t offset = static_cast<size_t>(page) * page_bytes;
    check(cudaMemcpy(static_cast<char*>(cache_.data()) + offset,
                     static_cast<const char*>(host_.cache_memory().data()) + offset, page_bytes,
                     cudaMemcpyHostToDevice));
  };
  copy_page(0);
  const AttentionBatch& batch = host_.batch();
  for (size_t req = 0; req < seq_lens_.size(); ++req) {
    const int num_pages = ceil_div(seq_lens_[req], shape_.page_size);
    const int32_t* row = batch.block_table + static_cast<int64_t>(req) * batch.max_pages;
    for (int i = 0; i < num_pages; ++i) copy_page(row[i]);
  }
  const float scales[2] = {*view.k_scale, *view.v_scale};
  scales_ = upload(scales, sizeof(scales));
  cache_view_ = view;
  cache_view_.k = cache_.data();
  cache_view_.v = static_cast<char*>(cache_.data()) +
                  (static_cast<const char*>(view.v) - static_cast<const char*>(view.k));
  cache_view_.k_scale = static_cast<const float*>(scales_.data());
  cache_view_.v_scale = cache_view_.k_scale + 1;
}

AttentionResult CudaAttentionProblem::expected(const std::vector<int32_t>& seq_lens,
                                               AttentionShape shape) const {
  shape.q = shape.out = DType::kF32;
  AttentionBatch batch = host_.batch();
  batch.seq_lens = seq_lens.data();
  const auto rows = static_cast<size_t>(host_.num_tokens()) * static_cast<size_t>(shape.num_heads);
  AttentionResult result{.out = std::vector<float>(rows * static_cast<size_t>(shape.head_dim_v))};
  const AttentionCall call{.q = {const_cast<float*>(rounded_queries_.data()), DType::kF32,
                                 Shape{host_.num_tokens(), shape.num_heads, shape.head_dim}},
                           .out = {result.out.data(), DType::kF32,
                                   Shape{host_.num_tokens(), shape.num_heads, shape.head_dim_v}},
                           .kv = host_.cache(),
                           .sinks = shape.sinks ? host_.sinks().data() : nullptr,
                           .workspace = {}};
  const auto reference = make_reference_attention(&oracle_threads());
  Stream stream;
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    const auto plan = reference->make_plan(shape, host_.limits(phase));
    QUIRE_CHECK(plan.ok(), plan.status().message());
    Status status = (*plan)->update(batch, stream);
    if (status.ok()) status = (*plan)->run(call, stream);
    QUIRE_CHECK(status.ok(), status.message());
  }
  return result;
}

Support CudaAttentionProblem::supports(AttentionBackend& backend, const Device& device, Phase phase,
                                       bool in_graph) const {
  return backend.supports(shape_, limits(phase, in_graph).use, device);
}

// Equal to the engine's limits: contexts fill a row of the block table.
PlanLimits CudaAttentionProblem::limits(Phase phase, bool in_graph) const {
  PlanLimits limits = host_.limits(phase);
  limits.use.in_graph = in_graph;
  if (in_graph) limits.use.q_len = std::max(1, batch_.decode.max_q_len);
  limits.max_kv_len = static_cast<int>(batch_.max_pages) * shape_.page_size;
  return limits;
}

void CudaAttentionProblem::poison() {
  for (const Buffer* buffer : {&out_, &workspace_}) {
    check(cudaMemset(buffer->data(), kPoisonByte, buffer->num_bytes()));
  }
  check(cudaDeviceSynchronize());  // a fill may still run when its call returns
}

void CudaAttentionProblem::make_plans(AttentionBackend& backend, const Device& device,
                                      bool in_graph) {
  batch_.decode = host_.batch().decode;
  batch_.kv_len_bound = host_.batch().kv_len_bound;
  if (in_graph) {
    QUIRE_CHECK(batch_.prefill.num_reqs == 0, "graphs are captured of decode batches only");
    batch_.decode.max_kv_len = *std::max_element(seq_lens_.begin(), seq_lens_.end());
  }
  plans_.clear();
  workspace_bytes_ = 0;
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    if (batch_.range(phase).num_reqs == 0) continue;
    if (!supports(backend, device, phase, in_graph).ok()) continue;
    auto plan = backend.make_plan(shape_, limits(phase, in_graph));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    if (!plan.ok()) continue;
    workspace_bytes_ = std::max(workspace_bytes_, (*plan)->workspace_bytes());
    plans_.push_back(std::move(*plan));
  }
  workspace_ = allocate(workspace_bytes_ + kGuardBytes, kPoisonByte);
  poison();
}

AttentionCall CudaAttentionProblem::call() {
  return {.q = {queries_.data(), shape_.q,
                Shape{host_.num_tokens(), shape_.num_heads, shape_.head_dim}},
          .out = {out_.data(), shape_.out,
                  Shape{host_.num_tokens(), shape_.num_heads, shape_.head_dim_v}},
          .kv = cache_view_,
          .sinks = shape_.sinks ? static_cast<const float*>(sinks_.data()) : nullptr,
          .workspace = {static_cast<std::byte*>(workspace_.data()), workspace_bytes_}};
}

void CudaAttentionProblem::update() {
  for (const auto& plan : plans_) {
    const Status updated = plan->update(batch_, *stream_);
    EXPECT_TRUE(updated.ok()) << updated.message();
  }
}

void CudaAttentionProblem::run_plans() {
  if (complete_cache_.num_bytes() > 0) {
    launch_late_copy(*stream_, cache_.data(), complete_cache_.data(), cache_.num_bytes());
  }
  for (const auto& plan : plans_) {
    const Status status = plan->run(call(), *stream_);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

void CudaAttentionProblem::capture() {
  check(cudaStreamSynchronize(stream_->get()));
  check(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeRelaxed));
  run_plans();
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream_->get(), &graph));
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph, 0));
  graph_.reset(executable);
  check(cudaGraphDestroy(graph));
}

void CudaAttentionProblem::launch_graph() {
  stream_->record_error(cudaGraphLaunch(graph_.get(), stream_->get()), "a graph's launch");
}

AttentionResult CudaAttentionProblem::read_back() {
  const Status status = stream_->synchronize();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(all_bytes_are(download(workspace_, workspace_bytes_, kGuardBytes), kPoisonByte))
      << "the backend wrote behind its workspace";
  EXPECT_TRUE(all_bytes_are(download(out_, call().out.num_bytes(), kGuardBytes), kPoisonByte))
      << "the backend wrote behind its output";
  const auto rows = static_cast<size_t>(host_.num_tokens()) * static_cast<size_t>(shape_.num_heads);
  return {.out = download_floats(out_, shape_.out, rows * static_cast<size_t>(shape_.head_dim_v))};
}

void CudaAttentionProblem::set_lengths(const std::vector<int32_t>& seq_lens) {
  std::vector<int32_t> settled_lens = seq_lens;
  for (size_t req = 0; req < seq_lens.size() && !claims_settled_; ++req) {
    settled_lens[req] = std::max(0, seq_lens[req] - host_.spec().reqs[req].q_len);
  }
  const size_t num_bytes = seq_lens.size() * sizeof(int32_t);
  check(cudaMemcpy(lengths_.data(), seq_lens.data(), num_bytes, cudaMemcpyHostToDevice));
  check(cudaMemcpy(settled_lens_.data(), settled_lens.data(), num_bytes, cudaMemcpyHostToDevice));
  if (complete_cache_.num_bytes() > 0) hide_new_tokens(seq_lens);
  check(cudaDeviceSynchronize());
}

void CudaAttentionProblem::write_new_tokens_late(bool claims_settled) {
  claims_settled_ = claims_settled;
  complete_cache_ = allocate(cache_.num_bytes(), kPoisonByte);
  check(cudaMemcpy(complete_cache_.data(), cache_.data(), cache_.num_bytes(),
                   cudaMemcpyDeviceToDevice));
}

// Overwrites the keys and values of the last q_len positions of each request.
void CudaAttentionProblem::hide_new_tokens(const std::vector<int32_t>& seq_lens) {
  const KvCacheView& kv = cache_view_;
  const AttentionBatch& batch = host_.batch();
  const auto size = static_cast<int64_t>(dtype_bytes(kv.dtype));
  const auto hide = [&](const void* base, int64_t at, int dim) {
    check(cudaMemset(const_cast<char*>(static_cast<const char*>(base)) + at * size, kPoisonByte,
                     static_cast<size_t>(dim * size)));
  };
  for (size_t req = 0; req < seq_lens.size(); ++req) {
    const int32_t* pages = batch.block_table + static_cast<int64_t>(req) * batch.max_pages;
    const int first = std::max(0, seq_lens[req] - host_.spec().reqs[req].q_len);
    for (int position = first; position < seq_lens[req]; ++position) {
      const int64_t page = pages[position / shape_.page_size];
      const int slot = position % shape_.page_size;
      for (int head = 0; head < shape_.num_kv_heads; ++head) {
        hide(kv.k, page * kv.page_stride_k + head * kv.head_stride_k + slot * kv.token_stride_k,
             shape_.head_dim);
        hide(kv.v, page * kv.page_stride_v + head * kv.head_stride_v + slot * kv.token_stride_v,
             shape_.head_dim_v);
      }
    }
  }
}

AttentionResult CudaAttentionProblem::run(AttentionBackend& backend, const Device& device) {
  make_plans(backend, device, false);
  set_lengths(seq_lens_);
  update();
  run_plans();
  return read_back();
}

std::vector<AttentionResult> CudaAttentionProblem::replay(
    AttentionBackend& backend, const Device& device,
    const std::vector<std::vector<int32_t>>& lengths) {
  make_plans(backend, device, true);
  std::vector<int32_t> bounds;
  const auto update_for = [&](std::vector<int32_t> kv_len_bound) {
    bounds = std::move(kv_len_bound);
    batch_.kv_len_bound = bounds;
    update();
  };
  // Captures as the engine does, before any request is known.
  update_for(std::vector<int32_t>(seq_lens_.size(), 0));
  capture();
  std::vector<AttentionResult> results;
  for (const std::vector<int32_t>& seq_lens : lengths) {
    poison();
    set_lengths(seq_lens);
    update_for(upper_bounds(seq_lens, batch_.decode.max_kv_len));
    launch_graph();
    results.push_back(read_back());
  }
  batch_.kv_len_bound = host_.batch().kv_len_bound;
  return results;
}

}  // namespace quire::testing
