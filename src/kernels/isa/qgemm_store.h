#pragma once
// How rows of sums are stored: unchanged, as floats, or rounded to bytes. A row has room for two vectors;
// its first `columns` elements exist.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/isa/byte_rounding.h"
#include "kernels/isa/qgemm_tile.h"
#include "kernels/qgemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

using QInts = Vec<int32_t, kIntLanes>;
using QFloats = Vec<float, kIntLanes>;
template <size_t kVectors>
using QFloatRow = std::array<QFloats, kVectors>;
using QSums = std::array<QInts, 2>;
using QValues = QFloatRow<2>;

inline QSums load_sums(const int32_t* sums) {
  return {QInts::load(sums), QInts::load(sums + kIntLanes)};
}

// The divisor of the product of scales.
inline float folded_scale(const QGemmEpilogue& epilogue) {
  return epilogue.output > QGemmOutput::kScaled && !epilogue.divides ? *epilogue.c_scale : 1.f;
}

class QStore {
 public:
  explicit QStore(const QGemmEpilogue& epilogue)
      : epilogue_(epilogue),
        clamps_(epilogue.low != -INFINITY || epilogue.high != INFINITY),
        rounding_(epilogue.divides && epilogue.output > QGemmOutput::kScaled ? *epilogue.c_scale : 1.f, epilogue.c_zero,
                  epilogue.output == QGemmOutput::kInt8) {}

  // `at`: index in c of the row's first element.
  void sums(const QSums& row, int64_t columns, void* c, int64_t at) const {
    put(row, columns, static_cast<int32_t*>(c) + at);
  }

  void values(QValues row, int64_t columns, void* c, int64_t at) const {
    clamp(row);
    switch (epilogue_.output) {
      case QGemmOutput::kScaled:
        return put_scaled(row, columns, static_cast<float*>(c) + at);
      default:
        return put_bytes(row, columns, static_cast<std::byte*>(c) + at);
    }
  }

  template <size_t kVectors>
  TREADLE_ALWAYS_INLINE void clamp(QFloatRow<kVectors>& row) const {
    if (!clamps_) return;
    const QFloats low(epilogue_.low), high(epilogue_.high);
    for (QFloats& v : row) {
      v = select(v < low, low, v);  // NaN stays
      v = select(v > high, high, v);
    }
  }
  const ByteRounding& rounding() const { return rounding_; }

 private:
  template <class T>
  static void put(const std::array<Vec<T, kIntLanes>, 2>& row, int64_t columns, T* c) {
    if (columns == kIntPanel) {
      row[0].store(c);
      row[1].store(c + kIntLanes);
      return;
    }
    T room[kIntPanel];
    row[0].store(room);
    row[1].store(room + kIntLanes);
    std::copy_n(room, columns, c);
  }

  void put_scaled(const QValues& row, int64_t columns, float* c) const {
    if (!epilogue_.accumulate) return put(row, columns, c);
    float room[kIntPanel] = {};
    if (columns != kIntPanel) std::copy_n(c, columns, room);
    const float* before = columns == kIntPanel ? c : room;
    put(QValues{QFloats::load(before) + row[0], QFloats::load(before + kIntLanes) + row[1]}, columns, c);
  }

  void put_bytes(const QFloatRow<2>& row, int64_t columns, std::byte* c) const {
    if (columns == ByteRounding::kRow) return rounding_.put(row[0], row[1], c);
    std::byte room[ByteRounding::kRow];
    rounding_.put(row[0], row[1], room);
    std::copy_n(room, columns, c);
  }

  const QGemmEpilogue& epilogue_;
  const bool clamps_;
  const ByteRounding rounding_;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
