// What many files of src/ include. Each change to one of these compiles all of src/ anew.
#include <charconv>
#include <map>
#include <numeric>
#include <set>

#include "base/in_pieces.h"
#include "base/stop.h"
#include "base/thread_pool.h"
#include "infer/inference.h"
#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "kernels/move.h"
#include "op/axes.h"
#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/elementwise.h"
#include "op/gemm.h"
#include "op/loop_view.h"
#include "op/node.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "op/registry.h"
#include "op/work.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"
#include "type/make_tensor.h"

namespace treadle {

// Never called: templates that it uses are instantiated with the headers, not in each file that uses them.
inline void instantiate(Shape& shape, InlineVector<int64_t, 6>& sizes,
                        std::unordered_map<ir::Value*, ir::Value*>& values,
                        std::unordered_map<const ir::Value*, bool>& flags, std::vector<uint32_t>& numbers,
                        std::vector<ir::Attribute>& attributes, std::unique_ptr<ir::Graph>& graph,
                        std::optional<int64_t>& found, const std::string& text, std::string_view word) {
  shape = Shape(shape);
  shape.push_back(Dim(1));
  shape.assign(shape.begin(), shape.end());
  sizes = InlineVector<int64_t, 6>(sizes);
  sizes.push_back(1);
  values[nullptr] = nullptr;
  flags[nullptr] = flags.contains(nullptr);
  numbers.assign(numbers.begin(), numbers.end());
  numbers.push_back(1);
  attributes = {attributes.front(), attributes.front()};
  graph = std::unique_ptr<ir::Graph>();
  found = std::nullopt;
  const int64_t number = 0;
  const Status statuses[] = {error(Code::kInternal, "{}", number), error(Code::kInternal, "{}", word),
                             error(Code::kInternal, "{}{}", std::string(), std::string()),
                             error(Code::kInternal, "{}", std::string()), error(Code::kInternal, "{}", text)};
  static_cast<void>(statuses[0].ok());
}

}  // namespace treadle
