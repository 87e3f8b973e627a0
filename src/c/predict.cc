#include "c/predict.h"

namespace treadle::c {

namespace {

using ml::PostTransform;
constexpr ElementType kDouble = ElementType::kDouble;

// f(s, n): the first of the largest numbers.
std::string largest_function(Functions& f) {
  return f.get("first_largest", [](Text& text, const std::string& name) {
    text.open("static ptrdiff_t {}(const double *s, ptrdiff_t n)", name);
    text.line("ptrdiff_t best = 0;");
    text.open("for (ptrdiff_t i = 1; i < n; ++i)");
    text.line("if (s[i] > s[best]) best = i;");
    text.close();
    text.line("return best;");
    text.close();
  });
}

std::string softmax_function(Functions& f, bool keeps_zeros, const std::string& exp) {
  const std::string largest = largest_function(f);
  return f.get(keeps_zeros ? "scores_softmax_zero" : "scores_softmax", [&](Text& text, const std::string& name) {
    text.open("static void {}(double *s, ptrdiff_t n)", name);
    text.line("const double highest = s[{}(s, n)];", largest);
    text.line("double sum = 0;");
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    if (keeps_zeros) {
      text.open("if ((s[i] < 0 ? -s[i] : s[i]) <= 1e-7)");
      text.line("s[i] = 0;");
      text.line("continue;");
      text.close();
    }
    text.line("s[i] = {}(s[i] - highest);", exp);
    text.line("sum = sum + s[i];");
    text.close();
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("s[i] = sum != 0 ? s[i] / sum : s[i];");
    text.close();
    text.close();
  });
}

std::string probit_function(Functions& f, const std::string& log) {
  const std::string sqrt = f.sqrt(kDouble);
  return f.get("scores_probit", [&](Text& text, const std::string& name) {
    text.open("static void {}(double *s, ptrdiff_t n)", name);
    text.open("for (ptrdiff_t i = 0; i < n; ++i)");
    text.line("const double twice = 2 * s[i], x = twice - 1;");
    text.line("const double l = {}((1 - x) * (1 + x));", log);
    text.line("const double half = 0.5 * l;");
    text.line("const double a = 2 / (3.14159 * 0.147) + half;");
    text.line("const double square = a * a;");
    text.line("const double inner = square - l / 0.147;");
    text.line("const double root = {0}(-a + {0}(inner));", sqrt);
    text.line("s[i] = {}(2.0) * (x < 0 || (x == 0 && 1 / x < 0) ? -root : root);", sqrt);
    text.close();
    text.close();
  });
}

}  // namespace

std::string logistic_function(Functions& f, const std::string& exp) {
  return f.get("logistic_of_library", [&](Text& text, const std::string& name) {
    text.open("static double {}(double x)", name);
    text.line("return x >= 0 ? 1 / (1 + {0}(-x)) : {0}(x) / (1 + {0}(x));", exp);
    text.close();
  });
}

Prediction::Prediction(const Call& call, size_t scores)
    : call_(call),
      rows_(ml::rows_of(call.dims(0))),
      scores_(fmt::format("(double *)(void *){}", call.writer.scratch(scores * sizeof(double)))) {}

std::string Prediction::feature(const std::string& j) const {
  return call_.writer.converted(type(), kDouble, fmt::format("x[{}]", j));
}

void Prediction::open() {
  text().open("for (ptrdiff_t r = 0; r < {}; ++r)", rows_.count);
  text().line("const {} *const x = {} + r * {};", stored(type()), call_.in(0), rows_.features);
  text().line("double *const s = {};", scores_);
}
void Prediction::close() {
  text().close();
}

void Prediction::choose_label(size_t n, size_t first) {
  const std::string from = first == 0 ? "s" : fmt::format("s + {}", first);
  text().line("const ptrdiff_t label = {}({}, {});", largest_function(writer().functions()), from, n);
  text().line("(void)label;");
}

void Prediction::spread(bool probability) {
  text().line("s[1] = s[0];");
  text().line("s[0] = {}s[1];", probability ? "1 - " : "-");
}

bool Prediction::transform(PostTransform post, size_t n) {
  if (post == PostTransform::kNone) return true;
  Functions& f = writer().functions();
  const std::string called = f.library(post == PostTransform::kProbit ? "log" : "exp");
  if (called.empty()) return false;
  switch (post) {
    case PostTransform::kLogistic:
      text().line("for (ptrdiff_t i = 0; i < {}; ++i) s[i] = {}(s[i]);", n, logistic_function(f, called));
      break;
    case PostTransform::kProbit:
      text().line("{}(s, {});", probit_function(f, called), n);
      break;
    default:
      text().line("{}(s, {});", softmax_function(f, post == PostTransform::kSoftmaxZero, called), n);
  }
  return true;
}

void Prediction::store_scores(size_t output, size_t columns) {
  if (!call_.has_output(output)) return;
  text().line("for (ptrdiff_t i = 0; i < {0}; ++i) {1}[r * {0} + i] = {2};", columns, call_.out(output),
              writer().converted(kDouble, call_.result(output), "s[i]"));
}

void Prediction::store_label(const ml::Labels& labels) {
  if (!call_.has_output(0)) return;
  if (labels.integers.empty()) {
    text().line("{}[r] = label;", call_.out(0));
    return;
  }
  const std::string table =
      writer().table("labels", ElementType::kInt64, labels.integers.data(), labels.integers.size());
  text().line("{}[r] = {}[label];", call_.out(0), table);
}

}  // namespace treadle::c
