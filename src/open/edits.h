#pragma once
// Changes of a model's messages for sizes that were opened.

#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "open/opening.h"
#include "reduce/names.h"
#include "type/tensor.h"

namespace treadle::open {

struct Edit {
  enum class Kind : uint8_t {
    kShape,   // an input or attribute that lists sizes gets other contents
    kSpread,  // an Expand is put before an input
  };
  Kind kind = Kind::kShape;
  std::string path, op;       // of the node
  size_t input = 0;           // its number; for a Reshape of version 1, whose sizes are an attribute, ignored
  std::vector<SizeOf> sizes;  // the contents; what the input is spread to
  Tensor row;                 // with kSpread: what is spread; undefined: the input as it is
  std::string was;            // the contents before

  std::string text() const;   // a line for people
  std::string needs() const;  // "its shape has to be [0,640]"
};

class Editor {
 public:
  Editor(wire::ModelProto& model, Arena& arena) : model_(model), arena_(arena) {}

  // By edit: why it cannot be done; empty: it is done.
  std::vector<std::string> apply(std::span<const Edit> edits);

 private:
  struct Place {
    size_t scope = reduce::kNoScope;
    size_t node = 0;
  };
  // A node, whatever is put before it: the graph or function that it is in, and its first output.
  using Target = std::pair<const void*, std::string>;
  std::optional<Target> find(const Edit& edit) const;
  std::string apply(const Edit& edit, const Target& target);
  std::string set_shape(const reduce::Names& names, Place place, const Edit& edit);
  std::string spread(const reduce::Names& names, Place place, const Edit& edit);
  void declare_state(wire::NodeProto& node, const Edit& edit);
  bool set_in_place(const reduce::Names& names, Place place, size_t input, std::span<const int64_t> numbers);
  // A name for the contents, made by nodes that are added to `nodes`.
  std::string_view contents(std::span<const SizeOf> sizes, reduce::FreshNames& fresh,
                            std::vector<wire::NodeProto>& nodes);
  std::string_view size_of_opening(const Opening& opening, reduce::FreshNames& fresh);
  std::string_view constant(std::span<const int64_t> numbers, reduce::FreshNames& fresh,
                            std::vector<wire::NodeProto>& nodes);
  wire::NodeProto node(std::string_view op, std::initializer_list<std::string_view> inputs, std::string_view output);

  std::set<std::tuple<Target, size_t, std::string>> done_;  // the node, the input and its sizes
  wire::ModelProto& model_;
  Arena& arena_;
  std::deque<Tensor> tensors_;                     // whose contents the model refers to
  std::map<std::string, std::string_view> sizes_;  // by symbol: the value of the model's graph that has the size
  std::vector<wire::NodeProto> in_front_;          // of the model's graph
};

}  // namespace treadle::open
