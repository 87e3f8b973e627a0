// One unit of a large product or convolution asks whether to stop, and computes the same afterwards.

#include <fmt/format.h>

#include <functional>

#include "base/thread_pool.h"
#include "kernels/conv.h"
#include "kernels/conv_shapes.h"
#include "kernels/kernel_test_util.h"
#include "kernels/qgemm.h"

namespace treadle::kernels {
namespace {

constexpr int64_t kElements = int64_t{1} << 21;

class StoppedUnitsTest : public EachIsa {
 protected:
  // Drawing so many numbers would take longer than the products.
  template <class T>
  static std::vector<T> values(size_t count) {
    std::vector<T> made(count);
    for (size_t i = 0; i < count; ++i) made[i] = static_cast<T>(i * 7 % 31);
    return made;
  }

  // run(y): writes `bytes` bytes.
  void check(const std::string& what, size_t bytes, const std::function<void(void*)>& run) {
    std::vector<std::byte> whole(bytes), stopped(bytes);
    run(whole.data());
    {
      const ThreadScope scope(1, {[](const void*) { return true; }, nullptr});
      run(stopped.data());
      EXPECT_TRUE(was_stopped()) << what << " did not ask";
    }
    run(stopped.data());
    EXPECT_TRUE(stopped == whole) << what << " differs after a stop";
  }

  // k steps; `kElements` weights give their number.
  template <class T>
  void check_product(ComputeType type, int64_t m, int64_t n, bool packed) {
    GemmShape s;
    s.m = m, s.n = n, s.k = kElements / n, s.a_row = s.k, s.b_row = n, s.c_row = n, s.b_packed = packed;
    const auto a = values<T>(static_cast<size_t>(m * s.k));
    const auto b = values<T>(static_cast<size_t>(s.k * n));
    const GemmPlan plan = prepare_gemm(type, s);
    Scratch panels(plan.packed_b_bytes), scratch(plan.scratch_bytes);
    if (packed) pack_b(plan, b.data(), panels.get());
    const void* operand = packed ? panels.get() : static_cast<const void*>(b.data());
    check(fmt::format("[{}, {}] x [{}, {}]{}", m, s.k, s.k, n, packed ? ", packed" : ""),
          static_cast<size_t>(m * n) * sizeof(T),
          [&](void* c) { run_gemm(plan, a.data(), operand, nullptr, c, scratch.get()); });
  }

  void check_bytes(int64_t m, int64_t n) {
    QGemmShape s;
    s.m = m, s.n = n, s.k = kElements / n, s.a_row = s.k, s.b_row = n, s.c_row = n, s.b_packed = true;
    const auto a = values<uint8_t>(static_cast<size_t>(m * s.k));
    const auto b = values<uint8_t>(static_cast<size_t>(s.k * n));
    const QGemmPlan plan = prepare_qgemm(s);
    Scratch panels(plan.packed_b_bytes), scratch(plan.scratch_bytes);
    pack_qgemm_b(plan, b.data(), panels.get());
    const uint8_t zero = 3;
    check(fmt::format("[{}, {}] x [{}, {}] of bytes", m, s.k, s.k, n), static_cast<size_t>(m * n) * 4,
          [&](void* c) { run_qgemm(plan, {a.data(), panels.get(), &zero, &zero, c, scratch.get()}, QGemmEpilogue{}); });
  }

  static size_t elements(int64_t channels, const Spatial& plane) {
    return static_cast<size_t>(channels * plane[0] * plane[1]);
  }

  // The first unit alone.
  template <class T>
  void check_convolution(const char* what, const ConvShape& s) {
    const ConvPlan plan = prepare_conv(std::is_same_v<T, double> ? ComputeType::kF64 : ComputeType::kF32, s);
    const auto x = values<T>(elements(s.in_channels, s.input));
    const auto w = values<T>(weights_of(s));
    Scratch packed(plan.packed_weight_bytes), scratch(plan.scratch_bytes), table(plan.table_bytes);
    pack_conv_weights(plan, w.data(), packed.get());
    make_conv_table(plan, table.get());
    check(what, elements(s.out_channels, s.output) * sizeof(T), [&](void* y) {
      run_conv_range(plan, {x.data(), packed.get(), nullptr, y, scratch.get(), nullptr, table.get()}, 0, 1);
    });
  }

  void check_byte_convolution(const char* what, const ConvShape& conv) {
    QConvShape s;
    s.conv = conv;
    const QConvPlan plan = prepare_qconv(s);
    const auto x = values<uint8_t>(elements(conv.in_channels, conv.input));
    const auto w = values<uint8_t>(weights_of(conv));
    Scratch packed(plan.packed_weight_bytes), scratch(plan.scratch_bytes);
    pack_qconv_weights(plan, w.data(), packed.get());
    check(what, elements(conv.out_channels, conv.output) * 4, [&](void* y) {
      plan.run(plan, {x.data(), packed.get(), nullptr, nullptr, y, scratch.get()}, QGemmEpilogue{}, 0, 1);
    });
  }
};

TREADLE_EACH_ISA(StoppedUnitsTest);

TEST_P(StoppedUnitsTest, Products) {
  for (const bool packed : {false, true}) {
    for (const int64_t m : {2, 3, 40}) {
      for (const int64_t n : {1, 2, 3, 40, 1024}) {
        check_product<float>(ComputeType::kF32, m, n, packed);
        check_product<double>(ComputeType::kF64, m, n, packed);
      }
    }
  }
}

TEST_P(StoppedUnitsTest, ProductsOfBytes) {
  for (const int64_t m : {2, 3, 40}) {
    for (const int64_t n : {1, 3, 40, 1024}) check_bytes(m, n);
  }
}

TEST_P(StoppedUnitsTest, Convolutions) {
  constexpr int64_t kDeep = kElements / 9;
  check_convolution<float>("one filter", square_conv(kDeep, 1, 3, 1, 4));
  check_convolution<double>("one filter of doubles", square_conv(kDeep, 1, 3, 1, 4));
  check_convolution<float>("three filters, many positions", square_conv(kDeep / 3, 3, 3, 1, 9));
  check_convolution<double>("three filters of doubles, many positions", square_conv(kDeep / 3, 3, 3, 1, 9));
  check_convolution<float>("64 filters", square_conv(kDeep / 64, 64, 3, 1, 18));
  check_convolution<float>("1x1", square_conv(kElements / 64, 64, 1, 1, 8));
  check_convolution<float>("1x1, one filter", square_conv(kElements, 1, 1, 1, 3));
  check_convolution<float>("transposed", transposed(square_conv(kDeep / 64, 64, 3, 1, 6)));
  check_convolution<float>("transposed, large kernel", transposed(square_conv(1, 1, 60, 1, 60)));
  check_convolution<float>("depthwise, large plane", square_conv(1, 1, 3, 1, 1600));
  check_convolution<double>("large kernel", square_conv(1, 1, 100, 1, 200));
}

TEST_P(StoppedUnitsTest, ConvolutionsChannelsLast) {
  for (const ConvShape& s :
       {square_conv(64, 64, 3, 64, 20'000), square_conv(32, 32, 5, 32, 20'000), square_conv(4000, 64, 1, 1, 120)}) {
    ConvShape last = s;
    last.input[0] = last.output[0] = last.kernel[0] = 1;
    last.x_nhwc = last.y_nhwc = conv_layouts(ComputeType::kF32, last).x;
    check_convolution<float>("channels last", last);
  }
}

TEST_P(StoppedUnitsTest, ConvolutionsOfBytes) {
  constexpr int64_t kDeep = kElements / 9;
  check_byte_convolution("one filter of bytes", square_conv(kDeep, 1, 3, 1, 4));
  check_byte_convolution("three filters of bytes", square_conv(kDeep / 3, 3, 3, 1, 9));
  check_byte_convolution("many filters of bytes", square_conv(900, 512, 3, 1, 18));
}

}  // namespace
}  // namespace treadle::kernels
