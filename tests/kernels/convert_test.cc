// Conversions against references written from the formats' definitions: every 8- and 16-bit pattern both ways, random
// and exact-halfway values, on every instruction set.

#include "kernels/convert.h"

#include <algorithm>

#include "kernels/dispatch.h"
#include "tests/kernels/rows.h"

namespace treadle::kernels::testing {
namespace {

using Type = ElementType;

class ConvertTest : public ::testing::TestWithParam<Isa> {
 protected:
  ConvertTest() : scope_(GetParam()) {}

  template <class From, class To>
  static std::vector<To> cast_all(Type from, Type to, const std::vector<From>& x, const CastOptions& options = {}) {
    std::vector<To> y(x.size());
    cast(from, to, x.data(), y.data(), x.size(), options);
    return y;
  }

 private:
  ScopedIsa scope_;
};
INSTANTIATE_TEST_SUITE_P(, ConvertTest, ::testing::ValuesIn(usable_isas()), isa_name);

// A float format by its definition.
struct Format {
  Type type;
  int exponent_bits, mantissa_bits, bias;
  enum { kIeee, kNanOnly, kUnsignedZero, kFinite } specials;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  bool is_nan(int code) const {
    const int magnitude = code & ((1 << (bits() - 1)) - 1);
    const int infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    if (specials == kIeee) return magnitude > infinity;
    if (specials == kNanOnly) return magnitude == (1 << (bits() - 1)) - 1;
    return specials == kUnsignedZero && code == 1 << (bits() - 1);
  }
  double value(int code) const {
    const int mantissa = code & ((1 << mantissa_bits) - 1);
    const int exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const double sign = code >> (bits() - 1) ? -1 : 1;
    if (is_nan(code)) return NAN;
    if (specials == kIeee && exponent == (1 << exponent_bits) - 1) return sign * INFINITY;
    const double fraction = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
    return sign * std::ldexp(fraction, std::max(exponent, 1) - bias - mantissa_bits);
  }
};

const Format kFormats[] = {
    {Type::kFloat16, 5, 10, 15, Format::kIeee},       {Type::kBfloat16, 8, 7, 127, Format::kIeee},
    {Type::kFloat8e4m3fn, 4, 3, 7, Format::kNanOnly}, {Type::kFloat8e4m3fnuz, 4, 3, 8, Format::kUnsignedZero},
    {Type::kFloat8e5m2, 5, 2, 15, Format::kIeee},     {Type::kFloat8e5m2fnuz, 5, 2, 16, Format::kUnsignedZero},
    {Type::kFloat6e2m3, 2, 3, 1, Format::kFinite},    {Type::kFloat6e3m2, 3, 2, 3, Format::kFinite},
    {Type::kFloat4e2m1, 2, 1, 1, Format::kFinite},
};

// Finite magnitudes in ascending order with their codes, found by asking for every code's value.
struct Rounder {
  explicit Rounder(const Format& f) : format(f) {
    for (int code = 0; code < 1 << (f.bits() - 1); ++code) {
      if (std::isfinite(f.value(code))) magnitudes.push_back(f.value(code));
    }
  }
  // The code nearest to |x|, ties to the even one; beyond the largest by half a step: magnitudes.size().
  int nearest(double magnitude) const {
    const auto above = std::lower_bound(magnitudes.begin(), magnitudes.end(), magnitude);
    const int high = static_cast<int>(above - magnitudes.begin());
    if (high == 0) return 0;
    const int last = static_cast<int>(magnitudes.size()) - 1;
    const double step = magnitudes[last] - magnitudes[last - 1];
    const double high_value = high > last ? magnitudes[last] + step : magnitudes[high];
    const double middle = (magnitudes[high - 1] + high_value) / 2;
    if (magnitude == middle) return high % 2 == 0 ? high : high - 1;
    return magnitude < middle ? high - 1 : high;
  }
  const Format& format;
  std::vector<double> magnitudes;
};

bool round_trips(const Format& f, const Rounder& rounder, double x, int code, bool saturate) {
  const int sign = 1 << (f.bits() - 1);
  if (std::isnan(x)) return f.specials == Format::kFinite ? code == sign : f.is_nan(code);
  const int largest = static_cast<int>(rounder.magnitudes.size()) - 1;
  const int nearest = std::isinf(x) ? largest + 1 : rounder.nearest(std::fabs(x));
  if (nearest > largest) {
    const double limit = rounder.magnitudes.back();
    const bool saturates = f.specials == Format::kFinite || (saturate && f.bits() == 8);
    if (saturates) return f.value(code) == (x < 0 ? -limit : limit);
    if (f.specials == Format::kIeee) return f.value(code) == (x < 0 ? -INFINITY : INFINITY);
    return f.is_nan(code);
  }
  if (nearest == 0 && f.specials == Format::kUnsignedZero) return code == 0;
  return code == (nearest | (std::signbit(x) ? sign : 0));
}

std::vector<double> interesting(const Format& f) {
  std::vector<double> x = float_samples<double>(3000, 5);
  for (float v : float_samples<float>(3000, 6)) x.push_back(v);
  for (int code = 0; code + 1 < 1 << (f.bits() - 1); ++code) {
    const double a = f.value(code);
    const double b = f.value(code + 1);
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    const double middle = (a + b) / 2;
    for (double v : {a, middle, std::nextafter(middle, 0.0), std::nextafter(middle, 1e300)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  for (double v : {448.0, 464.0, 465.0, 240.0, 248.0, 57344.0, 61440.0, 65504.0, 65519.0, 65520.0, 6.0, 7.0, 8.0}) {
    x.push_back(v);
    x.push_back(-v);
  }
  return x;
}

TEST_P(ConvertTest, EveryPatternOfNarrowFloats) {
  for (const Format& f : kFormats) {
    const int count = 1 << f.bits();
    std::vector<uint16_t> codes(static_cast<size_t>(count));
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) bytes[i] = static_cast<uint8_t>(codes[i] = static_cast<uint16_t>(i));
    const bool wide = f.bits() == 16;
    const auto y = wide ? cast_all<uint16_t, float>(f.type, Type::kFloat, codes)
                        : cast_all<uint8_t, float>(f.type, Type::kFloat, bytes);
    for (int i = 0; i < count; ++i) {
      const double expected = f.value(i);
      ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected))) << name(f.type) << " " << i;
      ASSERT_TRUE(std::isnan(expected) || std::signbit(y[i]) == std::signbit(expected)) << name(f.type) << " " << i;
    }
  }
}

template <class Source>
void check_rounding(const Format& f, Type source, bool saturate) {
  const Rounder rounder(f);
  std::vector<Source> x;
  for (double v : interesting(f)) x.push_back(static_cast<Source>(v));
  std::vector<uint16_t> codes(x.size());
  std::vector<uint8_t> bytes(x.size());
  CastOptions options;
  options.saturate = saturate;
  const bool wide = f.bits() == 16;
  cast(source, f.type, x.data(), wide ? static_cast<void*>(codes.data()) : bytes.data(), x.size(), options);
  for (size_t i = 0; i < x.size(); ++i) {
    const int code = wide ? codes[i] : bytes[i];
    ASSERT_TRUE(round_trips(f, rounder, static_cast<double>(x[i]), code, saturate))
        << name(f.type) << " of " << x[i] << " is " << code << " saturate " << saturate;
  }
}

TEST_P(ConvertTest, RoundsToNearestEvenOnce) {
  for (const Format& f : kFormats) {
    for (bool saturate : {false, true}) {
      check_rounding<float>(f, Type::kFloat, saturate);
      check_rounding<double>(f, Type::kDouble, saturate);
    }
  }
}

TEST_P(ConvertTest, E8m0) {
  std::vector<uint8_t> codes(256);
  for (int i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(i);
  const auto values = cast_all<uint8_t, float>(Type::kFloat8e8m0, Type::kFloat, codes);
  for (int i = 0; i < 255; ++i) ASSERT_EQ(values[i], std::ldexp(1.0f, i - 127));
  EXPECT_TRUE(std::isnan(values[255]));

  struct Case {
    float x;
    int up, down, nearest, strict_up;  // the last: not saturating
  };
  const Case cases[] = {{0, 0, 0, 0, 255},
                        {1, 127, 127, 127, 127},
                        {1.1f, 128, 127, 127, 128},
                        {1.5f, 128, 127, 128, 128},
                        {0.124f, 124, 123, 124, 124},
                        {INFINITY, 254, 254, 254, 255},
                        {NAN, 255, 255, 255, 255},
                        {std::numeric_limits<float>::max(), 254, 254, 254, 255},
                        {0x1p-127f, 0, 0, 0, 0},
                        {0x1.8p-127f, 1, 0, 1, 1},
                        {0x1p-130f, 0, 0, 0, 255}};
  const auto encode = [](float x, E8m0Rounding rounding, bool saturate) {
    uint8_t code;
    cast(Type::kFloat, Type::kFloat8e8m0, &x, &code, 1, {saturate, rounding});
    return static_cast<int>(code);
  };
  for (const Case& c : cases) {
    EXPECT_EQ(encode(c.x, E8m0Rounding::kUp, true), c.up) << c.x;
    EXPECT_EQ(encode(c.x, E8m0Rounding::kDown, true), c.down) << c.x;
    EXPECT_EQ(encode(c.x, E8m0Rounding::kNearest, true), c.nearest) << c.x;
    EXPECT_EQ(encode(c.x, E8m0Rounding::kUp, false), c.strict_up) << c.x;
  }
}

template <class From>
void check_to_integers(Type from) {
  const std::vector<From> x = [] {
    std::vector<From> all;
    for (int i = 0; i < 1000; ++i) all.push_back(static_cast<From>(i * 7 - 3500) / 4);  // a stretch without others
    for (From v : float_samples<From>(4000, 9)) all.push_back(v);
    for (double v : {2147483647.0, 2147483648.0, -2147483648.0, -2147483649.0, 4294967295.0, 4294967296.0, 9.2e18,
                     9.3e18, -9.3e18, 1.8e19, 1.9e19, 0x1p63, 0x1p64, -0x1p63, 127.9, 128.0, -128.9, 200.5, 300.0}) {
      all.push_back(static_cast<From>(v));
    }
    return all;
  }();
  std::vector<int32_t> i32(x.size());
  std::vector<int64_t> i64(x.size());
  std::vector<uint32_t> u32(x.size());
  std::vector<uint64_t> u64(x.size());
  std::vector<int8_t> i8(x.size());
  std::vector<int16_t> i16(x.size());
  std::vector<uint16_t> u16(x.size());
  std::vector<uint8_t> u8(x.size()), flags(x.size()), u4(x.size());
  cast(from, Type::kInt32, x.data(), i32.data(), x.size());
  cast(from, Type::kInt64, x.data(), i64.data(), x.size());
  cast(from, Type::kUint32, x.data(), u32.data(), x.size());
  cast(from, Type::kUint64, x.data(), u64.data(), x.size());
  cast(from, Type::kInt8, x.data(), i8.data(), x.size());
  cast(from, Type::kUint8, x.data(), u8.data(), x.size());
  cast(from, Type::kInt16, x.data(), i16.data(), x.size());
  cast(from, Type::kUint16, x.data(), u16.data(), x.size());
  cast(from, Type::kUint4, x.data(), u4.data(), x.size());
  cast(from, Type::kBool, x.data(), flags.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double v = static_cast<double>(x[i]);
    const bool fits32 = v > -2147483649.0 && v < 2147483648.0;
    const bool fits64 = v >= -0x1p63 && v < 0x1p63;
    const int64_t wide = fits64 ? static_cast<int64_t>(v) : std::numeric_limits<int64_t>::min();
    const int32_t narrow = fits32 ? static_cast<int32_t>(v) : std::numeric_limits<int32_t>::min();
    ASSERT_EQ(i32[i], narrow) << v;
    ASSERT_EQ(i64[i], wide) << v;
    ASSERT_EQ(u32[i], static_cast<uint32_t>(wide)) << v;
    ASSERT_EQ(u64[i], v >= 0x1p63 && v < 0x1p64 ? static_cast<uint64_t>(v) : static_cast<uint64_t>(wide)) << v;
    ASSERT_EQ(i8[i], static_cast<int8_t>(narrow)) << v;
    ASSERT_EQ(u8[i], static_cast<uint8_t>(wide)) << v;
    ASSERT_EQ(i16[i], static_cast<int16_t>(narrow)) << v;
    ASSERT_EQ(u16[i], static_cast<uint16_t>(wide)) << v;
    ASSERT_EQ(u4[i], static_cast<uint8_t>(wide & 15)) << v;
    ASSERT_EQ(flags[i], v != 0 ? 1 : 0) << v;
  }
}

TEST_P(ConvertTest, FloatToIntegerFollowsOneTable) {
  check_to_integers<float>(Type::kFloat);
  check_to_integers<double>(Type::kDouble);
}

template <class From, class To>
void check_numeric(Type from, Type to) {
  const std::vector<From> x = samples<From>(500, 21);
  std::vector<To> y(x.size());
  cast(from, to, x.data(), y.data(), x.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], static_cast<To>(x[i])) << name(from) << " " << name(to);
}

template <class From>
void check_integer_to_all(Type from) {
  check_numeric<From, float>(from, Type::kFloat);
  check_numeric<From, double>(from, Type::kDouble);
  check_numeric<From, int8_t>(from, Type::kInt8);
  check_numeric<From, uint8_t>(from, Type::kUint8);
  check_numeric<From, int16_t>(from, Type::kInt16);
  check_numeric<From, uint16_t>(from, Type::kUint16);
  check_numeric<From, int32_t>(from, Type::kInt32);
  check_numeric<From, uint32_t>(from, Type::kUint32);
  check_numeric<From, int64_t>(from, Type::kInt64);
  check_numeric<From, uint64_t>(from, Type::kUint64);
}

TEST_P(ConvertTest, IntegersWrapAndRound) {
  check_integer_to_all<int32_t>(Type::kInt32);
  check_integer_to_all<uint32_t>(Type::kUint32);
  check_integer_to_all<int64_t>(Type::kInt64);
  check_integer_to_all<uint64_t>(Type::kUint64);
  check_integer_to_all<int16_t>(Type::kInt16);
  check_integer_to_all<uint16_t>(Type::kUint16);
  check_integer_to_all<int8_t>(Type::kInt8);
}

TEST_P(ConvertTest, SubByteIntegers) {
  std::vector<int32_t> x;
  for (int v = -20; v <= 20; ++v) x.push_back(v);
  const auto i4 = cast_all<int32_t, int8_t>(Type::kInt32, Type::kInt4, x);
  const auto u4 = cast_all<int32_t, uint8_t>(Type::kInt32, Type::kUint4, x);
  const auto i2 = cast_all<int32_t, int8_t>(Type::kInt32, Type::kInt2, x);
  const auto u2 = cast_all<int32_t, uint8_t>(Type::kInt32, Type::kUint2, x);
  for (size_t i = 0; i < x.size(); ++i) {
    const int low4 = x[i] & 15;
    const int low2 = x[i] & 3;
    EXPECT_EQ(i4[i], low4 < 8 ? low4 : low4 - 16);
    EXPECT_EQ(u4[i], low4);
    EXPECT_EQ(i2[i], low2 < 2 ? low2 : low2 - 4);
    EXPECT_EQ(u2[i], low2);
  }
  EXPECT_EQ((cast_all<int8_t, float>(Type::kInt4, Type::kFloat, {-8, 7}))[0], -8);
}

TEST_P(ConvertTest, BytesAndFlags) {
  std::vector<uint8_t> x;
  for (int i = 0; i < 600; ++i) x.push_back(static_cast<uint8_t>(i % 5 == 0 ? 0 : i));
  for (const Type byte : {Type::kInt8, Type::kUint8}) {
    const auto flags = cast_all<uint8_t, uint8_t>(byte, Type::kBool, x);
    const auto numbers = cast_all<uint8_t, uint8_t>(Type::kBool, byte, flags);
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(flags[i], x[i] != 0 ? 1 : 0);
    EXPECT_EQ(numbers, flags);
  }
  EXPECT_EQ((cast_all<uint8_t, uint8_t>(Type::kInt8, Type::kUint8, x)), x);
  EXPECT_EQ((cast_all<uint8_t, uint8_t>(Type::kUint8, Type::kInt8, x)), x);
}

TEST_P(ConvertTest, BoolToNumbers) {
  const std::vector<uint8_t> x = {0, 1};
  EXPECT_EQ((cast_all<uint8_t, float>(Type::kBool, Type::kFloat, x)), (std::vector<float>{0, 1}));
  EXPECT_EQ((cast_all<uint8_t, int64_t>(Type::kBool, Type::kInt64, x)), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ((cast_all<uint8_t, uint16_t>(Type::kBool, Type::kFloat16, x)), (std::vector<uint16_t>{0, 0x3c00}));
}

TEST_P(ConvertTest, EveryPairHasAConverterAndLengthsDoNotMatter) {
  const std::vector<double> x = float_samples<double>(kTile * 2 + 77, 4);
  for (int a = 1; a < kElementTypeCount; ++a) {
    for (int b = 1; b < kElementTypeCount; ++b) {
      const Type from = static_cast<Type>(a);
      const Type to = static_cast<Type>(b);
      if (!can_convert(from, to) || compute_type(from) == ComputeType::kNone) continue;
      std::vector<std::byte> source(x.size() * 8), whole(x.size() * 8), single(8);
      cast(Type::kDouble, from, x.data(), source.data(), x.size());
      cast(from, to, source.data(), whole.data(), x.size());
      for (size_t i : {size_t{0}, size_t{14}, size_t{40}, size_t{511}, size_t{512}, size_t{600}, x.size() - 1}) {
        cast(from, to, source.data() + i * byte_width(from), single.data(), 1);
        ASSERT_EQ(std::memcmp(single.data(), whole.data() + i * byte_width(to), byte_width(to)), 0)
            << name(from) << " to " << name(to) << " at " << i;
      }
    }
  }
  EXPECT_FALSE(can_convert(Type::kString, Type::kFloat));
  EXPECT_FALSE(can_convert(Type::kComplex64, Type::kFloat));
  EXPECT_TRUE(can_convert(Type::kComplex64, Type::kComplex128));
}

}  // namespace
}  // namespace treadle::kernels::testing
