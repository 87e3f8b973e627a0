#pragma once
// What the rewrites of opt/standard_form.h ask of nodes.

#include <initializer_list>
#include <string_view>

#include "opt/uses.h"

namespace treadle::opt {

// The node that makes `v` for `user` alone, in the same region, if it is one of these operators of the standard.
ir::Node* sole_producer(const ir::Node& user, const ir::Value* v, const Uses& uses,
                        std::initializer_list<std::string_view> ops);

// The version of an operator that the operator set which the model imports has; null where there is none.
const OpVersion* standard_version(const ir::Graph& graph, std::string_view op);

bool is_matrix(const ir::Value* v);

// Whether `v` is a constant of one float, which is this number or as near to it as `within` of it.
bool is_number(const ir::Value* v, double number, double within = 0);

// Whether every number of one type is one of the other type, which is another one.
bool holds_all(ElementType from, ElementType to);

}  // namespace treadle::opt
