// 8-bit products. Rows of A are converted a tile at a time into the order the tile reads; B lies in panels, int8
// whatever its type was (uint8 minus 128). With A' and B' what the tile multiplies, each sum still owes
//   - (b_zero of B') * sum over the row of (a - a_zero)       wherever that zero point is not 0
//   - (a_zero of A') * sum over the column of B'              in kQuads, which leaves a_zero in A
// Packed B: sums of the columns of B', then the panels.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/isa/entry.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/qgemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {
namespace {

constexpr int64_t align_up(int64_t bytes) {
  return (bytes + int64_t{kKernelAlignment} - 1) & -int64_t{kKernelAlignment};
}

template <QScheme kScheme>
struct QLayout {
  static constexpr int64_t kSteps = kScheme == QScheme::kPairs ? 2 : 4;
  explicit QLayout(const QGemmShape& s)
      : steps((s.k + kSteps - 1) / kSteps),
        panels((s.n + kIntPanel - 1) / kIntPanel),
        sums_bytes(align_up(panels * kIntPanel * 4)),
        panel_bytes(steps * kSteps * kIntPanel),
        a_bytes(align_up(steps * 4)) {}
  int64_t packed_bytes() const { return sums_bytes + panels * panel_bytes; }

  int64_t steps, panels;
  int64_t sums_bytes, panel_bytes;
  int64_t a_bytes;  // of a converted row
};

template <QScheme kScheme>
void pack_qpanels(const QGemmShape& s, const void* b, void* packed, int64_t first_panel, int64_t end_panel) {
  const QLayout<kScheme> layout(s);
  constexpr int64_t kSteps = QLayout<kScheme>::kSteps;
  const uint8_t flip = s.b_signed ? 0 : 0x80;
  const uint8_t* from = static_cast<const uint8_t*>(b);
  for (int64_t panel = first_panel; panel < end_panel; ++panel) {
    int32_t* sums = static_cast<int32_t*>(packed) + panel * kIntPanel;
    int8_t* to = static_cast<int8_t*>(packed) + layout.sums_bytes + panel * layout.panel_bytes;
    const int64_t columns = std::min<int64_t>(kIntPanel, s.n - panel * kIntPanel);
    std::memset(to, 0, static_cast<size_t>(layout.panel_bytes));
    std::fill_n(sums, kIntPanel, 0);
    for (int64_t p = 0; p < s.k; ++p) {
      const uint8_t* row = from + p * s.b_row + panel * kIntPanel * s.b_col;
      int8_t* at = to + p / kSteps * kIntPanel * kSteps + p % kSteps;
      for (int64_t j = 0; j < columns; ++j) {
        const auto value = static_cast<int8_t>(row[j * s.b_col] ^ flip);
        at[j * kSteps] = value;
        sums[j] += value;
      }
    }
  }
}

// value clamped to [low, high], rounded half to even, as T. NaN becomes low.
template <class T>
T saturate(float value, int32_t zero) {
  constexpr float kRound = 12582912.f;  // 1.5 * 2^23: adding it leaves no room for a fraction
  const float low = static_cast<float>(std::numeric_limits<T>::min() - zero);
  const float high = static_cast<float>(std::numeric_limits<T>::max() - zero);
  const float inside = value > low ? (value < high ? value : high) : low;
  return static_cast<T>(static_cast<int32_t>((inside + kRound) - kRound) + zero);
}

template <QScheme kScheme>
class QGemm {
 public:
  QGemm(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue)
      : shape_(plan.shape), layout_(plan.shape), operands_(operands), epilogue_(epilogue) {
    scratch_ = static_cast<std::byte*>(operands.scratch);
    rows_ = scratch_ + align_up(kIntRows * kIntPanel * 4);
    packed_ = shape_.b_packed ? static_cast<const std::byte*>(operands.b) : rows_ + kIntRows * layout_.a_bytes;
  }

  void run(const GemmRange& range) {
    if (range.row_end <= range.row_begin || range.column_end <= range.column_begin) return;
    const int64_t first = range.column_begin / kIntPanel, end = (range.column_end + kIntPanel - 1) / kIntPanel;
    if (!shape_.b_packed) {
      pack_qpanels<kScheme>(shape_, operands_.b, const_cast<std::byte*>(packed_), first, end);
    }
    const int64_t rows = range.row_end - range.row_begin;
    const int64_t tiles = (rows + kIntRows - 1) / kIntRows, height = (rows + tiles - 1) / tiles;
    int32_t* sums = reinterpret_cast<int32_t*>(scratch_);
    for (int64_t i = range.row_begin; i < range.row_end; i += height) {
      const int64_t count = std::min(height, range.row_end - i);
      for (int64_t r = 0; r < count; ++r) convert_row(i + r, r);
      for (int64_t panel = first; panel < end; ++panel) {
        const int8_t* b = reinterpret_cast<const int8_t*>(packed_) + layout_.sums_bytes + panel * layout_.panel_bytes;
        kQtileTable<kScheme>[count - 1](rows_, layout_.a_bytes, b, layout_.steps, sums);
        const int64_t j = panel * kIntPanel;
        const int64_t columns = std::min<int64_t>(kIntPanel, range.column_end - j);
        for (int64_t r = 0; r < count; ++r) {
          settle(sums + r * kIntPanel, r, j, columns);
          put(sums + r * kIntPanel, i + r, j, columns);
        }
      }
    }
  }

 private:
  static int32_t zero_at(const void* zeros, bool is_signed, int64_t i) {
    if (zeros == nullptr) return 0;
    return is_signed ? static_cast<const int8_t*>(zeros)[i] : static_cast<const uint8_t*>(zeros)[i];
  }

  template <class Byte>
  void convert_row_as(const Byte* from, int64_t r, int32_t zero) {
    uint32_t sum = 0;
    if constexpr (kScheme == QScheme::kPairs) {
      int16_t* to = reinterpret_cast<int16_t*>(rows_ + r * layout_.a_bytes);
      for (int64_t p = 0; p < shape_.k; ++p) {
        const int32_t value = from[p * shape_.a_col] - zero;
        to[p] = static_cast<int16_t>(value);
        sum += static_cast<uint32_t>(value);
      }
      if (shape_.k % 2 != 0) to[shape_.k] = 0;
    } else {
      uint8_t* to = reinterpret_cast<uint8_t*>(rows_ + r * layout_.a_bytes);
      constexpr int kFlip = std::is_signed_v<Byte> ? 0x80 : 0;
      for (int64_t p = 0; p < shape_.k; ++p) {
        const Byte value = from[p * shape_.a_col];
        to[p] = static_cast<uint8_t>(value ^ kFlip);
        sum += static_cast<uint32_t>(static_cast<int32_t>(value));
      }
      for (int64_t p = shape_.k; p % 4 != 0; ++p) to[p] = 0;
      sum -= static_cast<uint32_t>(zero) * static_cast<uint32_t>(shape_.k);
    }
    row_sums_[r] = sum;
    row_zeros_[r] = static_cast<uint32_t>(zero + (shape_.a_signed ? 128 : 0));
  }

  void convert_row(int64_t i, int64_t r) {
    const int32_t zero = zero_at(operands_.a_zero, shape_.a_signed, shape_.a_zero_per_row ? i : 0);
    if (shape_.a_signed) {
      convert_row_as(static_cast<const int8_t*>(operands_.a) + i * shape_.a_row, r, zero);
    } else {
      convert_row_as(static_cast<const uint8_t*>(operands_.a) + i * shape_.a_row, r, zero);
    }
  }

  // What the sums of a row still owe, see the head of this file; then the bias.
  void settle(int32_t* sums, int64_t r, int64_t j, int64_t columns) const {
    const int32_t flip = shape_.b_signed ? 0 : 128;
    if (shape_.b_zero_per_column && operands_.b_zero != nullptr) {
      for (int64_t c = 0; c < columns; ++c) {
        const int32_t zero = zero_at(operands_.b_zero, shape_.b_signed, j + c) - flip;
        sums[c] = wrap(sums[c], static_cast<uint32_t>(zero) * row_sums_[r]);
      }
    } else if (const int32_t zero = zero_at(operands_.b_zero, shape_.b_signed, 0) - flip; zero != 0) {
      const uint32_t owed = static_cast<uint32_t>(zero) * row_sums_[r];
      for (int64_t c = 0; c < columns; ++c) sums[c] = wrap(sums[c], owed);
    }
    if (kScheme == QScheme::kQuads && row_zeros_[r] != 0) {
      const int32_t* column_sums = reinterpret_cast<const int32_t*>(packed_) + j;
      for (int64_t c = 0; c < columns; ++c) {
        sums[c] = wrap(sums[c], row_zeros_[r] * static_cast<uint32_t>(column_sums[c]));
      }
    }
    if (epilogue_.bias != nullptr) {
      for (int64_t c = 0; c < columns; ++c) sums[c] = wrap(sums[c], -static_cast<uint32_t>(epilogue_.bias[j + c]));
    }
  }
  static int32_t wrap(int32_t sum, uint32_t owed) { return static_cast<int32_t>(static_cast<uint32_t>(sum) - owed); }

  void put(const int32_t* sums, int64_t i, int64_t j, int64_t columns) const {
    const int64_t at = i * shape_.c_row + j;
    if (epilogue_.output == QGemmOutput::kInt32) {
      std::copy_n(sums, columns, static_cast<int32_t*>(operands_.c) + at);
      return;
    }
    float values[kIntPanel];
    const float a_scale = epilogue_.a_scale[epilogue_.a_scale_per_row ? i : 0];
    const float c_scale = epilogue_.output == QGemmOutput::kScaled ? 1.f : *epilogue_.c_scale;
    if (epilogue_.b_scale_per_column) {
      for (int64_t c = 0; c < columns; ++c) {
        values[c] = static_cast<float>(sums[c]) * (a_scale * epilogue_.b_scale[j + c] / c_scale);
      }
    } else {
      const float scale = a_scale * *epilogue_.b_scale / c_scale;
      for (int64_t c = 0; c < columns; ++c) values[c] = static_cast<float>(sums[c]) * scale;
    }
    if (epilogue_.output == QGemmOutput::kScaled) {
      put_scaled(values, j, columns, static_cast<float*>(operands_.c) + at);
    } else if (epilogue_.output == QGemmOutput::kUint8) {
      put_bytes(values, columns, static_cast<uint8_t*>(operands_.c) + at);
    } else {
      put_bytes(values, columns, static_cast<int8_t*>(operands_.c) + at);
    }
  }

  void put_scaled(float* values, int64_t j, int64_t columns, float* c) const {
    if (epilogue_.float_bias != nullptr) {
      for (int64_t i = 0; i < columns; ++i) values[i] += epilogue_.float_bias[j + i];
    }
    if (epilogue_.accumulate) {
      for (int64_t i = 0; i < columns; ++i) c[i] += values[i];
    } else {
      std::copy_n(values, columns, c);
    }
  }

  template <class Byte>
  void put_bytes(const float* values, int64_t columns, Byte* c) const {
    for (int64_t i = 0; i < columns; ++i) c[i] = saturate<Byte>(values[i], epilogue_.c_zero);
  }

  const QGemmShape& shape_;
  QLayout<kScheme> layout_;
  const QGemmOperands& operands_;
  const QGemmEpilogue& epilogue_;
  std::byte* scratch_;  // sums of one tile
  std::byte* rows_;     // converted rows of one tile
  const std::byte* packed_;
  uint32_t row_sums_[kIntRows];   // of a - a_zero
  uint32_t row_zeros_[kIntRows];  // kQuads: a_zero as A' has it
};

template <QScheme kScheme>
void run_qgemm_as(const QGemmPlan& plan, const QGemmOperands& operands, const QGemmEpilogue& epilogue,
                  const GemmRange& range) {
  QGemm<kScheme>(plan, operands, epilogue).run(range);
}

template <QScheme kScheme>
void pack_as(const QGemmPlan& plan, const void* b, void* packed) {
  pack_qpanels<kScheme>(plan.shape, b, packed, 0, QLayout<kScheme>(plan.shape).panels);
}

template <QScheme kScheme>
QGemmPlan prepare_as(const QGemmShape& shape) {
  const QLayout<kScheme> layout(shape);
  QGemmPlan plan;
  plan.shape = shape;
  plan.column_step = kIntPanel;
  plan.packed_b_bytes = static_cast<size_t>(layout.packed_bytes());
  plan.scratch_bytes = static_cast<size_t>(align_up(kIntRows * kIntPanel * 4) + kIntRows * layout.a_bytes +
                                           (shape.b_packed ? 0 : layout.packed_bytes()));
  plan.run = run_qgemm_as<kScheme>;
  plan.pack = pack_as<kScheme>;
  return plan;
}

}  // namespace

QGemmPlan prepare_qgemm(const QGemmShape& shape) {
#if defined(__AVX512F__)
  if (__builtin_cpu_supports("avx512vnni")) return prepare_as<QScheme::kQuads>(shape);
#endif
  return prepare_as<QScheme::kPairs>(shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
