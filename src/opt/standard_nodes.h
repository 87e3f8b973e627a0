#pragma once
// Questions about nodes, for the rewrites of opt/standard_form.h.

#include <initializer_list>
#include <string_view>

#include "opt/uses.h"

namespace treadle::opt {

// The node that makes `v` for `user` alone, in the same region, if it is one of these standard operators.
ir::Node* sole_producer(const ir::Node& user, const ir::Value* v, const Uses& uses,
                        std::initializer_list<std::string_view> ops);

// The version of an operator in the operator set that the model imports; null if it has none.
const OpVersion* standard_version(const ir::Graph& graph, std::string_view op);

bool is_matrix(const ir::Value* v);

// Whether `v` is a constant of one float that equals the number, or differs from it by at most `within` times the
// number.
bool is_number(const ir::Value* v, double number, double within = 0);

// Whether the other type is a different one, and represents every number of the first.
bool holds_all(ElementType from, ElementType to);

}  // namespace treadle::opt
