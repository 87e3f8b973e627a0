#include "kernels/isa/transpose.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// The side of a square whose rows have 16 bytes.
template <class T>
inline constexpr int kSquare = static_cast<int>(16 / sizeof(T));

template <class T>
using SquareRow [[gnu::vector_size(16)]] = T;

// a[h], b[h], a[h + 1], ... of the first or second half of the lanes.
template <bool kSecond, class V, size_t... kLane>
V interleaved(V a, V b, std::index_sequence<kLane...>) {
  constexpr size_t kLanes = sizeof...(kLane), kFirst = kSecond ? kLanes / 2 : 0;
  return __builtin_shufflevector(a, b, (kFirst + kLane / 2 + kLane % 2 * kLanes)...);
}

// Each step interleaves the rows of the first half with the rows of the second half. Each step is a function of its
// own, so that all of them are unrolled.
template <class T, int kStep = 1>
[[gnu::always_inline]] inline void transpose_square(const SquareRow<T>* rows, SquareRow<T>* out) {
  constexpr int N = kSquare<T>;
  constexpr auto kLanes = std::make_index_sequence<N>();
  SquareRow<T> next[N];
  for (int i = 0; i < N / 2; ++i) {
    next[2 * i] = interleaved<false>(rows[i], rows[i + N / 2], kLanes);
    next[2 * i + 1] = interleaved<true>(rows[i], rows[i + N / 2], kLanes);
  }
  if constexpr (2 * kStep < N) {
    transpose_square<T, 2 * kStep>(next, out);
  } else {
    for (int i = 0; i < N; ++i) out[i] = next[i];
  }
}

template <class T>
void transpose_square(const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride) {
  SquareRow<T> rows[kSquare<T>];
  for (int i = 0; i < kSquare<T>; ++i) std::memcpy(&rows[i], in + i * in_stride, sizeof rows[i]);
  transpose_square<T>(rows, rows);
  for (int i = 0; i < kSquare<T>; ++i) std::memcpy(out + i * out_stride, &rows[i], sizeof rows[i]);
}

// transpose() of a block that fits first-level cache, by squares. The last square may overlap the squares before it.
template <class T>
void transpose_block(const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride, int64_t rows,
                     int64_t columns) {
  constexpr auto kWidth = static_cast<int64_t>(sizeof(T));
  constexpr int64_t kSide = kSquare<T>;
  if constexpr (sizeof(T) <= 8) {
    if (rows >= kSide && columns >= kSide) {
      for (int64_t i = 0; i < rows; i += kSide) {
        const int64_t r = std::min(i, rows - kSide);
        for (int64_t j = 0; j < columns; j += kSide) {
          const int64_t c = std::min(j, columns - kSide);
          transpose_square<T>(in + c * in_stride + r * kWidth, in_stride, out + r * out_stride + c * kWidth,
                              out_stride);
        }
      }
      return;
    }
  }
  for (int64_t r = 0; r < rows; ++r, in += kWidth, out += out_stride) {
    for (int64_t c = 0; c < columns; ++c) std::memcpy(out + c * kWidth, in + c * in_stride, sizeof(T));
  }
}

// transpose() of three columns into contiguous rows of three (channels last). A store may write behind its row; the
// next row overwrites that. Returns the number of rows done.
int64_t join_three(const std::byte* in, int64_t in_stride, std::byte* out, int64_t rows) {
  int64_t r = 0;
  for (; r + 4 < rows; r += 4, in += 16, out += 48) {
    SquareRow<uint32_t> square[4] = {};
    for (int i = 0; i < 3; ++i) std::memcpy(&square[i], in + i * in_stride, 16);
    transpose_square<uint32_t>(square, square);
    for (int i = 0; i < 4; ++i) std::memcpy(out + i * 12, &square[i], 16);
  }
  return r;
}

// The inverse: contiguous columns of three become three rows. Returns the number of columns done.
int64_t part_three(const std::byte* in, std::byte* out, int64_t out_stride, int64_t columns) {
  int64_t c = 0;
  for (; c + 4 < columns; c += 4, in += 48, out += 16) {
    SquareRow<uint32_t> square[4];
    for (int i = 0; i < 4; ++i) std::memcpy(&square[i], in + i * 12, 16);
    transpose_square<uint32_t>(square, square);
    for (int i = 0; i < 3; ++i) std::memcpy(out + i * out_stride, &square[i], 16);
  }
  return c;
}

// Every second element of a followed by b, from kFirst on.
template <int kFirst, class V, size_t... kLane>
V every_second(V a, V b, std::index_sequence<kLane...>) {
  return __builtin_shufflevector(a, b, (2 * kLane + kFirst)...);
}

// transpose() of two columns into contiguous rows of two. Returns the number of rows done.
template <class T>
int64_t join_two(const std::byte* in, int64_t in_stride, std::byte* out, int64_t rows) {
  constexpr int64_t N = kSquare<T>;
  constexpr auto kLanes = std::make_index_sequence<N>();
  int64_t r = 0;
  for (; r + N <= rows; r += N, in += 16, out += 32) {
    SquareRow<T> columns[2], joined[2];
    for (int i = 0; i < 2; ++i) std::memcpy(&columns[i], in + i * in_stride, 16);
    joined[0] = interleaved<false>(columns[0], columns[1], kLanes);
    joined[1] = interleaved<true>(columns[0], columns[1], kLanes);
    std::memcpy(out, joined, sizeof joined);
  }
  return r;
}

// The inverse: contiguous columns of two become two rows. Returns the number of columns done.
template <class T>
int64_t part_two(const std::byte* in, std::byte* out, int64_t out_stride, int64_t columns) {
  constexpr int64_t N = kSquare<T>;
  constexpr auto kLanes = std::make_index_sequence<N>();
  int64_t c = 0;
  for (; c + N <= columns; c += N, in += 32, out += 16) {
    SquareRow<T> joined[2], rows[2];
    std::memcpy(joined, in, sizeof joined);
    rows[0] = every_second<0>(joined[0], joined[1], kLanes);
    rows[1] = every_second<1>(joined[0], joined[1], kLanes);
    for (int i = 0; i < 2; ++i) std::memcpy(out + i * out_stride, &rows[i], 16);
  }
  return c;
}

#if defined(__AVX2__)

// Every third element of a followed by b and c, from kFirst on.
template <int kFirst, class V, size_t... kLane>
V every_third(V a, V b, V c, std::index_sequence<kLane...>) {
  constexpr size_t kLanes = sizeof...(kLane);
  const auto at = [](size_t lane) constexpr { return 3 * lane + kFirst; };
  const V low = __builtin_shufflevector(a, b, (at(kLane) < 2 * kLanes ? at(kLane) : 0)...);
  return __builtin_shufflevector(low, c, (at(kLane) < 2 * kLanes ? kLane : at(kLane) - kLanes)...);
}

// Elements from kFirst on of a[0], b[0], c[0], a[1], b[1], ...
template <size_t kFirst, class V, size_t... kLane>
V interleaved_three(V a, V b, V c, std::index_sequence<kLane...>) {
  constexpr size_t kLanes = sizeof...(kLane);
  const auto source = [](size_t lane) constexpr { return (kFirst + lane) % 3; };
  const auto at = [](size_t lane) constexpr { return (kFirst + lane) / 3; };
  const V low = __builtin_shufflevector(a, b, (source(kLane) < 2 ? source(kLane) * kLanes + at(kLane) : 0)...);
  return __builtin_shufflevector(low, c, (source(kLane) < 2 ? kLane : kLanes + at(kLane))...);
}

// join_three() and part_three() for narrower elements.
template <class T>
int64_t join_narrow(const std::byte* in, int64_t in_stride, std::byte* out, int64_t rows) {
  constexpr int64_t N = kSquare<T>;
  constexpr auto kLanes = std::make_index_sequence<N>();
  int64_t r = 0;
  for (; r + N <= rows; r += N, in += 16, out += 48) {
    SquareRow<T> planes[3], joined[3];
    for (int i = 0; i < 3; ++i) std::memcpy(&planes[i], in + i * in_stride, 16);
    joined[0] = interleaved_three<0>(planes[0], planes[1], planes[2], kLanes);
    joined[1] = interleaved_three<N>(planes[0], planes[1], planes[2], kLanes);
    joined[2] = interleaved_three<2 * N>(planes[0], planes[1], planes[2], kLanes);
    std::memcpy(out, joined, sizeof joined);
  }
  return r;
}

template <class T>
int64_t part_narrow(const std::byte* in, std::byte* out, int64_t out_stride, int64_t columns) {
  constexpr int64_t N = kSquare<T>;
  constexpr auto kLanes = std::make_index_sequence<N>();
  int64_t c = 0;
  for (; c + N <= columns; c += N, in += 48, out += 16) {
    SquareRow<T> joined[3], planes[3];
    std::memcpy(joined, in, sizeof joined);
    planes[0] = every_third<0>(joined[0], joined[1], joined[2], kLanes);
    planes[1] = every_third<1>(joined[0], joined[1], joined[2], kLanes);
    planes[2] = every_third<2>(joined[0], joined[1], joined[2], kLanes);
    for (int i = 0; i < 3; ++i) std::memcpy(out + i * out_stride, &planes[i], 16);
  }
  return c;
}

#endif

// join() and part() use vectors for rows or columns of two or three contiguous elements. They return the number of rows
// or columns done.
template <class T>
int64_t join(int64_t elements, const std::byte* in, int64_t in_stride, std::byte* out, int64_t rows) {
  if constexpr (sizeof(T) <= 8) {
    if (elements == 2) return join_two<T>(in, in_stride, out, rows);
  }
  if (elements != 3) return 0;
  if constexpr (sizeof(T) == 4) return join_three(in, in_stride, out, rows);
#if defined(__AVX2__)
  if constexpr (sizeof(T) < 4) return join_narrow<T>(in, in_stride, out, rows);
#endif
  return 0;
}

template <class T>
int64_t part(int64_t elements, const std::byte* in, std::byte* out, int64_t out_stride, int64_t columns) {
  if constexpr (sizeof(T) <= 8) {
    if (elements == 2) return part_two<T>(in, out, out_stride, columns);
  }
  if (elements != 3) return 0;
  if constexpr (sizeof(T) == 4) return part_three(in, out, out_stride, columns);
#if defined(__AVX2__)
  if constexpr (sizeof(T) < 4) return part_narrow<T>(in, out, out_stride, columns);
#endif
  return 0;
}

// Transposes block by block, so that both sides stay in cache.
template <class T>
void transpose_of(const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride, int64_t rows,
                  int64_t columns) {
  constexpr int64_t kBlock = 64 / static_cast<int64_t>(sizeof(T)) >= 16 ? 16 : 8;
  constexpr auto kWidth = static_cast<int64_t>(sizeof(T));
  if (columns <= 3 && out_stride == columns * kWidth) {
    const int64_t done = join<T>(columns, in, in_stride, out, rows);
    in += done * kWidth, out += done * out_stride, rows -= done;
  } else if (rows <= 3 && in_stride == rows * kWidth) {
    const int64_t done = part<T>(rows, in, out, out_stride, columns);
    in += done * in_stride, out += done * kWidth, columns -= done;
  }
  // The last block overlaps the one before if it would be smaller than a square.
  const auto start_of = [](int64_t at, int64_t size) {
    return size - at < kSquare<T> && size >= kSquare<T> ? size - kSquare<T> : at;
  };
  for (int64_t i = 0; i < rows; i += kBlock) {
    const int64_t r = start_of(i, rows);
    for (int64_t j = 0; j < columns; j += kBlock) {
      const int64_t c = start_of(j, columns);
      transpose_block<T>(in + c * in_stride + r * kWidth, in_stride, out + r * out_stride + c * kWidth, out_stride,
                         std::min(kBlock, rows - r), std::min(kBlock, columns - c));
    }
  }
}

}  // namespace

void transpose(size_t width, const std::byte* in, int64_t in_stride, std::byte* out, int64_t out_stride, int64_t rows,
               int64_t columns) {
  with_width(width, [&](auto zero) { transpose_of<decltype(zero)>(in, in_stride, out, out_stride, rows, columns); });
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
