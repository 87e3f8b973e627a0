// Models whose inner values are outputs: what each iteration computes, in rows or in logs, and what is left out.

#include "session/exposed_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/export.h"
#include "model/import.h"
#include "support/text_session.h"
#include "wire/mapped_file.h"

namespace treadle::session {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing_support::by_reference;
using testing_support::count_of;
using testing_support::Feeds;
using testing_support::feeds_of;
using testing_support::floats_of;
using testing_support::TextSession;

struct Exposed {
  std::vector<ExposedValue> values;
  std::vector<AnyValue> results;
  std::unique_ptr<ir::Graph> graph;

  const ExposedValue& operator[](const std::string& name) const {
    for (const ExposedValue& value : values) {
      if (value.inner.name == name) return value;
    }
    ADD_FAILURE() << "no value " << name;
    return values.front();
  }
  std::vector<float> rows(const std::string& name) const { return floats_of(results[*(*this)[name].output]); }
  std::vector<bool> ran(const std::string& name) const {
    const Tensor& tensor = results[*(*this)[name].ran].tensor();
    return std::vector<bool>(tensor.data<bool>(), tensor.data<bool>() + tensor.element_count());
  }
  std::vector<AnyValue> elements(size_t output) const {
    const Sequence& sequence = results[output].sequence();
    std::vector<AnyValue> found;
    for (size_t i = 0; i < sequence.size(); ++i) found.push_back(sequence[i]);
    return found;
  }
  // Of a log: the numbers of iterations, and the sizes of the elements.
  std::vector<std::vector<int64_t>> log_at(const std::string& name) const {
    std::vector<std::vector<int64_t>> found;
    for (const AnyValue& at : elements(*(*this)[name].log_at)) {
      const auto numbers = at.tensor().span<int64_t>();
      found.emplace_back(numbers.begin(), numbers.end());
    }
    return found;
  }
  std::vector<int64_t> counts(const std::string& name) const {
    std::vector<int64_t> found;
    for (const AnyValue& v : elements(*(*this)[name].output)) {
      found.push_back(v.tensor().element_count());
    }
    return found;
  }
};

std::unique_ptr<ir::Graph> import(const std::string& text) {
  auto graph = model::import_model(wire::MappedFile::own(text));
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? std::move(*graph) : nullptr;
}

// Runs the model with its inner values, and expects the outputs of the model itself.
Exposed exposed(const std::string& text, const Feeds& feeds, std::vector<std::string> wanted = {}) {
  Exposed made;
  made.graph = import(text);
  auto values = expose(*made.graph, feeds_of(feeds), wanted);
  EXPECT_TRUE(values.ok()) << values.error().to_string();
  if (!values.ok()) return made;
  made.values = std::move(*values);
  const auto bytes = model::export_model(*made.graph);
  EXPECT_TRUE(bytes.ok()) << bytes.error().to_string();
  if (!bytes.ok()) return made;
  made.results = TextSession(*bytes, by_reference()).results(feeds);
  const std::vector<AnyValue> expected = TextSession(text, by_reference()).results(feeds);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(identical(made.results[i], expected[i])) << "output " << i;
  return made;
}

AnyValue floats(Dims dims, const std::vector<float>& numbers) {
  Tensor tensor = *Tensor::allocate(ElementType::kFloat, std::move(dims));
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data<float>());
  return tensor;
}

constexpr const char* kHead = R"(<ir_version: 10, opset_import: ["" : 17]>)";

// The scan output lies along axis 1, and its rows along axis 0.
TEST(ExposedModel, StacksWhatIterationsOfAScanMake) {
  const std::string text = std::string(kHead) + R"(
g (float[2] h, float[3, 2] x) => (float[2] last, float[2, 3] all) {
  last, all = Scan <num_scan_inputs = 1, scan_output_axes = [1], body = b (float[2] s, float[2] e) => (float[2] t, float[2] r) {
    d = Add (e, e)
    t = Add (s, d)
    r = Neg (t)
  }> (h, x)
})";
  const Exposed made = exposed(text, {{"h", floats({2}, {0, 1})}, {"x", floats({3, 2}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_THAT(made.rows("/Scan_0:body/d"), ElementsAre(2, 4, 6, 8, 10, 12));
  EXPECT_THAT(made.rows("/Scan_0:body/t"), ElementsAre(2, 5, 8, 13, 18, 25));
  EXPECT_EQ(*made["last"].output, 0u);
  EXPECT_THAT(made["/Scan_0:body/d"].inner.place, ElementsAre(0, 0));
}

TEST(ExposedModel, HandsOutInputsOfBodies) {
  const std::string text = std::string(kHead) + R"(
g (int64 n, float h) => (float last) <bool yes = {1}> {
  last = Loop <body = b (int64 i, bool c, float s) => (bool c, float t) { t = Add (s, s) }> (n, yes, h)
})";
  const Exposed made = exposed(text, {{"n", count_of(3)}, {"h", floats({}, {1})}}, {"/Loop_0:body/s"});
  EXPECT_THAT(made.rows("/Loop_0:body/s"), ElementsAre(1, 2, 4));
}

// A branch runs in every second iteration.
TEST(ExposedModel, TellsWhichIterationsTookABranch) {
  const std::string text = std::string(kHead) + R"(
g (int64 n, float h) => (float last) <bool yes = {1}, int64 two = {2}, int64 zero = {0}> {
  last = Loop <body = b (int64 i, bool c, float s) => (bool c, float t) {
    odd = Mod (i, two)
    even = Equal (odd, zero)
    t = If (even) <then_branch = y () => (float p) { p = Add (s, s) }, else_branch = z () => (float q) { q = Neg (s) }>
  }> (n, yes, h)
})";
  const Exposed made = exposed(text, {{"n", count_of(4)}, {"h", floats({}, {1})}});
  EXPECT_THAT(made.rows("/Loop_0:body/If_2:then_branch/p"), ElementsAre(2, 0, -4, 0));
  EXPECT_THAT(made.ran("/Loop_0:body/If_2:then_branch/p"), ElementsAre(true, false, true, false));
  EXPECT_THAT(made.rows("/Loop_0:body/If_2:else_branch/q"), ElementsAre(0, -2, 0, 4));
  EXPECT_EQ(made["/Loop_0:body/If_2:else_branch/q"].inner.around.size(), 2u);
}

// An inner loop of as many iterations as the outer loop's number says, and a value that grows.
TEST(ExposedModel, LogsWhatChangesItsSize) {
  const std::string text = std::string(kHead) + R"(
g (int64 n, float[k] h) => (float[m] last) <bool yes = {1}> {
  last = Loop <body = b (int64 i, bool c, float[k] s) => (bool c, float[m] t) {
    t = Loop <body = d (int64 j, bool e, float[k] u) => (bool e, float[m] v) {
      one = Constant <value = float[1] {1}> ()
      v = Concat <axis = 0> (u, one)
    }> (i, yes, s)
  }> (n, yes, h)
})";
  const Exposed made = exposed(text, {{"n", count_of(3)}, {"h", floats({1}, {7})}});
  const std::string name = "/Loop_0:body/Loop_0:body/v";
  EXPECT_THAT(made.log_at(name), ElementsAre(ElementsAre(1, 0), ElementsAre(2, 0), ElementsAre(2, 1)));
  EXPECT_THAT(made.counts(name), ElementsAre(2, 3, 4));
  EXPECT_THAT(made.log_at("/Loop_0:body/t"), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(ExposedModel, SaysWhyAValueIsLeftOut) {
  const std::string text = R"(<ir_version: 10, opset_import: ["" : 11]>
g (int64 n, float[k] h) => (float[m] last) <bool yes = {1}> {
  last = Loop <body = b (int64 i, bool c, float[k] s) => (bool c, float[m] t) { t = Concat <axis = 0> (s, s) }> (n, yes, h)
})";
  const Exposed made = exposed(text, {{"n", count_of(3)}, {"h", floats({1}, {7})}});
  EXPECT_FALSE(made["/Loop_0:body/t"].output);
  EXPECT_THAT(made["/Loop_0:body/t"].left_out, HasSubstr("operator set 13, and the model has 11"));
}

TEST(ExposedModel, NamesOutputsThatANodeLeavesOut) {
  const auto graph = import(std::string(kHead) + R"(
g (int64 n, float h) => (float last) <bool yes = {1}> {
  last, all = Loop <body = b (int64 i, bool c, float s) => (bool c, float t, float row) {
    t = Add (s, s)
    row = Neg (t)
  }> (n, yes, h)
})");
  ir::Node& loop = *graph->top().nodes[0];
  loop.outputs.resize(1);
  const std::vector<std::string> wanted = {"/Loop_0:body/t"};
  const auto values = expose(*graph, {}, wanted);
  ASSERT_TRUE(values.ok()) << values.error().to_string();
  ASSERT_EQ(loop.outputs.size(), 3u);
  EXPECT_EQ(loop.outputs[1]->name, "/Loop_0:1");
  EXPECT_EQ(graph->top().outputs[*(*values)[0].output], loop.outputs[2]);
}

TEST(ExposedModel, NamesTheNearestValue) {
  const auto graph = import(std::string(kHead) + "g (float x) => (float y) { hidden = Neg (x) y = Neg (hidden) }");
  const std::vector<std::string> wanted = {"hiden"};
  const auto values = expose(*graph, {}, wanted);
  ASSERT_FALSE(values.ok());
  EXPECT_EQ(values.error().message(), "the model has no value 'hiden' (did you mean 'hidden'?)");
}

TEST(LoneNode, HasWhatItsBodyReadsAsInputs) {
  const auto graph = import(std::string(kHead) + R"(
g (int64 n, float h, float w) => (float z) <bool yes = {1}> {
  v = Neg (w)
  last = Loop <body = b (int64 i, bool c, float s) => (bool c, float t) { t = Add (s, v) }> (n, yes, h)
  z = Neg (last)
})");
  const auto inputs = leave_node(*graph, {}, "/Loop_1");
  ASSERT_TRUE(inputs.ok()) << inputs.error().to_string();
  EXPECT_THAT(*inputs,
              ElementsAre(Field(&ReadValue::name, "n"), Field(&ReadValue::name, "h"), Field(&ReadValue::name, "v")));
  const auto bytes = model::export_model(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.error().to_string();
  const Feeds feeds = {{"n", count_of(2)}, {"h", floats({}, {1})}, {"v", floats({}, {3})}};
  EXPECT_THAT(floats_of(TextSession(*bytes, by_reference()).results(feeds)[0]), ElementsAre(7));
  EXPECT_EQ(leave_node(*import(std::string(kHead) + "g (float x) => (float y) { y = Neg (x) }"), {}, "/Add")
                .error()
                .message(),
            "the model has no node '/Add'");
}

}  // namespace
}  // namespace treadle::session
