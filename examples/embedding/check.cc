// Tells what is wrong with a model, and what comes out of it: check MODEL
#include <cstdio>
#include <treadle/treadle.hpp>

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s MODEL\n", arguments[0]), 2;
  try {
    const treadle::Report report = treadle::check_model(arguments[1], TREADLE_CHECK_FULL | TREADLE_CHECK_RUNS);
    for (const treadle::Problem& problem : report.problems()) {
      std::printf("%s %s: %s: %s\n", problem.is_error ? "error" : "warning", problem.code.c_str(), problem.path.c_str(),
                  problem.message.c_str());
    }
    std::printf("%zu errors, %zu warnings\n", report.error_count(), report.warning_count());
    if (!report.refusal().empty()) std::printf("treadle cannot run the model: %s\n", report.refusal().c_str());
    if (report.error_count() > 0) return 1;
    const std::string typed = treadle::infer_model(arguments[1]);  // the model with the types of all its values
    const treadle::Session session(typed.data(), typed.size());
    std::printf("%s: %s\n", session.name(TREADLE_OUTPUT, 0).c_str(), session.type(TREADLE_OUTPUT, 0).text().c_str());
  } catch (const treadle::Error& error) {
    return std::fprintf(stderr, "%s\n", error.what()), 1;
  }
  return 0;
}
