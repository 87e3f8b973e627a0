#pragma once
// What an operator record says, for people and for programs.

#include <string>

#include "op/op_def.h"

namespace treadle {

// One line of JSON: domain, name, effects, the tiers that run it, and every version whole.
std::string schema_json(const OpDef& op);
// The first version whole, each later one as what it changes; ends with a line break.
std::string schema_text(const OpDef& op);

}  // namespace treadle
