#pragma once
// A walk over a nest of loops, tile by tile (jit/nest.h).

#include "jit/loop_writer.h"

namespace treadle::jit {

class LoopWriter::NestWriter {
 public:
  // How far the inputs are, in elements, then the result.
  using Places = std::vector<Value*>;
  // What is done with the results of a tile: the values of all inputs, then those of all steps.
  using Sink = std::function<void(const Places&, const std::vector<Lanes>&)>;

  NestWriter(LoopWriter& writer, const plan::ElementwiseCode& code, Nest nest);
  void write(const Sink& sink);
  // The results go to the outputs.
  void store(const Places& at, const std::vector<Lanes>& values);

  // For walks of one's own: what no loop changes is read, and the walk is at the first element.
  Places begin();
  // Places after `turns` turns of `step` along dimension d.
  Places moved(const Places& at, size_t d, int64_t step, Value* turns);
  std::vector<Lanes> values(int64_t rows, const Places& at);
  const Nest& nest() const { return nest_; }

 private:
  struct Fixed {
    Value* scalar = nullptr;
    std::optional<Lanes> tile;
  };

  bool stays(size_t input) const;
  Lanes load(size_t input, int64_t rows, Value* first);
  void walk(size_t d, const Places& at, const Sink& sink);

  LoopWriter& w_;
  const plan::ElementwiseCode& code_;
  const Nest nest_;
  std::vector<Fixed> fixed_;
};

}  // namespace treadle::jit
