// Feeds a signal to a model in blocks: stream MODEL. The state of its loop is carried from block to block.
#include <cstdio>
#include <treadle/treadle.hpp>

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  try {
    const treadle::Session session(arguments[1]);
    treadle::Stream stream(session, treadle::StreamOptions().time("x", int64_t{0}));
    stream.warm({2});  // blocks of two samples: no push has to plan or to compile
    const float x[] = {0, 4, 4, 4, 0, 0};
    for (int at = 0; at < 6; at += 2) {
      const auto outputs = stream.push({{"x", treadle::Value::of(x + at, {2, 1})}});
      for (const double level : outputs[0].to_doubles()) std::printf("%.3f ", level);
      if (at == 2) {  // a copy goes on from here by itself
        treadle::Stream other = stream;
        const float silence[] = {0, 0};
        other.push({{"x", treadle::Value::of(silence, {2, 1})}});
      }
    }
    stream.flush();
    std::printf("\n");
  } catch (const treadle::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
  return 0;
}
