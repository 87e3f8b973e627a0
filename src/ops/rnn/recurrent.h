#pragma once
// What RNN, GRU and LSTM have in common: attributes, shapes, and the loop that each of them lowers to.
//
// A direction becomes
//
//   projection = X·W^T + biases          one product for all steps, before the loop
//   Scan over time (state h, ...)        reversed on both sides for the reverse direction
//     g  = h·R^T + projection[t]         Gemm
//     h' = cell(g, ...)                  one fused kernel (cells.cc)
//
// With sequence_lens, a mask [T, B, 1] is scanned along: a step past the end of an entry keeps the entry's state and
// leaves zero in Y. So a reverse scan waits at the initial state until it reaches the entry's last step. Steps past the
// end of all entries are neither projected (RaggedGemm) nor run (ScanAttributes::masked).

#include <functional>

#include "op/op_def.h"
#include "ops/rnn/activation.h"

namespace treadle::rnn {

// Positions of inputs; the first six are alike in all three.
enum Input : size_t { kX, kW, kR, kB, kSequenceLens, kInitialH, kInitialC, kP };

// The first six inputs, and the attributes that all of the family have.
void add_inputs(VersionBuilder& version);
void add_attributes(VersionBuilder& version);

// How an operator of the family differs from the others.
struct Family {
  int64_t gates;                                   // blocks of hidden_size rows in W and R
  std::initializer_list<const char*> activations;  // defaults, for one direction
  size_t states;                                   // h; h and c
  bool quantized = false;                          // W [D, I, gates*H], R [D, H, gates*H]
};

// The attributes, validated against the shapes of W and R as far as those are known.
struct Form {
  size_t directions = 1;
  bool reverse[2] = {false, false};
  bool batch_first = false;  // layout 1
  Dim hidden;
  std::vector<Activation> activations;  // of all directions
  std::span<const Activation> of_direction(size_t d) const {
    const size_t n = activations.size() / directions;
    return std::span(activations).subspan(d * n, n);
  }
};
Result<Form> read_form(const ir::NodeInfo& node, const Family& family, const Type* r);

// For a lowering: the hidden size must be known.
Result<Form> read_form(const LowerContext& ctx, const Family& family);

Status infer(InferContext& ctx, const Family& family);
// Of the batch: its entries have nothing to do with each other.
Status recurrent_axes(AxisContext& c);

class Lowering {
 public:
  using Values = std::vector<ir::Value*>;
  // What a step makes: the next states, h first, and its rows of Y.
  struct Next {
    Values states;
    ir::Value* y = nullptr;
  };
  using Step = std::function<Next(const Values& states, const Values& projected)>;

  // `form.hidden` is known.
  Lowering(LowerContext& ctx, Form form);

  LowerContext& ctx() { return ctx_; }
  const Form& form() const { return form_; }
  int64_t hidden() const { return hidden_; }
  ElementType element() const { return element_; }

  // X·W^T + bias for all steps: [T, B, columns], W [columns, I], bias [columns] or null.
  ir::Value* project(ir::Value* weights, ir::Value* bias, int64_t columns);
  // a·b^T + addend; addend may be null.
  ir::Value* gemm(ir::Value* a, ir::Value* b, ir::Value* addend);
  // A cell operator (cells.cc) with the activations of direction d and the node's clip and input_forget.
  ir::Node* cell(std::string_view op, const Values& operands, size_t d, size_t outputs = 1);
  // In a step: its results where `h` are its next states, but for entries that have ended.
  Next hold_ended(const Values& states, ir::Value* h);
  // In a step of an LSTM: its results, from the gates' preactivations [B, 4H].
  Next lstm_step(size_t d, const Values& states, ir::Value* gates, ir::Value* peepholes);
  // The operator that the only activation of direction d is, without parameters and without clipping; else null.
  const char* plain_activation(size_t d) const;
  // X as [T, B, I], and as [T*B, I]; what has as many rows as the latter, as [T, B, n].
  ir::Value* x();
  ir::Value* x_rows();
  ir::Value* by_step(ir::Value* rows, int64_t columns);
  // Input i of direction d, without the axis of directions. Null when it is left out.
  ir::Value* weights(size_t i, size_t d);
  // Rows [begin, end) of a constant or computed value.
  ir::Value* rows(ir::Value* value, int64_t begin, int64_t end);
  // Initial state of direction d, [B, H]: zeros when input i is left out.
  ir::Value* initial(size_t i, size_t d);

  // The loop of direction d.
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
  ir::Value* within_ = nullptr;   // with mask_, in a step: of [B, 1], the entries that have not ended
  ir::Value* zeros_ = nullptr;
  std::vector<Loop> loops_;
};

}  // namespace treadle::rnn
