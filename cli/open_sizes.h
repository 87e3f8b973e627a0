#pragma once
// Fixed sizes of a model that become symbols.

#include <string>
#include <vector>

namespace cli {

struct OpenedModel {
  std::string bytes;
  std::vector<std::string> changes;  // a line for each node that changed
  std::vector<std::string> runs;     // what runs with drawn inputs, a line each
  std::string json;                  // "sizes" and "changes", as the library says it
};

// `sizes`: "frames:0=batch". Runs the model before and after with the sizes that it had, and after with two and three
// times these sizes. Errors: those of the library, with the nodes that stand in the way; InputError for a model that
// runs with no other size, or with other results.
OpenedModel open_sizes(const std::string& model, const std::vector<std::string>& sizes);

}  // namespace cli
