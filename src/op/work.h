#pragma once
// What a node computes, counted: each operator says it in its record (OpDef::work) where it is neither elementwise nor
// a plain pass over its result. For who compares it with what a machine can do (report/explain.h), and for who decides
// whether moving a node pays (opt/).

#include "kernels/elementwise_ops.h"
#include "op/elementwise.h"

namespace treadle {

struct Work {
  double flops = 0;       // of products: a multiplication and an addition count as two
  double operations = 0;  // one per element of 32 bits: additions, comparisons, moves
  double functions = 0;   // likewise, of exp and its like
  double one_by_one = 0;  // elements that are looked at one after the other, as long as an addition that waits

  Work& operator+=(const Work& other);
  friend Work operator*(double times, const Work& work);
};

// Of a node whose sizes are known. Of unknown ones: nothing.
Work work_of(const ir::Node& node);
// Of an operation on so many elements of a type.
Work work_of(kernels::Price price, ElementType type, double elements);
// An elementwise node's; nullopt: none that one operation stands for.
std::optional<kernels::Price> price_of(const ir::Node& node);

// How long what an elementwise node makes is waited for, in additions that wait for each other.
double latency_of(const ir::Node& node);

namespace work {

// Elements of a value of known sizes; 0: of unknown ones, or none.
double elements_of(const ir::Value* v);
// The size of axis `from_the_end` (1: the last) of a value of known sizes; 1 where it has none.
double size_of(const ir::Value* v, size_t from_the_end);

// --- for OpDef::work

// Every element of the result is a sum over the last axis of input `left`.
Work matrix_product(const ir::Node& node, size_t left);
template <size_t kLeft>
Work matrix_product(const ir::Node& node) {
  return matrix_product(node, kLeft);
}
// Of filters in input `weights`: [filters, ...].
Work convolution(const ir::Node& node, size_t weights);
template <size_t kWeights>
Work convolution(const ir::Node& node) {
  return convolution(node, kWeights);
}
// Each element of input 0 is added up or compared, many at a time.
Work reduction(const ir::Node& node);
// Of the extremes of input 0: beside elements, their numbers are carried along.
Work positions(const ir::Node& node);
// Each element of input 0 is looked at after the one before: where it goes depends on those.
Work one_by_one(const ir::Node& node);
// Each element of input 0 is compared with the best so far, which few are better than.
Work search(const ir::Node& node);
// Each element of input 0 is the argument of a function.
Work functions_of_input(const ir::Node& node);
// So many functions for each element of the result.
template <int kFunctions>
Work functions_of_result(const ir::Node& node) {
  return {.functions = kFunctions * elements_of(node.outputs[0])};
}

}  // namespace work

}  // namespace treadle
