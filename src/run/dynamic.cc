// Nodes whose shapes are known only at run time. A guarded node looks up the shapes at hand in its inline cache. When
// the cache has a kernel for the shapes, the kernel runs at once, and writes to the memory of the node's last result
// where nobody else holds that result.
#include "run/dynamic.h"

#include <algorithm>

#include "op/lower.h"
#include "op/op_def.h"
#include "reference/interpreter.h"
