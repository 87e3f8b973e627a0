#pragma once
// Opens fixed sizes of a model's inputs.

#include <memory>
#include <span>

#include "open/opening.h"
#include "wire/mapped_file.h"

namespace treadle::open {

struct Opened {
  std::string bytes;                 // the model
  std::vector<Opening> sizes;        // with the sizes that they had
  std::vector<std::string> changes;  // a line for each node that changed
};

// `file`: a binary model. `folder`: of its external data. Errors: kInvalidArgument for an input, axis or symbol that
// does not fit; kInvalidModel with all nodes that stand in the way.
Result<Opened> open_sizes(const std::shared_ptr<wire::MappedFile>& file, const std::string& folder,
                          std::vector<Opening> sizes);

}  // namespace treadle::open
