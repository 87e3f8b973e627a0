// ns per call of a prepared elementwise plan, by operation and number of elements.

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/elementwise.h"
#include "kernels/move.h"
#include "kernels/normalize.h"
#include "kernels/reduce.h"

namespace treadle::kernels {
namespace {

using Op = ElementwiseOp;

struct Case {
  Op op;
  ElementType type;
  unsigned scalar_mask = 0;
  const char* note = "";
};

const Case kCases[] = {
    {Op::kAdd, ElementType::kFloat},    {Op::kAdd, ElementType::kFloat, 2, "scalar"},
    {Op::kAdd, ElementType::kInt64},    {Op::kAdd, ElementType::kFloat16},
    {Op::kMul, ElementType::kFloat},    {Op::kDiv, ElementType::kFloat},
    {Op::kDiv, ElementType::kInt64},    {Op::kLess, ElementType::kFloat},
    {Op::kPow, ElementType::kFloat},    {Op::kWhere, ElementType::kFloat},
    {Op::kRelu, ElementType::kFloat},   {Op::kExp, ElementType::kFloat},
    {Op::kExp, ElementType::kDouble},   {Op::kLog, ElementType::kFloat},
    {Op::kTanh, ElementType::kFloat},   {Op::kTanh, ElementType::kDouble},
    {Op::kTanh, ElementType::kFloat16}, {Op::kSigmoid, ElementType::kFloat},
    {Op::kErf, ElementType::kFloat},    {Op::kGeluErf, ElementType::kFloat},
    {Op::kSin, ElementType::kFloat},    {Op::kAtan, ElementType::kFloat},
};

void elementwise(benchmark::State& state, const Case& c) {
  const auto n = static_cast<size_t>(state.range(0));
  std::vector<double> memory[4];
  for (auto& m : memory) m.assign(n + 1, 0);
  for (size_t i = 0; i < n * 8 / byte_width(c.type) && c.op != Op::kWhere; ++i) {
    std::byte* a = reinterpret_cast<std::byte*>(memory[0].data()) + i * byte_width(c.type);
    if (c.type == ElementType::kFloat) *reinterpret_cast<float*>(a) = 0.001f * static_cast<float>(i % 1000);
    if (c.type == ElementType::kDouble) *reinterpret_cast<double*>(a) = 0.001 * static_cast<double>(i % 1000);
  }
  if (c.type == ElementType::kInt64) {
    for (double& v : memory[1]) *reinterpret_cast<int64_t*>(&v) = 3;
  }
  ElementwisePlan plan;
  if (!prepare_elementwise(&plan, c.op, c.type, n, c.scalar_mask).ok()) return state.SkipWithError("no rows");
  const void* in[] = {memory[0].data(), memory[1].data(), memory[2].data()};
  for (auto _ : state) {
    benchmark::DoNotOptimize(plan(in, memory[3].data()));
    benchmark::ClobberMemory();
  }
}

void softmax_rows(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  std::vector<float> x(n, 0.5f), y(n);
  for (auto _ : state) {
    softmax(SoftmaxKind::kSoftmax, ElementType::kFloat, x.data(), y.data(), 1, n, 1);
    benchmark::ClobberMemory();
  }
}

void layer_norm_rows(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0));
  std::vector<float> x(n, 0.5f), y(n), scale(n, 1), bias(n, 0);
  NormRows norm;
  norm.rows = 1;
  norm.n = n;
  for (auto _ : state) {
    norm(x.data(), scale.data(), bias.data(), y.data(), nullptr, nullptr);
    benchmark::ClobberMemory();
  }
}

void reduce_sum(benchmark::State& state) {
  const int64_t dims[] = {state.range(0)};
  const bool reduced[] = {true};
  std::vector<float> x(static_cast<size_t>(dims[0]), 0.5f);
  float y;
  ReducePlan plan;
  if (!prepare_reduce(&plan, ReduceOp::kSum, ElementType::kFloat, dims, reduced).ok()) return state.SkipWithError("no");
  for (auto _ : state) {
    plan(x.data(), &y);
    benchmark::DoNotOptimize(y);
  }
}

void transpose(benchmark::State& state) {
  const int64_t n = state.range(0);
  const int64_t dims[] = {n, n};
  const int64_t permutation[] = {1, 0};
  std::vector<float> x(static_cast<size_t>(n * n)), y(x.size());
  CopyPlan plan;
  if (!prepare_transpose(&plan, 4, dims, permutation).ok()) return state.SkipWithError("no");
  for (auto _ : state) {
    plan(x.data(), y.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * n * n * 8);
}

void prepare(benchmark::State& state) {
  ElementwisePlan plan;
  for (auto _ : state) {
    benchmark::DoNotOptimize(prepare_elementwise(&plan, Op::kAdd, ElementType::kFloat, 64, 0).ok());
  }
}

int register_cases() {
  for (const Case& c : kCases) {
    const std::string label =
        std::string(info(c.op).name) + "/" + std::string(name(c.type)) + (*c.note ? std::string("/") + c.note : "");
    benchmark::RegisterBenchmark(label.c_str(), [&c](benchmark::State& state) { elementwise(state, c); })
        ->Arg(1)
        ->Arg(8)
        ->Arg(64)
        ->Arg(4096);
  }
  return 0;
}
[[maybe_unused]] const int kRegistered = register_cases();

BENCHMARK(softmax_rows)->Arg(8)->Arg(64)->Arg(4096);
BENCHMARK(layer_norm_rows)->Arg(8)->Arg(64)->Arg(4096);
BENCHMARK(reduce_sum)->Arg(1)->Arg(8)->Arg(64)->Arg(4096);
BENCHMARK(transpose)->Arg(8)->Arg(64)->Arg(512);
BENCHMARK(prepare);

}  // namespace
}  // namespace treadle::kernels
