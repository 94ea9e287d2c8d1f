// Compares the operations on recurrent states with their definitions in double: prompts in one step
// and in several, single tokens, drafts, kept states, and requests that pad a graph.
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "device_data.h"
#include "support/state_steps.h"

namespace quire::testing {
namespace {

// The arrays of a step on the device.
class DeviceBatch {
 public:
  DeviceBatch(cuda::CudaStream& stream, const StateBatch& batch)
      : host_(batch.states(nowhere_)),
        query_start_(ints(stream, host_.query_start, host_.num_seqs + 1)),
        seq_lens_(ints(stream, host_.seq_lens, host_.num_seqs)),
        page_table_(ints(stream, host_.page_table, host_.num_seqs * host_.max_pages)),
        kv_slots_(ints(stream, host_.kv_slots, batch.num_tokens())) {}

  StatePages states(const DeviceData& pages, int64_t page_bytes) const {
    StatePages states = host_;
    states.first = pages.as<std::byte>();
    states.page_bytes = page_bytes;
    states.query_start = query_start_.as<int32_t>();
    states.seq_lens = seq_lens_.as<int32_t>();
    states.page_table = page_table_.as<int32_t>();
    states.kv_slots = kv_slots_.as<int64_t>();
    return states;
  }

 private:
  template <typename T>
  static DeviceData ints(cuda::CudaStream& stream, const T* values, int64_t count) {
    return DeviceData::of_ints(stream, std::vector<T>(values, values + count));
  }

  std::vector<float> nowhere_;
  StatePages host_;
  DeviceData query_start_, seq_lens_, page_table_, kv_slots_;
};

// The bars for the distance of outputs from the definition: each number, and the root of the mean
// square.
struct Bars {
  float number;
  double mean;
};

Bars bars_of(DType dtype) {
  if (dtype == DType::kBF16) return {6e-2F, 8e-3};
  if (dtype == DType::kF16) return {1.5e-2F, 2e-3};
  return {2e-4F, 1e-5};
}

void expect_close(const std::vector<float>& got, const std::vector<float>& expected,
                  const Bars& bars, const std::string& what) {
  expect_near_all(got, expected, bars.number, what);
  if (got.size() != expected.size()) return;
  double squares = 0;
  double errors = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    squares += double{expected[i]} * expected[i];
    errors += (double{got[i]} - expected[i]) * (double{got[i]} - expected[i]);
  }
  EXPECT_LE(std::sqrt(errors), bars.mean * std::sqrt(squares)) << what;
}

void expect_close(const std::vector<float>& got, const std::vector<float>& expected, DType dtype,
                  const std::string& what) {
  expect_close(got, expected, bars_of(dtype), what);
}

// Pages 1, 2, … for the blocks of `num_tokens` tokens, `first` the first.
std::vector<int32_t> pages_from(int first, int num_tokens) {
  std::vector<int32_t> pages;
  for (int i = 0; i < ceil_div(num_tokens, kBlockSize); ++i) pages.push_back(first + i);
  return pages;
}
// Does the same, but only the blocks `kept` have a page.
std::vector<int32_t> sparse_pages(int first, int num_tokens, const std::vector<int>& kept) {
  std::vector<int32_t> pages = pages_from(first, num_tokens);
  for (int i = 0; i < static_cast<int>(pages.size()); ++i) {
    if (std::ranges::find(kept, i) == kept.end()) pages[static_cast<size_t>(i)] = 0;
  }
  return pages;
}

// The steps of one operation, each on the device and by the definition. Operation: has a shape,
// run_reference(), and run_device().
template <typename Operation>
class StateSteps {
 public:
  StateSteps(cuda::CudaOps& ops, cuda::CudaStream& stream, DType dtype, Operation operation)
      : ops_(ops),
        stream_(stream),
        dtype_(dtype),
        operation_(std::move(operation)),
        page_size_(round_up(operation_.page_size(), int64_t{16})),
        host_pages_(static_cast<size_t>(kNumPages * page_size_), std::nanf("")),
        pages_(stream, {kNumPages, page_size_}, DType::kF32) {}

  using Part = StatePart;

  // Runs a step on both, unless `reference` is off.
  std::vector<float> run(const std::vector<Part>& parts, bool reference = true,
                         bool captured = false) {
    const StateBatch batch(parts);
    const typename Operation::Inputs inputs = operation_.inputs(batch, dtype_);
    const int64_t num_tokens = batch.num_tokens();
    if (reference) {
      expected_.assign(static_cast<size_t>(num_tokens * operation_.width()), 0.0F);
      operation_.run_reference(inputs, num_tokens, batch.states(host_pages_), expected_);
    }
    const DeviceBatch on_device(stream_, batch);
    DeviceData out(stream_, {num_tokens, operation_.width()}, dtype_);
    operation_.run_device(ops_, stream_, inputs, num_tokens,
                          on_device.states(pages_, page_size_ * 4), out, dtype_, captured);
    return out.values();
  }
  // The definition's outputs of the last step.
  const std::vector<float>& expected() const { return expected_; }
  // Runs a step on both, and compares.
  void check(const std::vector<Part>& parts, const std::string& what) {
    const std::vector<float> got = run(parts);
    expect_close(got, expected_, dtype_, what);
  }
  std::vector<float> rows(const std::vector<float>& out, int first, int end) const {
    return {out.begin() + first * operation_.width(), out.begin() + end * operation_.width()};
  }
  std::vector<std::byte> page_bytes() { return pages_.bytes(); }

 private:
  cuda::CudaOps& ops_;
  cuda::CudaStream& stream_;
  DType dtype_;
  Operation operation_;
  int64_t page_size_;              // floats
  std::vector<float> host_pages_;  // NaN shows that a state is read that was not written
  DeviceData pages_;
  std::vector<float> expected_;
};

std::vector<float> by_token(const StateBatch& batch, int64_t width, uint32_t salt, float scale,
                            DType dtype) {
  std::vector<float> all;
  for (const uint32_t seed : batch.seeds()) {
    all = append(std::move(all), rounded(random_floats(width, seed + salt, scale), dtype));
  }
  return all;
}

struct ConvOperation {
  int64_t channels;
  int kernel;
  int num_drafts;
  struct Inputs {
    std::vector<float> bgx;
  };

  int num_rows() const { return kernel - 1 + num_drafts; }
  int64_t page_size() const { return num_rows() * channels; }
  int64_t width() const { return channels; }
  std::vector<float> weights() const { return random_floats(channels * kernel, 1); }
  Inputs inputs(const StateBatch& batch, DType dtype) const {
    return {by_token(batch, 3 * channels, 0, 1.0F, dtype)};
  }
  ShortConv call(const StatePages& states) const {
    ShortConv conv;
    conv.kernel = kernel;
    conv.num_rows = num_rows();
    conv.states = states;
    return conv;
  }
  void run_reference(const Inputs& inputs, int64_t num_tokens, const StatePages& states,
                     std::vector<float>& out) const {
    std::vector<float> bgx = inputs.bgx;
    const std::vector<float> w = weights();
    ShortConv conv = call(states);
    conv.bgx = {bgx.data(), DType::kF32, {num_tokens, 3 * channels}};
    conv.w = w.data();
    conv.out = {out.data(), DType::kF32, {num_tokens, channels}};
    ReferenceOps().short_conv(conv);
  }
  void run_device(cuda::CudaOps& ops, cuda::CudaStream& stream, const Inputs& inputs,
                  int64_t num_tokens, const StatePages& states, DeviceData& out, DType dtype,
                  bool captured) const {
    const DeviceData bgx(stream, {num_tokens, 3 * channels}, dtype, inputs.bgx);
    const DeviceData w(stream, {kernel, channels}, DType::kF32, weights());
    ShortConv conv = call(states);
    conv.bgx = bgx.view();
    conv.w = w.as<float>();
    conv.out = out.view();
    if (captured) {
      CapturedGraph(stream, [&] { ops.states()->short_conv(conv); }).launch();
    } else {
      ops.states()->short_conv(conv);
    }
    EXPECT_EQ(stream.synchronize().message(), "");
  }
};

struct DeltaOperation {
  DeltaNetShape shape;
  int num_drafts;
  float scale = 1.0F;  // of the inputs
  struct Inputs {
    std::vector<float> x;
    std::vector<float> ba;
  };

  int64_t page_size() const { return DeltaNetPage(shape, num_drafts).size; }
  int64_t width() const { return shape.width(); }
  int64_t x_width() const { return shape.num_channels() + shape.width(); }
  std::vector<float> conv() const {
    return random_floats(shape.num_channels() * shape.kernel, 1, 0.5F);
  }
  std::vector<float> a_log() const { return random_floats(shape.num_v_heads, 2, 0.5F); }
  std::vector<float> dt_bias() const { return random_floats(shape.num_v_heads, 3); }
  std::vector<float> norm() const { return random_floats(shape.v_dim, 4); }
  Inputs inputs(const StateBatch& batch, DType dtype) const {
    return {by_token(batch, x_width(), 0, scale, dtype),
            by_token(batch, int64_t{2} * shape.num_v_heads, 600'000, 2.0F, dtype)};
  }
  DeltaNet call(const StatePages& states, int drafts) const {
    DeltaNet net;
    net.shape = shape;
    net.num_drafts = drafts;
    net.states = states;
    return net;
  }
  // Without drafts: a page of the definition is larger than it needs.
  void run_reference(const Inputs& inputs, int64_t num_tokens, const StatePages& states,
                     std::vector<float>& out) const {
    Inputs copy = inputs;
    const std::vector<float> w = conv();
    const std::vector<float> rates = a_log();
    const std::vector<float> bias = dt_bias();
    const std::vector<float> weights = norm();
    DeltaNet net = call(states, 0);
    net.x = {copy.x.data(), DType::kF32, {num_tokens, x_width()}};
    net.ba = {copy.ba.data(), DType::kF32, {num_tokens, 2 * shape.num_v_heads}};
    net.conv = w.data();
    net.a_log = rates.data();
    net.dt_bias = bias.data();
    net.norm = weights.data();
    net.out = {out.data(), DType::kF32, {num_tokens, width()}};
    ReferenceOps().delta_net(net);
  }
  void run_device(cuda::CudaOps& ops, cuda::CudaStream& stream, const Inputs& inputs,
                  int64_t num_tokens, const StatePages& states, DeviceData& out, DType dtype,
                  bool captured) const {
    const DeviceData x(stream, {num_tokens, x_width()}, dtype, inputs.x);
    const DeviceData ba(stream, {num_tokens, 2 * shape.num_v_heads}, dtype, inputs.ba);
    const DeviceData w(stream, {shape.kernel, shape.num_channels()}, DType::kF32, conv());
    const DeviceData rates(stream, {shape.num_v_heads}, DType::kF32, a_log());
    const DeviceData bias(stream, {shape.num_v_heads}, DType::kF32, dt_bias());
    const DeviceData weights(stream, {shape.v_dim}, DType::kF32, norm());
    const int64_t num_bytes =
        ops.states()->workspace_bytes(shape, num_drafts, num_tokens, states.num_seqs);
    DeviceData workspace(stream, {num_bytes}, DType::kI8);
    DeltaNet net = call(states, num_drafts);
    net.x = x.view();
    net.ba = ba.view();
    net.conv = w.as<float>();
    net.a_log = rates.as<float>();
    net.dt_bias = bias.as<float>();
    net.norm = weights.as<float>();
    net.out = out.view();
    net.workspace = {workspace.as<std::byte>(), static_cast<size_t>(num_bytes)};
    if (captured) {
      CapturedGraph(stream, [&] { ops.states()->delta_net(net); }).launch();
    } else {
      ops.states()->delta_net(net);
    }
    EXPECT_EQ(stream.synchronize().message(), "");
    workspace.bytes();  // checks the guard
  }
};

class CudaStateOpsTest : public CudaOpsTest {
 protected:
  template <typename Operation>
  StateSteps<Operation> steps(Operation operation) {
    return {*ops_, *stream_, dtype(), std::move(operation)};
  }

  // A prompt in one step and in several, beside others; then single tokens, beside another prompt.
  template <typename Operation>
  void check_steps(const Operation& operation, const std::string& what) {
    using Part = StatePart;
    StateSteps<Operation> all = steps(operation);
    const std::vector<int32_t> a = pages_from(1, 240);
    const std::vector<int32_t> b = {17};
    const std::vector<int32_t> c = sparse_pages(18, 240, {2, 5, 8, 9, 10, 11});
    all.check({{0, 70, 1, a}, {0, 1, 2, b}, {0, 150, 3, c}}, what + ", prompts");
    all.check({{70, 199, 1, a}, {150, 165, 3, c}}, what + ", the rest of the prompts");
    for (int i = 0; i < 3; ++i) {
      Part first = {199 + i, 200 + i, 1, a};
      Part second = {1 + i, 2 + i, 2, b};
      first.decodes = second.decodes = true;
      std::vector<Part> parts = {first, second};
      if (i == 1) parts.push_back({165, 170, 3, c});
      all.check(parts, what + ", token " + std::to_string(i));
    }
    // Another sequence begins at the kept state after block 5 of c.
    std::vector<int32_t> d = sparse_pages(18, 160, {5});
    d[8] = 40;
    d[9] = 41;
    all.check({{96, 160, 3, d}}, what + ", from a kept state");
    Part next = {160, 161, 3, sparse_pages(18, 176, {})};
    next.pages[9] = 41;
    next.pages[10] = 42;
    next.decodes = true;
    all.check({next}, what + ", into a new block");
  }

  // Verifies drafts of which some are accepted.
  template <typename Operation>
  void check_drafts(const Operation& operation, int num_drafts, const std::string& what) {
    StateSteps<Operation> whole = steps(operation);
    const std::vector<int32_t> pages = pages_from(1, 96);
    whole.run({{0, 96, 1, pages}});
    const std::vector<float> expected = whole.expected();
    StateSteps<Operation> drafted = steps(operation);
    std::vector<float> got = drafted.run({{0, 13, 1, pages}}, false);
    for (int p = 13, round = 0; p < 96; ++round) {
      const int end = std::min(p + 1 + num_drafts, 96);
      const int right_end = std::min(p + 1 + round % (num_drafts + 1), end);
      StatePart part = {p, end, 1, pages};
      part.right_end = right_end;
      part.decodes = true;
      got = append(got, drafted.rows(drafted.run({part}, false), 0, right_end - p));
      p = right_end;
    }
    expect_close(got, expected, dtype(), what);
    std::vector<int32_t> other = {0, 0, 3, 40, 41, 42};
    const std::vector<float> next = drafted.run({{48, 96, 1, other}}, false);
    expect_close(next, drafted.rows(expected, 48, 96), dtype(), what + ", from a kept state");
  }

  template <typename Operation>
  void check_padding(const Operation& operation, const std::string& what) {
    StateSteps<Operation> all = steps(operation);
    all.check({{0, 20, 1, {1, 2}}}, what);
    const std::vector<std::byte> before = all.page_bytes();
    StatePart ended = {20, 21, 1, {1, 2}, 0};  // writes no state
    StatePart padding = {-1, 0, 1, {0}, 0};
    ended.decodes = padding.decodes = true;
    const std::vector<float> out = all.run({ended, padding}, false);
    EXPECT_EQ(all.page_bytes(), before) << what;
    EXPECT_EQ(all.rows(out, 1, 2), std::vector<float>(static_cast<size_t>(operation.width()), 0.0F))
        << what;
    StatePart prompt = padding;  // as at the start, before graphs are captured
    prompt.begin = -40;
    prompt.decodes = false;
    EXPECT_EQ(all.run({prompt}, false),
              std::vector<float>(static_cast<size_t>(40 * operation.width()), 0.0F))
        << what;
    EXPECT_EQ(all.page_bytes(), before) << what;
  }

  // The bits of a sequence do not depend on the others of a step, or on whether it is captured.
  template <typename Operation>
  void check_bits(const Operation& operation, const std::string& what) {
    StateSteps<Operation> alone = steps(operation);
    StateSteps<Operation> beside = steps(operation);
    const std::vector<int32_t> pages = pages_from(1, 240);
    const std::vector<int32_t> others = pages_from(20, 240);
    for (const auto& [begin, end] : {std::pair{0, 100}, std::pair{100, 101}}) {
      StatePart part = {begin, end, 1, pages};
      StatePart other = {begin, end, 2, others};
      part.decodes = other.decodes = end == begin + 1;
      const std::vector<float> expected = alone.run({part}, false);
      const std::vector<float> got = beside.run({other, part}, false, true);
      EXPECT_EQ(beside.rows(got, end - begin, 2 * (end - begin)), expected) << what;
    }
  }
};

std::string name_of(const ConvOperation& operation) {
  return std::to_string(operation.channels) + " channels, kernel " +
         std::to_string(operation.kernel) + ", " + std::to_string(operation.num_drafts) + " drafts";
}

std::string name_of(const DeltaOperation& operation) {
  const DeltaNetShape& shape = operation.shape;
  return std::to_string(shape.num_k_heads) + "/" + std::to_string(shape.num_v_heads) +
         " heads of " + std::to_string(shape.k_dim) + " x " + std::to_string(shape.v_dim) +
         ", kernel " + std::to_string(shape.kernel) + ", " + std::to_string(operation.num_drafts) +
         " drafts" + (shape.is_tiled ? ", tiled" : "");
}

TEST_P(CudaStateOpsTest, ShortConvEqualsTheDefinition) {
  for (const ConvOperation& one :
       {ConvOperation{1, 3, 0}, ConvOperation{200, 3, 0}, ConvOperation{33, 8, 0}}) {
    check_steps(one, name_of(one));
  }
}

TEST_P(CudaStateOpsTest, ShortConvForgetsDrafts) {
  for (const ConvOperation& one :
       {ConvOperation{150, 3, 4}, ConvOperation{70, 2, 1}, ConvOperation{8, 8, 15}}) {
    check_drafts(one, one.num_drafts, name_of(one));
  }
}

TEST_P(CudaStateOpsTest, ShortConvTakesPadding) {
  const ConvOperation one = {200, 3, 0};
  check_padding(one, name_of(one));
  check_bits(one, name_of(one));
}

TEST_P(CudaStateOpsTest, DeltaNetEqualsTheDefinition) {
  for (const DeltaNetShape& shape :
       {DeltaNetShape{1, 1, 2, 1, 2}, DeltaNetShape{2, 4, 8, 12, 4}, DeltaNetShape{1, 2, 64, 32, 3},
        DeltaNetShape{2, 4, 128, 128, 4}, DeltaNetShape{1, 3, 128, 128, 4},
        DeltaNetShape{2, 6, 8, 12, 4, true}, DeltaNetShape{3, 6, 128, 128, 4, true},
        DeltaNetShape{2, 6, 128, 128, 4, true}, DeltaNetShape{2, 8, 128, 128, 4, true}}) {
    const DeltaOperation one = {shape, 0};
    check_steps(one, name_of(one));
  }
}

TEST_P(CudaStateOpsTest, DeltaNetForgetsDrafts) {
  for (const int num_drafts : {1, 3, 7, 15}) {
    for (const DeltaNetShape& shape :
         {DeltaNetShape{2, 4, 8, 12, 4}, DeltaNetShape{1, 2, 128, 128, 4},
          DeltaNetShape{2, 6, 8, 12, 4, true}, DeltaNetShape{2, 6, 128, 128, 4, true}}) {
      const DeltaOperation one = {shape, num_drafts};
      check_drafts(one, num_drafts, name_of(one));
    }
  }
}

// More heads than SMs, in thread blocks that write pages that others read. Some steps verify no
// drafts. The sequences' drafts are accepted in other steps, and some sequences pad a step.
TEST_P(CudaStateOpsTest, DeltaNetForgetsDraftsOfManySequences) {
  constexpr int kNumSeqs = 10;
  constexpr int kEnd = 50;
  for (const int num_drafts : {2, 3, 15}) {
    const DeltaOperation one = {{8, 16, 128, 128, 4}, num_drafts};
    std::vector<std::vector<float>> expected;
    std::vector<std::vector<float>> got(kNumSeqs);
    std::vector<StatePart> parts;
    for (int i = 0; i < kNumSeqs; ++i) {
      StatePart part = {0, kEnd, static_cast<uint32_t>(i), pages_from(1 + 4 * i, kEnd)};
      StateSteps<DeltaOperation> whole = steps(one);
      whole.run({part});
      expected.push_back(whole.expected());
      part.end = 1 + i % 5;
      parts.push_back(part);
    }
    StateSteps<DeltaOperation> drafted = steps(one);
    std::vector<float> out = drafted.run(parts, false);
    for (int row = 0, i = 0; i < kNumSeqs; ++i) {
      StatePart& part = parts[static_cast<size_t>(i)];
      got[static_cast<size_t>(i)] = drafted.rows(out, row, row + part.end);
      row += part.end;
      part.begin = part.end;
      part.decodes = true;
    }
    const auto goes_on = [](const StatePart& part) { return part.begin >= 0; };
    for (int round = 0; std::ranges::any_of(parts, goes_on); ++round) {
      const int verified = round % 3 == 1 ? 0 : num_drafts;
      for (int i = 0; i < kNumSeqs; ++i) {
        StatePart& part = parts[static_cast<size_t>(i)];
        part.end = part.begin < 0 ? 0 : std::min(part.begin + 1 + verified, kEnd);
        part.right_end = std::min(part.begin + 1 + (round + i) % (num_drafts + 1), part.end);
      }
      out = drafted.run(parts, false, round % 2 == 0);
      for (int row = 0, i = 0; i < kNumSeqs; ++i) {
        StatePart& part = parts[static_cast<size_t>(i)];
        const int num_rows = part.end - part.begin;
        if (part.begin >= 0) {
          std::vector<float>& all = got[static_cast<size_t>(i)];
          all = append(all, drafted.rows(out, row, row + part.right_end - part.begin));
          part.begin = part.right_end < kEnd ? part.right_end : -1;  // -1: pads later steps
        }
        row += num_rows;
      }
    }
    for (size_t i = 0; i < kNumSeqs; ++i) {
      expect_close(got[i], expected[i], dtype(), name_of(one) + ", sequence " + std::to_string(i));
    }
  }
}

TEST_P(CudaStateOpsTest, DeltaNetTakesPadding) {
  for (const DeltaOperation& one :
       {DeltaOperation{{2, 4, 8, 12, 4}, 0}, DeltaOperation{{2, 4, 128, 128, 4}, 0},
        DeltaOperation{{2, 4, 8, 12, 4}, 3}, DeltaOperation{{2, 4, 128, 128, 4}, 3}}) {
    check_padding(one, name_of(one));
    check_bits(one, name_of(one));
  }
}

// The state after the kept tokens of a prompt is right, wherever its chunks begin.
TEST_P(CudaStateOpsTest, DeltaNetKeepsPartOfAPrompt) {
  const DeltaOperation one = {{1, 2, 128, 128, 4}, 0};
  for (const int kept_end : {134, 144, 150, 198}) {
    StateSteps<DeltaOperation> all = steps(one);
    const std::vector<int32_t> pages = pages_from(1, 240);
    all.run({{0, 70, 1, pages}});
    StatePart cut = {70, kept_end, 1, pages};
    all.run({cut});
    StatePart token = {kept_end, kept_end + 1, 1, pages};
    token.decodes = true;
    all.run({token});
    const std::vector<float> expected = all.expected();
    StateSteps<DeltaOperation> parts = steps(one);
    parts.run({{0, 70, 1, pages}}, false);
    StatePart beyond = {70, 200, 1, pages, kept_end};
    parts.run({beyond}, false);
    expect_close(parts.run({token}, false), expected, dtype(), std::to_string(kept_end));
  }
}

// Inputs as large as some published layers have, which overflow F16 if they are not normalized.
TEST_P(CudaStateOpsTest, DeltaNetTakesLargeInputs) {
  const DeltaOperation one = {{1, 2, 128, 128, 4}, 0, 200.0F};
  StateSteps<DeltaOperation> all = steps(one);
  const std::vector<float> got = all.run({{0, 100, 1, pages_from(1, 112)}});
  for (const float x : got) ASSERT_TRUE(std::isfinite(x));
}

// More sequences than a launch by chunks takes, and fewer and more heads than SMs.
TEST_P(CudaStateOpsTest, DeltaNetTakesManySequences) {
  for (const auto& [num_heads, num_seqs] : {std::pair{1, 1}, {1, 40}, {1, 70}, {1, 140}, {4, 40}}) {
    const DeltaOperation one = {{num_heads, num_heads, 128, 128, 4}, 0};
    StateSteps<DeltaOperation> all = steps(one);
    std::vector<StatePart> parts;
    for (int i = 0; i < num_seqs; ++i) {
      parts.push_back({0, 1 + i * 7 % 90, static_cast<uint32_t>(i), {}, kNever});
      parts.back().pages.assign(6, 0);
      if (i < 40)
        parts.back().pages[static_cast<size_t>((parts.back().end - 1) / kBlockSize)] = 1 + i;
    }
    all.check(parts, std::to_string(num_seqs) + " sequences");
    std::vector<StatePart> next;
    for (int i = 0; i < std::min(num_seqs, 40); ++i) {
      StatePart part = parts[static_cast<size_t>(i)];
      part.begin = part.end;
      ++part.end;
      const auto block = static_cast<size_t>(part.begin / kBlockSize);
      if (part.pages[block] == 0) part.pages[block] = 1 + i;
      part.decodes = true;
      next.push_back(part);
    }
    all.check(next, std::to_string(num_seqs) + " sequences, next tokens");
  }
}

// Prompts of many chunks, whose copies go round all stages: one sequence with all states kept, and
// more sequences than there are SMs for, with a few states. Both have the same bits.
TEST_P(CudaStateOpsTest, DeltaNetTakesLongPrompts) {
  const DeltaOperation one = {{1, 2, 128, 128, 4}, 0};
  StateSteps<DeltaOperation> alone = steps(one);
  const std::vector<int32_t> pages = pages_from(1, 736);
  alone.check({{0, 650, 1, pages}}, "650 tokens");
  alone.check({{650, 725, 1, pages}}, "75 more");
  alone.check({{144, 725, 1, pages}}, "from a kept state");

  constexpr int kNumSeqs = 40;
  StateSteps<DeltaOperation> beside = steps(one);
  std::vector<StatePart> parts;
  for (int i = 0; i < kNumSeqs; ++i) {
    const int end = i == 7 ? 650 : 1 + i * 53 % 400;
    StatePart part = {0, end, i == 7 ? 1U : static_cast<uint32_t>(100 + i), {}};
    part.pages.assign(52, 0);
    part.pages[static_cast<size_t>(end / kBlockSize)] = 1 + i;
    part.pages[static_cast<size_t>((end - 1) / kBlockSize)] = 1 + i;
    parts.push_back(part);
  }
  // The largest of 3 million errors is beyond the bar for those of the other tests.
  Bars bars = bars_of(dtype());
  bars.number *= 2;
  const std::vector<float> got = beside.run(parts);
  expect_close(got, beside.expected(), bars, "beside others");
  int row = 0;
  for (int i = 0; i < 7; ++i) row += parts[static_cast<size_t>(i)].end;
  StateSteps<DeltaOperation> again = steps(one);
  EXPECT_EQ(beside.rows(got, row, row + 650), again.run({{0, 650, 1, pages}}, false));
  for (StatePart& part : parts) {
    part.begin = part.end;
    part.end += 70;
  }
  expect_close(beside.run(parts), beside.expected(), bars, "70 more of each");
}

// A thread block has a head of a sequence, and then some of padding.
TEST_P(CudaStateOpsTest, DeltaNetTakesMuchPadding) {
  const DeltaOperation one = {{4, 4, 128, 128, 4}, 0};
  StateSteps<DeltaOperation> alone = steps(one);
  StateSteps<DeltaOperation> beside = steps(one);
  const std::vector<int32_t> pages = {1, 2};
  alone.run({{0, 20, 1, pages}});
  beside.run({{0, 20, 1, pages}}, false);
  for (int p = 20; p < 23; ++p) {
    StatePart token = {p, p + 1, 1, pages};
    token.decodes = true;
    alone.run({token});
    StatePart padding = {-1, 0, 1, {0}, 0};
    padding.decodes = true;
    std::vector<StatePart> parts(200, padding);
    parts.front() = token;
    expect_close(beside.rows(beside.run(parts, false), 0, 1), alone.expected(), dtype(),
                 "token " + std::to_string(p));
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CudaStateOpsTest,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16), dtype_of_test);

}  // namespace
}  // namespace quire::testing
