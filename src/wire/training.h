#pragma once
// The messages of ModelProto.training_info.

#include "wire/parse.h"

namespace treadle::wire {

struct TrainingInfoProto {
  GraphProto *initialization = nullptr, *algorithm = nullptr;
  List<StringStringEntry> initialization_bindings, update_bindings;
  UnknownFields unknown;

  template <class Self, class F>
  static void fields(Self& m, F& f) {
    f(1, "initialization", m.initialization);
    f(2, "algorithm", m.algorithm);
    f(3, "initialization_binding", m.initialization_bindings);
    f(4, "update_binding", m.update_bindings);
  }
};

Result<Parsed<TrainingInfoProto>> parse_training_info(std::string_view bytes, Limits limits = {});

}  // namespace treadle::wire
