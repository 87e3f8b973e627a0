// Runs a model over a whole signal: run MODEL
#include <cstdio>
#include <treadle/treadle.hpp>

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  try {
    const treadle::Session session(arguments[1], treadle::SessionOptions().threads(1));
    for (const treadle_role role : {TREADLE_INPUT, TREADLE_OUTPUT}) {
      for (size_t i = 0; i < session.count(role); ++i) {
        std::printf("%s: %s\n", session.name(role, i).c_str(), session.type(role, i).text().c_str());
      }
    }
    const float x[] = {0, 4, 4, 4, 0, 0};
    const auto outputs = session.run({{"x", treadle::Value::of(x, {6, 1})}});
    for (const double level : outputs[0].to_doubles()) std::printf("%.3f ", level);
    std::printf("\n");
  } catch (const treadle::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;  // where it happened, and what
  }
  return 0;
}
