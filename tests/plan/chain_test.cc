// Fused groups over few elements, on every instruction set: the same bits as the operations one by one.
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

std::vector<AnyValue> run(const Planned& planned, const std::vector<AnyValue>& inputs, size_t outputs) {
  std::vector<AnyValue> results(outputs);
  run::Context context(planned.program);
  const Status status = context.run(places_of(inputs), places_of(results), {});
  EXPECT_TRUE(status.ok()) << status.to_string();
  return results;
}

void expect_same_as_alone(TestGraph& t) {
  for (const Isa isa : usable_isas()) {
    SCOPED_TRACE(name(isa));
    const auto fused = plan_of(t, true, isa), alone = plan_of(t, false, isa);
    ASSERT_TRUE(fused->program && alone->program);
    std::mt19937 engine(3);
    std::vector<AnyValue> inputs;
    for (const Type& type : t.types()) inputs.push_back(random_value(type, engine));
    const size_t outputs = t.graph().top().outputs.size();
    const auto a = run(*alone, inputs, outputs), b = run(*fused, inputs, outputs);
    for (size_t i = 0; i < outputs; ++i) {
      ASSERT_TRUE(a[i].is_tensor() && b[i].is_tensor());
      ASSERT_EQ(a[i].tensor().byte_size(), b[i].tensor().byte_size());
      EXPECT_EQ(std::memcmp(a[i].tensor().raw(), b[i].tensor().raw(), a[i].tensor().byte_size()), 0) << "output " << i;
    }
  }
}

// Operations drawn over a growing pool of values. One argument at least has the full shape, so the result has it too.
class Draw {
 public:
  Draw(TestGraph& t, unsigned seed) : t_(t), engine_(seed) {}

  void add(ir::Value* v, ElementType type, bool full = true) { (full ? full_ : others_)[type].push_back(v); }

  // A new value and its type.
  std::pair<ir::Value*, ElementType> operation() {
    static const std::vector<const char*> kFloat1{"Abs",  "Neg",       "Tanh", "Sigmoid",    "Exp",
                                                  "Sqrt", "Floor",     "Relu", "Reciprocal", "Softplus",
                                                  "Sign", "LeakyRelu", "Atan"};
    static const std::vector<const char*> kNumber2{"Add", "Sub", "Mul", "Min", "Max"};
    static const std::vector<const char*> kCompare{"Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"};
    static const std::vector<const char*> kBool2{"And", "Or", "Xor", "Equal"};
    constexpr ElementType kNumbers[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32,
                                        ElementType::kInt64};
    const ElementType type = kNumbers[below(4)], boolean = ElementType::kBool;
    const ElementType real = type == ElementType::kDouble ? type : ElementType::kFloat;
    switch (below(8)) {
      case 0:
        return {t_->call(one_of(kFloat1), {full(real)}), real};
      case 1:
        return {t_->call(one_of(kCompare), pair(type)), boolean};
      case 2:
        return {t_->call(one_of(kBool2), pair(boolean)), boolean};
      case 3: {
        std::vector<ir::Value*> arguments = pair(type);
        arguments.insert(arguments.begin(), any(boolean));
        return {t_->call("Where", arguments), type};
      }
      case 4:
        return {t_->call("Cast", {full(below(2) ? boolean : kNumbers[below(4)])},
                         {ir::Attribute::of("to", static_cast<int64_t>(type))}),
                type};
      case 5:
        return {t_->call("Not", {full(boolean)}), boolean};
      default:
        return {t_->call(one_of(kNumber2), pair(type)), type};
    }
  }

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(engine_); }

 private:
  const char* one_of(const std::vector<const char*>& names) { return names[below(names.size())]; }
  // Later values more often, so that chains get long.
  ir::Value* full(ElementType type) {
    const auto& values = full_.at(type);
    return values[std::max(below(values.size()), below(values.size()))];
  }
  ir::Value* any(ElementType type) {
    const auto& values = others_[type];
    return values.empty() || below(2) ? full(type) : values[below(values.size())];
  }
  std::vector<ir::Value*> pair(ElementType type) {
    std::vector<ir::Value*> two{full(type), any(type)};
    if (below(2)) std::swap(two[0], two[1]);
    return two;
  }

  TestGraph& t_;
  std::mt19937 engine_;
  std::map<ElementType, std::vector<ir::Value*>> full_, others_;
};

constexpr ElementType kTypes[] = {ElementType::kFloat, ElementType::kDouble, ElementType::kInt32, ElementType::kInt64,
                                  ElementType::kBool};

// Of all types: dense ones, one element, one row and one column.
std::vector<Type> drawn_inputs(const Shape& shape) {
  std::vector<Type> types;
  for (const ElementType type : kTypes) {
    types.push_back(Type::tensor(type, shape));
    types.push_back(Type::tensor(type, shape));
    types.push_back(Type::tensor(type, {}));
    types.push_back(Type::tensor(type, {shape.back()}));
    types.push_back(Type::tensor(type, {shape[0], 1}));
  }
  return types;
}

ir::Value* constant(TestGraph& t, ElementType type, Shape shape, unsigned seed) {
  std::mt19937 engine(seed);
  return t->constant(random_value(Type::tensor(type, std::move(shape)), engine).tensor());
}

const Shape kShapes[] = {{1, 1}, {1, 2},  {3, 1}, {1, 4}, {5, 1},  {2, 3}, {1, 7}, {2, 4}, {3, 3},  {1, 12},
                         {4, 4}, {1, 17}, {5, 4}, {4, 8}, {1, 33}, {6, 6}, {8, 8}, {7, 9}, {5, 13}, {16, 8}};

TEST(Chain, RandomOperations) {
  for (const Shape& shape : kShapes) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", to_string(shape), seed));
      TestGraph t(drawn_inputs(shape), 5);
      Draw draw(t, seed);
      for (size_t i = 0; i < t.types().size(); ++i) draw.add(t.in(i), t.types()[i].element, i % 5 < 2);
      for (const ElementType type : kTypes) {
        draw.add(constant(t, type, shape, seed), type);
        draw.add(constant(t, type, {}, seed + 1), type, false);
        draw.add(constant(t, type, {shape.back()}, seed + 2), type, false);
      }
      std::vector<ir::Value*> made;
      while (made.size() < 5 + 2 * (seed % 6)) {
        const auto [v, type] = draw.operation();
        made.push_back(v);
        draw.add(v, type);
      }
      for (size_t i = 0; i < 5; ++i) t->set_output(i, made[made.size() - 1 - i]);
      expect_same_as_alone(t);
      if (HasFailure()) return;
    }
  }
}

// States of all types, a scan output, an iteration number that is used, states that change places.
TEST(Chain, RandomLoops) {
  for (const Shape& shape : kShapes) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", to_string(shape), seed));
      std::vector<Type> types;
      for (const ElementType type : kTypes) {
        types.push_back(Type::tensor(type, shape));
        types.push_back(Type::tensor(type, shape));
      }
      TestGraph t(types, types.size() + 2);
      std::vector<ir::Value*> states;
      for (size_t i = 0; i < types.size(); ++i) states.push_back(t.in(i));
      const auto inside = t.begin_loop(t->constant_int64(9), states, 2);
      Draw draw(t, seed);
      std::vector<ir::Value*> next;
      for (size_t i = 0; i < types.size(); ++i) {
        draw.add(inside[i + 2], types[i].element);
        next.push_back(inside[2 + (i ^ (seed & 1))]);
      }
      draw.add(t.in(0), types[0].element);
      draw.add(constant(t, ElementType::kFloat, {}, seed), ElementType::kFloat, false);
      if (seed % 3 == 0) draw.add(inside[0], ElementType::kInt64, false);
      for (size_t made = 0; made < 4 + seed % 9; ++made) {
        const auto [v, type] = draw.operation();
        draw.add(v, type);
        for (size_t i = 0; i < types.size(); ++i) {
          if (types[i].element == type && (i & 1) == (made & 1)) next[i] = v;
        }
      }
      next.push_back(next[0]);
      next.push_back(next[draw.below(types.size())]);
      const auto results = t.end_loop(next);
      for (size_t i = 0; i < results.size(); ++i) t->set_output(i, results[i]);
      expect_same_as_alone(t);
      if (HasFailure()) return;
    }
  }
}

// More iterations than run between two checks of limits, rows in memory that grows, and the iteration number.
TEST(Chain, WholeLoopIsOneInstruction) {
  TestGraph t({int64s({}), int64s({3})}, 3);
  const auto inside = t.begin_loop(t.in(0), {t.in(1), t.in(1)}, 1);
  auto* sum = t->call("Add", {inside[2], inside[0]});
  const auto results = t.end_loop({inside[3], sum, t->call("Sub", {sum, inside[3]})});
  for (size_t i = 0; i < 3; ++i) t->set_output(i, results[i]);
  const auto planned = plan_of(t);
  const auto& loops = planned->program->loops;
  EXPECT_EQ(
      std::count_if(loops.begin(), loops.end(), [](const plan::Loop& loop) { return loop.schedule.chain != nullptr; }),
      1);
  for (const int64_t iterations : {1, 2, 17, 4096, 4097, 4098, 20000}) {
    SCOPED_TRACE(iterations);
    expect_same_as_reference(t, *planned, {{0, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
  }
}

TEST(Chain, LimitOfIterationsIsKept) {
  TestGraph t({int64s({}), floats({})}, 1);
  const auto inside = t.begin_loop(t.in(0), {t.in(1)});
  t->set_output(0, t.end_loop({t->call("Add", {inside[2], inside[2]})})[0]);
  const auto planned = plan_of(t);
  const std::vector<AnyValue> inputs{AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 5000)),
                                     AnyValue(Tensor::scalar<float>(ElementType::kFloat, 1))};
  run::Context context(planned->program);
  for (const auto& [limit, fits] : {std::pair(4999, false), std::pair(5000, true)}) {
    std::vector<AnyValue> results(1);
    RunOptions options;
    options.iteration_limit = limit;
    EXPECT_EQ(context.run(places_of(inputs), places_of(results), options).ok(), fits) << limit;
  }
}

}  // namespace
}  // namespace treadle::testing_support
