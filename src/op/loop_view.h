#pragma once
// If, Loop and Scan by the roles of their values, and edits that keep node, body and attributes consistent. A null
// value is one that is left out or unused.

#include "op/loop_signature.h"

namespace treadle {

inline bool is_loop(const ir::Node& node) {  // a Loop or a Scan
  return node.op->control == Control::kLoop || node.op->control == Control::kScan;
}

inline bool is_scan(const ir::Node& node) {
  return node.op->control == Control::kScan;
}

// A Loop or Scan. It refers to the node, and is valid until code other than a LoopEditor changes the node's signature.
class LoopView {
 public:
  struct State {
    ir::Value *initial, *before, *after, *final;  // before and after an iteration are in the body
  };
  struct ScanInput {
    ir::Value *whole, *element;
    int64_t axis = 0;  // of `whole`; as written: may be negative
    bool reverse = false;
  };
  struct ScanOutput {
    ir::Value *row, *whole;
    int64_t axis = 0;  // of `whole`
    bool reverse = false;
    bool wanted() const { return row && whole; }
  };

  // For a graph that inference has accepted.
  explicit LoopView(const ir::Node& loop);
  // Errors: those of read_signature(), and kInvalidModel without a body.
  static Result<LoopView> read(const ir::Node& loop);

  const ir::Node& node() const { return *node_; }
  const ir::Region& body() const { return *body_; }
  const LoopSignature& signature() const { return signature_; }
  bool is_scan() const { return treadle::is_scan(*node_); }
  bool masked() const { return signature_.masked; }
  size_t states() const { return signature_.states; }
  size_t scan_inputs() const { return signature_.scan_inputs.size(); }
  size_t scan_outputs() const { return signature_.scan_outputs.size(); }

  // Null in a Scan.
  ir::Value* trip_count() const { return is_scan() ? nullptr : input(0); }       // M
  ir::Value* condition() const { return is_scan() ? nullptr : input(1); }        // before the first iteration
  ir::Value* counter() const { return is_scan() ? nullptr : body_->inputs[0]; }  // the number of the iteration
  ir::Value* condition_before() const { return is_scan() ? nullptr : body_->inputs[1]; }
  ir::Value* condition_after() const { return is_scan() ? nullptr : body_->outputs[0]; }

  State state(size_t i) const;
  ScanInput scan_input(size_t i) const;
  ScanOutput scan_output(size_t i) const;
  // The number of the state that has `v` before or after an iteration; states() if `v` is no state.
  size_t state_before(const ir::Value* v) const;
  // Whether the body hands the state on unchanged, possibly through Identity.
  bool is_kept(size_t state) const;
  bool stays_constant(size_t state) const;

  // The type of a scan output's rows that inference found without knowing sizes of a run; null: not kept.
  const Type* row_type(size_t scan_output) const;
  // Whether rows have the sizes that the model states. A loop without iterations takes its sizes from there.
  bool row_is_as_in_model(size_t scan_output) const;

  // The values of outer regions that the body reads, without constants.
  std::vector<ir::Value*> captures() const { return ir::captures(*body_); }

 protected:
  LoopView(const ir::Node& loop, const ir::Region& body, LoopSignature signature)
      : node_(&loop), body_(&body), signature_(std::move(signature)) {}

  ir::Value* input(size_t i) const { return i < node_->inputs.size() ? node_->inputs[i] : nullptr; }
  ir::Value* output(size_t i) const { return i < node_->outputs.size() ? node_->outputs[i] : nullptr; }

  const ir::Node* node_;
  const ir::Region* body_;
  LoopSignature signature_;
};

// A LoopView that changes its loop. Not for Scan-8, which is lowered before any rewrite.
class LoopEditor : public LoopView {
 public:
  explicit LoopEditor(ir::Node& loop) : LoopView(loop) {}

  ir::Node& node() const { return const_cast<ir::Node&>(*node_); }
  ir::Region& body() const { return const_cast<ir::Region&>(*body_); }

  void set_condition(ir::Value* condition);
  void set_condition_after(ir::Value* condition) { body().outputs[0] = condition; }
  void set_after(size_t state, ir::Value* after) { body().outputs[signature_.state_body_output(state)] = after; }
  void set_scan_input(size_t i, ir::Value* whole) { node().inputs[signature_.scan_input(i)] = whole; }
  void set_scan_output(size_t i, ir::Value* whole);  // no other node makes `whole`

  // Adds a state behind the others. `before`: a value that no node makes; `after`: a value of the body or around it.
  // Returns the state's final value, called `name`, of the type of `before`.
  ir::Value* add_state(ir::Value* initial, ir::Value* before, ir::Value* after, std::string_view name);
  // Removes a state with its initial and final value. No node may read any of them once the edit is complete.
  void remove_state(size_t i);

  // `element`: a value that no node makes. It takes slices of `whole` along axis 0, as all other scan inputs must.
  void add_scan_input(ir::Value* whole, ir::Value* element, bool reverse);
  void remove_scan_input(size_t i);

  // Stacks `row` along axis 0. Returns the stacked value, called `name`, of the row's type with `iterations` in front.
  ir::Value* add_scan_output(ir::Value* row, const Dim& iterations, bool reverse, std::string_view name);
  void add_unread_scan_output(ir::Value* row, bool reverse = false);
  // Marks a scan output as unused.
  void clear_scan_output(size_t i);

  // For a loop that has iterations: forgets the row types for loops without iterations, and takes those of the body.
  void take_row_types_from_body();
  // Turns a Loop into a Scan without trip count, condition and counter. The body must not read the latter two. The
  // caller adds scan inputs.
  void become_scan(const ir::Attributes& attributes = {});
  // Makes all scan inputs and outputs run along axis 0.
  void move_axes_first();

 private:
  void add_row(ir::Value* row, bool reverse);
  void write_scan_inputs();
  void write_scan_outputs();
  void recount();
};

class IfView {
 public:
  explicit IfView(const ir::Node& choice)
      : node_(choice), then_(*choice.region("then_branch")), else_(*choice.region("else_branch")) {}

  ir::Value* condition() const { return node_.inputs[0]; }
  ir::Region& then_branch() const { return then_; }
  ir::Region& else_branch() const { return else_; }
  ir::Region& branch(bool condition) const { return condition ? then_ : else_; }

  struct Result {
    ir::Value *yes, *no, *result;
  };
  size_t results() const { return node_.outputs.size(); }
  Result result(size_t i) const { return {then_.outputs[i], else_.outputs[i], node_.outputs[i]}; }
  // Removes result i from both branches; it must be unused.
  void drop_result(size_t i) const { then_.outputs[i] = else_.outputs[i] = nullptr; }

 private:
  const ir::Node& node_;
  ir::Region &then_, &else_;
};

}  // namespace treadle
