// What this machine can do at most: the parts that the roof of a recurrence is made of.
#include <chrono>

#include "yard.h"

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
using Vector = float __attribute__((vector_size(kBytes)));
// Enough chains to hide the latency of a multiply-add, and no more than registers hold beside two factors.
constexpr int kLanes = kBytes / 4, kChains = kBytes == 64 ? 24 : 12;

}  // namespace

YARDSTICK int64_t vector_bits() {
  return kBytes * 8;
}

// Floating-point operations a second of independent multiply-adds; a multiply-add counts as two.
YARDSTICK double multiply_add_rate(int64_t rounds) {
  Vector sums[kChains];
  for (int k = 0; k < kChains; ++k) sums[k] = Vector{} + static_cast<float>(k);
  const Vector a = Vector{} + 0.999f, b = Vector{} + 0.001f;
  const double start = now();
  for (int64_t i = 0; i < rounds; ++i) {
#pragma clang loop unroll(full)
    for (int k = 0; k < kChains; ++k) sums[k] = __builtin_elementwise_fma(sums[k], a, b);
#pragma clang loop unroll(full)
    for (int k = 0; k < kChains; ++k) asm volatile("" : "+v"(sums[k]));
  }
  return static_cast<double>(rounds) * kChains * kLanes * 2 / (now() - start);
}

// Operations a second of products of bytes, four by four: with `quads` by the instructions for neural networks of
// AVX-512 (0 where this machine has none), else by the three that AVX2 has, 0 without AVX2.
YARDSTICK double byte_product_rate(int64_t quads, int64_t rounds) {
#if defined(__AVX512F__) && defined(__AVX512VNNI__)
  if (quads != 0) {
    Vector sums[kChains] = {};
    const Vector a{}, b{};
    const double start = now();
    for (int64_t i = 0; i < rounds; ++i) {
#pragma clang loop unroll(full)
      for (int k = 0; k < kChains; ++k) asm volatile("vpdpbusd %2, %1, %0" : "+v"(sums[k]) : "v"(a), "v"(b));
    }
    return static_cast<double>(rounds) * kChains * 64 * 2 / (now() - start);
  }
#endif
#if defined(__AVX2__)
  if (quads == 0) {
    using Narrow = float __attribute__((vector_size(32)));
    constexpr int kSums = 8;
    Narrow sums[kSums] = {};
    const Narrow a{}, b{}, ones{};
    const double start = now();
    for (int64_t i = 0; i < rounds; ++i) {
#pragma clang loop unroll(full)
      for (int k = 0; k < kSums; ++k) {
        Narrow pairs;
        asm volatile("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(a), "x"(b));
        asm volatile("vpmaddwd %1, %0, %0" : "+x"(pairs) : "x"(ones));
        asm volatile("vpaddd %1, %0, %0" : "+x"(sums[k]) : "x"(pairs));
      }
    }
    return static_cast<double>(rounds) * kSums * 32 * 2 / (now() - start);
  }
#endif
  return 0;
}

// Bytes a second at which `bytes` of memory, a multiple of 1024, are read over and over.
YARDSTICK double read_rate(const float* data, int64_t bytes, int64_t rounds) {
  Vector sums[8] = {};
  constexpr int64_t kStep = 8 * kLanes;
  const double start = now();
  for (int64_t i = 0; i < rounds; ++i) {
    for (int64_t at = 0; at + kStep <= bytes / 4; at += kStep) {
      for (int k = 0; k < 8; ++k) {
        Vector v;
        std::memcpy(&v, data + at + k * kLanes, sizeof(v));
        sums[k] += v;
      }
    }
    for (int k = 0; k < 8; ++k) asm volatile("" : "+v"(sums[k]));
  }
  return static_cast<double>(bytes) * static_cast<double>(rounds) / (now() - start);
}
