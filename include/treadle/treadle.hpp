// treadle for C++17 and later: owning types and exceptions over treadle.h. Everything is inline; the library itself
// exports C functions only. Every feature of treadle.h is available here. Shapes, units and errors are documented in
// treadle.h, at the function that a method calls.
#pragma once

#include "treadle/model.hpp"
#include "treadle/operator.hpp"
#include "treadle/session.hpp"
#include "treadle/stream.hpp"
#include "treadle/trace.hpp"
#include "treadle/value.hpp"
