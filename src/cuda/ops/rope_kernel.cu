// QK-norm, rotation and the write to the paged cache in one pass over qkv [num_tokens, heads *
// head_dim], computed in F32. The same threads copy the values.
//
// There are two mappings. Wide: 2^n lanes process a head. The first lanes have one 16-byte vector
// of either half of the rotated elements, so that both elements of a rotated pair are in one
// thread; the other lanes have two adjacent vectors of the rest. Generic: one warp per head,
// element by element, for head and rotation widths that are not divisible into such vectors.
//
// Multi-head latent attention has a separate kernel, with one warp per query head and one warp for
// the latent vector of a token.
#include <type_traits>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/op_kernels.h"

namespace quire::cuda {
namespace {

constexpr int kRopeBlock = 256;

struct RopeParams {
  const void* qkv;
  void* q_out;
  const float* cos_sin;
  const float* q_norm;
  const float* k_norm;
  const float* v_norm;
  const float* q_scale;  // null: none
  const int64_t* kv_slots;
  KvCacheView kv;
  float norm_eps;
  float value_scale;
  bool k_is_v;
  bool norms_after_rotation;
  int num_heads;
  int num_kv_heads;
  int head_dim;
  int value_dim;
  int64_t row_width;
  int rope_dim;
  int page_size;
  int64_t num_tokens;
};

enum class Role { kQuery, kKey, kValue };

// One head of one token: its role, and its destination.
struct HeadTask {
  Role role;
  const float* norm;   // null: none
  const float* scale;  // null: 1
  void* out;           // null: not written
  DType dtype;
  int64_t at;  // offset in out, in elements
};

template <typename T>
constexpr DType kDType = sizeof(T) == 4              ? DType::kF32
                         : std::is_same_v<T, __half> ? DType::kF16
                                                     : DType::kBF16;

template <typename T>
__device__ HeadTask head_task(const RopeParams& p, int64_t token, int head) {
  if (head < p.num_heads) {
    return {Role::kQuery, p.q_norm,  nullptr,
            p.q_out,      kDType<T>, (token * p.num_heads + head) * p.head_dim};
  }
  const int64_t kv_slot = p.kv_slots[token];
  const int64_t page = kv_slot / p.page_size;
  const int64_t place = kv_slot % p.page_size;
  head -= p.num_heads;
  if (head < p.num_kv_heads) {
    return {Role::kKey,
            p.k_norm,
            p.kv.k_scale,
            kv_slot < 0 ? nullptr : p.kv.k,
            p.kv.dtype,
            page * p.kv.page_stride_k + head * p.kv.head_stride_k + place * p.kv.token_stride_k};
  }
  head -= p.num_kv_heads;
  return {Role::kValue,
          p.v_norm,
          p.kv.v_scale,
          kv_slot < 0 ? nullptr : p.kv.v,
          p.kv.dtype,
          page * p.kv.page_stride_v + head * p.kv.head_stride_v + place * p.kv.token_stride_v};
}

// The offset of a head in qkv, in elements.
__device__ __forceinline__ int64_t source_of(const RopeParams& p, Role role, int64_t token,
                                             int head) {
  const int64_t row = token * p.row_width;
  if (role != Role::kValue) return row + int64_t{head} * p.head_dim;
  const int first_key = p.num_heads;
  const int value = head - first_key - p.num_kv_heads;
  if (p.k_is_v) return row + int64_t{first_key + value} * p.head_dim;
  return row + int64_t{first_key + p.num_kv_heads} * p.head_dim + int64_t{value} * p.value_dim;
}

// The factor of a head besides its norm.
__device__ __forceinline__ float head_factor(const RopeParams& p, Role role, int64_t token) {
  if (role == Role::kValue) return p.value_scale;
  return role == Role::kQuery && p.q_scale != nullptr ? p.q_scale[token] : 1.0F;
}

template <typename To, int kCount>
__device__ __forceinline__ void store_as(void* base, int64_t at, const float (&x)[kCount],
                                         float scale) {
  Vec<To, kCount> out;
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    out.v[j] = from_float<To>(sizeof(To) == 1 ? x[j] / scale : x[j]);
  }
  store_vec(static_cast<To*>(base) + at, out);
}

template <int kCount>
__device__ __forceinline__ void store(const HeadTask& task, int64_t offset,
                                      const float (&x)[kCount]) {
  const int64_t at = task.at + offset;
  switch (task.dtype) {
    case DType::kBF16:
      return store_as<__nv_bfloat16>(task.out, at, x, 1.0F);
    case DType::kF16:
      return store_as<__half>(task.out, at, x, 1.0F);
    case DType::kF8E4M3:
      return store_as<__nv_fp8_e4m3>(task.out, at, x, task.scale == nullptr ? 1.0F : *task.scale);
    default:
      return store_as<float>(task.out, at, x, 1.0F);
  }
}

// a and b are a head's elements [i, i + kCount) and [half + i, half + i + kCount).
template <int kCount>
__device__ __forceinline__ void rotate(const float* cos_sin, int half, int i, float (&a)[kCount],
                                       float (&b)[kCount]) {
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float cosine = cos_sin[i + j];
    const float sine = cos_sin[half + i + j];
    const float turned = a[j] * cosine - b[j] * sine;
    b[j] = b[j] * cosine + a[j] * sine;
    a[j] = turned;
  }
}

// x has a head's elements [first, first + kCount), in which adjacent elements form pairs; first and
// kCount are even.
template <int kCount>
__device__ __forceinline__ void rotate_neighbours(const float* cos_sin, int half, int first,
                                                  float (&x)[kCount]) {
#pragma unroll
  for (int j = 0; j < kCount; j += 2) {
    const float cosine = cos_sin[(first + j) / 2];
    const float sine = cos_sin[half + (first + j) / 2];
    const float turned = x[j] * cosine - x[j + 1] * sine;
    x[j + 1] = x[j + 1] * cosine + x[j] * sine;
    x[j] = turned;
  }
}

// The angles of elements [i, i + kCount) and of their partners. load() may precede the loads of the
// elements.
template <int kCount>
struct HalvesAngles {
  float cosines[kCount];
  float sines[kCount];

  // cos_sin, half and i are whole vectors of 16 bytes.
  __device__ __forceinline__ void load(const float* cos_sin, int half, int i) {
    load_floats(cos_sin + i, cosines);
    load_floats(cos_sin + half + i, sines);
  }
  __device__ __forceinline__ void rotate(float (&a)[kCount], float (&b)[kCount]) const {
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const float turned = a[j] * cosines[j] - b[j] * sines[j];
      b[j] = b[j] * cosines[j] + a[j] * sines[j];
      a[j] = turned;
    }
  }
};

template <int kCount>
__device__ __forceinline__ void scale_by(float scale, float (&x)[kCount]) {
#pragma unroll
  for (int j = 0; j < kCount; ++j) x[j] *= scale;
}

template <int kCount>
__device__ __forceinline__ void scale_by(float scale, const float* weight, float (&x)[kCount]) {
#pragma unroll
  for (int j = 0; j < kCount; ++j) x[j] *= scale * weight[j];
}

__device__ __forceinline__ float norm_scale(float squares, int width, float eps) {
  return 1.0F / sqrtf(squares / static_cast<float>(width) + eps);
}

// Rotates elements [0, rope_dim) by one warp. load(d) returns element d before the rotation, and
// put(d, x) receives it afterwards.
template <RotaryPairs kPairs, typename Load, typename Put>
__device__ __forceinline__ void rotate_by_warp(const float* cos_sin, int rope_dim, const Load& load,
                                               const Put& put) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int i = lane; i < rope_dim / 2; i += 32) {
    const int one = kPairs == RotaryPairs::kHalves ? i : 2 * i;
    const int other = kPairs == RotaryPairs::kHalves ? rope_dim / 2 + i : 2 * i + 1;
    float a[1] = {load(one)};
    float b[1] = {load(other)};
    rotate(cos_sin, rope_dim / 2, i, a, b);
    put(one, a[0]);
    put(other, b[0]);
  }
}

// The scale of an RMSNorm over x[0, width), computed by a warp; width is a multiple of kVec.
template <int kVec = 1, typename T>
__device__ __forceinline__ float norm_scale_by_warp(const T* x, int width, float eps) {
  float squares = 0;
  for (int d = static_cast<int>(threadIdx.x) % 32 * kVec; d < width; d += 32 * kVec) {
    float numbers[kVec];
    load_floats(x + d, numbers);
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares += numbers[j] * numbers[j];
  }
  return norm_scale(warp_sum(squares), width, eps);
}

// Requires head_dim == 2 * group * kVec, where group is a power of two up to 32, value_dim ==
// head_dim, and whole vectors in either half of the rotated elements. Before the wait, the kernel
// reads the norms' weights, which are constant, and the slots, which a kernel of step/ wrote. All
// other loads follow the wait at once.
template <typename T, RotaryPairs kPairs>
__global__ void rope_wide_kernel(RopeParams p, int group) {
  constexpr int kVec = kWidestVec<T>;
  trigger_dependent_launch();
  const int num_heads = p.num_heads + 2 * p.num_kv_heads;
  const int64_t item = int64_t{blockIdx.x} * (kRopeBlock / group) + threadIdx.x / group;
  const int64_t token = item / num_heads;
  const int head = static_cast<int>(item % num_heads);
  const bool is_valid = token < p.num_tokens;  // all lanes take part in the shuffles
  const int half = p.rope_dim / 2;
  const int lane = static_cast<int>(threadIdx.x) % group;
  const bool is_rotated = lane * 2 * kVec < p.rope_dim;
  // The first elements of the lane's vectors.
  const int one = is_rotated ? lane * kVec : lane * 2 * kVec;
  const int other = is_rotated ? half + one : one + kVec;
  HeadTask task = {};
  float one_weights[kVec] = {};
  float other_weights[kVec] = {};
  if (is_valid) {
    task = head_task<T>(p, token, head);
    if (task.norm != nullptr) {
#pragma unroll
      for (int j = 0; j < kVec; ++j) {
        one_weights[j] = task.norm[one + j];
        other_weights[j] = task.norm[other + j];
      }
    }
  }
  wait_for_previous_kernel();
  const bool turns = is_rotated && is_valid && head < p.num_heads + p.num_kv_heads;
  const float* const cos_sin = p.cos_sin + token * p.rope_dim;
  HalvesAngles<kVec> angles;
  if (kPairs == RotaryPairs::kHalves && turns) angles.load(cos_sin, half, one);
  float a[kVec] = {};
  float b[kVec] = {};
  if (is_valid) {
    const T* x = static_cast<const T*>(p.qkv) + source_of(p, task.role, token, head);
    const Vec<T, kVec> first = load_vec<kVec>(x + one);
    const Vec<T, kVec> second = load_vec<kVec>(x + other);
#pragma unroll
    for (int j = 0; j < kVec; ++j) {
      a[j] = to_float(first.v[j]);
      b[j] = to_float(second.v[j]);
    }
  }
  const auto turn = [&] {
    if (!turns) return;
    if constexpr (kPairs == RotaryPairs::kHalves) {
      angles.rotate(a, b);
    } else {
      rotate_neighbours(cos_sin, half, one, a);
      rotate_neighbours(cos_sin, half, other, b);
    }
  };
  if (p.norms_after_rotation) turn();
  float squares = 0;
  if (p.q_norm != nullptr || p.k_norm != nullptr || p.v_norm != nullptr) {
#pragma unroll
    for (int j = 0; j < kVec; ++j) squares += a[j] * a[j] + b[j] * b[j];
    squares = warp_sum(squares, group);
  }
  if (!is_valid) return;
  if (task.norm != nullptr) {
    const float scale = norm_scale(squares, p.head_dim, p.norm_eps);
    scale_by(scale, one_weights, a);
    scale_by(scale, other_weights, b);
  }
  if (!p.norms_after_rotation) turn();
  const float factor = head_factor(p, task.role, token);
  scale_by(factor, a);
  scale_by(factor, b);
  if (task.out == nullptr) return;
  store(task, one, a);
  store(task, other, b);
}

template <typename T, RotaryPairs kPairs>
__global__ void rope_generic_kernel(RopeParams p) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int num_heads = p.num_heads + 2 * p.num_kv_heads;
  const int64_t item = int64_t{blockIdx.x} * (kRopeBlock / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t token = item / num_heads;
  if (token >= p.num_tokens) return;  // the whole warp returns
  const int head = static_cast<int>(item % num_heads);
  const HeadTask task = head_task<T>(p, token, head);
  if (task.out == nullptr) return;
  const bool is_value = task.role == Role::kValue;
  const T* x = static_cast<const T*>(p.qkv) + source_of(p, task.role, token, head);
  const int head_dim = is_value ? p.value_dim : p.head_dim;
  const int rope_dim = is_value ? 0 : p.rope_dim;
  const auto scaled_by = [&](float scale) {
    return [=](int d, float number) {
      return task.norm == nullptr ? number : number * (scale * task.norm[d]);
    };
  };
  // Calls put(d, element d after the rotation) for the lane's elements.
  const auto rotate_all = [&](const auto& load, const auto& put) {
    rotate_by_warp<kPairs>(p.cos_sin + token * p.rope_dim, rope_dim, load, put);
    for (int d = rope_dim + lane; d < head_dim; d += 32) put(d, load(d));
  };
  const float factor = head_factor(p, task.role, token);
  const auto finish = [&](int d, float number) {
    const float finished[1] = {number * factor};
    store(task, d, finished);
  };
  const auto plain = [&](int d) { return to_float(x[d]); };
  if (task.norm != nullptr && p.norms_after_rotation) {
    float squares = 0;
    rotate_all(plain, [&](int /*d*/, float number) { squares += number * number; });
    const auto normed = scaled_by(norm_scale(warp_sum(squares), head_dim, p.norm_eps));
    return rotate_all(plain, [&](int d, float number) { finish(d, normed(d, number)); });
  }
  const auto normed =
      scaled_by(task.norm == nullptr ? 1.0F : norm_scale_by_warp(x, head_dim, p.norm_eps));
  rotate_all([&](int d) { return normed(d, plain(d)); }, finish);
}

struct LatentParams {
  const void* q;
  void* q_out;
  const void* latent;
  const float* cos_sin;
  const float* norm;
  const float* q_scale;  // null: none
  const int64_t* kv_slots;
  KvCacheView kv;
  float norm_eps;
  int num_heads;
  int q_width;
  int q_out_width;
  int latent_dim;
  int rope_dim;
  int page_size;
  int64_t num_tokens;
};

// One warp per query head of a token, which rotates the end of the head and scales all of it, and
// one warp for the token's latent vector. A lane loads kVec elements of the latent vector at a
// time.
template <typename T, RotaryPairs kPairs, int kVec>
__global__ void latent_rope_kernel(LatentParams p) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t item = int64_t{blockIdx.x} * (kRopeBlock / 32) + threadIdx.x / 32;
  const int64_t token = item / (p.num_heads + 1);
  const int head = static_cast<int>(item % (p.num_heads + 1));
  if (token >= p.num_tokens) return;  // the whole warp returns
  const float* cos_sin = p.cos_sin + token * p.rope_dim;
  if (head < p.num_heads) {
    const int64_t row = token * p.num_heads + head;
    const T* x = static_cast<const T*>(p.q) + (row + 1) * p.q_width - p.rope_dim;
    T* out = static_cast<T*>(p.q_out) + row * p.q_out_width;
    const int end = p.q_out_width - p.rope_dim;
    const float scale = p.q_scale == nullptr ? 1.0F : p.q_scale[token];
    rotate_by_warp<kPairs>(
        cos_sin, p.rope_dim, [&](int d) { return to_float(x[d]); },
        [&](int d, float number) { out[end + d] = from_float<T>(number * scale); });
    if (p.q_scale == nullptr) return;
    for (int d = static_cast<int>(threadIdx.x) % 32; d < end; d += 32) {
      out[d] = from_float<T>(to_float(out[d]) * scale);
    }
    return;
  }
  const int64_t kv_slot = p.kv_slots[token];
  if (kv_slot < 0) return;
  const T* x = static_cast<const T*>(p.latent) + token * (p.latent_dim + p.rope_dim);
  const HeadTask task = {
      Role::kKey,
      p.norm,
      p.kv.k_scale,
      p.kv.k,
      p.kv.dtype,
      kv_slot / p.page_size * p.kv.page_stride_k + kv_slot % p.page_size * p.kv.token_stride_k};
  const float scale = norm_scale_by_warp<kVec>(x, p.latent_dim, p.norm_eps);
  for (int d = static_cast<int>(threadIdx.x) % 32 * kVec; d < p.latent_dim; d += 32 * kVec) {
    float numbers[kVec];
    load_floats(x + d, numbers);
    scale_by(scale, p.norm + d, numbers);
    store(task, d, numbers);
  }
  rotate_by_warp<kPairs>(
      cos_sin, p.rope_dim, [&](int d) { return to_float(x[p.latent_dim + d]); },
      [&](int d, float number) {
        const float rotated[1] = {number};
        store(task, p.latent_dim + d, rotated);
      });
}

// Lanes per head in the wide mapping, or 0 if a width, stride or address is not divisible.
int wide_group(const RopeAndCache& args, int64_t rope_dim, int vec) {
  const int group = args.head_dim / (2 * vec);
  const bool divides = args.value_dim() == args.head_dim && group > 0 && group <= 32 &&
                       (group & (group - 1)) == 0 && group * 2 * vec == args.head_dim &&
                       rope_dim % (2 * vec) == 0;
  const KvCacheView& kv = args.kv;
  const auto store_bytes = vec * static_cast<int64_t>(dtype_bytes(kv.dtype));
  const auto aligned = [&](const void* base, int64_t page, int64_t head, int64_t token) {
    return page % vec == 0 && head % vec == 0 && token % vec == 0 &&
           is_aligned({base}, static_cast<size_t>(store_bytes));
  };
  const bool fits = is_aligned({args.qkv.data, args.q_out.data, args.cos_sin.data}, 16) &&
                    aligned(kv.k, kv.page_stride_k, kv.head_stride_k, kv.token_stride_k) &&
                    aligned(kv.v, kv.page_stride_v, kv.head_stride_v, kv.token_stride_v);
  return divides && fits ? group : 0;
}

// Whether latent vectors are divisible into vectors of `vec` elements, in memory and in the cache.
bool has_latent_vectors(const LatentRopeAndCache& args, const LatentParams& p, int vec) {
  const auto store_bytes = static_cast<size_t>(vec) * dtype_bytes(args.kv.dtype);
  return p.latent_dim % vec == 0 && p.rope_dim % vec == 0 && args.kv.page_stride_k % vec == 0 &&
         args.kv.token_stride_k % vec == 0 && is_aligned({args.latent.data}, 16) &&
         is_aligned({args.kv.k}, store_bytes);
}

template <typename Kernel, typename... Args>
void launch_heads(const LaunchContext& context, Kernel kernel, int64_t num_heads, int lanes,
                  const Args&... args) {
  QUIRE_LAUNCH(*context.stream, kernel,
               context.shape(ceil_div(num_heads, kRopeBlock / lanes), kRopeBlock), args...);
}

// Calls body(std::type_identity<type of activations>(), std::bool_constant<pairs are kHalves>()).
template <typename Body>
void with_type_and_pairs(DType dtype, RotaryPairs pairs, const Body& body) {
  with_float_type(dtype, [&](auto type) {
    with_bool(pairs == RotaryPairs::kHalves, [&](auto in_halves) { body(type, in_halves); });
  });
}

}  // namespace

void run_rope_and_cache(const LaunchContext& context, const RopeAndCache& args) {
  RopeParams p = {};
  p.qkv = args.qkv.data;
  p.q_out = args.q_out.data;
  p.cos_sin = args.cos_sin.as<const float>();
  p.q_norm = args.q_norm;
  p.k_norm = args.k_norm;
  p.v_norm = args.v_norm;
  p.k_is_v = args.k_is_v;
  p.q_scale = args.q_scale;
  p.kv_slots = args.kv_slots;
  p.kv = args.kv;
  p.norm_eps = args.norm_eps;
  p.value_scale = args.value_scale;
  p.norms_after_rotation = args.norms_after_rotation;
  p.num_heads = args.num_heads;
  p.num_kv_heads = args.num_kv_heads;
  p.head_dim = args.head_dim;
  p.value_dim = args.value_dim();
  p.row_width = args.row_width();
  p.rope_dim = static_cast<int>(args.cos_sin.shape[1]);
  p.page_size = args.page_size;
  p.num_tokens = args.qkv.shape[0];
  const int64_t num_heads = p.num_tokens * (p.num_heads + 2 * p.num_kv_heads);
  with_type_and_pairs(args.qkv.dtype, args.pairs, [&](auto type, auto in_halves) {
    using T = typename decltype(type)::type;
    constexpr auto kPairs = in_halves.value ? RotaryPairs::kHalves : RotaryPairs::kNeighbours;
    const int group = wide_group(args, p.rope_dim, kWidestVec<T>);
    if (group > 0) {
      return launch_heads(context, rope_wide_kernel<T, kPairs>, num_heads, group, p, group);
    }
    launch_heads(context, rope_generic_kernel<T, kPairs>, num_heads, 32, p);
  });
}

void run_latent_rope_and_cache(const LaunchContext& context, const LatentRopeAndCache& args) {
  LatentParams p = {};
  p.q = args.q.data;
  p.q_out = args.q_out.data;
  p.latent = args.latent.data;
  p.cos_sin = args.cos_sin.as<const float>();
  p.norm = args.norm;
  p.q_scale = args.q_scale;
  p.kv_slots = args.kv_slots;
  p.kv = args.kv;
  p.norm_eps = args.norm_eps;
  p.num_heads = static_cast<int>(args.q.shape[1]);
  p.q_width = static_cast<int>(args.q.shape[2]);
  p.q_out_width = static_cast<int>(args.q_out.shape[2]);
  p.rope_dim = static_cast<int>(args.cos_sin.shape[1]);
  p.latent_dim = static_cast<int>(args.latent.shape[1]) - p.rope_dim;
  p.page_size = args.page_size;
  p.num_tokens = args.latent.shape[0];
  with_type_and_pairs(args.latent.dtype, args.pairs, [&](auto type, auto in_halves) {
    using T = typename decltype(type)::type;
    constexpr auto kPairs = in_halves.value ? RotaryPairs::kHalves : RotaryPairs::kNeighbours;
    constexpr int kVec = kWidestVec<T>;
    const auto kernel = has_latent_vectors(args, p, kVec) ? latent_rope_kernel<T, kPairs, kVec>
                                                          : latent_rope_kernel<T, kPairs, 1>;
    launch_heads(context, kernel, p.num_tokens * (p.num_heads + 1), 32, p);
  });
}

}  // namespace quire::cuda
