#pragma once
// The operator record: versions, type rules, inference, effects, lowering, kernel. Each operator has one, defined by a
// TREADLE_OP block in src/ops/<family>/ and found through op/registry.h.

#include <climits>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "op/context.h"
#include "op/type_set.h"
#include "op/type_sets.h"

namespace treadle {

namespace kernels {
enum class ReduceOp : uint8_t;  // kernels/reduce.h
}

class AxisContext;      // op/axes.h
class WidenContext;     // op/axes.h
struct Work;            // op/work.h
struct DynamicKernel;   // op/dynamic_kernel.h
struct DynamicContext;  // op/dynamic_kernel.h
class CustomOperator;   // op/custom_operator.h

enum class Arity : uint8_t { kSingle, kOptional, kVariadic, kVariadicMixed /* each argument its own type */ };

struct Formal {
  std::string name;
  std::string type;  // a constraint's name ("T") or a type ("tensor(int64)")
  Arity arity = Arity::kSingle;
  int min_arity = 1;  // for a variadic formal
  // Index of the constraint among OpVersion::types; kNoConstraint if `type` is a type. Set by the registry.
  int constraint = kNoConstraint;

  static constexpr int kNoConstraint = -1;
};

struct AttributeDef {
  std::string name;
  ir::AttributeKind kind = ir::AttributeKind::kUndefined;
  bool required = false;
  ir::Attribute default_value;  // kind kUndefined: none

  bool has_default() const { return default_value.kind != ir::AttributeKind::kUndefined; }
};

struct TypeConstraint {
  std::string name;
  TypeSet types;
};

struct OpVersion {
  int since = 1;
  bool deprecated = false;
  std::vector<Formal> inputs, outputs;
  std::vector<AttributeDef> attributes;
  bool any_attributes = false;  // other attributes are allowed as well
  std::vector<TypeConstraint> types;

  const AttributeDef* attribute(std::string_view name) const;
  const TypeConstraint* constraint(std::string_view name) const;
  const TypeConstraint* constraint(const Formal& formal) const {
    return formal.constraint == Formal::kNoConstraint ? nullptr : &types[static_cast<size_t>(formal.constraint)];
  }
  // Finds the formals' constraints, when the version is complete.
  void link();
  // The formal of the i-th actual argument: a variadic formal stands for all that follow. Null if there are too many.
  const Formal* input(size_t i) const { return formal(inputs, i); }
  const Formal* output(size_t i) const { return formal(outputs, i); }
  size_t min_inputs() const { return fewest(inputs); }
  size_t min_outputs() const { return fewest(outputs); }

 private:
  static const Formal* formal(const std::vector<Formal>& formals, size_t i) {
    return i < formals.size() ? &formals[i] : variadic(formals);
  }
  // The last formal if it is variadic, else null.
  static const Formal* variadic(const std::vector<Formal>& formals);
  static size_t fewest(const std::vector<Formal>& formals);
};

enum class Effects : uint8_t {
  kTotal,    // never fails on data, and gives the same outputs for the same inputs
  kCanFail,  // data can make it fail (division by zero, indices, ...)
  kRandom,   // never folded, merged, hoisted or batched
};

enum class Control : uint8_t { kNone, kIf, kLoop, kScan };

using InferFn = Status (*)(InferContext&);
using PrepareFn = Status (*)(PrepareContext&);
using ComputeFn = Status (*)(ComputeContext&);
using ParseFn = Result<std::shared_ptr<const void>> (*)(const ir::NodeInfo&);
using LowerFn = Status (*)(LowerContext&);
using AxesFn = Status (*)(AxisContext&);
using WidenFn = Status (*)(WidenContext&);
using WorkFn = Work (*)(const ir::Node&);
using TotalFn = bool (*)(const ir::Node&);
using ExpandFn = bool (*)(LowerContext&);
using DynamicFn = DynamicKernel (*)(const DynamicContext&);

// Whether an operator multiplies an operand with another one that often stays the same: weights.
enum class Product : uint8_t { kNone, kMatrices, kConvolution };

// How results of an operator depend on operands along the time axis of a stream, if `axes` allows that axis. Each kind
// needs one thing to be kept for the next piece (stream/time_walk.h).
enum class TimeRule : uint8_t {
  kNone,
  kWindow,            // attributes kernel_shape, strides, dilations, pads
  kTransposedWindow,  // the same, from results to operands
  kConcat,
  kPad,
  kSlice,
  kGather,
  kPrefixSum,
  kRecurrence,
  kLoop,
  kScan,
  kReshape,
  kSqueeze,
  kExpand,
  kFill,   // of a shape
  kRange,  // of bounds
  kSize,   // of sizes
};

// Which of the rules in op/size_rules.h states the sizes of the results.
enum class SizeRule : uint8_t {
  kNone,       // one of the operator's own
  kBroadcast,  // of all operands
  kReduce,     // axes: input 1 or attribute; `keepdims`
  kSlice,      // bounds, axes and steps: inputs 1 to 4 or attributes
  kConcat,     // along attribute axis
  kReshape,    // sizes: input 1 or attribute
  kSqueeze,    // axes: input 1 or attribute
  kUnsqueeze,  // likewise
  kSplit,      // along attribute axis; sizes: input 1 or attribute
  kRange,      // of three inputs
  kGather,     // of input 0 along attribute axis; indices: input 1
};

struct OpDef {
  std::string domain;  // "" is ai.onnx
  std::string name;
  std::vector<OpVersion> versions;  // ascending

  // Optional: parses attributes that are costly to read (trees, tables of labels, patterns). The other functions get
  // the result as node.parsed_as<T>(). Called once per node, when its attributes are complete.
  ParseFn parse = nullptr;
  InferFn infer = nullptr;
  // Exactly one of these, unless `control` is set. None: the operator has a record, but cannot run.
  PrepareFn prepare = nullptr;  // kernel for known shapes
  ComputeFn compute = nullptr;  // values in, values out
  LowerFn lower = nullptr;      // simpler nodes
  Control control = Control::kNone;
  const char* missing = nullptr;  // for an operator that cannot run: what is missing, such as "decode images"
  int lower_before = INT_MAX;     // later versions are not lowered (Scan-8 is lowered, later versions run as they are)

  Effects effects = Effects::kTotal;
  // With kCanFail: the element types of input 0 for which data can make it fail (Div: integers). The default is all.
  ElementTypeSet failing{~uint32_t{0}};
  // With kCanFail: whether a given node cannot fail (its divisor is a constant without zeros).
  TotalFn total_if = nullptr;
  // Not folded when a model is loaded, even with constant operands; planning decides.
  bool stays = false;
  // Bit i: the contents of input i decide output sizes or the preparation (shapes, axes, pads, ...). The kernel never
  // reads them at run time.
  uint64_t shape_inputs = 0;
  // Bit i: the kernel accepts any strides of input i.
  uint64_t strided_inputs = 0;
  // Output 0 is the data of input `alias_input`, contiguous, with other sizes. The kernel is a plain copy.
  int alias_input = -1;
  // Optional: replaces a node of known sizes by simpler nodes, which join the groups around them (opt/expansion.cc).
  // False: the node stays, and nodes that were written are dropped. `lower` is required to run a node; this is an
  // optimisation.
  ExpandFn expand = nullptr;
  bool expands_in_loops = false;  // only in loops; elsewhere the kernel is as fast
  // Each result element depends on one element of each operand, broadcast by numpy's rule. Such nodes join groups.
  bool elementwise = false;
  // Which axis of a result an axis of an operand becomes, if positions along it are independent. Null: there is none,
  // and `no_axes` says why as the end of a sentence: "one scale is that of all elements".
  AxesFn axes = nullptr;
  const char* no_axes = nullptr;
  // The rule of op/size_rules.h that states the sizes of results.
  SizeRule sizes = SizeRule::kNone;
  std::optional<kernels::ReduceOp> reduction;  // for kReduce: the reduction of elements along the axes
  // What changes in a node whose operands get one more leading axis. Null: the operator takes no more axes. If its axis
  // 0 counts entries, the new axis can still be merged with axis 0.
  WidenFn widen = nullptr;
  TimeRule over_time = TimeRule::kNone;
  // The work of a node of known sizes. Null: one operation per element of the result, with the price of the elementwise
  // operation.
  WorkFn work = nullptr;
  Product product = Product::kNone;  // which product of its first two inputs it computes; the second may be weights
  uint8_t factors[2] = {0, 1};
  // The input whose matrices a product reads by columns: the last axis of the input, or of its transpose by attribute
  // perm_b.
  std::optional<uint8_t> columns;
  // Each element of a result is an element of an input of the same type, or a constant (0 except in Pad). Sizes and the
  // other inputs decide which.
  bool moves_elements = false;
  // Output 0 is input 0 with each element in another type.
  bool converts = false;
  // Output 0 is input 0 with some elements replaced, or a sequence with one element more.
  bool updates = false;
  // Optional: a kernel for operands of any size. Elementwise operators get one without it.
  DynamicFn dynamic = nullptr;
  // The same for a node with texts among operands or results.
  DynamicFn dynamic_texts = nullptr;
  // For an operator that a program registers: the object behind `parse`, `infer` and `compute`.
  std::shared_ptr<const CustomOperator> custom;
  // Output 0 is input 0 followed by the other inputs along attribute `axis`. A growing input 0 is extended in place.
  bool appends = false;

  bool runs() const { return prepare || compute || lower || control != Control::kNone; }
  // Whether results can be computed before the run if all operands are constants.
  bool folds() const { return effects != Effects::kRandom && !stays; }
  bool can_fail(ElementType first_input) const { return effects == Effects::kCanFail && failing.contains(first_input); }
  // The version in force when a model imports `opset` of the domain; null if the operator is newer.
  const OpVersion* version_for(int64_t opset) const;
  bool lowers(const OpVersion& version) const { return lower && version.since < lower_before; }
  const OpVersion& newest() const { return versions.back(); }
};

// Writes the versions of an operator: the first completely, each later one as changes.
class VersionBuilder {
 public:
  explicit VersionBuilder(OpVersion& version) : v_(version) {}

  // Replaces the formal of that name if there is one, else appends it.
  VersionBuilder& in(const char* name, const char* type, Arity arity = Arity::kSingle, int min_arity = 1);
  VersionBuilder& out(const char* name, const char* type, Arity arity = Arity::kSingle, int min_arity = 1);
  VersionBuilder& no_inputs();   // removes the inputs so far
  VersionBuilder& no_outputs();  // removes the outputs so far
  VersionBuilder& drop_in(const char* name);

  VersionBuilder& attr(const char* name, int64_t value);
  VersionBuilder& attr(const char* name, int value) { return attr(name, static_cast<int64_t>(value)); }
  VersionBuilder& attr(const char* name, double value);  // float
  VersionBuilder& attr(const char* name, const char* value);
  VersionBuilder& attr_ints(const char* name, std::vector<int64_t> value);
  VersionBuilder& attr_strings(const char* name, std::vector<std::string> value);
  VersionBuilder& required(const char* name, ir::AttributeKind kind);
  VersionBuilder& optional(const char* name, ir::AttributeKind kind);
  VersionBuilder& drop_attr(const char* name);

  // Adds a part that several operators share.
  VersionBuilder& with(void (*part)(VersionBuilder&)) { return part(*this), *this; }

  VersionBuilder& type(const char* name, TypeSet types);
  VersionBuilder& drop_type(const char* name);
  VersionBuilder& deprecated();

 private:
  VersionBuilder& attribute(AttributeDef def);
  OpVersion& v_;
};

class OpBuilder {
 public:
  explicit OpBuilder(OpDef& record) : def(record) {}
  VersionBuilder since(int version);

  // `kParse`: Result<T>(const ir::NodeInfo&), see OpDef::parse.
  template <auto kParse>
  OpBuilder& parse() {
    def.parse = [](const ir::NodeInfo& node) -> Result<std::shared_ptr<const void>> {
      auto parsed = kParse(node);
      if (!parsed.ok()) return std::move(parsed).status();
      return std::shared_ptr<const void>(std::make_shared<std::remove_cvref_t<decltype(*parsed)>>(std::move(*parsed)));
    };
    return *this;
  }
  OpBuilder& infer(InferFn fn) { return def.infer = fn, *this; }
  OpBuilder& prepare(PrepareFn fn) { return def.prepare = fn, *this; }
  OpBuilder& compute(ComputeFn fn) { return def.compute = fn, *this; }
  OpBuilder& lower(LowerFn fn) { return def.lower = fn, *this; }
  OpBuilder& lower_before(int version, LowerFn fn) { return def.lower_before = version, lower(fn); }
  OpBuilder& control(Control c) { return def.control = c, *this; }
  // A record of an operator that cannot run. `what` completes "this build does not".
  OpBuilder& not_run(const char* what) { return def.missing = what, *this; }
  OpBuilder& can_fail() { return def.effects = Effects::kCanFail, *this; }
  OpBuilder& can_fail(ElementTypeSet types) { return def.failing = types, can_fail(); }
  OpBuilder& stays() { return def.stays = true, *this; }
  OpBuilder& random() { return def.effects = Effects::kRandom, *this; }
  OpBuilder& shape_inputs(std::initializer_list<int> inputs);
  OpBuilder& strided_inputs(std::initializer_list<int> inputs);
  OpBuilder& alias(int input) { return def.alias_input = input, *this; }
  OpBuilder& moves_elements() { return def.moves_elements = true, *this; }
  OpBuilder& converts() { return def.converts = true, *this; }
  OpBuilder& updates() { return def.updates = true, *this; }
  OpBuilder& appends() { return def.appends = true, *this; }
  OpBuilder& can_fail_unless(TotalFn fn) { return def.total_if = fn, can_fail(); }
  OpBuilder& over_time(TimeRule kind) { return def.over_time = kind, *this; }
  OpBuilder& work(WorkFn fn) { return def.work = fn, *this; }
  OpBuilder& product(Product kind, uint8_t left = 0, uint8_t right = 1) {
    return def.product = kind, def.factors[0] = left, def.factors[1] = right, *this;
  }
  OpBuilder& sizes(SizeRule rule) { return def.sizes = rule, *this; }
  OpBuilder& reduction(kernels::ReduceOp op) { return def.reduction = op, sizes(SizeRule::kReduce); }
  OpBuilder& reads_columns(uint8_t input) { return def.columns = input, *this; }
  OpBuilder& elementwise();
  OpBuilder& expand(ExpandFn fn) { return def.expand = fn, *this; }
  OpBuilder& expand_in_loops(ExpandFn fn) { return def.expands_in_loops = true, expand(fn); }
  OpBuilder& axes(AxesFn rule, WidenFn widen = nullptr) { return def.axes = rule, def.widen = widen, *this; }
  OpBuilder& dynamic(DynamicFn fn) { return def.dynamic = fn, *this; }
  OpBuilder& dynamic_texts(DynamicFn fn) { return def.dynamic_texts = fn, *this; }
  OpBuilder& no_axes(const char* why) { return def.no_axes = why, *this; }

  OpDef& def;
};

// To be called when the attributes of a node are complete.
Status parse_attributes(ir::NodeInfo& node);

// Whether elements of input `i` become elements of results: moved, under other sizes, or in another type.
bool hands_on(const ir::Node& node, size_t i);

using OpDefineFn = void (*)(OpBuilder&);
// Generated by the build (tools/gen_registry.py) from the TREADLE_OP blocks under src/ops/.
std::span<const OpDefineFn> generated_op_table();

// A text as a template argument.
template <size_t kSize>
struct OpText {
  consteval OpText(const char (&given)[kSize]) {  // NOLINT(google-explicit-constructor): a literal stands for it
    for (size_t i = 0; i < kSize; ++i) text[i] = given[i];
  }
  char text[kSize] = {};
};

// The record of operator `kName` of `kDomain`: a TREADLE_OP block defines define(), the table of operators calls
// make().
template <OpText kName, OpText kDomain>
struct OpRecord {
  static void define(OpBuilder& op);
  static void make(OpBuilder& op) {
    op.def.domain = kDomain.text;
    op.def.name = kName.text;
    define(op);
  }
};

}  // namespace treadle

// TREADLE_OP(Add, "") { op.since(7).in("A", "T")...; op.infer(infer_add).prepare(prepare_add); } stands at file scope,
// outside any namespace. The functions that it names may be in an anonymous namespace above it.
#define TREADLE_OP(op_name, op_domain) \
  template <>                          \
  void treadle::OpRecord<#op_name, op_domain>::define([[maybe_unused]] treadle::OpBuilder& op)
