#pragma once
// Attribute `masks` of treadle.AttendedValues: the steps between scores and softmax, in order. Written by
// opt::fuse_attention.

#include <cstdint>

namespace treadle {

enum class AttendedMask : int64_t {
  kAdd,      // adds one input to the scores
  kKeep,     // takes a condition and numbers, which replace scores where the condition is false
  kReplace,  // as kKeep, where the condition is true
};

}  // namespace treadle
