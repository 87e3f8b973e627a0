#pragma once
// How rows of sums leave: as they are, as floats, or rounded to bytes. A row is one vector or two, of which the first
// so many elements exist.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/isa/qgemm_tile.h"
#include "kernels/qgemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

using QInts = Vec<int32_t, kIntLanes>;
using QFloats = Vec<float, kIntLanes>;
template <size_t kVectors>
using QIntRow = std::array<QInts, kVectors>;
template <size_t kVectors>
using QFloatRow = std::array<QFloats, kVectors>;
using QSums = QIntRow<2>;
using QValues = QFloatRow<2>;

inline QSums load_sums(const int32_t* sums) {
  return {QInts::load(sums), QInts::load(sums + kIntLanes)};
}

// What the product of the scales is divided by.
inline float folded_scale(const QGemmEpilogue& epilogue) {
  return epilogue.output > QGemmOutput::kScaled && !epilogue.divides ? *epilogue.c_scale : 1.f;
}

class QStore {
 public:
  explicit QStore(const QGemmEpilogue& epilogue)
      : epilogue_(epilogue),
        clamps_(epilogue.low != -INFINITY || epilogue.high != INFINITY),
        c_scale_(epilogue.divides && epilogue.output > QGemmOutput::kScaled ? *epilogue.c_scale : 1.f) {}

  // `at`: where the row begins, in elements of c.
  template <size_t kVectors>
  void sums(const QIntRow<kVectors>& row, int64_t columns, void* c, int64_t at) const {
    put(row, columns, static_cast<int32_t*>(c) + at);
  }

  template <size_t kVectors>
  void values(QFloatRow<kVectors> row, int64_t columns, void* c, int64_t at) const {
    if (clamps_) {
      const QFloats low(epilogue_.low), high(epilogue_.high);
      for (QFloats& v : row) {
        v = select(v < low, low, v);  // NaN stays
        v = select(v > high, high, v);
      }
    }
    if (c_scale_ != 1) {
      for (QFloats& v : row) v = v / QFloats(c_scale_);
    }
    switch (epilogue_.output) {
      case QGemmOutput::kScaled:
        return put_scaled(row, columns, static_cast<float*>(c) + at);
      case QGemmOutput::kUint8:
        return put_bytes<uint8_t>(row, columns, static_cast<uint8_t*>(c) + at);
      default:
        return put_bytes<int8_t>(row, columns, static_cast<int8_t*>(c) + at);
    }
  }

 private:
  template <class T, size_t kVectors>
  static void put(const std::array<Vec<T, kIntLanes>, kVectors>& row, int64_t columns, T* c) {
    if (columns == kVectors * kIntLanes) {
      for (size_t v = 0; v < kVectors; ++v) row[v].store(c + v * kIntLanes);
      return;
    }
    T room[kVectors * kIntLanes];
    for (size_t v = 0; v < kVectors; ++v) row[v].store(room + v * kIntLanes);
    std::copy_n(room, columns, c);
  }

  template <size_t kVectors>
  void put_scaled(const QFloatRow<kVectors>& row, int64_t columns, float* c) const {
    if (!epilogue_.accumulate) return put(row, columns, c);
    float before[kVectors * kIntLanes] = {};
    std::copy_n(c, columns, before);
    QFloatRow<kVectors> both;
    for (size_t v = 0; v < kVectors; ++v) both[v] = QFloats::load(before + v * kIntLanes) + row[v];
    put(both, columns, c);
  }

  // saturate(round half to even(value) + zero). NaN becomes the lowest.
  template <class Byte, size_t kVectors>
  void put_bytes(const QFloatRow<kVectors>& row, int64_t columns, Byte* c) const {
    const int32_t zero = epilogue_.c_zero;
    const QFloats round(12582912.f);  // 1.5 * 2^23: adding it leaves no room for a fraction
    const QFloats low(static_cast<float>(std::numeric_limits<Byte>::min() - zero));
    const QFloats high(static_cast<float>(std::numeric_limits<Byte>::max() - zero));
    std::array<Vec<Byte, kIntLanes>, kVectors> bytes;
    for (size_t v = 0; v < kVectors; ++v) {
      const QFloats above = select(row[v] > low, row[v], low);
      const QFloats inside = select(above < high, above, high);
      bytes[v] = convert_lanes<Byte>(convert_lanes<int32_t>((inside + round) - round) + QInts(zero));
    }
    put(bytes, columns, c);
  }

  const QGemmEpilogue& epilogue_;
  const bool clamps_;
  const float c_scale_;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
