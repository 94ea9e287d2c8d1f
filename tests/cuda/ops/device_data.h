// Test data on the device: seeded numbers of any type, their copy to the host, and poison in memory
// that must not be read or written.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "cuda/base/device_info.h"
#include "cuda/base/memory.h"
#include "cuda/ops/cuda_ops.h"
#include "cuda/ops/op_kernels.h"
#include "support/reference_ops.h"
#include "support/value_of.h"
#include "tensor/dtype.h"

namespace quire::testing {

inline std::vector<float> random_floats(int64_t count, uint32_t seed, float scale = 1.0F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

inline std::vector<std::byte> encode(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half = dtype == DType::kBF16  ? f32_to_bf16(values[i])
                          : dtype == DType::kF16 ? f32_to_f16(values[i])
                                                 : uint16_t{0};
    if (dtype == DType::kF32) std::memcpy(bytes.data() + 4 * i, &values[i], 4);
    if (dtype_bytes(dtype) == 2) std::memcpy(bytes.data() + 2 * i, &half, 2);
    if (dtype == DType::kF8E4M3) bytes[i] = std::byte{f32_to_e4m3(values[i])};
  }
  return bytes;
}

inline std::vector<float> decode(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<float> values(bytes.size() / dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    if (dtype == DType::kF32) std::memcpy(&values[i], bytes.data() + 4 * i, 4);
    if (dtype_bytes(dtype) == 2) std::memcpy(&half, bytes.data() + 2 * i, 2);
    if (dtype == DType::kBF16) values[i] = bf16_to_f32(half);
    if (dtype == DType::kF16) values[i] = f16_to_f32(half);
    if (dtype == DType::kF8E4M3) values[i] = e4m3_to_f32(std::to_integer<uint8_t>(bytes[i]));
  }
  return values;
}

// The values after rounding to the type.
inline std::vector<float> rounded(const std::vector<float>& values, DType dtype) {
  return decode(encode(values, dtype), dtype);
}

inline float tolerance(DType dtype) {
  return dtype == DType::kBF16 ? 1e-2F : dtype == DType::kF16 ? 2e-3F : 2e-5F;
}

// One row as run_quantize_rows rounds it.
inline std::vector<float> quantized_row(std::span<const float> x) {
  float largest = 0;
  for (const float number : x) largest = std::fmax(largest, std::abs(number));
  const float scale = e4m3_scale(largest);
  const float inverse = 1.0F / scale;
  std::vector<float> out;
  for (const float number : x) out.push_back(e4m3_to_f32(f32_to_e4m3(number * inverse)) * scale);
  return out;
}

// One row as run_quantize_blocks rounds it.
inline std::vector<float> block_quantized_row(std::span<const float> x) {
  constexpr auto kBlock = static_cast<size_t>(cuda::kScaleColumns);
  std::vector<float> out;
  for (size_t first = 0; first < x.size(); first += kBlock) {
    const std::vector<float> part =
        quantized_row(x.subspan(first, std::min(kBlock, x.size() - first)));
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

// A copy of device memory.
inline std::vector<std::byte> bytes_of(cuda::CudaStream& stream, const TensorView& view) {
  std::vector<std::byte> bytes(view.num_bytes());
  stream.copy_to_host(bytes.data(), view.data, bytes.size());
  EXPECT_EQ(stream.synchronize().message(), "");
  return bytes;
}

inline TensorView host_view(std::vector<float>& values, int64_t rows) {
  const int64_t columns = rows == 0 ? 0 : static_cast<int64_t>(values.size()) / rows;
  return {values.data(), DType::kF32, {rows, columns}};
}

// |actual - expected| ≤ tolerance * (1 + |expected|); NaN is never close.
inline void expect_near_all(const std::vector<float>& actual, const std::vector<float>& expected,
                            float tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  size_t num_wrong = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool close = std::abs(actual[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i]));
    if (close || ++num_wrong > 3) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", expected "
                  << expected[i];
  }
  EXPECT_EQ(num_wrong, 0U) << what;
}

// Device memory followed by a guard.
class DeviceData {
 public:
  static constexpr size_t kGuardBytes = 512;

  // Poisoned: every byte 0xFF, which is NaN in each float type.
  DeviceData(cuda::CudaStream& stream, const Shape& shape, DType dtype, size_t offset_bytes = 0)
      : stream_(stream), offset_(offset_bytes) {
    view_ = {nullptr, dtype, shape};
    memory_ = cuda::device_memory(offset_ + view_.num_bytes() + kGuardBytes).value();
    view_.data = static_cast<std::byte*>(memory_.data()) + offset_;
    poison();
  }
  DeviceData(cuda::CudaStream& stream, const Shape& shape, DType dtype,
             const std::vector<float>& values, size_t offset_bytes = 0)
      : DeviceData(stream, shape, dtype, offset_bytes) {
    set(values);
  }
  template <typename T>
  static DeviceData of_ints(cuda::CudaStream& stream, const std::vector<T>& values) {
    DeviceData data(stream, {static_cast<int64_t>(values.size())},
                    sizeof(T) == 8 ? DType::kI64 : DType::kI32);
    data.write(values.data());
    return data;
  }

  const TensorView& view() const { return view_; }
  template <typename T>
  T* as() const {
    return view_.as<T>();
  }

  void set(const std::vector<float>& values) { write(encode(values, view_.dtype).data()); }
  void poison() {
    stream_.record_error(cudaMemsetAsync(memory_.data(), 0xFF, memory_.num_bytes(), stream_.get()),
                         "poison");
  }
  void write(const void* bytes) {
    stream_.copy_to_device(view_.data, bytes, view_.num_bytes());
    EXPECT_EQ(stream_.synchronize().message(), "");
  }

  // Reads the memory. Fails the test if the guard was overwritten.
  std::vector<std::byte> bytes() {
    std::vector<std::byte> all(memory_.num_bytes());
    stream_.copy_to_host(all.data(), memory_.data(), all.size());
    EXPECT_EQ(stream_.synchronize().message(), "");
    const size_t end = offset_ + view_.num_bytes();
    for (size_t i = 0; i < all.size(); ++i) {
      if (i >= offset_ && i < end) continue;
      EXPECT_EQ(all[i], std::byte{0xFF}) << "guard byte " << i;
    }
    return {all.begin() + static_cast<ptrdiff_t>(offset_),
            all.begin() + static_cast<ptrdiff_t>(end)};
  }
  std::vector<float> values() { return decode(bytes(), view_.dtype); }

 private:
  cuda::CudaStream& stream_;
  size_t offset_;
  Buffer memory_;
  TensorView view_;
};

// The work that `body` enqueues, to be launched any number of times.
class CapturedGraph {
 public:
  CapturedGraph(cuda::CudaStream& stream, const std::function<void()>& body) : stream_(stream) {
    EXPECT_EQ(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), cudaSuccess);
    body();
    EXPECT_EQ(cudaStreamEndCapture(stream.get(), &graph_), cudaSuccess);
    EXPECT_EQ(cudaGraphInstantiate(&executable_, graph_, 0), cudaSuccess);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  ~CapturedGraph() {
    EXPECT_EQ(cudaGraphExecDestroy(executable_), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph_), cudaSuccess);
  }

  void launch() { EXPECT_EQ(cudaGraphLaunch(executable_, stream_.get()), cudaSuccess); }

 private:
  cuda::CudaStream& stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// Skips its tests if there is no GPU.
class CudaOpsTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    const Status status = cuda::open_device(0).status();
    if (!status.ok()) GTEST_SKIP() << status.message();
    stream_ = cuda::CudaStream::create().value();
    ops_ = value_of(cuda::CudaOps::create(*stream_, GetParam()));
  }
  void TearDown() override {
    if (stream_ == nullptr) return;
    EXPECT_EQ(stream_->synchronize().message(), "");
  }

  DType dtype() const { return GetParam(); }
  cuda::CudaStream& stream() { return *stream_; }
  std::vector<float> random(int64_t count, uint32_t seed, float scale = 1.0F) const {
    return rounded(random_floats(count, seed, scale), dtype());
  }
  DeviceData device(const Shape& shape, const std::vector<float>& values) {
    return DeviceData(stream(), shape, dtype(), values);
  }
  DeviceData blank(const Shape& shape) { return DeviceData(stream(), shape, dtype()); }

  // Runs `body`, then captures and replays it; the bytes of `out` must be the same. `reset`
  // restores inputs that `body` changes, and poisons outputs.
  void expect_capturable(const std::function<void()>& body, DeviceData& out,
                         const std::function<void()>& reset) {
    reset();
    body();
    const std::vector<std::byte> eager = out.bytes();
    reset();
    ASSERT_EQ(stream().synchronize().message(), "");
    CapturedGraph graph(stream(), body);
    graph.launch();
    EXPECT_EQ(out.bytes(), eager);
  }

  std::unique_ptr<cuda::CudaStream> stream_;
  std::unique_ptr<cuda::CudaOps> ops_;
  ReferenceOps reference_;
};

inline std::string dtype_of_test(const ::testing::TestParamInfo<DType>& info) {
  return std::string(dtype_name(info.param));
}

}  // namespace quire::testing
