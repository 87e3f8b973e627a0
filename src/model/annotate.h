#pragma once
// Inferred types written into a model, as `value_info` and as types of outputs, in bodies too. Everything else of the
// file stays as it is; functions stay calls.

#include <string>

#include "ir/graph.h"
#include "wire/mapped_file.h"

namespace treadle::model {

// `graph` was imported from `file` and inferred, not rewritten. Errors: as parse_model(); kLimit above 2 GiB.
Result<std::string> annotate_types(const wire::MappedFile& file, const ir::Graph& graph);

}  // namespace treadle::model
