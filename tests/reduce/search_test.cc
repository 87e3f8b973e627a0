// The search on predicates whose smallest model is known.

#include "reduce/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>

#include "ir/text.h"
#include "model/import.h"
#include "reduce/model_of_text.h"
#include "reduce/names.h"
#include "reduce/tensors.h"
#include "support/mutations.h"
#include "support/temp_dir.h"
#include "wire/parse.h"

namespace treadle::reduce {
namespace {

using Predicate = std::function<bool(wire::ModelProto&)>;

Fails fails_if(Predicate predicate) {
  return [=](std::string_view bytes, const Progress&) {
    auto model = wire::parse_model(bytes);
    return model.ok() && predicate(**model) ? Verdict::kFails : Verdict::kPasses;
  };
}
// As `fails_if`, but what does not load passes.
Fails loads_and(Predicate predicate) {
  return [=](std::string_view bytes, const Progress&) {
    const auto graph = model::import_model(wire::MappedFile::borrow(bytes));
    auto model = wire::parse_model(bytes);
    return graph.ok() && predicate(**model) ? Verdict::kFails : Verdict::kPasses;
  };
}

Reduced reduced(const std::string& bytes, const Fails& fails, const Options& options = {}) {
  auto found = reduce(*wire::MappedFile::borrow(bytes), options, fails);
  EXPECT_TRUE(found.ok()) << found.error().to_string();
  return std::move(*found);
}

std::string text_of(const std::string& bytes) {
  return ir::print_text(*wire::parse_model(bytes).value());
}

// `owner`: the kind of a node in whose body the node has to be, at any depth.
bool has_op(wire::ModelProto& model, std::string_view op, std::string_view owner = "") {
  const std::vector<Scope> scopes = scopes_of(model);
  for (const Scope& scope : scopes) {
    bool is_inside = owner.empty();
    for (const Scope* s = &scope; !is_inside && s->is_body(); s = &scopes[s->outer]) {
      is_inside = s->owner->op_type == owner;
    }
    if (!is_inside) continue;
    for (const wire::NodeProto& node : scope.nodes()) {
      if (node.op_type == op) return true;
    }
  }
  return false;
}

// Nodes in a row, each of which reads the one before; one of them is a Tanh.
std::string long_chain(size_t length, size_t tanh) {
  std::string graph = "g (float[4] v0) => (float[4] v" + std::to_string(length) + ") {\n";
  for (size_t i = 0; i < length; ++i) {
    graph += "v" + std::to_string(i + 1) + (i == tanh ? " = Tanh(v" : " = Neg(v") + std::to_string(i) + ")\n";
  }
  return bytes_of(graph + "}");
}

TEST(ReduceSearch, AModelThatPassesComesBackAsItIs) {
  const std::string bytes = long_chain(3, 1);
  const Reduced found = reduced(bytes, fails_if([](wire::ModelProto&) { return false; }));
  EXPECT_EQ(found.bytes, bytes);
  EXPECT_EQ(found.progress.attempts, 1u);
}

TEST(ReduceSearch, RefusesBytesThatAreNoModel) {
  EXPECT_FALSE(reduce(*wire::MappedFile::own("no model"), {}, nullptr).ok());
}

TEST(ReduceSearch, FindsOneNodeOfTwentyThousandInFewAttempts) {
  for (const size_t tanh : {7u, 19990u}) {
    const Reduced found =
        reduced(long_chain(20000, tanh), loads_and([](wire::ModelProto& model) { return has_op(model, "Tanh"); }));
    EXPECT_EQ(found.progress.nodes, 1u) << text_of(found.bytes);
    EXPECT_LE(found.progress.attempts, 120u) << tanh;
  }
}

TEST(ReduceSearch, FindsNodesThatNeedEachOther) {
  // Both have to stay, and the second has to read what the first has made, however far apart they are.
  const auto both = [](wire::ModelProto& model) { return has_op(model, "Tanh") && has_op(model, "Neg"); };
  const Reduced found = reduced(long_chain(500, 250), loads_and(both));
  EXPECT_EQ(found.progress.nodes, 2u) << text_of(found.bytes);
}

constexpr const char* kNested = R"(g (float[8] x, bool c) => (float[8] y, float[N, 8] rows) <int64 n = {12}> {
  a = Exp(x)  b = Log(a)
  y, rows = Loop(n, , b) <body = l (int64 i, bool go, float[8] s) => (bool go, float[8] s2, float[8] row) {
    k = Cast<to = 1>(i)
    s2 = If(c) <then_branch = t () => (float[8] p) { m = Mul(s, k)  p = Sin(m) },
                else_branch = e () => (float[8] q) { q = Cos(s) }>
    row = Neg(s2) }> })";

TEST(ReduceSearch, KeepsABodyIfTheNodeHasToBeInOne) {
  const Reduced in_branch =
      reduced(bytes_of(kNested), loads_and([](wire::ModelProto& model) { return has_op(model, "Sin", "If"); }));
  EXPECT_EQ(in_branch.progress.nodes, 2u) << text_of(in_branch.bytes) << "an If and its Sin";
  const Reduced in_loop =
      reduced(bytes_of(kNested), loads_and([](wire::ModelProto& model) { return has_op(model, "Sin", "Loop"); }));
  EXPECT_EQ(in_loop.progress.nodes, 2u) << text_of(in_loop.bytes) << "a Loop and the Sin of its branch";
  EXPECT_EQ(in_loop.progress.bodies, 1u);
  const Reduced anywhere =
      reduced(bytes_of(kNested), loads_and([](wire::ModelProto& model) { return has_op(model, "Sin"); }));
  EXPECT_EQ(anywhere.progress.nodes, 1u) << text_of(anywhere.bytes);
  EXPECT_EQ(anywhere.progress.bodies, 0u);
}

TEST(ReduceSearch, FindsAnUnknownOperatorInABodyOfAModelThatDoesNotLoad) {
  std::string graph = "g (float[2] x, bool c) => (float[2] y) {\n";
  for (int i = 0; i < 200; ++i) {
    const std::string from = i == 0 ? "x" : "v" + std::to_string(i - 1);
    graph += "v" + std::to_string(i) + (i % 3 ? " = Neg(" : " = Abs(") + from + ")\n";
    if (i == 99) {
      graph +=
          "w = If(c) <then_branch = t () => (float[2] p) { p = Unheard(v9) }, else_branch = e () => (float[2] q) "
          "{ q = Neg(v50) }>\n";
    }
  }
  const Reduced found = reduced(bytes_of(graph + "y = Add(v199, w) }"),
                                fails_if([](wire::ModelProto& model) { return has_op(model, "Unheard", "If"); }));
  EXPECT_EQ(found.progress.nodes, 2u) << text_of(found.bytes);
  EXPECT_LE(found.progress.attempts, 150u);
}

TEST(ReduceSearch, FindsTheFewestIterationsAndTheSmallestSizes) {
  const auto five_iterations_of_three = [](wire::ModelProto& model) {
    const Names names(model);
    for (const Scope& scope : names.scopes()) {
      for (const wire::NodeProto& node : scope.nodes()) {
        if (node.op_type != "Loop" || node.inputs.size() < 3) continue;
        const auto count = constant_ints(names, 0, node.inputs[0]);
        const wire::GraphProto& body = *graph_attribute(node, "body");
        if (!count || count->empty() || count->front() < 5 || body.inputs.size() < 3) continue;
        const auto& type = body.inputs[2].type;
        if (type && type->tensor && type->tensor->shape && type->tensor->shape->dims.size() == 1 &&
            type->tensor->shape->dims[0].value.value_or(0) >= 3) {
          return true;
        }
      }
    }
    return false;
  };
  const Reduced found = reduced(bytes_of(kNested), loads_and(five_iterations_of_three));
  const std::string text = text_of(found.bytes);
  EXPECT_THAT(text, ::testing::HasSubstr("= {5}"));
  EXPECT_THAT(text, ::testing::HasSubstr("float[3]"));
  EXPECT_EQ(found.progress.nodes, 1u) << text;
}

TEST(ReduceSearch, DoesTheSameEachTimeAndWithAnyNumberOfJobs) {
  const std::string bytes = bytes_of(kNested);
  const auto predicate = [](wire::ModelProto& model) { return has_op(model, "Sin", "If") && has_op(model, "Exp"); };
  std::vector<std::string> tried;
  const auto noted = [&](std::string_view candidate, const Progress&) {
    tried.emplace_back(candidate);
    return loads_and(predicate)(candidate, {});
  };
  const Reduced one = reduced(bytes, noted);
  const std::vector<std::string> first = std::exchange(tried, {});
  reduced(bytes, noted);
  EXPECT_EQ(tried, first);
  const Reduced four = reduced(bytes, loads_and(predicate), {.jobs = 4});
  EXPECT_EQ(four.bytes, one.bytes);
  EXPECT_EQ(four.progress.attempts, one.progress.attempts);
}

TEST(ReduceSearch, EndsAfterAsManyAttemptsAndWhereItIsTold) {
  const std::string bytes = long_chain(300, 150);
  size_t calls = 0;
  const auto predicate = loads_and([](wire::ModelProto& model) { return has_op(model, "Tanh"); });
  const auto counted = [&](std::string_view candidate, const Progress& progress) {
    EXPECT_EQ(progress.attempts, ++calls);
    return predicate(candidate, progress);
  };
  const Reduced few = reduced(bytes, counted, {.attempts = 5});
  EXPECT_EQ(calls, 5u);
  EXPECT_LT(few.progress.nodes, 300u);
  EXPECT_GT(few.progress.nodes, 1u);
  const auto stopping = [&](std::string_view candidate, const Progress& progress) {
    return progress.attempts == 6 ? Verdict::kStop : predicate(candidate, progress);
  };
  EXPECT_EQ(reduced(bytes, stopping).bytes, few.bytes) << "the sixth does not count";
}

TEST(ReduceSearch, PassesOnExceptions) {
  const std::string bytes = long_chain(300, 150);
  const auto throws = [](std::string_view, const Progress& progress) -> Verdict {
    if (progress.attempts > 1) throw std::runtime_error("no more");
    return Verdict::kFails;
  };
  EXPECT_THROW(static_cast<void>(reduce(*wire::MappedFile::borrow(bytes), {.jobs = 3}, throws)), std::runtime_error);
}

TEST(ReduceSearch, DamagedModelsDoNoHarm) {
  // Verdicts by the candidate's size: some of everything is accepted.
  const auto by_size = [](std::string_view bytes, const Progress& progress) {
    return progress.attempts == 1 || bytes.size() % 3 == 0 ? Verdict::kFails : Verdict::kPasses;
  };
  size_t reduced_models = 0;
  for_each_bit_flip(bytes_of(kNested), 23, [&](std::string_view bytes) {
    const auto found = reduce(*wire::MappedFile::borrow(bytes), {.attempts = 60}, by_size);
    if (!found.ok()) return;
    ++reduced_models;
    EXPECT_TRUE(found->bytes == bytes || wire::parse_model(found->bytes).ok());
  });
  EXPECT_GT(reduced_models, 50u);
}

TEST(ReduceSearch, BringsDataOfOtherFilesIntoTheModel) {
  const TempDir folder;
  folder.write("data.bin", std::string(16, '\x40'));
  const std::string bytes = bytes_of(R"(g (float[4] x) => (float[4] y) <float[4] w = ["location": "data.bin"]> {
        a = Neg(x) y = Mul(a, w) })");
  // The tensor has to have contents that are not zeros, wherever they lie.
  const auto predicate = [](wire::ModelProto& model) {
    for (const wire::TensorProto* tensor : tensors_of(model)) {
      if (is_external(*tensor) || (tensor->raw_data && tensor->raw_data->find('\x40') != std::string_view::npos)) {
        return true;
      }
    }
    return false;
  };
  size_t first = 0;
  const auto noted = [&](std::string_view candidate, const Progress& progress) {
    if (progress.attempts == 1) first = progress.data_tensors;
    return fails_if(predicate)(candidate, progress);
  };
  const Reduced found = reduced(bytes, noted, {.folder = folder.path().string()});
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(found.progress.data_tensors, 0u) << text_of(found.bytes);
  EXPECT_LT(found.progress.bytes, 120u) << text_of(found.bytes);
}

}  // namespace
}  // namespace treadle::reduce
