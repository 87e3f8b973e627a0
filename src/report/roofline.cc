#include "report/roofline.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/buffer.h"
#include "kernels/dispatch.h"
#include "kernels/gemm.h"

namespace treadle::report {

namespace {

constexpr int kTurns = 3;  // the best of so many measurements

template <class Work>
double best_ns(Work&& work) {
  using Clock = std::chrono::steady_clock;
  double best = 1e30;
  for (int turn = 0; turn < kTurns; ++turn) {
    const auto begin = Clock::now();
    work();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
  }
  return std::max(best, 1.0);
}

double measure_flops() {
  constexpr int64_t kSize = 128;
  kernels::GemmShape shape;
  shape.m = shape.n = shape.k = shape.a_row = shape.b_row = shape.c_row = kSize;
  shape.b_packed = true;
  const kernels::GemmPlan plan = kernels::prepare_gemm(ComputeType::kF32, shape);
  std::vector<float> a(kSize * kSize, 0.5f), b = a, c = a;
  const BufferRef packed = BufferRef::allocate(plan.packed_b_bytes), scratch = BufferRef::allocate(plan.scratch_bytes);
  if (!packed || !scratch) return 1;
  kernels::pack_b(plan, b.data(), packed->data());
  const double ns =
      best_ns([&] { kernels::run_gemm(plan, a.data(), packed->data(), nullptr, c.data(), scratch->data()); });
  return 2.0 * kSize * kSize * kSize / ns;
}

// A matrix with rows short enough to be read one after the other.
double measure_bandwidth(size_t bytes) {
  kernels::GemmShape shape;
  shape.m = 1;
  shape.n = shape.b_row = shape.c_row = 128;
  shape.k = shape.a_row = static_cast<int64_t>(bytes / sizeof(float)) / shape.n;
  const kernels::GemmPlan plan = kernels::prepare_gemm(ComputeType::kF32, shape);
  const std::vector<float> row(static_cast<size_t>(shape.k), 0.5f), matrix(static_cast<size_t>(shape.k * shape.n), 1.f);
  std::vector<float> result(static_cast<size_t>(shape.n));
  const BufferRef scratch = BufferRef::allocate(std::max<size_t>(plan.scratch_bytes, 64));
  if (!scratch) return 1;
  const size_t repeats = std::max<size_t>(1, (size_t{1} << 20) / bytes);
  const double ns = best_ns([&] {
    for (size_t i = 0; i < repeats; ++i) {
      kernels::run_gemm(plan, row.data(), matrix.data(), nullptr, result.data(), scratch->data());
    }
  });
  return static_cast<double>(matrix.size() * sizeof(float) * repeats) / ns;
}

double measure_function() {
  const kernels::Row exp = kernels::elementwise_rows(kernels::ElementwiseOp::kExp, ComputeType::kF32).vv;
  constexpr size_t kCount = 4096;
  std::vector<float> from(kCount, 0.3f), to(kCount);
  return best_ns([&] { exp(from.data(), nullptr, to.data(), kCount, nullptr); }) / kCount;
}

double measure_latency() {
  constexpr int kCount = 10'000;
  volatile float start = 1, step = 1e-3f;
  return best_ns([&] {
           float sum = start;
           const float each = step;
           for (int i = 0; i < kCount; ++i) sum += each;
           start = sum;
         }) /
         kCount;
}

Roofline measure() {
  Roofline roof;
  roof.flops_per_ns = measure_flops();
  roof.function_ns = measure_function();
  roof.latency_ns = measure_latency();
  constexpr size_t kKilobyte = 1024;
  for (const size_t bytes : {24 * kKilobyte, 256 * kKilobyte, 1024 * kKilobyte, 8192 * kKilobyte, 65536 * kKilobyte}) {
    roof.levels.push_back({bytes, measure_bandwidth(bytes)});
  }
  return roof;
}

}  // namespace

double Roofline::bytes_per_ns(double working_set) const {
  for (size_t i = 0; i < levels.size(); ++i) {
    const double size = static_cast<double>(levels[i].bytes), rate = levels[i].bytes_per_ns;
    if (working_set > size) continue;
    if (i == 0) return rate;
    // Interpolates between two sizes, linear in the logarithm of the size.
    const double smaller = static_cast<double>(levels[i - 1].bytes), faster = levels[i - 1].bytes_per_ns;
    return faster + (rate - faster) * std::log(working_set / smaller) / std::log(size / smaller);
  }
  return levels.empty() ? 1 : levels.back().bytes_per_ns;
}

const Roofline& measured_roofline() {
  static const Roofline roof = measure();
  return roof;
}

}  // namespace treadle::report
