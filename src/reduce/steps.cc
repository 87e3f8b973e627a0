#include "reduce/step.h"

namespace treadle::reduce {

std::span<const std::unique_ptr<const Step>> steps() {
  static const Steps all = [] {
    Steps made;
    add_node_steps(made);
    add_body_steps(made);
    add_state_steps(made);
    add_argument_steps(made);
    add_iteration_steps(made);
    add_size_steps(made);
    add_constant_steps(made);
    add_text_steps(made);
    return made;
  }();
  return all;
}

}  // namespace treadle::reduce
