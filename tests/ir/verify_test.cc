#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/graph.h"

namespace treadle::ir {
namespace {

using ::testing::HasSubstr;

// x -> first -> a; second(x, a) -> b with a body that returns x; output b.
struct Sample {
  Graph graph;
  Value* x = nullptr;
  Node *first = nullptr, *second = nullptr;
  Value *a = nullptr, *b = nullptr;
  Region* body = nullptr;

  Sample() {
    x = graph.new_value("x", {}, &graph.top());
    graph.top().inputs.push_back(x);
    first = graph.new_node(&graph.top(), nullptr, nullptr, "/first");
    graph.add_input(first, x);
    a = graph.add_output(first, "a");
    second = graph.new_node(&graph.top(), nullptr, nullptr, "/second");
    graph.add_input(second, x);
    graph.add_input(second, a);
    body = graph.new_region(second, "body");
    body->outputs.push_back(x);
    b = graph.add_output(second, "b");
    graph.top().outputs.push_back(b);
  }

  std::string message() const { return verify(graph).to_string(); }
};

TEST(Verify, AcceptsAValidGraph) {
  Sample s;
  EXPECT_EQ(s.message(), "ok");
  s.graph.add_input(s.second, nullptr);
  s.graph.add_input(s.second, s.graph.new_constant("k", Tensor::of_int64(std::vector<int64_t>{1})));
  s.graph.add_absent_output(s.second);
  EXPECT_EQ(s.message(), "ok");
}

TEST(Verify, InputsMayBeKnownButNotProduced) {
  Sample s;
  s.x->constant = Tensor::of_int64(std::vector<int64_t>{1});
  EXPECT_EQ(s.message(), "ok");
  s.graph.top().inputs.push_back(s.a);
  EXPECT_THAT(s.message(), HasSubstr("has a producer"));
}

TEST(Verify, FindsUsesBeforeDefinitions) {
  Sample s;
  std::swap(s.graph.top().nodes[0], s.graph.top().nodes[1]);
  EXPECT_THAT(s.message(), HasSubstr("/second: \"a\" is used where it is not defined"));
}

TEST(Verify, FindsValuesOfABodyUsedOutside) {
  Sample s;
  Node* inner = s.graph.new_node(s.body, nullptr, nullptr, "/second:body/inner");
  Value* hidden = s.graph.add_output(inner, "hidden");
  EXPECT_EQ(s.message(), "ok");
  s.graph.top().outputs.push_back(hidden);
  EXPECT_THAT(s.message(), HasSubstr("\"hidden\" is used where"));
}

TEST(Verify, FindsBrokenLinks) {
  {
    Sample s;
    s.a->producer = s.second;
    EXPECT_THAT(s.message(), HasSubstr("is not linked"));
  }
  {
    Sample s;
    s.a->owner = s.body;
    EXPECT_THAT(s.message(), HasSubstr("owned by another region"));
  }
  {
    Sample s;
    s.first->parent = s.body;
    EXPECT_THAT(s.message(), HasSubstr("parent"));
  }
  {
    Sample s;
    s.first->input_count = 7;
    EXPECT_THAT(s.message(), HasSubstr("/first: counts say 7"));
  }
  {
    Sample s;
    s.graph.top().inputs.push_back(s.x);
    EXPECT_THAT(s.message(), HasSubstr("defined twice"));
  }
  {
    Sample s;
    s.body->parent_node = s.first;
    EXPECT_FALSE(verify(s.graph).ok());
  }
  {
    Sample s;
    s.graph.input_defaults.resize(3);
    EXPECT_THAT(s.message(), HasSubstr("1 inputs have 3 defaults"));
  }
}

}  // namespace
}  // namespace treadle::ir
