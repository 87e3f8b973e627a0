#pragma once
// What a trip of a loop computes, and how long that takes at least.

#include <functional>

#include "exec/machine_roof.h"
#include "plan/native.h"
#include "plan/program.h"

namespace treadle::exec {

struct Work {
  double flops = 0;       // of products: a multiplication and an addition count as two
  double operations = 0;  // elementwise, one per element
  double functions = 0;   // likewise, of exp and its like

  Work& operator+=(const Work& other);
  friend Work operator*(double times, const Work& work);
  // In elementary operations.
  double all() const;
};

double work_ns(const MachineRoof& roof, const Work& work);

// Of a node whose sizes are known.
Work work_of(const ir::Node& node);
Work work_of(const plan::ElementwiseCode& code);

// The longest way from a state of the loop to its own next value: what one trip makes the next one wait for. `node_ns`:
// how long the work of a node takes.
double carried_ns(const plan::Loop& loop, const MachineRoof& roof,
                  const std::function<double(const ir::Node&)>& node_ns);

}  // namespace treadle::exec
