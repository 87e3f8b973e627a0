#pragma once
// Writes the function that runs a program. This header is for the source files of the room: program.cc (control flow,
// memory), elementwise.cc, kernels.cc (moves, reductions, products), operators/*.cc (operators whose code
// follows from the node).

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "c/file.h"
#include "c/functions.h"
#include "c/text.h"
#include "c/types.h"
#include "plan/kernel_code.h"
#include "plan/program.h"
#include "type/shape.h"

namespace treadle::c {

class Writer {
 public:
  Writer(File& file, const plan::Program& program, bool in_structures);
  Result<Body> write(const std::vector<std::string>& output_names);

  // --- for the code of instructions

  Text& text() { return text_; }
  Functions& functions() { return file_.functions(); }
  const plan::Program& program() const { return p_; }
  // A pointer to the slot's memory, of elements that are stored as `type`: an expression.
  std::string reads(uint32_t slot, ElementType type);
  std::string writes(uint32_t slot, ElementType type);
  // The contents of a constant slot; null for others.
  const Tensor* constant(uint32_t slot) const;
  // A constant table of the file, of elements of this type.
  std::string table(std::string_view name, ElementType type, const void* elements, size_t count) {
    return file_.table(name, type, elements, count);
  }
  // Memory that only the instruction at hand uses, aligned to 64 bytes: an expression of type unsigned char *.
  std::string scratch(size_t bytes);
  // Names a variable of the instruction at hand.
  std::string variable(std::string_view name) { return file_.names().add(name); }
  // An int that functions set if they fail; the instruction returns it behind its loops.
  std::string error_of_instruction();
  // A value of `from` in a loop as one of `to`.
  std::string converted(ElementType from, ElementType to, const std::string& x,
                        const kernels::CastOptions& options = {});
  std::string error(std::string_view code) const { return file_.error(code); }
  std::string copy(const std::string& to, const std::string& from, size_t bytes) const;

 private:
  struct Place {
    std::string name;
    bool is_local = false;  // declared where it is used, not at the head of the function
    bool is_used = false;
  };

  // --- control flow
  void write_range(uint32_t begin, uint32_t end);
  void write_instruction(uint32_t pc);
  bool is_empty(const plan::KernelCall& call) const;
  void write_kernel(uint32_t pc);
  uint32_t write_branch(uint32_t pc);
  uint32_t write_loop(uint32_t pc);
  void write_row(const plan::Row& row);
  void refuse(uint32_t pc, std::string reason);
  void comment(uint32_t pc);

  // --- memory
  Place& place(uint32_t slot);
  std::string pointer(uint32_t slot, ElementType type, bool is_const);
  ElementType element(uint32_t slot) const;
  void find_names(const std::vector<std::string>& output_names);
  std::string declarations();

  void write_other(const plan::InstructionCode& code, std::string& why);

  const plan::Program& p_;
  File& file_;
  bool in_structures_;
  Text text_;
  std::vector<Place> places_;
  size_t scratch_bytes_ = 0, instruction_scratch_ = 0;
  bool instruction_fails_ = false;
  Body body_;
  uint32_t pc_ = 0;
};

void write_elementwise(Writer& writer, const plan::ElementwiseCode& code, std::string& why);
// Empty `why`: written.
void write_moves(Writer& writer, const plan::MoveCode& code, std::string& why);
void write_reduction(Writer& writer, const plan::ReductionCode& code, std::string& why);
void write_extremes(Writer& writer, const plan::ArgReductionCode& code, std::string& why);
void write_product(Writer& writer, const plan::ProductCode& code, std::string& why);
// A product whose operands are expressions of pointers to `type`. `bias` may be empty.
struct Matrices {
  kernels::GemmShape shape;
  std::vector<plan::ProductCode::Level> stack;
  ElementType type;
  std::string a, b, bias, c;
};
void write_matrices(Writer& writer, const Matrices& product);
void write_gather(Writer& writer, const plan::GatherCode& code, std::string& why);

// The product of the sizes [begin, end).
inline int64_t product(const Dims& dims, size_t begin, size_t end) {
  int64_t n = 1;
  for (size_t d = begin; d < end; ++d) n *= dims[d];
  return n;
}

// A node whose code follows from its attributes and the types of its operands.
struct Call {
  Writer& writer;
  const ir::Node& node;
  const plan::KernelCall& call;

  size_t inputs() const { return node.inputs.size(); }
  bool has_input(size_t i) const { return i < node.inputs.size() && node.inputs[i]; }
  bool has_output(size_t i) const { return i < node.outputs.size() && node.outputs[i]; }
  ElementType type(size_t input) const { return node.inputs[input]->type.element; }
  Dims dims(size_t input) const { return known_dims(node.inputs[input]->type.shape); }
  ElementType result(size_t output = 0) const { return node.outputs[output]->type.element; }
  Dims result_dims(size_t output = 0) const { return known_dims(node.outputs[output]->type.shape); }
  uint32_t input_slot(size_t i) const { return call.operands[i]; }
  uint32_t output_slot(size_t i) const { return call.operands[node.inputs.size() + i]; }
  std::string in(size_t i) const { return writer.reads(input_slot(i), type(i)); }
  std::string out(size_t i = 0) const { return writer.writes(output_slot(i), result(i)); }
  const Tensor* constant(size_t i) const { return has_input(i) ? writer.constant(input_slot(i)) : nullptr; }
};

// Memory for `count` elements that only the instruction at hand uses: an expression.
std::string room(Writer& writer, ElementType type, int64_t count);
// An operand in another type than its own: its memory, or room with a name like `name`. Empty if there is none.
std::string operand(const Call& call, size_t i, ElementType type, const char* name);
// The same for a result, which store_result() then converts.
std::string result(const Call& call, size_t i, ElementType type, const char* name);
void store_result(const Call& call, size_t i, ElementType type, const std::string& from);

// f(quotient, zero) = saturate(round half to even(quotient) + zero). A NaN becomes the least level.
std::string level_function(Functions& functions, ElementType type);

// Writes the node's code, or sets `why`.
using OperatorFn = void (*)(const Call& call, std::string& why);
struct OperatorRow {
  std::string_view name, domain;
  OperatorFn write;
};
// By family; each is in the file of its name in operators/.
std::span<const OperatorRow> attention_operators();
std::span<const OperatorRow> broadcast_operators();
std::span<const OperatorRow> byte_conv_operators();
std::span<const OperatorRow> byte_product_operators();
std::span<const OperatorRow> cell_operators();
std::span<const OperatorRow> conv_operators();
std::span<const OperatorRow> deform_conv_operators();
std::span<const OperatorRow> feature_operators();
std::span<const OperatorRow> generate_operators();
std::span<const OperatorRow> grid_operators();
std::span<const OperatorRow> image_operators();
std::span<const OperatorRow> label_operators();
std::span<const OperatorRow> linear_model_operators();
std::span<const OperatorRow> loss_operators();
std::span<const OperatorRow> matrix_operators();
std::span<const OperatorRow> ngram_operators();
std::span<const OperatorRow> norm_operators();
std::span<const OperatorRow> pool_operators();
std::span<const OperatorRow> quant_operators();
std::span<const OperatorRow> random_operators();
std::span<const OperatorRow> region_operators();
std::span<const OperatorRow> resample_operators();
std::span<const OperatorRow> sequence_operators();
std::span<const OperatorRow> signal_operators();
std::span<const OperatorRow> softmax_operators();
std::span<const OperatorRow> state_operators();
std::span<const OperatorRow> tensor_operators();
std::span<const OperatorRow> training_operators();
std::span<const OperatorRow> tree_operators();
// What the combination `how` ("none", "add", "mul", "min", "max": ops/tensor/combine.h) makes of an element and
// another.
std::string combined(Writer& writer, std::string_view how, ElementType type, const std::string& old,
                     const std::string& with);
// Of nodes whose result is the data of an input under other sizes.
OperatorFn copy_operator();
// Null: there is none.
OperatorFn operator_writer(const ir::Node& node);

}  // namespace treadle::c
