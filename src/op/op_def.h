#pragma once
// The operator record: versions, type rules, inference, effects, lowering, kernel. One per operator, defined by a
// TREADLE_OP block in src/ops/<family>/, found through op/registry.h.

#include <climits>
#include <initializer_list>
#include <string>
#include <vector>

#include "op/context.h"
#include "op/type_set.h"
#include "op/type_sets.h"

namespace treadle {

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
  int min_arity = 1;  // of a variadic
  // Index of the constraint among OpVersion::types, kNoConstraint where `type` is a type. Set by the registry.
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
  bool any_attributes = false;  // also others than those
  std::vector<TypeConstraint> types;

  const AttributeDef* attribute(std::string_view name) const;
  const TypeConstraint* constraint(std::string_view name) const;
  const TypeConstraint* constraint(const Formal& formal) const {
    return formal.constraint == Formal::kNoConstraint ? nullptr : &types[static_cast<size_t>(formal.constraint)];
  }
  // Finds the formals' constraints, once the version is whole.
  void link();
  // Formal of the i-th actual argument (the variadic one for all that follow it); null when there are too many.
  const Formal* input(size_t i) const { return formal(inputs, i); }
  const Formal* output(size_t i) const { return formal(outputs, i); }
  size_t min_inputs() const { return fewest(inputs); }
  size_t min_outputs() const { return fewest(outputs); }

 private:
  static const Formal* formal(const std::vector<Formal>& formals, size_t i) {
    return i < formals.size() ? &formals[i] : variadic(formals);
  }
  // The last one, if it takes any number of arguments.
  static const Formal* variadic(const std::vector<Formal>& formals);
  static size_t fewest(const std::vector<Formal>& formals);
};

enum class Effects : uint8_t {
  kTotal,    // never fails on data, same inputs give the same outputs
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

// Products of an operand with another one that is often the same for many of them: weights.
enum class Product : uint8_t { kNone, kMatrices, kConvolution };

// How an operator reaches along an axis on which its operands come piece by piece, where `axes` says that it does:
// each kind is one thing to keep for the next piece (stream/time_walk.h).
enum class TimeRule : uint8_t {
  kNone,
  kWindow,            // attributes kernel_shape, strides, dilations, pads
  kTransposedWindow,  // likewise, from results to operands
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
  kSize,   // asks for sizes
};

struct OpDef {
  std::string domain;  // "" is ai.onnx
  std::string name;
  std::vector<OpVersion> versions;  // ascending

  // Optional: attributes that are costly to read (trees, tables of labels, patterns), in the form that the functions
  // below want; they find it as node.parsed_as<T>(). Called once for a node, when its attributes are complete.
  ParseFn parse = nullptr;
  InferFn infer = nullptr;
  // Exactly one of these, unless `control`; none: the record says what the operator is, but nothing runs it.
  PrepareFn prepare = nullptr;  // kernel for known shapes
  ComputeFn compute = nullptr;  // values in, values out
  LowerFn lower = nullptr;      // simpler nodes
  Control control = Control::kNone;
  const char* missing = nullptr;  // of an operator that nothing runs: what would have to be done, "decode images"
  int lower_before = INT_MAX;     // versions from this one on are not lowered (Scan: 8 is, later ones run as they are)

  Effects effects = Effects::kTotal;
  // With kCanFail: the element types of input 0 for which data can make it fail (Div: integers). All unless said.
  ElementTypeSet failing{~uint32_t{0}};
  // With kCanFail: whether this node cannot all the same (its divisor is a constant without zeros).
  TotalFn total_if = nullptr;
  // Nodes with constant operands become no constants before planning has seen who reads them.
  bool stays = false;
  // Bit i: the contents of input i decide output sizes or the preparation (shapes, axes, pads, ...). The kernel never
  // reads them at run time.
  uint64_t shape_inputs = 0;
  // Bit i: the kernel takes any strides for input i.
  uint64_t strided_inputs = 0;
  // Output 0 is input `alias_input`'s data, contiguous, under other sizes; the kernel is a plain copy.
  int alias_input = -1;
  // Optional: writes simpler nodes for a node of known sizes, which join the groups around them (opt/expansion.cc).
  // False: the node stays, whatever was written. Unlike `lower`, it is an optimisation.
  ExpandFn expand = nullptr;
  bool expands_in_loops = false;  // elsewhere its kernel does as well
  // Works on every element alone, operands spread as numpy spreads them: such nodes join elementwise groups.
  bool elementwise = false;
  // Which axis of a result an axis of an operand is, where positions along it have nothing to do with each other. Null:
  // `no_axes` says why there is none, as the end of a sentence: "one scale is that of all elements".
  AxesFn axes = nullptr;
  const char* no_axes = nullptr;
  // What changes in a node whose operands get one more leading axis. Null: the operator takes no more axes, but where
  // axis 0 counts entries, the entries of all positions may be one axis.
  WidenFn widen = nullptr;
  TimeRule over_time = TimeRule::kNone;
  // What a node of known sizes computes. Null: one operation for each element of the result, of the price that an
  // elementwise operation has.
  WorkFn work = nullptr;
  Product product = Product::kNone;  // of these inputs, the second of which may be weights
  uint8_t factors[2] = {0, 1};
  // The elements of every result are elements of the inputs that have its type, or bits that never change; which ones,
  // sizes and the other inputs decide.
  bool moves_elements = false;
  // Optional: a kernel that takes operands of any size. Elementwise operators need not say it.
  DynamicFn dynamic = nullptr;
  // The same for a node among whose operands or results are texts.
  DynamicFn dynamic_texts = nullptr;
  // Of an operator that a program brings along: what its `parse`, `infer` and `compute` call.
  std::shared_ptr<const CustomOperator> custom;
  // Output 0 is input 0 with the other inputs behind it along attribute `axis`: where input 0 is a value that grows, it
  // is extended in place.
  bool appends = false;

  bool runs() const { return prepare || compute || lower || control != Control::kNone; }
  // Whether results may be known before the run, where operands are constants.
  bool folds() const { return effects != Effects::kRandom && !stays; }
  bool can_fail(ElementType first_input) const { return effects == Effects::kCanFail && failing.contains(first_input); }
  // The version in force when a model imports `opset` of the domain; null when the operator came later.
  const OpVersion* version_for(int64_t opset) const;
  bool lowers(const OpVersion& version) const { return lower && version.since < lower_before; }
  const OpVersion& newest() const { return versions.back(); }
};

// Writes one version of an operator: the first whole, each later one as what it changes.
class VersionBuilder {
 public:
  explicit VersionBuilder(OpVersion& version) : v_(version) {}

  // A formal of a name that is there already is replaced where it stands, else appended.
  VersionBuilder& in(const char* name, const char* type, Arity arity = Arity::kSingle, int min_arity = 1);
  VersionBuilder& out(const char* name, const char* type, Arity arity = Arity::kSingle, int min_arity = 1);
  VersionBuilder& no_inputs();   // forget the inputs so far
  VersionBuilder& no_outputs();  // forget the outputs so far
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

  // What several operators have in common: `part` adds it.
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
  // The record without anything that runs it. `what` completes "this build does not".
  OpBuilder& not_run(const char* what) { return def.missing = what, *this; }
  OpBuilder& can_fail() { return def.effects = Effects::kCanFail, *this; }
  OpBuilder& can_fail(ElementTypeSet types) { return def.failing = types, can_fail(); }
  OpBuilder& stays() { return def.stays = true, *this; }
  OpBuilder& random() { return def.effects = Effects::kRandom, *this; }
  OpBuilder& shape_inputs(std::initializer_list<int> inputs);
  OpBuilder& strided_inputs(std::initializer_list<int> inputs);
  OpBuilder& alias(int input) { return def.alias_input = input, *this; }
  OpBuilder& moves_elements() { return def.moves_elements = true, *this; }
  OpBuilder& appends() { return def.appends = true, *this; }
  OpBuilder& can_fail_unless(TotalFn fn) { return def.total_if = fn, can_fail(); }
  OpBuilder& over_time(TimeRule kind) { return def.over_time = kind, *this; }
  OpBuilder& work(WorkFn fn) { return def.work = fn, *this; }
  OpBuilder& product(Product kind, uint8_t left = 0, uint8_t right = 1) {
    return def.product = kind, def.factors[0] = left, def.factors[1] = right, *this;
  }
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

using OpDefineFn = void (*)(OpBuilder&);
// Written by the build (tools/gen_registry.py) from the TREADLE_OP blocks under src/ops/.
std::span<const OpDefineFn> generated_op_table();

// A text as a template's argument.
template <size_t kSize>
struct OpText {
  consteval OpText(const char (&given)[kSize]) {  // NOLINT(google-explicit-constructor): a literal stands for it
    for (size_t i = 0; i < kSize; ++i) text[i] = given[i];
  }
  char text[kSize] = {};
};

// The record of operator `kName` of `kDomain`: a TREADLE_OP block defines define(), the table calls make().
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

// TREADLE_OP(Add, "") { op.since(7).in("A", "T")...; op.infer(infer_add).prepare(prepare_add); }
// stands at file scope, outside any namespace; the functions it names may live in an anonymous namespace above it.
#define TREADLE_OP(op_name, op_domain) \
  template <>                          \
  void treadle::OpRecord<#op_name, op_domain>::define([[maybe_unused]] treadle::OpBuilder& op)
