#include "exec/machine_roof.h"

#include <algorithm>
#include <chrono>

#include "base/buffer.h"
#include "kernels/dispatch.h"
#include "kernels/gemm.h"

namespace treadle::exec {

namespace {

constexpr int kTurns = 3;  // the best of so many

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

// Two operands read and a result written, as an elementwise step does.
double measure_bandwidth(size_t bytes) {
  const size_t count = bytes / 3 / sizeof(float);
  std::vector<float> a(count, 1.0f), b(count, 2.0f), c(count);
  const kernels::Row add = kernels::elementwise_rows(kernels::ElementwiseOp::kAdd, ComputeType::kF32).vv;
  const size_t repeats = std::max<size_t>(1, (size_t{1} << 19) / bytes);
  const double ns = best_ns([&] {
    for (size_t i = 0; i < repeats; ++i) add(a.data(), b.data(), c.data(), count, nullptr);
  });
  return static_cast<double>(3 * count * sizeof(float) * repeats) / ns;
}

MachineRoof measure() {
  MachineRoof roof;
  roof.flops_per_ns = measure_flops();
  constexpr size_t kKilobyte = 1024;
  for (const size_t bytes : {24 * kKilobyte, 512 * kKilobyte, 8192 * kKilobyte, 65536 * kKilobyte}) {
    roof.levels.push_back({bytes, measure_bandwidth(bytes)});
  }
  return roof;
}

}  // namespace

double MachineRoof::bytes_per_ns(double working_set) const {
  for (const Level& level : levels) {
    if (working_set <= static_cast<double>(level.bytes)) return level.bytes_per_ns;
  }
  return levels.empty() ? 1 : levels.back().bytes_per_ns;
}

double MachineRoof::trip_ns(double flops, double bytes) const {
  return std::max(flops / flops_per_ns, bytes / bytes_per_ns(bytes));
}

const MachineRoof& machine_roof() {
  static const MachineRoof roof = measure();
  return roof;
}

}  // namespace treadle::exec
