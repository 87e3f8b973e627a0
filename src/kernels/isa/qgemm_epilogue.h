#pragma once
// Epilogue of a panel of 8-bit products: zero-point corrections (see qgemm.cc), bias, scale, rounding and conversion to
// the type of C. Values per column are laid out as whole vectors once for all rows of the panel.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/qgemm_store.h"
#include "kernels/qgemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// The corrections that depend on the row of A.
struct QRow {
  uint32_t sum = 0;   // sum of a - a_zero, if columns have zero points
  uint32_t zero = 0;  // zero point of A'
};

inline int32_t zero_at(const void* zeros, bool is_signed, int64_t i) {
  if (zeros == nullptr) return 0;
  return is_signed ? static_cast<const int8_t*>(zeros)[i] : static_cast<const uint8_t*>(zeros)[i];
}

// Whether a zero point of B' may differ from 0; then rows of A have to be summed.
inline bool has_column_zeros(const QGemmShape& s, const void* b_zero) {
  if (s.b_zero_per_column && b_zero != nullptr) return true;
  return zero_at(b_zero, s.b_signed, 0) != (s.b_signed ? 0 : 128);
}

class QEpilogue {
 public:
  QEpilogue(const QGemmShape& shape, const QGemmOperands& operands, const QGemmEpilogue& epilogue)
      : shape_(shape),
        operands_(operands),
        epilogue_(epilogue),
        column_zeros_(has_column_zeros(shape, operands.b_zero)),
        store_(epilogue) {
    if (epilogue.output == QGemmOutput::kInt32 || epilogue.a_scale_per_row) return;
    a_scale_ = *epilogue.a_scale;
    if (!epilogue.b_scale_per_column) set_scale(a_scale_);
  }

  // Begins a panel of `columns` columns, from column j on. `column_sums`: sums of the columns of B', padded to a whole
  // panel.
  void panel(int64_t j, int64_t columns, const int32_t* column_sums) {
    j_ = j, columns_ = columns;
    column_sums_ = column_sums;
    if (column_zeros_) set_zeros();
    if (epilogue_.bias != nullptr) bias_ = beside(epilogue_.bias, bias_room_);
    if (epilogue_.output == QGemmOutput::kInt32) return;
    if (epilogue_.float_bias != nullptr) float_bias_ = beside(epilogue_.float_bias, float_bias_room_);
    if (!epilogue_.a_scale_per_row && epilogue_.b_scale_per_column) set_scale(a_scale_);
  }

  // Writes `count` rows of the panel, from row i on; sums[row][kIntPanel].
  void rows(const int32_t* sums, const QRow* row, int64_t i, int64_t count) {
    for (int64_t r = 0; r < count; ++r, sums += kIntPanel) {
      const int64_t at = (i + r) * shape_.c_row + j_;
      const QSums sums_without_zeros = corrected(sums, row[r]);
      if (epilogue_.output == QGemmOutput::kInt32) {
        store_.sums(sums_without_zeros, columns_, operands_.c, at);
      } else {
        if (epilogue_.a_scale_per_row) set_scale(epilogue_.a_scale[i + r]);
        store_.values(scaled(sums_without_zeros), columns_, operands_.c, at);
      }
    }
  }

 private:
  void set_zeros() {
    const int32_t flip = shape_.b_signed ? 0 : 128;
    if (!shape_.b_zero_per_column) {
      std::fill_n(zeros_, kIntPanel, zero_at(operands_.b_zero, shape_.b_signed, 0) - flip);
      return;
    }
    for (int64_t c = 0; c < columns_; ++c) zeros_[c] = zero_at(operands_.b_zero, shape_.b_signed, j_ + c) - flip;
  }

  // The values of the panel's columns; copied to `room` if the panel has fewer columns than a whole one.
  template <class T>
  const T* beside(const T* values, T* room) const {
    if (columns_ == kIntPanel) return values + j_;
    std::copy_n(values + j_, columns_, room);
    return room;
  }

  void set_scale(float a_scale) {
    const float over = folded_scale(epilogue_);
    if (!epilogue_.b_scale_per_column) {
      std::fill_n(scale_, kIntPanel, a_scale * *epilogue_.b_scale / over);
      return;
    }
    const float* b_scale = beside(epilogue_.b_scale, scale_room_);
    for (int c = 0; c < kIntPanel; ++c) scale_[c] = a_scale * b_scale[c];
    if (over != 1) {
      for (int c = 0; c < kIntPanel; ++c) scale_[c] /= over;
    }
  }

  QSums corrected(const int32_t* sums, const QRow& row) const {
    QSums sums_without_zeros = load_sums(sums);
    if (column_zeros_) subtract_product(sums_without_zeros, zeros_, row.sum);
    if (row.zero != 0) subtract_product(sums_without_zeros, column_sums_, row.zero);
    if (epilogue_.bias != nullptr) subtract_product(sums_without_zeros, bias_, uint32_t{0} - 1);
    return sums_without_zeros;
  }
  QValues scaled(const QSums& sums) const {
    QValues values;
    for (size_t v = 0; v < 2; ++v) {
      values[v] = convert_lanes<float>(sums[v]) * QFloats::load(scale_ + v * kIntLanes);
      if (epilogue_.float_bias != nullptr) values[v] = values[v] + QFloats::load(float_bias_ + v * kIntLanes);
    }
    return values;
  }
  static void subtract_product(QSums& sums, const int32_t* values, uint32_t times) {
    const QInts each(static_cast<int32_t>(times));
    for (int v = 0; v < 2; ++v) sums[v] = sums[v] - QInts::load(values + v * kIntLanes) * each;
  }

  const QGemmShape& shape_;
  const QGemmOperands& operands_;
  const QGemmEpilogue& epilogue_;
  const bool column_zeros_;
  const QStore store_;
  float a_scale_ = 1;
  int64_t j_ = 0, columns_ = 0;
  const int32_t* column_sums_ = nullptr;
  const int32_t* bias_ = nullptr;
  const float* float_bias_ = nullptr;
  alignas(kVectorBytes) int32_t zeros_[kIntPanel] = {};
  alignas(kVectorBytes) float scale_[kIntPanel] = {};
  int32_t bias_room_[kIntPanel] = {};
  float float_bias_room_[kIntPanel] = {}, scale_room_[kIntPanel] = {};
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
