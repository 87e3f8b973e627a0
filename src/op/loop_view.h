#pragma once
// If, Loop and Scan by the roles of their values, and edits that keep node, body and attributes in step. In all of
// them a null value is one that is left out, or that nobody wants.

#include "op/loop_signature.h"

namespace treadle {

inline bool is_loop(const ir::Node& node) {  // a Loop or a Scan
  return node.op->control == Control::kLoop || node.op->control == Control::kScan;
}

inline bool is_scan(const ir::Node& node) {
  return node.op->control == Control::kScan;
}

// A Loop or Scan. Refers to the node: it is good until something but a LoopEditor changes the node's signature.
class LoopView {
 public:
  struct State {
    ir::Value *initial, *before, *after, *final;  // before and after: each trip, in the body
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

  // Of a graph that inference has accepted.
  explicit LoopView(const ir::Node& loop);
  // The errors of read_signature, and kInvalidModel where there is no body.
  static Result<LoopView> read(const ir::Node& loop);

  const ir::Node& node() const { return *node_; }
  const ir::Region& body() const { return *body_; }
  const LoopSignature& signature() const { return signature_; }
  bool is_scan() const { return treadle::is_scan(*node_); }
  bool masked() const { return signature_.masked; }
  size_t states() const { return signature_.states; }
  size_t scan_inputs() const { return signature_.scan_inputs.size(); }
  size_t scan_outputs() const { return signature_.scan_outputs.size(); }

  // Of a Loop; null in a Scan.
  ir::Value* trip_count() const { return is_scan() ? nullptr : input(0); }       // M
  ir::Value* condition() const { return is_scan() ? nullptr : input(1); }        // before the first trip
  ir::Value* counter() const { return is_scan() ? nullptr : body_->inputs[0]; }  // the trip's number
  ir::Value* condition_before() const { return is_scan() ? nullptr : body_->inputs[1]; }
  ir::Value* condition_after() const { return is_scan() ? nullptr : body_->outputs[0]; }

  State state(size_t i) const;
  ScanInput scan_input(size_t i) const;
  ScanOutput scan_output(size_t i) const;
  // The number of the state that `v` is before or after a trip; states() if it is none.
  size_t state_before(const ir::Value* v) const;
  // Whether every trip hands the state on as it is; also through Identity.
  bool is_kept(size_t state) const;
  bool stays_constant(size_t state) const;

  // What inference knew of a scan output's rows from the model alone; null: nothing was kept.
  const Type* row_type(size_t scan_output) const;
  // Whether rows have the sizes that the model says, which a run without trips takes from there.
  bool row_is_as_in_model(size_t scan_output) const;

  // What the body reads of outer regions; constants not included.
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

// The same of a loop that is changed. Not for Scan-8, which is lowered before anybody has reason to.
class LoopEditor : public LoopView {
 public:
  explicit LoopEditor(ir::Node& loop) : LoopView(loop) {}

  ir::Node& node() const { return const_cast<ir::Node&>(*node_); }
  ir::Region& body() const { return const_cast<ir::Region&>(*body_); }

  void set_condition(ir::Value* condition);
  void set_condition_after(ir::Value* condition) { body().outputs[0] = condition; }
  void set_after(size_t state, ir::Value* after) { body().outputs[signature_.state_body_output(state)] = after; }
  void set_scan_input(size_t i, ir::Value* whole) { node().inputs[signature_.scan_input(i)] = whole; }
  void set_scan_output(size_t i, ir::Value* whole);  // made by nobody else

  // A state behind the others: `before` is a value that nothing makes, `after` one of the body or around it. Returns
  // its final value, called `name`, of the type of `before`.
  ir::Value* add_state(ir::Value* initial, ir::Value* before, ir::Value* after, std::string_view name);
  // The state goes, with its initial and its final value; nobody reads any of it any more, or will behind this edit.
  void remove_state(size_t i);

  // `element` is a value that nothing makes: one of `whole` along axis 0, where all other scan inputs run, too.
  void add_scan_input(ir::Value* whole, ir::Value* element, bool reverse);
  void remove_scan_input(size_t i);

  // Rows, along axis 0. Returns what they make, called `name`, of the rows' type with `trips` in front.
  ir::Value* add_scan_output(ir::Value* row, const Dim& trips, bool reverse, std::string_view name);
  void add_unread_scan_output(ir::Value* row, bool reverse = false);
  // Nobody reads what its rows make.
  void clear_scan_output(size_t i);

  // All trips happen, so rows have the sizes that they have: what a run without trips would take is forgotten.
  void take_row_types_from_body();
  // A Loop becomes a Scan: trip count, condition and counter go, where the body no longer reads the latter two. Its
  // scan inputs are to be added.
  void become_scan(const ir::Attributes& attributes = {});
  // All scan inputs and outputs run along axis 0 from now on.
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
  // Nobody reads it: no branch gives it any more.
  void drop_result(size_t i) const { then_.outputs[i] = else_.outputs[i] = nullptr; }

 private:
  const ir::Node& node_;
  ir::Region &then_, &else_;
};

}  // namespace treadle
