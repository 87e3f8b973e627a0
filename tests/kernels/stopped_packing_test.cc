// Packing of large weights asks whether to stop, ends when it is told to, and packs the same afterwards.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/thread_pool.h"
#include "kernels/block_weights.h"
#include "kernels/conv.h"
#include "kernels/conv_folded.h"
#include "kernels/conv_shapes.h"
#include "kernels/kernel_test_util.h"
#include "kernels/qgemm.h"

namespace treadle::kernels {
namespace {

constexpr int64_t kElements = int64_t{1} << 21;

class StoppedPackingTest : public EachIsa {
 protected:
  // A packer that is told to stop at the first question leaves most of its output unwritten.
  void check(const std::string& what, size_t bytes, const std::function<void(void*)>& pack) {
    std::vector<std::byte> whole(bytes), stopped(bytes);
    pack(whole.data());
    {
      const ThreadScope scope(1, {[](const void*) { return true; }, nullptr});
      pack(stopped.data());
      EXPECT_TRUE(was_stopped()) << what << " did not ask";
    }
    const auto written = std::count_if(stopped.begin(), stopped.end(), [](std::byte b) { return b != std::byte(); });
    EXPECT_LT(written, static_cast<std::ptrdiff_t>(bytes / 2)) << what << " went on";
    std::fill(stopped.begin(), stopped.end(), std::byte());
    pack(stopped.data());
    EXPECT_TRUE(stopped == whole) << what << " packs otherwise after a stop";
  }

  template <class T>
  void check_product(ComputeType type, int64_t k, int64_t n, bool transposed) {
    GemmShape s;
    s.m = 3, s.n = n, s.k = k, s.a_row = k, s.c_row = n, s.b_packed = true;
    s.b_row = transposed ? 1 : n, s.b_col = transposed ? k : 1;
    const auto b = random_values<T>(random_, static_cast<size_t>(k * n));
    for (const bool half : {false, true}) {
      s.b_half = half;
      const GemmPlan plan = prepare_gemm(type, s);
      check(fmt::format("product of {} x {}{}{}", k, n, transposed ? ", transposed" : "", half ? ", halves" : ""),
            plan.packed_b_bytes, [&](void* to) { pack_b(plan, b.data(), to); });
    }
  }

  void check_bytes(int64_t k, int64_t n, bool fits) {
    QGemmShape s;
    s.m = 3, s.n = n, s.k = k, s.a_row = k, s.b_row = n, s.c_row = n, s.b_signed = true, s.b_packed = true;
    auto b = random_values<uint8_t>(random_, static_cast<size_t>(k * n));
    for (uint8_t& byte : b) byte = fits ? byte % 60 : byte;
    const QGemmPlan plan = prepare_qgemm(s);
    check(fmt::format("product of {} x {} bytes{}", k, n, fits ? " that fit" : ""), plan.packed_b_bytes,
          [&](void* to) { pack_qgemm_b(plan, b.data(), to); });
  }

  template <class T>
  void check_convolution(const char* what, const ConvShape& s) {
    const auto w = random_values<T>(random_, weights_of(s));
    const ConvPlan plan = prepare_conv(std::is_same_v<T, double> ? ComputeType::kF64 : ComputeType::kF32, s);
    check(what, plan.packed_weight_bytes, [&](void* to) { pack_conv_weights(plan, w.data(), to); });
  }

  void check_byte_convolution(const char* what, const ConvShape& conv, bool fits) {
    QConvShape s;
    s.conv = conv;
    s.w_signed = true;
    auto w = random_values<uint8_t>(random_, weights_of(conv));
    for (uint8_t& byte : w) byte = fits ? byte % 60 : byte;
    const QConvPlan plan = prepare_qconv(s);
    check(what, plan.packed_weight_bytes, [&](void* to) { pack_qconv_weights(plan, w.data(), to); });
  }
};

TREADLE_EACH_ISA(StoppedPackingTest);

TEST_P(StoppedPackingTest, Products) {
  for (const bool transposed : {false, true}) {
    for (const int64_t n : {1, 2, 3, 40, 1024}) {
      check_product<float>(ComputeType::kF32, kElements / n, n, transposed);
      check_product<double>(ComputeType::kF64, kElements / n, n, transposed);
      check_product<int64_t>(ComputeType::kI64, kElements / n, n, transposed);
    }
  }
  check_product<float>(ComputeType::kF32, 3, kElements / 3, false);
}

TEST_P(StoppedPackingTest, ProductsOfStoredBytes) {
  GemmShape s;
  s.m = 3, s.n = 1000, s.k = kElements / 1000, s.a_row = s.k, s.c_row = s.n, s.b_row = s.n;
  s.b_packed = true, s.b_bytes = true;
  const auto bytes = random_values<uint8_t>(random_, static_cast<size_t>(s.n * s.k));
  const auto scales = random_values<float>(random_, static_cast<size_t>(s.n));
  const ByteColumns columns{bytes.data(), 0x80, scales.data(), 1};
  const GemmPlan plan = prepare_gemm(ComputeType::kF32, s);
  check("stored bytes", plan.packed_b_bytes, [&](void* to) { pack_b(plan, &columns, to); });
}

TEST_P(StoppedPackingTest, ProductsOfBytes) {
  for (const bool fits : {false, true}) {
    for (const int64_t n : {1, 33, 2000}) check_bytes(kElements / n, n, fits);
  }
}

TEST_P(StoppedPackingTest, FewBits) {
  for (const bool zeros : {false, true}) {
    for (const int64_t n : {1, 1000}) {
      BlockWeights w;
      w.k = 8 * kElements / n, w.n = n, w.has_zeros = zeros;
      const auto codes = random_values<uint8_t>(random_, static_cast<size_t>(n * w.blocks() * w.words() * 4));
      const auto scales = random_values<float>(random_, static_cast<size_t>(n * w.blocks()));
      check(fmt::format("few bits in {} columns", n), w.packed_bytes(), [&](void* to) {
        pack_block_weights(w, reinterpret_cast<const std::byte*>(codes.data()), scales.data(),
                           zeros ? scales.data() : nullptr, to);
      });
    }
  }
}

TEST_P(StoppedPackingTest, Convolutions) {
  const int64_t c = static_cast<int64_t>(std::sqrt(kElements / 9.0)), few = kElements / 9 / 3;
  check_convolution<float>("dense", square_conv(c, c, 3, 1, 9));
  check_convolution<double>("dense of doubles", square_conv(c, c, 3, 1, 9));
  check_convolution<float>("few filters", square_conv(few, 3, 3, 1, 9));
  check_convolution<float>("one filter of one channel", square_conv(1, 1, 1400, 1, 1410));
  check_convolution<float>("one position", square_conv(c, c, 3, 1, 3));
  check_convolution<float>("1x1", square_conv(1400, 1400, 1, 1, 5));
  check_convolution<float>("groups", square_conv(4 * c, c, 3, 4, 7));
  check_convolution<float>("depthwise", square_conv(kElements / 9, kElements / 9, 3, kElements / 9, 6));
  check_convolution<float>("transposed", transposed(square_conv(c, c, 3, 1, 5)));
  check_convolution<float>("transposed, few filters", transposed(square_conv(few, 3, 3, 1, 5)));
  check_convolution<double>("transposed, doubles", transposed(square_conv(c, c, 3, 1, 5)));
  ConvShape last = square_conv(c, c, 3, 1, 9);
  const ConvLayouts layouts = conv_layouts(ComputeType::kF32, last);
  last.x_nhwc = layouts.x, last.y_nhwc = layouts.y;
  check_convolution<float>("channels last", last);
  last = square_conv(kElements / 9, kElements / 9, 3, kElements / 9, 6);
  last.x_nhwc = last.y_nhwc = conv_layouts(ComputeType::kF32, last).x;
  check_convolution<float>("depthwise, channels last", last);
  ConvShape padded = square_conv(c, c, 7, 1, 9);
  padded.input[0] = padded.output[0] = 1, padded.pad_begin[0] = 3;
  check_convolution<float>("taps in the padding", padded);
}

TEST_P(StoppedPackingTest, ConvolutionsThatFold) {
  constexpr int64_t kLength = 1024;
  ConvShape s;
  s.axes = 1, s.out_channels = kLength, s.kernel[0] = kLength, s.stride[0] = 256, s.input[0] = 4096, s.output[0] = 13;
  std::vector<float> w;
  for (int64_t f = 0; f < kLength; ++f) {
    for (int64_t t = 0; t < kLength; ++t) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(f / 2 * t) / kLength;
      w.push_back(static_cast<float>(f % 2 != 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
  const Fold fold = fold_weights(ComputeType::kF32, s, w.data());
  ASSERT_GT(fold.split_count, 0);
  ConvPlan plan = prepare_conv(ComputeType::kF32, s);
  fold_conv(plan, fold);
  check("a transform", plan.packed_weight_bytes, [&](void* to) { pack_conv_weights(plan, w.data(), to); });
  const ThreadScope scope(1, {[](const void*) { return true; }, nullptr});
  EXPECT_EQ(fold_weights(ComputeType::kF32, s, w.data()).split_count, 0);
  EXPECT_TRUE(was_stopped());
}

TEST_P(StoppedPackingTest, ConvolutionsOfBytes) {
  const int64_t c = static_cast<int64_t>(std::sqrt(kElements / 9.0));
  for (const bool fits : {false, true}) {
    check_byte_convolution("dense bytes", square_conv(c, c, 3, 1, 9), fits);
    check_byte_convolution("bytes of two channels", square_conv(2, kElements / 50, 5, 1, 9), fits);
    check_byte_convolution("1x1 of bytes", square_conv(1400, 1400, 1, 1, 5), fits);
    check_byte_convolution("one filter of bytes", square_conv(1, 4, 700, 1, 705), fits);
    check_byte_convolution("groups of bytes", square_conv(900 * 16, 900 * 16, 3, 900, 5), fits);
    check_byte_convolution("small groups of bytes", square_conv(14'000 * 4, 14'000 * 4, 3, 14'000, 5), fits);
    check_byte_convolution("small groups of two channels", square_conv(14'000 * 2, 14'000 * 6, 3, 14'000, 5), fits);
    check_byte_convolution("depthwise bytes", square_conv(kElements, kElements, 3, kElements, 5), fits);
  }
}

}  // namespace
}  // namespace treadle::kernels
