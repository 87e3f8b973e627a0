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

// How a node runs over one more leading axis (time), so that it can leave a loop and run for all trips at once.
enum class BatchRule : uint8_t {
  kNone,
  kElementwise,  // broadcasting, element by element
  kMatMul,       // numpy matmul: leading axes broadcast
  kShapeOnly,    // Reshape and its like: handled by the rewriter
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
  // Bit i: the contents of input i decide output sizes or the preparation (shapes, axes, pads, ...). The kernel never
  // reads them at run time.
  uint64_t shape_inputs = 0;
  // Bit i: the kernel takes any strides for input i.
  uint64_t strided_inputs = 0;
  // Output 0 is input `alias_input`'s data, contiguous, under other sizes; the kernel is a plain copy.
  int alias_input = -1;
  BatchRule batch = BatchRule::kNone;
  // The elements of every result are elements of the inputs that have its type, or bits that never change; which ones,
  // sizes and the other inputs decide.
  bool moves_elements = false;
  // Output 0 is input 0 with the other inputs behind it along attribute `axis`: where input 0 is a value that grows, it
  // is extended in place.
  bool appends = false;

  bool runs() const { return prepare || compute || lower || control != Control::kNone; }
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
  VersionBuilder& drop_out(const char* name);

  VersionBuilder& attr(const char* name, int64_t value);
  VersionBuilder& attr(const char* name, int value) { return attr(name, static_cast<int64_t>(value)); }
  VersionBuilder& attr(const char* name, double value);  // float
  VersionBuilder& attr(const char* name, const char* value);
  VersionBuilder& attr_ints(const char* name, std::vector<int64_t> value);
  VersionBuilder& attr_floats(const char* name, std::vector<float> value);
  VersionBuilder& attr_strings(const char* name, std::vector<std::string> value);
  VersionBuilder& attr_tensor(const char* name, Tensor value);
  VersionBuilder& required(const char* name, ir::AttributeKind kind);
  VersionBuilder& optional(const char* name, ir::AttributeKind kind);
  VersionBuilder& drop_attr(const char* name);

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
  OpBuilder& random() { return def.effects = Effects::kRandom, *this; }
  OpBuilder& shape_inputs(std::initializer_list<int> inputs);
  OpBuilder& strided_inputs(std::initializer_list<int> inputs);
  OpBuilder& alias(int input) { return def.alias_input = input, *this; }
  OpBuilder& moves_elements() { return def.moves_elements = true, *this; }
  OpBuilder& appends() { return def.appends = true, *this; }
  OpBuilder& batch(BatchRule rule) { return def.batch = rule, *this; }

  OpDef& def;
};

// To be called when the attributes of a node are complete.
Status parse_attributes(ir::NodeInfo& node);

using OpDefineFn = void (*)(OpBuilder&);
// Written by the build (tools/gen_registry.py) from the TREADLE_OP blocks under src/ops/.
std::span<const OpDefineFn> generated_op_table();

}  // namespace treadle

// TREADLE_OP(Add, "") { op.since(7).in("A", "T")...; op.infer(infer_add).prepare(prepare_add); }
// stands at file scope, outside any namespace; the functions it names may live in an anonymous namespace above it.
#define TREADLE_OP(op_name, op_domain)            \
  namespace treadle {                             \
  static void define_op_##op_name(OpBuilder& op); \
  void treadle_define_##op_name(OpBuilder& op);   \
  void treadle_define_##op_name(OpBuilder& op) {  \
    op.def.domain = op_domain;                    \
    op.def.name = #op_name;                       \
    define_op_##op_name(op);                      \
  }                                               \
  }                                               \
  void treadle::define_op_##op_name([[maybe_unused]] treadle::OpBuilder& op)
