#include "ops/rnn/activation.h"

#include <optional>

namespace treadle::rnn {

namespace {

using kernels::ElementwiseOp;

struct Function {
  std::string_view name;  // in lower case
  ElementwiseOp op;
  bool has_alpha = false, has_beta = false;
  std::optional<float> alpha = {}, beta = {};  // defaults
};

constexpr Function kFunctions[] = {
    {"relu", ElementwiseOp::kRelu},
    {"tanh", ElementwiseOp::kTanh},
    {"sigmoid", ElementwiseOp::kSigmoid},
    {"softsign", ElementwiseOp::kSoftsign},
    {"softplus", ElementwiseOp::kSoftplus},
    {"affine", ElementwiseOp::kAffine, true, true, 1.0f, 0.0f},
    {"leakyrelu", ElementwiseOp::kLeakyRelu, true, false, 0.01f},
    {"thresholdedrelu", ElementwiseOp::kThresholdedReluEqual, true, false, 1.0f},
    {"scaledtanh", ElementwiseOp::kScaledTanh, true, true},
    {"hardsigmoid", ElementwiseOp::kHardSigmoid, true, true, 0.2f, 0.5f},
    {"elu", ElementwiseOp::kElu, true, false, 1.0f},
};

const Function* find_function(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const Function& f : kFunctions) {
    if (f.name == lower) return &f;
  }
  return nullptr;
}

// Reads the entries of a list attribute one by one.
class Values {
 public:
  Values(const ir::Attributes& attributes, const char* name) : name_(name), list_(attributes.get_floats(name)) {}

  Result<float> take(bool wanted, std::optional<float> otherwise, std::string_view function) {
    if (!wanted) return 0.0f;
    if (next_ < list_.size()) return list_[next_++];
    if (otherwise) return *otherwise;
    return error(Code::kInvalidModel, "attribute {} has no value for {}, expected one: it has no default", name_,
                 function);
  }

 private:
  const char* name_;
  std::span<const float> list_;
  size_t next_ = 0;
};

}  // namespace

Result<std::vector<Activation>> read_activations(const ir::Attributes& attributes, size_t directions,
                                                 std::initializer_list<const char*> defaults) {
  const size_t places = directions * defaults.size();
  const auto names = attributes.get_strings("activations");
  const bool given = attributes.has("activations") && !names.empty();
  if (given && names.size() < places) {
    return error(Code::kInvalidModel, "activations has {} names, expected {} ({} for each direction)", names.size(),
                 places, defaults.size());
  }
  Values alphas(attributes, "activation_alpha"), betas(attributes, "activation_beta");
  std::vector<Activation> list;
  for (size_t i = 0; i < places; ++i) {
    const std::string_view name = given ? std::string_view(names[i]) : *(defaults.begin() + i % defaults.size());
    const Function* f = find_function(name);
    if (!f)
      return error(Code::kInvalidModel, "attribute activations holds '{}', expected the name of an activation function",
                   name);
    TREADLE_ASSIGN(const float alpha, alphas.take(f->has_alpha, f->alpha, name));
    TREADLE_ASSIGN(const float beta, betas.take(f->has_beta, f->beta, name));
    list.push_back({f->op, alpha, beta});
  }
  return list;
}

std::vector<ir::Attribute> to_attributes(std::span<const Activation> activations) {
  std::vector<int64_t> ops;
  std::vector<float> alphas, betas;
  for (const Activation& a : activations) {
    ops.push_back(static_cast<int64_t>(a.op));
    alphas.push_back(a.alpha);
    betas.push_back(a.beta);
  }
  return {ir::Attribute::of("functions", std::move(ops)), ir::Attribute::of("alphas", std::move(alphas)),
          ir::Attribute::of("betas", std::move(betas))};
}

std::vector<Activation> from_attributes(const ir::Attributes& attributes) {
  const auto ops = attributes.get_ints("functions");
  const auto alphas = attributes.get_floats("alphas"), betas = attributes.get_floats("betas");
  std::vector<Activation> list(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) list[i] = {static_cast<ElementwiseOp>(ops[i]), alphas[i], betas[i]};
  return list;
}

}  // namespace treadle::rnn
