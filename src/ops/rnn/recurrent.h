#pragma once
// Shared by RNN, GRU and LSTM: attributes, shapes, and the loop to which they are lowered.
//
// Each direction becomes
//
//   projection = X·W^T + biases          one product for all steps, before the loop
//   Scan over time (state h, ...)        reversed on both sides for the reverse direction
//     g  = h·R^T + projection[t]         Gemm
//     h' = cell(g, ...)                  one fused kernel (cells.cc)
//
// With sequence_lens, a mask [T, B, 1] is a further scan input. In a step behind the end of an entry, the entry's state
// stays, and Y gets zeros. So a reverse scan keeps the initial state until it reaches the entry's last step. Steps
// behind the end of all entries are neither projected (RaggedGemm) nor run (ScanAttributes::masked).

#include <functional>

#include "op/op_def.h"
#include "ops/rnn/activation.h"

namespace treadle::rnn {

// Positions of inputs; the first six are the same for all three operators.
enum Input : size_t { kX, kW, kR, kB, kSequenceLens, kInitialH, kInitialC, kP };

// Adds the first six inputs, and the attributes that the family shares.
void add_inputs(VersionBuilder& version);
void add_attributes(VersionBuilder& version);

// Differences between the operators of the family.
struct Family {
  int64_t gates;                                   // number of blocks of hidden_size rows in W and R
  std::initializer_list<const char*> activations;  // defaults for one direction
  size_t states;                                   // h; h and c
  bool quantized = false;                          // W [D, I, gates*H], R [D, H, gates*H]
};

// The attributes, checked against the known sizes of W and R.
struct Form {
  size_t directions = 1;
  bool reverse[2] = {false, false};
  bool batch_first = false;  // layout 1
  Dim hidden;
  std::vector<Activation> activations;  // for all directions
  std::span<const Activation> of_direction(size_t d) const {
    const size_t n = activations.size() / directions;
    return std::span(activations).subspan(d * n, n);
  }
};
Result<Form> read_form(const ir::NodeInfo& node, const Family& family, const Type* r);

// For a lowering: the hidden size must be known.
Result<Form> read_form(const LowerContext& ctx, const Family& family);

Status infer(InferContext& ctx, const Family& family);
// Batch entries are independent.
Status recurrent_axes(AxisContext& c);

class Lowering {
 public:
  using Values = std::vector<ir::Value*>;
  // Results of a step: the next states, h first, and the rows of Y.
  struct Next {
    Values states;
    ir::Value* y = nullptr;
  };
  using Step = std::function<Next(const Values& states, const Values& projected)>;

  // `form.hidden` must be known.
  Lowering(LowerContext& ctx, Form form);

  LowerContext& ctx() { return ctx_; }
  const Form& form() const { return form_; }
  int64_t hidden() const { return hidden_; }
  ElementType element() const { return element_; }

  // X·W^T + bias for all steps: [T, B, columns], with W [columns, I], and bias [columns] or null.
  ir::Value* project(ir::Value* weights, ir::Value* bias, int64_t columns);
  // a·b^T + addend; addend may be null.
  ir::Value* gemm(ir::Value* a, ir::Value* b, ir::Value* addend);
  // A cell operator (cells.cc) with the activations of direction d and the node's clip and input_forget.
  ir::Node* cell(std::string_view op, const Values& operands, size_t d, size_t outputs = 1);
  // In a step: the results with `h` as next states, except for entries that have ended.
  Next freeze_ended(const Values& states, ir::Value* h);
  // In a step of an LSTM: the results for gates' preactivations [B, 4H].
  Next lstm_step(size_t d, const Values& states, ir::Value* gates, ir::Value* peepholes);
  // The name of the standard operator that is the only activation of direction d, if that has no parameters and nothing
  // is clipped; else null.
  const char* plain_activation(size_t d) const;
  // X as [T, B, I] and as [T*B, I]. A value with T*B rows, as [T, B, n].
  ir::Value* x();
  ir::Value* x_rows();
  ir::Value* by_step(ir::Value* rows, int64_t columns);
  // Input i of direction d, without the axis of directions. Null if it is left out.
  ir::Value* weights(size_t i, size_t d);
  // Rows [begin, end) of a value.
  ir::Value* rows(ir::Value* value, int64_t begin, int64_t end);
  // The initial state of direction d, [B, H]: zeros if input i is left out.
  ir::Value* initial(size_t i, size_t d);

  // Builds the loop of direction d.
  void scan(size_t d, const Values& initial_states, const Values& projections, const std::vector<int64_t>& widths,
            const Step& step);
  // Sets the node's outputs from the loops of all directions.
  void finish();

 private:
  struct Extent {
    int64_t known = -1;
    ir::Value* value = nullptr;  // [1]
  };
  struct Loop {
    ir::Value* y = nullptr;  // [T, B, H]
    Values states;           // [B, H]
  };

  std::vector<ir::Attribute> product_attributes() const;
  Extent extent(size_t axis_of_x);
  Extent product(const Extent& a, const Extent& b);
  ir::Value* shape_of(std::initializer_list<Extent> extents);
  ir::Value* reshape(ir::Value* v, std::initializer_list<Extent> extents);
  ir::Value* mask();
  ir::Value* zero();
  ir::Value* stack(Values parts, int64_t axis);
  Type step_type(ElementType type, int64_t columns) const;

  LowerContext& ctx_;
  Form form_;
  int64_t hidden_;
  ElementType element_;
  Extent time_, batch_, input_;
  ir::Value* x_ = nullptr;
  ir::Value* x_rows_ = nullptr;
  ir::Value* mask_ = nullptr;
  ir::Value* lengths_ = nullptr;  // with mask_
  ir::Value* within_ = nullptr;   // with mask_, in a step: [B, 1], which entries have not ended
  ir::Value* zeros_ = nullptr;
  std::vector<Loop> loops_;
};

}  // namespace treadle::rnn
