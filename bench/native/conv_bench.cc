// Convolutions of real models. The counter is arithmetic per second.

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <new>
#include <numbers>
#include <vector>

#include "kernels/conv_folded.h"

namespace treadle::kernels {
namespace {

struct AlignedBytes {
  explicit AlignedBytes(size_t bytes) : data(::operator new(bytes + 1, std::align_val_t(kKernelAlignment))) {}
  ~AlignedBytes() { ::operator delete(data, std::align_val_t(kKernelAlignment)); }
  AlignedBytes(const AlignedBytes&) = delete;
  AlignedBytes& operator=(const AlignedBytes&) = delete;
  void* data;
};

// in channels, height, width, out channels, groups, kernel height, width, stride height, width, pad height, width
void BM_Conv(benchmark::State& state) {
  ConvShape s;
  const auto at = [&](size_t i) { return state.range(i); };
  s.in_channels = at(0), s.out_channels = at(3), s.groups = at(4);
  for (size_t i = 0; i < 2; ++i) {
    s.input[i] = at(1 + i), s.kernel[i] = at(5 + i), s.stride[i] = at(7 + i), s.pad_begin[i] = at(9 + i);
    s.output[i] = (s.input[i] + 2 * s.pad_begin[i] - s.kernel[i]) / s.stride[i] + 1;
  }
  const ConvPlan plan = prepare_conv(ComputeType::kF32, s);
  const auto size = [](int64_t count) { return static_cast<size_t>(count); };
  const int64_t weight_count = s.out_channels * s.in_channels / s.groups * s.kernel[0] * s.kernel[1];
  const int64_t outputs = s.out_channels * s.output[0] * s.output[1];
  std::vector<float> x(size(s.in_channels * s.input[0] * s.input[1]), 0.5f), w(size(weight_count), 0.25f),
      bias(size(s.out_channels)), y(size(outputs));
  AlignedBytes scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
  pack_conv_weights(plan, w.data(), packed.data);
  make_conv_table(plan, table.data);
  for (auto _ : state) {
    run_conv(plan, {x.data(), packed.data, bias.data(), y.data(), scratch.data, nullptr, table.data});
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  const double flop = 2.0 * static_cast<double>(weight_count) * static_cast<double>(s.output[0] * s.output[1]);
  state.counters["flop/s"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(BM_Conv)
    // super resolution
    ->Args({1, 224, 224, 64, 1, 5, 5, 1, 1, 2, 2})
    ->Args({64, 224, 224, 64, 1, 3, 3, 1, 1, 1, 1})
    ->Args({32, 224, 224, 9, 1, 3, 3, 1, 1, 1, 1})
    // residual network
    ->Args({3, 128, 128, 32, 1, 7, 7, 2, 2, 3, 3})
    ->Args({32, 32, 32, 32, 1, 3, 3, 1, 1, 1, 1})
    ->Args({32, 32, 32, 64, 1, 3, 3, 2, 2, 1, 1})
    ->Args({64, 16, 16, 64, 1, 3, 3, 1, 1, 1, 1})
    ->Args({128, 8, 8, 128, 1, 3, 3, 1, 1, 1, 1})
    ->Args({32, 32, 32, 64, 1, 1, 1, 2, 2, 0, 0})
    // mobile network
    ->Args({3, 160, 160, 16, 1, 3, 3, 2, 2, 1, 1})
    ->Args({16, 80, 80, 48, 1, 1, 1, 1, 1, 0, 0})
    ->Args({48, 80, 80, 48, 48, 3, 3, 2, 2, 1, 1})
    ->Args({48, 40, 40, 24, 1, 1, 1, 1, 1, 0, 0})
    ->Args({72, 40, 40, 72, 72, 3, 3, 1, 1, 1, 1})
    ->Args({160, 20, 20, 160, 160, 3, 3, 1, 1, 1, 1})
    ->Args({160, 10, 10, 80, 1, 1, 1, 1, 1, 0, 0})
    ->Args({160, 1, 1, 40, 1, 1, 1, 1, 1, 0, 0})
    // text direction
    ->Args({24, 12, 96, 24, 24, 3, 3, 2, 1, 1, 1})
    ->Args({200, 3, 96, 200, 200, 5, 5, 1, 1, 2, 2})
    // text recognition
    ->Args({3, 48, 320, 16, 1, 3, 3, 2, 2, 1, 1})
    ->Args({240, 6, 80, 240, 240, 5, 5, 1, 1, 2, 2})
    ->Args({240, 6, 80, 240, 1, 1, 1, 1, 1, 0, 0})
    ->Args({480, 1, 40, 60, 1, 1, 3, 1, 1, 0, 1})
    // pitch tracking
    ->Args({1, 1, 44100, 36, 1, 1, 256, 1, 256, 0, 0})
    ->Args({1, 1, 2996, 36, 1, 1, 256, 1, 16, 0, 0})
    ->Args({1, 1, 598, 36, 1, 1, 256, 1, 2, 0, 0})
    ->Args({1, 1, 44098, 1, 1, 1, 256, 1, 2, 0, 0})
    ->Args({8, 172, 264, 8, 1, 3, 39, 1, 1, 1, 19})
    ->Args({8, 172, 264, 32, 1, 5, 5, 1, 3, 2, 1})
    ->Args({32, 172, 88, 1, 1, 7, 3, 1, 1, 3, 1})
    // voice activity
    ->Args({1, 1, 640, 258, 1, 1, 256, 1, 128, 0, 0})
    ->Args({129, 1, 4, 128, 1, 1, 3, 1, 1, 0, 1})
    ->Args({128, 1, 4, 64, 1, 1, 3, 1, 2, 0, 1});

// The transform of frames, filters for the real and the imaginary parts: length, step, frames, batch, whether it folds.
void BM_Transform(benchmark::State& state) {
  const int64_t length = state.range(0);
  ConvShape s;
  s.axes = 1, s.batch = state.range(3), s.out_channels = length + 2;
  s.kernel[0] = length, s.stride[0] = state.range(1), s.output[0] = state.range(2);
  s.input[0] = length + (s.output[0] - 1) * s.stride[0];
  std::vector<float> w;
  for (int64_t f = 0; f < s.out_channels; ++f) {
    const int64_t k = f % (length / 2 + 1);
    for (int64_t n = 0; n < length; ++n) {
      const double turn = 2 * std::numbers::pi / static_cast<double>(length);
      const double angle = turn * static_cast<double>(k * n % length),
                   window = 0.5 - 0.5 * std::cos(turn * static_cast<double>(n));
      w.push_back(static_cast<float>(window * (f == k ? std::cos(angle) : std::sin(angle))));
    }
  }
  ConvPlan plan = prepare_conv(ComputeType::kF32, s);
  const Fold fold = fold_weights(ComputeType::kF32, s, w.data());
  const bool folds = state.range(4) != 0;
  if (folds) fold_conv(plan, fold);
  AlignedBytes scratch(plan.scratch_bytes), packed(plan.packed_weight_bytes), table(plan.table_bytes);
  folds ? make_folded_table(plan, fold, table.data) : make_conv_table(plan, table.data);
  pack_conv_weights(plan, w.data(), packed.data);
  std::vector<float> x(static_cast<size_t>(s.batch * s.input[0]), 0.5f);
  std::vector<float> y(static_cast<size_t>(s.batch * s.out_channels * s.output[0]));
  for (auto _ : state) {
    run_conv(plan, {x.data(), packed.data, nullptr, y.data(), scratch.data, nullptr, table.data});
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  const double flop = 2.0 * static_cast<double>(length) * static_cast<double>(y.size());
  state.counters["flop/s"] = benchmark::Counter(flop, benchmark::Counter::kIsIterationInvariantRate);
}

BENCHMARK(BM_Transform)
    ->ArgNames({"length", "step", "frames", "batch", "folds"})
    // a spectrogram of a second, a frame of a stream, a voice detector
    ->ArgsProduct({{400}, {160}, {98}, {1}, {0, 1}})
    ->ArgsProduct({{512}, {128}, {1}, {1, 32}, {0, 1}})
    ->ArgsProduct({{256}, {128}, {4}, {1, 25, 64, 200}, {0, 1}});

}  // namespace
}  // namespace treadle::kernels
