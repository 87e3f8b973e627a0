#pragma once
// One walk over a graph that is to be streamed, for stream/block_graphs.cc. It gives every value a role, and rewrites
// the graph for one of its phases.

#include <optional>
#include <unordered_map>

#include "infer/inference.h"
#include "op/axes.h"
#include "stream/block_graphs.h"
#include "stream/frame_counts.h"

namespace treadle::stream {

enum class Phase : uint8_t {
  kAnalyse,  // counts frames only; the resulting graph is not used
  kStart,
  kSteady,
  kLast,
};

// How a value depends on time.
struct Role {
  enum class Kind : uint8_t {
    kFree,    // it does not
    kTimed,   // frames along `axis`
    kLength,  // integers that depend on the signal's length
    kSoFar,   // the state of a recurrence, and values computed from it
  };
  Kind kind = Kind::kFree;
  bool carried = false;   // depends on an input that the caller carries
  bool may_stop = false;  // frames end when a loop ends by its condition
  int64_t axis = 0;
  int frames = FrameCounts::kSamples;
  int64_t tail = 0;  // a lower bound of the frames that come at the end of the signal, after those of all samples

  bool timed() const { return kind == Kind::kTimed; }
};

// The name of a node in errors: "Conv '/encoder/conv'".
std::string label(const ir::Node& node);

class TimeWalk {
 public:
  struct State {
    std::string name;
    ir::Value* past = nullptr;  // null in the first block
    ir::Value* next = nullptr;
    bool zeros = false;  // the first block begins with zeros of the state's sizes
  };

  TimeWalk(ir::Graph& graph, Phase phase, Lattice lattice)
      : graph_(graph), top_(graph.top()), phase_(phase), counts_(lattice) {}

  Status run(const std::vector<TimedInput>& timed, const std::vector<std::string_view>& carried);

  const FrameCounts& counts() const { return counts_; }
  const std::vector<State>& states() const { return states_; }
  const std::vector<size_t>& running() const { return running_; }
  std::vector<Streamed::Output> outputs() const;
  bool begins_with_zeros() const;
  int64_t delay() const;

 private:
  using Handler = Status (TimeWalk::*)(ir::Node&);
  static Handler handler_of(const ir::Node& node);
  struct Operands {  // roles of a node's inputs and of the values that its bodies capture
    bool timed = false, length = false, so_far = false, carried = false;
  };

  // --- time_walk.cc: roles
  Status visit(std::unique_ptr<ir::Node> node);
  Operands operands(const ir::Node& node) const;
  Status pass_on(ir::Node& node, const Operands& operands);  // a node without a rule
  Status pass_frames(ir::Node& node);                        // a node that treats each frame by itself
  Status pass_shape(ir::Node& node);
  const Role& role(const ir::Value* v) const;
  void set_role(ir::Value* v, Role role);
  void set_frames(ir::Value* v, int64_t axis, int frames, int64_t tail, const Role& like);
  // Holds back operands that have more frames than others. Returns the role that all operands then have.
  Result<Role> join(ir::Node& node);
  Status refuse(const ir::Node& node, const std::string& why) const;
  std::string path_to(const ir::Value* v) const;
  bool is_samples(const Dim& dim) const { return depends_on(dim, kSamplesSymbol); }
  std::optional<Shape> contents(const ir::Value* v) const;
  // A timed value that has `dim` frames in a whole run.
  ir::Value* with_length(const Dim& dim) const;
  Role length_or_free(const ir::Value* v) const;

  // --- time_walk_edit.cc
  bool first_block() const { return phase_ == Phase::kStart; }
  bool last_block() const { return phase_ == Phase::kLast; }
  void emit();  // puts the current node behind the nodes made for it
  void drop();  // removes the current node, whose output replace_output() has replaced
  ir::Node* make(std::string_view op, std::initializer_list<ir::Value*> inputs,
                 std::vector<ir::Attribute> attributes = {});
  ir::Value* call(std::string_view op, std::initializer_list<ir::Value*> inputs, Type type,
                  std::vector<ir::Attribute> attributes = {});
  ir::Value* ints(std::vector<int64_t> values);
  ir::Value* int_scalar(int64_t value);
  ir::Value* slice(ir::Value* v, int64_t axis, int64_t begin, int64_t end);
  ir::Value* concat(ir::Value* a, ir::Value* b, int64_t axis);
  ir::Value* pad_frames(ir::Value* v, int64_t axis, int64_t begin, int64_t end);
  ir::Value* length_of(ir::Value* timed);  // [1]
  ir::Value* as_scalar(ir::Value* one);
  // The vector `shape` with element `at` replaced by `element` ([1]). `whole`: the known contents of `shape`.
  ir::Value* with_element(ir::Value* shape, const Shape& whole, size_t at, ir::Value* element);
  size_t add_state(const std::string& name, Type type);
  ir::Value* past(size_t state) const { return states_[state].past; }
  void set_next(size_t state, ir::Value* v) { states_[state].next = v; }
  static Type frames_type(const ir::Value* v, int64_t axis, int64_t frames);
  // `v` with the last `frames` frames of the block before in front of it. `pad`: zeros in front of the first block.
  ir::Value* with_history(ir::Value* v, int64_t axis, int64_t frames, int64_t pad, const std::string& name);
  // All but the last `frames` frames, which come with the next block.
  ir::Value* hold_back(ir::Value* v, int64_t axis, int64_t frames, const std::string& name);
  // Makes `v` replace output 0 behind the node.
  void replace_output(ir::Node& node, ir::Value* v);
  ir::Value* current(ir::Value* v) const;
  void set_input(ir::Node& node, size_t i, ir::Value* v);
  ir::Value* need_output(ir::Node& node, size_t i, const Type& type);
  void finish_graph(const std::vector<TimedInput>& timed);

  // --- time_walk_windows.cc: nodes that reach from frame to frame
  struct TimeWindow;
  Status window(ir::Node& node);
  Result<TimeWindow> read_time_window(const ir::Node& node, const Role& x) const;
  Status set_pads(ir::Node& node, const TimeWindow& window, int64_t begin, int64_t end);
  Status conv_transpose(ir::Node& node);
  Status pad(ir::Node& node);
  Status slice_node(ir::Node& node);
  Status concat_node(ir::Node& node);
  Status cum_sum(ir::Node& node);
  Status gather(ir::Node& node);

  // --- time_walk_shapes.cc: sizes that depend on the signal's length
  Status reshape(ir::Node& node);
  Status squeeze(ir::Node& node);
  Status expand(ir::Node& node);
  Status constant_of_shape(ir::Node& node);
  Status range(ir::Node& node);
  Status generate(ir::Node& node, ir::Value* shape, size_t input);

  // --- time_walk_loops.cc
  Status recurrence(ir::Node& node);
  Status scan(ir::Node& node);
  Status loop(ir::Node& node);
  struct LoopReads;
  Result<LoopReads> find_reads(const ir::Node& node) const;
  void count_on(ir::Node& node, const LoopReads& reads);
  void keep_condition(ir::Node& node);
  // A state of a recurrence: node input `in` begins with the last value of node output `out`.
  void carry(ir::Node& node, size_t in, size_t out, const Type& type);

  ir::Graph& graph_;
  ir::Region& top_;
  const Phase phase_;
  FrameCounts counts_;
  Inference inference_{{.fold = false, .keep_declared = false}};
  std::unordered_map<const ir::Value*, Role> roles_;
  std::vector<ir::Value*> timed_;  // in order
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
  std::unique_ptr<ir::Node> node_;  // the current node
  std::vector<State> states_;
  std::vector<size_t> running_;
  std::string length_name_;          // the model's name for the signal's length: " (T)"; may be empty
  std::vector<ir::Value*> outputs_;  // of the model
};

}  // namespace treadle::stream
