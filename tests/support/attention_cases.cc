#include "support/attention_cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>

#include "base/check.h"
#include "base/numbers.h"
#include "support/reorder_batch.h"
#include "support/validate_batch.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

constexpr int32_t kDeadPage = 0x7FFFFFF0;
// A NaN in F32, F16, BF16 and E4M3 alike, and in the scales of a cache in 8-bit integers.
constexpr int kPoisonByte = 0xFF;
constexpr size_t kPoisonAllBytes = size_t{64} << 20;

enum class Stream : uint64_t { kQuery = 1, kKey, kValue, kSink };

// A pseudo-random number in [-1, 1) that depends only on the arguments.
float noise(Stream stream, uint64_t content, int position, int head, int d) {
  uint64_t x = static_cast<uint64_t>(stream) * 0x9E3779B97F4A7C15ULL + content;
  for (const int part : {position, head, d}) {
    x = (x ^ static_cast<uint64_t>(part)) * 0xBF58476D1CE4E5B9ULL;
    x ^= x >> 29;
  }
  x *= 0x94D049BB133111EBULL;
  return static_cast<float>(x >> 40) / static_cast<float>(1 << 23) - 1.0F;
}

void store(void* data, DType dtype, int64_t idx, float value) {
  switch (dtype) {
    case DType::kF32:
      static_cast<float*>(data)[idx] = value;
      return;
    case DType::kF16:
      static_cast<uint16_t*>(data)[idx] = f32_to_f16(value);
      return;
    case DType::kBF16:
      static_cast<uint16_t*>(data)[idx] = f32_to_bf16(value);
      return;
    default:
      static_cast<uint8_t*>(data)[idx] = f32_to_e4m3(value);
  }
}

float load(const void* data, DType dtype, int64_t idx) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<const float*>(data)[idx];
    case DType::kF16:
      return f16_to_f32(static_cast<const uint16_t*>(data)[idx]);
    case DType::kBF16:
      return bf16_to_f32(static_cast<const uint16_t*>(data)[idx]);
    case DType::kI8:
      return static_cast<const int8_t*>(data)[idx];
    default:
      return e4m3_to_f32(static_cast<const uint8_t*>(data)[idx]);
  }
}

// Stores some elements of a vector with one scale, in 8-bit integers.
void store_i8(void* data, int64_t idx, std::span<const float> x, float* scale) {
  float largest = 0.0F;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  *scale = i8_scale(largest);
  auto* const out = static_cast<int8_t*>(data) + idx;
  for (size_t d = 0; d < x.size(); ++d) out[d] = f32_to_i8(x[d], *scale);
}

class NullStream final : public quire::Stream {};

}  // namespace

AttentionProblem::AttentionProblem(const AttentionCase& spec) : spec_(spec) {
  number_tokens();
  place_pages();
  fill_cache();
  std::vector<int32_t> q_lens;
  for (const AttentionRequest& req : spec_.reqs) q_lens.push_back(req.q_len);
  const BatchOrder order = reorder_batch(q_lens, kv_len_bound_, spec_.max_decode_q_len);
  QUIRE_CHECK(std::is_sorted(order.order.begin(), order.order.end()),
              "a case lists its decode requests first");
  batch_ = {.decode = order.decode,
            .prefill = order.prefill,
            .query_start = {query_start_.data(), query_start_.data()},
            .seq_lens = seq_lens_.data(),
            .kv_len_bound = kv_len_bound_,
            .block_table = block_table_.data(),
            .max_pages = max_pages_,
            .kv_slots = kv_slots_.data()};
  const Status status = validate_batch(spec_.shape, batch_, num_pages_);
  QUIRE_CHECK(status.ok(), status.message());
}

void AttentionProblem::number_tokens() {
  const AttentionShape& shape = spec_.shape;
  query_start_.push_back(0);
  for (const AttentionRequest& req : spec_.reqs) {
    query_start_.push_back(query_start_.back() + req.q_len);
    seq_lens_.push_back(req.kv_len);
    kv_len_bound_.push_back(req.kv_len == 0 ? 0 : req.kv_len + spec_.bound_excess);
    for (int t = 0; t < req.q_len; ++t) {
      const int position = std::max(0, req.kv_len - req.q_len + t);
      for (int head = 0; head < shape.num_heads; ++head) {
        for (int d = 0; d < shape.head_dim; ++d) {
          queries_.push_back(spec_.query_scale * noise(Stream::kQuery, req.content, position,
                                                       spec_.first_head + head, d));
        }
      }
    }
  }
  for (int head = 0; head < shape.num_heads; ++head) {
    sinks_.push_back(2.0F + noise(Stream::kSink, 0, 0, spec_.first_head + head, 0));
  }
}

void AttentionProblem::place_pages() {
  const int page_size = spec_.shape.page_size;
  std::vector<int64_t> num_pages_of;
  int64_t total = 0;
  for (const AttentionRequest& req : spec_.reqs) {
    num_pages_of.push_back(ceil_div(req.kv_len, page_size));
    max_pages_ = std::max(max_pages_, num_pages_of.back());
    total += num_pages_of.back();
  }
  max_pages_ += 2;
  num_pages_ = 1 + total + spec_.num_unused_pages;
  // Page 0 is for padding. The other pages are taken from the end of the pool, shuffled.
  std::vector<int32_t> free_pages;
  for (int64_t i = 0; i < total; ++i)
    free_pages.push_back(static_cast<int32_t>(num_pages_ - 1 - i));
  std::shuffle(free_pages.begin(), free_pages.end(), std::mt19937(7));

  std::map<std::pair<uint64_t, int64_t>, int32_t> full_pages;  // (content, index) -> page
  for (size_t req = 0; req < spec_.reqs.size(); ++req) {
    for (int64_t i = 0; i < max_pages_; ++i) {
      const bool padding = spec_.reqs[req].kv_len == 0 && i == 0;
      if (i >= num_pages_of[req]) {
        block_table_.push_back(padding ? 0 : kDeadPage);
        continue;
      }
      const bool full = (i + 1) * page_size <= spec_.reqs[req].kv_len;
      const auto shared = full_pages.find({spec_.reqs[req].content, i});
      if (spec_.share_pages && full && shared != full_pages.end()) {
        block_table_.push_back(shared->second);
        continue;
      }
      block_table_.push_back(free_pages.back());
      free_pages.pop_back();
      if (full) full_pages[{spec_.reqs[req].content, i}] = block_table_.back();
    }
  }
}

void AttentionProblem::fill_cache() {
  const AttentionShape& shape = spec_.shape;
  const KvLayout layout = kv_layout(shape);
  const auto page_bytes = static_cast<size_t>(layout.page_bytes());
  Result<Buffer> memory = Buffer::host(page_bytes * static_cast<size_t>(num_pages_));
  QUIRE_CHECK(memory.ok(), memory.status().message());
  cache_memory_ = std::move(*memory);
  cache_ = kv_cache_view(layout, cache_memory_.data());
  cache_.k_scale = &spec_.k_scale;
  cache_.v_scale = &spec_.v_scale;
  auto* bytes = static_cast<char*>(cache_memory_.data());
  if (cache_memory_.num_bytes() <= kPoisonAllBytes) {
    std::memset(bytes + page_bytes, kPoisonByte, cache_memory_.num_bytes() - page_bytes);
  } else {
    for (const int32_t page : block_table_) {
      if (page == kDeadPage || page == 0) continue;
      std::memset(bytes + static_cast<size_t>(page) * page_bytes, kPoisonByte, page_bytes);
    }
  }
  for (size_t req = 0; req < spec_.reqs.size(); ++req) {
    const AttentionRequest& request = spec_.reqs[req];
    for (int position = 0; position < request.kv_len; ++position) {
      write_token(static_cast<int>(req), position);
    }
    for (int t = 0; t < request.q_len; ++t) {
      const int position = request.kv_len - request.q_len + t;
      kv_slots_.push_back(request.kv_len == 0
                              ? -1
                              : page_of(static_cast<int>(req), position) * shape.page_size +
                                    position % shape.page_size);
    }
  }
}

int64_t AttentionProblem::page_of(int req, int position) const {
  return block_table_[static_cast<size_t>(req * max_pages_ + position / spec_.shape.page_size)];
}

void AttentionProblem::write_token(int req, int position) {
  const AttentionShape& shape = spec_.shape;
  const uint64_t content = spec_.reqs[static_cast<size_t>(req)].content;
  const int64_t page = page_of(req, position);
  const int offset = position % shape.page_size;
  for (int head = 0; head < shape.num_kv_heads; ++head) {
    const int head_id = spec_.first_kv_head + head;
    std::vector<float> key, value;
    for (int d = 0; d < shape.head_dim; ++d) {
      key.push_back(2.0F * noise(Stream::kKey, content, position, head_id, d));
    }
    for (int d = 0; d < shape.head_dim_v; ++d) {
      value.push_back(noise(Stream::kValue, content, position, head_id, d));
    }
    // The rotated part of a latent key is smaller than the other, so that their scales differ.
    for (int d = shape.is_latent ? shape.head_dim_v : shape.head_dim; d < shape.head_dim; ++d) {
      key[static_cast<size_t>(d)] *= 0.25F;
    }
    write_vector(key_place(page, head, offset), key, spec_.k_scale);
    if (shape.is_latent) continue;  // the values are the beginning of the keys
    write_vector(value_place(page, head, offset), value, spec_.v_scale);
  }
}

AttentionProblem::VectorPlace AttentionProblem::key_place(int64_t page, int head,
                                                          int offset) const {
  const int64_t first = page * cache_.page_stride_k + head * cache_.head_stride_k;
  return {cache_.k, first + offset * cache_.token_stride_k,
          first + cache_.scale_offset_k + offset * static_cast<int64_t>(sizeof(float))};
}

AttentionProblem::VectorPlace AttentionProblem::value_place(int64_t page, int head,
                                                            int offset) const {
  const int64_t first = page * cache_.page_stride_v + head * cache_.head_stride_v;
  return {cache_.v, first + offset * cache_.token_stride_v,
          first + cache_.scale_offset_v + offset * static_cast<int64_t>(sizeof(float))};
}

float* AttentionProblem::i8_scale_at(const VectorPlace& place, int d) const {
  auto* const scale = reinterpret_cast<float*>(static_cast<int8_t*>(place.data) + place.scale);
  const bool second_part = spec_.shape.is_latent && d >= spec_.shape.head_dim_v;
  return scale + (second_part ? spec_.shape.page_size : 0);
}

void AttentionProblem::write_vector(const VectorPlace& place, std::span<const float> x,
                                    float fp8_scale) {
  const AttentionShape& shape = spec_.shape;
  if (shape.kv == DType::kI8) {
    const size_t first_part = shape.is_latent ? static_cast<size_t>(shape.head_dim_v) : x.size();
    store_i8(place.data, place.vector, x.first(first_part), i8_scale_at(place, 0));
    if (first_part == x.size()) return;
    store_i8(place.data, place.vector + shape.head_dim_v, x.subspan(first_part),
             i8_scale_at(place, shape.head_dim_v));
    return;
  }
  const float scale = shape.kv == DType::kF8E4M3 ? fp8_scale : 1.0F;
  for (size_t d = 0; d < x.size(); ++d) {
    store(place.data, shape.kv, place.vector + static_cast<int64_t>(d), x[d] / scale);
  }
}

float AttentionProblem::read_element(const VectorPlace& place, int d, float fp8_scale) const {
  const float stored = load(place.data, spec_.shape.kv, place.vector + d);
  if (spec_.shape.kv == DType::kI8) return stored * *i8_scale_at(place, d);
  return spec_.shape.kv == DType::kF8E4M3 ? stored * fp8_scale : stored;
}

float AttentionProblem::key(int req, int position, int kv_head, int d) const {
  const int offset = position % spec_.shape.page_size;
  return read_element(key_place(page_of(req, position), kv_head, offset), d, spec_.k_scale);
}

float AttentionProblem::value(int req, int position, int kv_head, int d) const {
  const int offset = position % spec_.shape.page_size;
  return read_element(value_place(page_of(req, position), kv_head, offset), d, spec_.v_scale);
}

PlanLimits AttentionProblem::limits(Phase phase) const {
  return {.use = {.phase = phase, .q_len = std::max(1, spec_.max_decode_q_len)},
          .max_num_reqs = static_cast<int>(spec_.reqs.size()),
          .max_num_tokens = num_tokens(),
          .max_kv_len = *std::max_element(kv_len_bound_.begin(), kv_len_bound_.end())};
}

namespace {

// The attention plans of one problem, and its output.
class PlannedProblem {
 public:
  PlannedProblem(const AttentionProblem& problem, AttentionBackend& backend) : problem_(problem) {
    const AttentionShape& shape = problem.shape();
    result.out.assign(static_cast<size_t>(problem.num_tokens()) *
                          static_cast<size_t>(shape.num_heads * shape.head_dim_v),
                      std::numeric_limits<float>::quiet_NaN());
    for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
      if (problem.batch().range(phase).num_reqs == 0) continue;
      plans_.push_back(value_of(backend.make_plan(shape, problem.limits(phase))));
    }
  }

  size_t workspace_bytes() const {
    size_t bytes = 0;
    for (const auto& plan : plans_) bytes = std::max(bytes, plan->workspace_bytes());
    return bytes;
  }
  void update() {
    for (const auto& plan : plans_) expect_ok(plan->update(problem_.batch(), stream_));
  }
  void run(std::span<std::byte> workspace) {
    const AttentionShape& shape = problem_.shape();
    const Shape q_shape{problem_.num_tokens(), shape.num_heads, shape.head_dim};
    const Shape out_shape{problem_.num_tokens(), shape.num_heads, shape.head_dim_v};
    const AttentionCall call{
        .q = {const_cast<float*>(problem_.queries().data()), DType::kF32, q_shape},
        .out = {result.out.data(), DType::kF32, out_shape},
        .kv = problem_.cache(),
        .sinks = shape.sinks ? problem_.sinks().data() : nullptr,
        .workspace = workspace};
    for (const auto& plan : plans_) expect_ok(plan->run(call, stream_));
  }

  AttentionResult result;

 private:
  static void expect_ok(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }

  const AttentionProblem& problem_;
  std::vector<std::unique_ptr<AttentionPlan>> plans_;
  NullStream stream_;
};

}  // namespace

AttentionResult AttentionProblem::run(AttentionBackend& backend) const {
  return run_interleaved({this}, backend).front();
}

std::vector<AttentionResult> run_interleaved(const std::vector<const AttentionProblem*>& problems,
                                             AttentionBackend& backend) {
  std::vector<PlannedProblem> planned;
  size_t num_bytes = 0;
  for (const AttentionProblem* problem : problems) {
    planned.emplace_back(*problem, backend);
    num_bytes = std::max(num_bytes, planned.back().workspace_bytes());
  }
  std::vector<std::byte> workspace(num_bytes, std::byte{kPoisonByte});
  for (PlannedProblem& problem : planned) problem.update();
  std::vector<AttentionResult> results;
  for (PlannedProblem& problem : planned) {
    problem.run(workspace);
    results.push_back(std::move(problem.result));
  }
  return results;
}

AttentionResult run_attention(const AttentionCase& spec, AttentionBackend& backend) {
  return AttentionProblem(spec).run(backend);
}

AttentionShape make_attention_shape(int num_heads, int num_kv_heads, int head_dim, int page_size,
                                    DType kv) {
  return {.num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .head_dim = head_dim,
          .head_dim_v = head_dim,
          .page_size = page_size,
          .kv = kv,
          .scale = 1.0F / std::sqrt(static_cast<float>(head_dim))};
}

namespace {

std::vector<AttentionRequest> lengths_around_page(int page) {
  return {{1, 0, 1},        {1, 1, 2},        {1, page - 1, 3}, {1, page, 4},
          {1, page + 1, 5}, {1, 2 * page, 6}, {1, 1300, 7}};
}

std::vector<AttentionRequest> ragged(int page) {
  return {{1, 5, 1}, {5, 5, 2}, {page + 1, page + 1, 3}, {7, 90, 4}, {40, 150, 5}, {9, 1030, 6}};
}

AttentionCase* add_case(std::vector<AttentionCase>& cases, std::string name,
                        const AttentionShape& shape, std::vector<AttentionRequest> reqs) {
  cases.push_back({.name = std::move(name), .shape = shape, .reqs = std::move(reqs)});
  return &cases.back();
}

// Shapes, lengths and batches over a cache of type kv.
void add_shapes(DType kv, std::vector<AttentionCase>& cases) {
  const auto add = [&](std::string name, const AttentionShape& shape, auto reqs) {
    return add_case(cases, std::move(name), shape, std::move(reqs));
  };
  for (const int page : {16, 32, 64}) {
    const std::string suffix = fmt::format("_{}_page{}", dtype_name(kv), page);
    const AttentionShape gqa = make_attention_shape(8, 2, 64, page, kv);
    AttentionCase* last = add("gqa_decode" + suffix, gqa, lengths_around_page(page));
    last->k_scale = 0.02F;
    last->v_scale = 0.01F;
    // No request is decode, so any order is allowed.
    last = add("gqa_ragged" + suffix, gqa, ragged(page));
    last->max_decode_q_len = 0;
    last->k_scale = 0.5F;
  }
  const std::string suffix = fmt::format("_{}", dtype_name(kv));
  add("mha_decode" + suffix, make_attention_shape(6, 6, 48, 16, kv), lengths_around_page(16));
  add("mqa_decode" + suffix, make_attention_shape(9, 1, 128, 32, kv), lengths_around_page(32));
  add("one_head_decode" + suffix, make_attention_shape(1, 1, 64, 16, kv), lengths_around_page(16));
  add("mixed_phases" + suffix, make_attention_shape(4, 2, 80, 16, kv),
      std::vector<AttentionRequest>{{1, 40, 1}, {1, 700, 2}, {1, 0, 3}, {20, 20, 4}, {3, 500, 5}});
  add("verify" + suffix, make_attention_shape(4, 1, 96, 64, kv),
      std::vector<AttentionRequest>{{4, 40, 1}, {4, 700, 2}, {4, 0, 3}, {4, 4, 4}})
      ->max_decode_q_len = 4;
  AttentionCase* shared = add("shared_pages" + suffix, make_attention_shape(4, 2, 64, 16, kv),
                              std::vector<AttentionRequest>{{1, 100, 9}, {1, 300, 9}, {1, 33, 9}});
  shared->share_pages = true;
  for (const int head_dim : {8, 16, 24, 40, 56, 72, 112, 192, 256, 512, 1024}) {
    add(fmt::format("head_dim_{}{}", head_dim, suffix),
        make_attention_shape(4, 2, head_dim, 16, kv),
        std::vector<AttentionRequest>{{1, 75, 1}, {1, 16, 2}, {9, 40, 3}});
  }
  AttentionShape uneven = make_attention_shape(4, 4, 192, 16, kv);
  uneven.head_dim_v = 128;
  add("head_dim_v_smaller" + suffix, uneven,
      std::vector<AttentionRequest>{{1, 75, 1}, {1, 520, 2}, {9, 40, 3}});
  uneven = make_attention_shape(4, 4, 32, 16, kv);
  uneven.head_dim_v = 72;
  add("head_dim_v_larger" + suffix, uneven,
      std::vector<AttentionRequest>{{1, 75, 1}, {1, 520, 2}, {9, 40, 3}});
  for (const auto [num_heads, latent, rope, page] :
       {std::array{16, 512, 64, 64}, {40, 64, 16, 16}, {3, 24, 8, 32}}) {
    AttentionShape shape = make_attention_shape(num_heads, 1, latent + rope, page, kv);
    shape.head_dim_v = latent;
    shape.is_latent = true;
    AttentionCase* const mixed =
        add(fmt::format("latent_{}{}", latent, suffix), shape,
            std::vector<AttentionRequest>{
                {1, page - 1, 1}, {1, page + 1, 2}, {1, 0, 3}, {1, 530, 4}, {5, 5, 5}, {7, 90, 6}});
    mixed->k_scale = mixed->v_scale = 0.25F;  // of one and the same vector
  }
}

// Windows, chunks, soft caps, sinks and attention that is not causal.
void add_features(DType kv, std::vector<AttentionCase>& cases) {
  const auto add = [&](std::string name, const AttentionShape& shape, auto reqs) {
    return add_case(cases, std::move(name), shape, std::move(reqs));
  };
  const std::string suffix = fmt::format("_{}", dtype_name(kv));
  for (const int window : {1, 16, 37, 64, 512, 600, 5000}) {
    AttentionShape shape = make_attention_shape(4, 2, 64, 16, kv);
    shape.window = window;
    add(fmt::format("window_{}{}", window, suffix), shape, ragged(16))->max_decode_q_len = 0;
    add(fmt::format("window_decode_{}{}", window, suffix), shape, lengths_around_page(16));
  }
  for (const int chunk : {1, 37, 64, 512, 5000}) {
    AttentionShape shape = make_attention_shape(4, 2, 64, 16, kv);
    shape.window = chunk;
    shape.chunked = true;
    add(fmt::format("chunks_{}{}", chunk, suffix), shape, ragged(16))->max_decode_q_len = 0;
    add(fmt::format("chunks_decode_{}{}", chunk, suffix), shape, lengths_around_page(16));
  }
  AttentionShape shape = make_attention_shape(4, 2, 64, 16, kv);
  shape.softcap = 2.0F;
  add("softcap" + suffix, shape, ragged(16))->max_decode_q_len = 0;
  shape.sinks = true;
  add("softcap_sinks" + suffix, shape, lengths_around_page(16));
  shape.window = 50;
  add("softcap_sinks_window" + suffix, shape, ragged(16))->max_decode_q_len = 0;
  shape = make_attention_shape(4, 2, 64, 16, kv);
  shape.sinks = true;
  add("sinks" + suffix, shape, ragged(16))->max_decode_q_len = 0;
  shape = make_attention_shape(4, 2, 64, 16, kv);
  shape.causal = false;
  add("not_causal" + suffix, shape, ragged(16))->max_decode_q_len = 0;
  add("not_causal_decode" + suffix, shape,
      std::vector<AttentionRequest>{{5, 40, 1}, {5, 700, 2}, {5, 0, 3}, {5, 5, 4}, {5, 18, 5}})
      ->max_decode_q_len = 5;
}

}  // namespace

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3}) {
    add_shapes(kv, cases);
  }
  for (const DType kv : {DType::kF32, DType::kBF16}) add_features(kv, cases);
  return cases;
}

std::vector<AttentionCase> i8_attention_cases() {
  std::vector<AttentionCase> cases;
  add_shapes(DType::kI8, cases);
  add_features(DType::kI8, cases);
  return cases;
}

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                  float tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  size_t worst = 0;
  float worst_excess = -1.0F;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;  // also for equal infinities
    const float excess =
        std::abs(actual[i] - expected[i]) / (tolerance * (1.0F + std::abs(expected[i])));
    if (!(excess <= worst_excess)) {
      worst = i;
      worst_excess = std::isnan(excess) ? std::numeric_limits<float>::infinity() : excess;
    }
  }
  EXPECT_LE(worst_excess, 1.0F) << "element " << worst << ": got " << actual[worst] << ", expected "
                                << expected[worst];
}

float max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float max = 0.0F;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) max = std::max(max, std::abs(a[i] - b[i]));
  }
  return max;
}

}  // namespace quire::testing
