#include "op/context.h"

#include "kernels/convert.h"
#include "op/place.h"
#include "op/registry.h"
#include "op/small_contents.h"
#include "type/make_tensor.h"

namespace treadle {

int InferContext::version() const {
  return node.version->since;
}
int PrepareContext::version() const {
  return node.version->since;
}
int ComputeContext::version() const {
  return node.version->since;
}
int LowerContext::version() const {
  return node_.version->since;
}

std::optional<Shape> InferContext::dims_value(size_t i) const {
  if (const Tensor* t = value(i)) return dims_of(*t);
  if (i < symbols.size() && symbols[i] && !is_float(element(i))) return *symbols[i];
  return std::nullopt;
}

void InferContext::set_output(size_t i, ElementType element) {
  if (i >= outputs.size()) return;
  Type& out = outputs[i];
  out.kind = Type::Kind::kTensor;
  out.element = element;
  out.has_shape = false;
  out.shape.clear();
  out.child.reset();
}

void InferContext::set_output(size_t i, ElementType element, Shape shape) {
  if (i >= outputs.size()) return;
  Type& out = outputs[i];
  out.kind = Type::Kind::kTensor;
  out.element = element;
  out.has_shape = true;
  out.shape = std::move(shape);
  out.child.reset();
}

void InferContext::set_output(size_t i, Type type) {
  if (i < outputs.size()) outputs[i] = std::move(type);
}

void InferContext::set_output_symbols(size_t i, Shape contents) {
  if (i >= output_symbols.size()) return;
  output_symbols[i] = std::move(contents);
  output_symbols_known[i] = true;
}

InlineVector<int64_t, 8> PrepareContext::int64s(size_t i) const {
  const Operand& operand = inputs[i];
  TREADLE_ASSERT(operand.constant || operand.element_count() == 0);
  return Tensor::from_buffer(operand.type, operand.dims, {}, operand.constant).to_int64s();
}

namespace {

bool takes(const AnyValue& value, ElementType type, const Dims& dims) {
  if (!value.is_tensor()) return false;
  const Tensor& tensor = value.tensor();
  return tensor.type() == type && tensor.dims() == dims && tensor.exclusive();
}

void clear_texts(Tensor& tensor) {
  auto* texts = tensor.mutable_data<String>();
  for (int64_t i = 0; i < tensor.element_count(); ++i) texts[i].clear();
}

}  // namespace

// Reuses the memory of the node's last result if nothing else refers to it.
Result<Tensor*> ComputeContext::allocate(size_t i, ElementType type, Dims dims) {
  if (takes(outputs[i], type, dims)) {
    Tensor& tensor = outputs[i].tensor();
    if (is_string(type)) clear_texts(tensor);
    return &tensor;
  }
  TREADLE_ASSIGN(Tensor tensor, Tensor::allocate(type, std::move(dims)));
  outputs[i] = AnyValue(std::move(tensor));
  return &outputs[i].tensor();
}

LowerContext::LowerContext(const ir::NodeInfo& node, std::span<const Type* const> inputs,
                           std::span<const Tensor* const> values, ir::Graph& graph,
                           std::span<const std::unique_ptr<ir::Region>> bodies)
    : node_(node),
      types_(inputs.begin(), inputs.end()),
      values_(values.begin(), values.end()),
      graph_(graph),
      bodies_(bodies) {
  region_ = &graph.top();
  for (size_t i = 0; i < types_.size(); ++i) {
    ir::Value* v = nullptr;
    if (types_[i]) {
      v = graph.new_value("in" + std::to_string(i), *types_[i], region_);
      region_->inputs.push_back(v);
      // A constant operand stays an input of the graph, so that positions agree, and carries its contents.
      if (const Tensor* t = value(i)) v->constant = *t;
    } else {
      region_->inputs.push_back(nullptr);
    }
    inputs_.push_back(v);
  }
  region_->outputs.resize(node.output_count, nullptr);
  for (const auto& body : bodies_) {
    for (ir::Value* outer : ir::captures(*body)) {
      auto [it, fresh] = captured_.try_emplace(outer, nullptr);
      if (!fresh) continue;
      it->second = graph.new_value(outer->name, outer->type, region_);
      region_->inputs.push_back(it->second);
      captures_.push_back(outer);
    }
  }
}

const ir::Region* LowerContext::body(std::string_view attribute) const {
  for (const auto& body : bodies_) {
    if (body->attribute == attribute) return body.get();
  }
  return nullptr;
}

std::vector<ir::Value*> LowerContext::inline_body(std::string_view attribute, std::span<ir::Value* const> arguments) {
  const ir::Region* from = body(attribute);
  TREADLE_ASSERT(from && from->inputs.size() == arguments.size());
  std::unordered_map<const ir::Value*, ir::Value*> map = captured_;
  for (size_t i = 0; i < arguments.size(); ++i) map[from->inputs[i]] = arguments[i];
  return ir::inline_region(*from, region_, map);
}

void LowerContext::set_output(size_t i, ir::Value* value) {
  if (i < graph_.top().outputs.size()) graph_.top().outputs[i] = value;
}

ir::Node* LowerContext::node(std::string_view op, std::span<ir::Value* const> inputs, size_t outputs,
                             std::vector<ir::Attribute> attributes, std::string_view domain) {
  const OpDef& def = require_op(op, domain);
  const std::string name = node_.name + "/" + std::string(op) + "_" + std::to_string(counter_++);
  ir::Node* made = graph_.new_node(region_, &def, &def.newest(), name);
  made->attributes.set(named_as(node_));
  for (ir::Attribute& a : attributes) made->attributes.set(std::move(a));
  TREADLE_ASSERT(!def.parse);  // parsing could fail; lowerings use no operator that needs it
  for (ir::Value* v : inputs) graph_.add_input(made, v);
  for (size_t i = 0; i < outputs; ++i) graph_.add_output(made, name + ":" + std::to_string(i));
  return made;
}

ir::Value* LowerContext::call(std::string_view op, std::span<ir::Value* const> inputs,
                              std::vector<ir::Attribute> attributes, std::string_view domain) {
  return node(op, inputs, 1, std::move(attributes), domain)->outputs[0];
}

ir::Value* LowerContext::call(std::string_view op, std::initializer_list<ir::Value*> inputs,
                              std::vector<ir::Attribute> attributes, std::string_view domain) {
  return call(op, std::span<ir::Value* const>(inputs.begin(), inputs.size()), std::move(attributes), domain);
}

ir::Value* LowerContext::constant(Tensor tensor) {
  return graph_.new_constant(node_.name + "/const_" + std::to_string(counter_++), std::move(tensor));
}

ir::Value* LowerContext::constant_int64s(std::initializer_list<int64_t> values) {
  return constant(Tensor::of_int64({values.begin(), values.size()}));
}

ir::Value* LowerContext::constant_int64(int64_t scalar) {
  return constant(Tensor::scalar<int64_t>(ElementType::kInt64, scalar));
}

ir::Value* LowerContext::number(double scalar, ElementType type) {
  Tensor tensor = make_tensor(type, {});
  kernels::cast(ElementType::kDouble, type, &scalar, tensor.mutable_raw(), 1);
  return constant(std::move(tensor));
}

void LowerContext::begin_region(ir::Node* node, std::string attribute) {
  region_ = graph_.new_region(node, std::move(attribute));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as it is declared
ir::Value* LowerContext::region_input(std::string name, Type type) {
  ir::Value* v = graph_.new_value(std::move(name), std::move(type), region_);
  region_->inputs.push_back(v);
  return v;
}

void LowerContext::region_output(ir::Value* value, Type type) {
  region_->outputs.push_back(value);
  region_->output_types.push_back(type.is_known() || !value ? std::move(type) : value->type);
}

void LowerContext::end_region() {
  region_ = region_->parent_region();
}

}  // namespace treadle
