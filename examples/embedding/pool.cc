// Many signals at once, whose blocks run together as one batch: pool MODEL
#include <cstdio>
#include <treadle/treadle.hpp>

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  try {
    const treadle::Session session(arguments[1]);
    treadle::Pool pool(session, treadle::StreamOptions().time("x", int64_t{0}), 8);
    for (int block = 0; block < 3; ++block) {
      std::vector<treadle::Pool::Chunk> chunks;
      for (int64_t id = 1; id <= 3; ++id) {  // a stream joins with its first chunk
        const float level = static_cast<float>(id * block);
        const float x[] = {level, level};
        chunks.push_back({id, {treadle::Value::of(x, {2, 1})}});
      }
      const auto outputs = pool.push({"x"}, chunks);
      for (size_t i = 0; i < chunks.size(); ++i) {
        const auto levels = outputs[i][0].to_doubles();
        std::printf("%d: %.3f %.3f  ", static_cast<int>(chunks[i].first), levels[0], levels[1]);
      }
      std::printf("\n");
    }
    for (int64_t id = 1; id <= 3; ++id) pool.flush(id);  // the signal has ended; the stream leaves
    std::printf("%d runs, %d streams\n", static_cast<int>(pool.runs()), static_cast<int>(pool.size()));
  } catch (const treadle::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
  return 0;
}
