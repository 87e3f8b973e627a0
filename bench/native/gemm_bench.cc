// Matrix products: GEMV on packed panels as recurrences use it, small products without packing, and large ones.
// Arguments: m, n, k. The counter is arithmetic per second; for a GEMV divide it by two and multiply by the element
// size to get the bandwidth of B.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <new>
#include <vector>

#include "kernels/gemm.h"

namespace treadle::kernels {
namespace {

struct AlignedBytes {
  explicit AlignedBytes(size_t bytes) : data(::operator new(bytes + 1, std::align_val_t(kKernelAlignment))) {}
  ~AlignedBytes() { ::operator delete(data, std::align_val_t(kKernelAlignment)); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  void* data;
};

void run(benchmark::State& state, bool packed, bool transposed) {
  GemmShape shape;
  shape.m = state.range(0), shape.n = state.range(1), shape.k = state.range(2);
  shape.a_row = shape.k;
  shape.b_row = transposed ? 1 : shape.n;
  shape.b_col = transposed ? shape.k : 1;
  shape.c_row = shape.n;
  shape.b_packed = packed;
  const GemmPlan plan = prepare_gemm(ComputeType::kF32, shape);
  std::vector<float> a(static_cast<size_t>(shape.m * shape.k), 0.5f), b(static_cast<size_t>(shape.k * shape.n), 0.25f),
      bias(static_cast<size_t>(shape.n)), c(static_cast<size_t>(shape.m * shape.n));
  AlignedBytes scratch(plan.scratch_bytes), panels(plan.packed_b_bytes);
  pack_b(plan, b.data(), panels.data);
  GemmOperands operands{a.data(), packed ? panels.data : b.data(), bias.data(), c.data(), scratch.data};
  for (auto _ : state) {
    run_gemm_range(plan, operands, {0, shape.m, 0, shape.n});
    operands.backward = plan.alternates && !operands.backward;  // as runs of a loop
    benchmark::DoNotOptimize(c.data());
    benchmark::ClobberMemory();
  }
  state.counters["flop/s"] = benchmark::Counter(2.0 * static_cast<double>(shape.m * shape.n * shape.k),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void BM_GemmPacked(benchmark::State& state) {
  run(state, true, false);
}
void BM_GemmDirect(benchmark::State& state) {
  run(state, false, false);
}
void BM_GemmTransposed(benchmark::State& state) {
  run(state, false, true);
}

void gemv_sizes(benchmark::internal::Benchmark* b) {
  for (int64_t m : {1, 2, 4, 8, 16}) {
    for (const auto& [n, k] :
         {std::pair<int64_t, int64_t>{64, 64}, {256, 64}, {256, 256}, {512, 128}, {1024, 256}, {1, 1024}}) {
      b->Args({m, n, k});
    }
  }
}
void gemm_sizes(benchmark::internal::Benchmark* b) {
  for (int64_t size : {64, 128, 256, 512, 1024}) b->Args({size, size, size});
  b->Args({128, 1024, 256});
}

BENCHMARK(BM_GemmPacked)->Apply(gemv_sizes)->Apply(gemm_sizes);
BENCHMARK(BM_GemmDirect)->Args({8, 8, 8})->Args({1, 64, 64})->Args({4, 4, 4})->Args({1, 1, 64})->Apply(gemm_sizes);
BENCHMARK(BM_GemmTransposed)->Args({1, 64, 64})->Args({16, 64, 64})->Apply(gemm_sizes);

}  // namespace
}  // namespace treadle::kernels
