#include "support/model_harness.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/numbers.h"
#include "kv/kv_layout.h"
#include "model/decoder.h"

namespace quire::testing {

struct ModelHarness::Batch {
  std::vector<int> order;  // position in the batch -> index of the chunk
  std::vector<int> seqs;
  std::vector<int32_t> token_ids, positions, query_start, seq_lens;
  std::vector<float> hidden;  // empty unless the model has a TapReader
  PhaseRange decode, prefill;
};

namespace {

constexpr int32_t kDeadPage = 0x3FFFFFFF;

class CpuStream : public Stream {};

void add_request(PhaseRange& range, int req, int first_token, int q_len, int kv_len) {
  if (range.num_reqs == 0) {
    range.first_req = req;
    range.first_token = first_token;
  }
  range.max_q_len = std::max(range.max_q_len, q_len);
  range.max_kv_len = std::max(range.max_kv_len, kv_len);
  range.num_reqs += 1;
  range.num_tokens += q_len;
}

}  // namespace

ModelHarness::ModelHarness(Model& model, AttentionBackend& attention, const ModelLimits& limits,
                           uint64_t seed)
    : model_(model),
      attention_(attention),
      limits_(limits),
      max_pages_(ceil_div(limits.max_model_len, limits.page_size)),
      lengths_(kMaxSeqs, 0) {
  std::mt19937_64 random(seed);
  const int num_pages = 1 + kMaxSeqs * static_cast<int>(max_pages_);
  for (const KvGroup& group : model.kv_groups()) add_group(group, num_pages, random);
  const StateGroup states = decoder_state_group(model.config(), limits);
  if (states.layers.empty()) return;
  states_.emplace();
  add_pages(states.page_bytes, states.layers.size(), num_pages, random, states_->cache);
  for (const Tensor& buffer : states_->cache.buffers) {
    states_->pages.push_back(buffer.view.as<std::byte>());
  }
}

void ModelHarness::add_group(const KvGroup& group, int num_pages, std::mt19937_64& random) {
  GroupCache& cache = caches_.emplace_back();
  add_pages(group.layout.page_bytes(), group.layers.size(), num_pages, random, cache);
  for (const Tensor& buffer : cache.buffers) {
    cache.views.push_back(kv_cache_view(group.layout, buffer.view.data));
  }
}

void ModelHarness::add_pages(int64_t page_bytes, size_t num_layers, int num_pages,
                             std::mt19937_64& random, GroupCache& cache) const {
  for (size_t i = 0; i < num_layers; ++i) {
    Tensor buffer = Tensor::host({num_pages * page_bytes}, DType::kF8E4M3).value();
    // All-one bits are a NaN in every float type. Page 0 stays zero, because padding reads it.
    std::memset(buffer.view.as<char>() + page_bytes, 0xFF,
                buffer.view.num_bytes() - static_cast<size_t>(page_bytes));
    cache.buffers.push_back(std::move(buffer));
  }
  cache.free_pages.resize(static_cast<size_t>(num_pages - 1));
  std::iota(cache.free_pages.begin(), cache.free_pages.end(), 1);
  std::ranges::shuffle(cache.free_pages, random);
  cache.block_table.assign(static_cast<size_t>(kMaxSeqs * max_pages_), kDeadPage);
  cache.num_pages.assign(kMaxSeqs, 0);
}

ModelHarness::Batch ModelHarness::order_chunks(const std::vector<HarnessChunk>& chunks) const {
  Batch batch;
  batch.order.resize(chunks.size());
  std::iota(batch.order.begin(), batch.order.end(), 0);
  std::stable_partition(batch.order.begin(), batch.order.end(), [&chunks](int chunk) {
    return chunks[static_cast<size_t>(chunk)].token_ids.size() == 1;
  });
  batch.query_start.push_back(0);
  for (const int chunk_idx : batch.order) {
    const HarnessChunk& chunk = chunks[static_cast<size_t>(chunk_idx)];
    const int req = static_cast<int>(batch.seqs.size());
    const int q_len = static_cast<int>(chunk.token_ids.size());
    const int begin = lengths_[static_cast<size_t>(chunk.seq)];
    add_request(q_len == 1 ? batch.decode : batch.prefill, req, batch.query_start.back(), q_len,
                begin + q_len);
    batch.seqs.push_back(chunk.seq);
    batch.query_start.push_back(batch.query_start.back() + q_len);
    batch.seq_lens.push_back(begin + q_len);
    batch.token_ids.insert(batch.token_ids.end(), chunk.token_ids.begin(), chunk.token_ids.end());
    batch.hidden.insert(batch.hidden.end(), chunk.hidden.begin(), chunk.hidden.end());
    for (int i = 0; i < q_len; ++i) batch.positions.push_back(begin + i);
  }
  return batch;
}

void ModelHarness::fill_group(const Batch& batch, GroupCache& cache,
                              std::vector<int32_t>& block_table, std::vector<int64_t>& kv_slots) {
  for (size_t req = 0; req < batch.seqs.size(); ++req) {
    const auto seq = static_cast<size_t>(batch.seqs[req]);
    int32_t* row = cache.block_table.data() + static_cast<int64_t>(seq) * max_pages_;
    const int needed = ceil_div(batch.seq_lens[req], limits_.page_size);
    while (cache.num_pages[seq] < needed) {
      row[cache.num_pages[seq]++] = cache.free_pages.back();
      cache.free_pages.pop_back();
    }
    block_table.insert(block_table.end(), row, row + max_pages_);
    for (int t = batch.query_start[req]; t < batch.query_start[req + 1]; ++t) {
      const int position = batch.positions[static_cast<size_t>(t)];
      kv_slots.push_back(int64_t{row[position / limits_.page_size]} * limits_.page_size +
                         position % limits_.page_size);
    }
  }
}

Status ModelHarness::run_model(Batch& batch, TapReader* reader) {
  CpuStream stream;
  const size_t num_groups = caches_.size();
  // The last element is of the states.
  std::vector<std::vector<int32_t>> block_tables(num_groups + 1);
  std::vector<std::vector<int64_t>> kv_slots(num_groups + 1);
  std::vector<AttentionBatch> attention(num_groups + 1);
  std::vector<Buffer> arenas;
  std::vector<std::unique_ptr<AttentionPlan>> plans;
  std::vector<KvGroupStep> steps;
  const auto fill = [&](size_t g, GroupCache& cache) {
    fill_group(batch, cache, block_tables[g], kv_slots[g]);
    attention[g] = {batch.decode,
                    batch.prefill,
                    {batch.query_start.data(), batch.query_start.data()},
                    batch.seq_lens.data(),
                    batch.seq_lens,
                    block_tables[g].data(),
                    max_pages_,
                    kv_slots[g].data()};
  };
  for (size_t g = 0; g < num_groups; ++g) {
    fill(g, caches_[g]);
    KvGroupStep step = {.batch = &attention[g], .caches = caches_[g].views, .workspace = {}};
    size_t num_bytes = 0;
    for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
      if (attention[g].range(phase).num_reqs == 0) continue;
      const KvGroup& group = model_.kv_groups()[g];
      QUIRE_ASSIGN_OR_RETURN(
          std::unique_ptr<AttentionPlan> plan,
          attention_.make_plan(phase == Phase::kDecode ? group.decode : group.prefill,
                               {.use = {.phase = phase},
                                .max_num_reqs = kMaxSeqs,
                                .max_num_tokens = limits_.max_num_tokens,
                                .max_kv_len = limits_.max_model_len}));
      QUIRE_RETURN_IF_ERROR(plan->update(attention[g], stream));
      num_bytes = std::max(num_bytes, plan->workspace_bytes());
      (phase == Phase::kDecode ? step.decode : step.prefill) = plan.get();
      plans.push_back(std::move(plan));
    }
    QUIRE_ASSIGN_OR_RETURN(Buffer arena, Buffer::host(num_bytes));
    step.workspace = {static_cast<std::byte*>(arena.data()), arena.num_bytes()};
    arenas.push_back(std::move(arena));
    steps.push_back(step);
  }
  const auto num_tokens = static_cast<int>(batch.token_ids.size());
  StepInput input = {num_tokens, batch.token_ids.data(), batch.positions.data(), steps};
  if (states_) {
    fill(num_groups, states_->cache);
    input.states = {.batch = &attention.back(), .pages = states_->pages};
  }
  if (!batch.hidden.empty()) {
    input.hidden = {batch.hidden.data(), DType::kF32, {num_tokens, model_.config().hidden_size}};
  }
  if (reader != nullptr) return reader->write_context(input);
  return model_.forward(input);
}

void ModelHarness::keep_lengths(const Batch& batch) {
  for (size_t place = 0; place < batch.seqs.size(); ++place) {
    lengths_[static_cast<size_t>(batch.seqs[place])] = batch.seq_lens[place];
  }
}

Status ModelHarness::write_context(TapReader& reader, const std::vector<HarnessChunk>& chunks) {
  Batch batch = order_chunks(chunks);
  QUIRE_RETURN_IF_ERROR(run_model(batch, &reader));
  keep_lengths(batch);
  return {};
}

Result<std::vector<float>> ModelHarness::all_logits(const Batch& batch) {
  const int vocab_size = model_.config().vocab_size;
  const int num_tokens = static_cast<int>(batch.token_ids.size());
  std::vector<int32_t> rows(batch.token_ids.size());
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> logits(rows.size() * static_cast<size_t>(vocab_size));
  for (int first = 0; first < num_tokens; first += limits_.max_num_logit_rows) {
    const int count = std::min(limits_.max_num_logit_rows, num_tokens - first);
    float* out = logits.data() + int64_t{first} * vocab_size;
    QUIRE_RETURN_IF_ERROR(
        model_.compute_logits(rows.data() + first, count, {out, DType::kF32, {count, vocab_size}}));
  }
  return logits;
}

Result<std::vector<std::vector<float>>> ModelHarness::step(
    const std::vector<HarnessChunk>& chunks) {
  Batch batch = order_chunks(chunks);
  QUIRE_RETURN_IF_ERROR(run_model(batch, nullptr));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<float> logits, all_logits(batch));
  std::vector<std::vector<float>> result(chunks.size());
  for (size_t place = 0; place < batch.order.size(); ++place) {
    const int64_t vocab_size = model_.config().vocab_size;
    result[static_cast<size_t>(batch.order[place])].assign(
        logits.begin() + batch.query_start[place] * vocab_size,
        logits.begin() + batch.query_start[place + 1] * vocab_size);
  }
  keep_lengths(batch);
  return result;
}

Result<std::vector<int32_t>> greedy(ModelHarness& harness, int seq, int32_t first, int num_tokens) {
  std::vector<int32_t> ids = {first};
  while (static_cast<int>(ids.size()) < num_tokens) {
    QUIRE_ASSIGN_OR_RETURN(const auto logits, harness.step({{seq, {ids.back()}}}));
    const std::vector<float>& row = logits.front();
    ids.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
  }
  return ids;
}

}  // namespace quire::testing
