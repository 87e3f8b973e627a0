#pragma once
// A walk over a nest of loops, tile by tile (jit/nest.h).

#include "jit/loop_writer.h"

namespace treadle::jit {

class LoopWriter::NestWriter {
 public:
  // The positions in the inputs, in elements, then in the result.
  using Positions = std::vector<Value*>;
  // Consumes the results of a tile: the values of all inputs, then the values of all steps.
  using Sink = std::function<void(const Positions&, const std::vector<Lanes>&)>;

  NestWriter(LoopWriter& writer, const plan::ElementwiseCode& code, Nest nest);
  void write(const Sink& sink);
  // Stores the results to the outputs.
  void store(const Positions& at, const std::vector<Lanes>& values);

  // For callers with their own loops: reads the values that no loop changes, and starts at the first element.
  Positions begin();
  // The positions after `repeats` times `step` along dimension d.
  Positions moved(const Positions& at, size_t d, int64_t step, Value* repeats);
  std::vector<Lanes> values(int64_t rows, const Positions& at);
  const Nest& nest() const { return nest_; }

 private:
  struct Fixed {
    Value* scalar = nullptr;
    std::optional<Lanes> tile;
  };

  bool stays(size_t input) const;
  Lanes load(size_t input, int64_t rows, Value* first);
  void walk(size_t d, const Positions& at, const Sink& sink);

  LoopWriter& w_;
  const plan::ElementwiseCode& code_;
  const Nest nest_;
  std::vector<Fixed> fixed_;
};

}  // namespace treadle::jit
