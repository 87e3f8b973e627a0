#include "opt/remarks.h"

#include "op/op_def.h"

namespace treadle::opt {

std::string_view name(Change change) {
  constexpr std::string_view kNames[kChangeCount] = {"lowered",  "folded",   "decided",  "elided",    "merged",
                                                     "dropped",  "hoisted",  "batched",  "scanned",   "sunk",
                                                     "fused",    "selected", "mapped",   "guarded",   "reassociated",
                                                     "restated", "unrolled", "narrowed", "unstacked", "regrouped"};
  return kNames[static_cast<size_t>(change)];
}

std::string_view sentence(Change change) {
  constexpr std::string_view kSentences[kChangeCount] = {
      "this loop is what the operator stands for",
      "depends on constants alone, and is one",
      "its condition is known: one branch took its place",
      "its result was its operand",
      "another node computes the same",
      "nobody needs its results",
      "the same in every iteration: runs once, before the loop",
      "runs before the loop, for all iterations at once",
      "picked a row by the iteration counter: reads a scan input",
      "runs behind the loop, for all iterations at once",
      "part of another node",
      "cheap branches: both run, one result is taken",
      "nothing is carried from iteration to iteration, so its body runs for all iterations at once",
      "its indices are looked at before it: a Scan where all are inside, else this loop",
      "a linear recurrence: a scan over time in blocks, and the rest for all iterations at once",
      "simpler nodes compute the same",
      "runs once: its body took its place",
      "its weights are kept in float16",
      "a state that was stacked of parts: each part is a state of its own",
      "a chain of one operation: what is ready first is put together first",
  };
  return kSentences[static_cast<size_t>(change)];
}

const ir::Node* loop_around(const ir::Region& region) {
  for (const ir::Region* r = &region; r && r->parent_node; r = r->parent_region()) {
    const Control control = r->parent_node->op->control;
    if (control == Control::kLoop || control == Control::kScan) return r->parent_node;
  }
  return nullptr;
}

void note(Remarks* remarks, Change change, const ir::Region& region, const ir::Node& node, std::string_view into) {
  if (!remarks) return;
  if (const ir::Node* loop = loop_around(region)) note_of_loop(remarks, change, *loop, node, into);
}

void note_of_loop(Remarks* remarks, Change change, const ir::Node& loop, const ir::NodeInfo& node,
                  std::string_view into) {
  if (!remarks) return;
  remarks->add({change, std::string(loop.name), std::string(node.name), node.op->name, std::string(into)});
}

}  // namespace treadle::opt
