// treadle for C++17 and later: owning types and exceptions over treadle.h, nothing else. Everything is inline; the
// library itself shows C functions only. All that treadle.h can do can be done with what is here; functions that a
// method calls are where shapes, units and errors are told.
#pragma once

#include "treadle/model.hpp"
#include "treadle/operator.hpp"
#include "treadle/session.hpp"
#include "treadle/stream.hpp"
#include "treadle/value.hpp"
