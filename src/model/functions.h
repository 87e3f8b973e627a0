#pragma once
// The functions that a model defines, by domain, name and overload.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "wire/onnx.h"

namespace treadle::model {

// Limit of nested calls and bodies.
inline constexpr int kMaxImportDepth = 200;

// Domain to imported version; the key of "ai.onnx" is "".
using Opsets = std::unordered_map<std::string_view, int64_t>;

inline std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view() : domain;
}

// Errors: kInvalidModel for versions below 1, and for a domain that is imported in two versions.
Result<Opsets> read_opsets(const wire::List<wire::OperatorSetId>& imports);

struct Function {
  const wire::FunctionProto* proto = nullptr;
  Opsets opsets;     // its own imports, and the model's for other domains
  size_t nodes = 0;  // a lower bound of the nodes that a call becomes, with nested calls; at most SIZE_MAX
};

class FunctionTable {
 public:
  // Errors: kInvalidModel for two functions with the same identity, and for functions that call themselves, directly or
  // through others (the message names the calls); kLimit for chains of calls longer than kMaxImportDepth.
  Status build(const wire::ModelProto& model, const Opsets& model_opsets);
  // Null if the node does not call a function.
  const Function* find(const wire::NodeProto& node) const;

 private:
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  struct Entry {
    Function function;
    Mark mark = Mark::kNew;
  };

  Status visit(Entry& entry, std::vector<const wire::FunctionProto*>& chain);
  // Adds to `count` the number of nodes that the nodes become.
  Status visit_calls(const wire::List<wire::NodeProto>& nodes, std::vector<const wire::FunctionProto*>& chain,
                     size_t& count);
  Entry* find_entry(const wire::NodeProto& node);

  std::unordered_map<std::string, Entry> entries_;
};

std::string function_name(const wire::FunctionProto& function);  // "domain.name", with ":overload" if it has one

}  // namespace treadle::model
