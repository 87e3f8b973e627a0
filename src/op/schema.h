#pragma once
// Operator records as text and as JSON.

#include <string>

#include "op/op_def.h"

namespace treadle {

// One line of JSON: domain, name, effects, the tiers that run it, and all versions in full.
std::string schema_json(const OpDef& op);
// The first version in full, later ones as changes; ends with a line break.
std::string schema_text(const OpDef& op);

}  // namespace treadle
