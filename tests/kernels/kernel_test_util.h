#pragma once
// Helpers of the kernel tests: every instruction set that this machine runs, aligned buffers with guards, random data.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/cpu.h"
#include "kernels/dispatch.h"
#include "kernels/gemm.h"

namespace treadle::kernels {

// Runs the test once per instruction set, prepare functions choosing it.
class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  ScopedIsa scope_{GetParam()};
  std::mt19937 random_{1234};
};
#define TREADLE_EACH_ISA(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(Isas, suite, testing::ValuesIn(::treadle::usable_isas()), \
                           [](const auto& chosen) { return std::string(::treadle::name(chosen.param)); })

// Bytes aligned as kernels ask for, with a guard behind them that the destructor checks.
class Scratch {
 public:
  explicit Scratch(size_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(::operator new(bytes + kGuard, std::align_val_t(kKernelAlignment)))) {
    std::memset(data_, 0xFF, bytes);  // NaN when read before written
    std::memset(data_ + bytes, 0x5A, kGuard);
  }
  ~Scratch() {
    for (size_t i = 0; i < kGuard; ++i) {
      if (data_[bytes_ + i] != std::byte{0x5A}) {
        ADD_FAILURE() << "byte " << i << " behind a buffer of " << bytes_ << " was written";
        break;
      }
    }
    ::operator delete(data_, std::align_val_t(kKernelAlignment));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* get() { return data_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  static constexpr size_t kGuard = 64;
  size_t bytes_;
  std::byte* data_;
};

// Small integers for integer types (with a few extremes), uniform in [-1, 1] for floats.
template <class T>
std::vector<T> random_values(std::mt19937& random, size_t count) {
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_integral_v<T>) {
      value = static_cast<T>((uint64_t{random()} << 32) | random());
    } else {
      value = static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
    }
  }
  return values;
}

}  // namespace treadle::kernels
