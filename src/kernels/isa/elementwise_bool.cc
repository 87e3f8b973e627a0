#include "kernels/isa/rows.h"
#include "kernels/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

template <class T>
void where_row(const uint8_t* condition, const void* yes, const void* no, void* out, size_t n, unsigned scalar_mask) {
  const T* x = static_cast<const T*>(yes);
  const T* y = static_cast<const T*>(no);
  T* z = static_cast<T*>(out);
  const bool x_moves = (scalar_mask & 2) == 0;
  const bool y_moves = (scalar_mask & 4) == 0;
  if (n == 0) return;
  if (scalar_mask & 1) {
    const T* from = *condition ? x : y;
    if (*condition ? x_moves : y_moves) {
      std::memmove(out, from, n * sizeof(T));
    } else {
      const T value = *from;
      for (size_t i = 0; i < n; ++i) z[i] = value;
    }
    return;
  }
  const T first_x = *x;
  const T first_y = *y;
  if (x_moves && y_moves) {
    for (size_t i = 0; i < n; ++i) {
      const T a = x[i];
      const T b = y[i];
      z[i] = condition[i] ? a : b;
    }
  } else if (x_moves) {
    for (size_t i = 0; i < n; ++i) {
      const T a = x[i];
      z[i] = condition[i] ? a : first_y;
    }
  } else if (y_moves) {
    for (size_t i = 0; i < n; ++i) {
      const T b = y[i];
      z[i] = condition[i] ? first_x : b;
    }
  } else {
    for (size_t i = 0; i < n; ++i) z[i] = condition[i] ? first_x : first_y;
  }
}

}  // namespace

void add_bool_rows(KernelTable& table) {
  add_elementwise_rows<uint8_t>(table, ComputeType::kBool);
  table.where[0] = where_row<uint8_t>;
  table.where[1] = where_row<uint16_t>;
  table.where[2] = where_row<uint32_t>;
  table.where[3] = where_row<uint64_t>;
  table.where[4] = where_row<Bits128>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
