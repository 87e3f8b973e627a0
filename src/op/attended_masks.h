#pragma once
// Attribute `masks` of treadle.AttendedValues: what becomes of the scores before their softmax, one step after the
// other. opt::fuse_attention writes it.

#include <cstdint>

namespace treadle {

enum class AttendedMask : int64_t {
  kAdd,      // takes one input, which is added
  kKeep,     // takes a condition and numbers, which replace scores where the condition is false
  kReplace,  // the same, where it is true
};

}  // namespace treadle
