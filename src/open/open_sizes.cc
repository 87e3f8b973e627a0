#include "open/open_sizes.h"

#include "base/spelling.h"
#include "open/agreement.h"
#include "open/declared.h"
#include "open/rules.h"
#include "wire/parse.h"
#include "wire/serialize.h"

namespace treadle::open {

namespace {

// --- the inputs

Result<wire::ValueInfoProto*> find_input(wire::ModelProto& model, const std::string& name) {
  Speller speller(name);
  std::string all;
  for (wire::ValueInfoProto& input : model.graph->inputs) {
    if (input.name == name) return &input;
    speller.offer(input.name);
    all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", input.name);
  }
  const std::string_view near = speller.best();
  return error(Code::kInvalidArgument, "the model has no input \"{}\"{}; its inputs are {}", name,
               near.empty() ? std::string() : fmt::format(", did you mean \"{}\"?", near), all);
}

Result<wire::Dimension*> find_axis(wire::ValueInfoProto& input, Opening& opening) {
  if (!input.type || !input.type->tensor || !input.type->tensor->shape) {
    return error(Code::kInvalidArgument, "input \"{}\" declares no sizes", opening.input);
  }
  wire::List<wire::Dimension>& dims = input.type->tensor->shape->dims;
  TREADLE_ASSIGN(opening.axis, normalize_axis(opening.axis, static_cast<int64_t>(dims.size()),
                                              fmt::format("the axis of input \"{}\"", opening.input)));
  wire::Dimension& dim = dims[static_cast<size_t>(opening.axis)];
  if (!dim.value || *dim.value < 0) {
    return error(Code::kInvalidArgument, "axis {} of input \"{}\" is open already: its size is {}", opening.axis,
                 opening.input, dim.param.empty() ? "unknown" : fmt::format("\"{}\"", dim.param));
  }
  return &dim;
}

Status open_inputs(wire::ModelProto& model, std::vector<Opening>& sizes, Arena& arena) {
  std::map<std::string, int64_t> by_symbol;
  for (Opening& opening : sizes) {
    TREADLE_ASSIGN(wire::ValueInfoProto* const input, find_input(model, opening.input));
    for (const wire::TensorProto& tensor : model.graph->initializers) {
      if (tensor.name != opening.input) continue;
      return error(Code::kInvalidArgument, "input \"{}\" has a default, whose sizes are fixed", opening.input);
    }
    TREADLE_ASSIGN(wire::Dimension* const dim, find_axis(*input, opening));
    opening.size = *dim->value;
    const auto [other, fresh] = by_symbol.emplace(opening.symbol, opening.size);
    if (other->second != opening.size) {
      return error(Code::kInvalidArgument, "\"{}\" is to be the size {} of another axis, and {} of axis {} of \"{}\"",
                   opening.symbol, other->second, opening.size, opening.axis, opening.input);
    }
    dim->value.reset();
    dim->param = arena.copy(opening.symbol);
  }
  return {};
}

// --- the nodes

class Work {
 public:
  Work(const std::shared_ptr<wire::MappedFile>& file, std::string folder, wire::Parsed<wire::ModelProto>& model,
       std::vector<Opening> sizes)
      : file_(file),
        folder_(std::move(folder)),
        model_(model),
        opened_{{}, std::move(sizes), {}},
        openings_(opened_.sizes),
        declared_(*model, model.arena()),
        editor_(*model, model.arena()) {}

  Result<Opened> run() {
    TREADLE_TRY(check_symbols());
    while (true) {
      TREADLE_ASSIGN(const std::unique_ptr<Reading> now, read({}));
      TREADLE_ASSIGN(const std::unique_ptr<Reading> old, read(openings_.sizes()));
      TREADLE_ASSIGN(const std::unique_ptr<Reading> twice, read(openings_.sizes(2)));
      const Found found = walk(*now, *old, *twice, openings_);
      if (!found.edits.empty()) {
        TREADLE_TRY(edit(found.edits));
        continue;
      }
      TREADLE_TRY(in_the_way(found.obstacles));
      TREADLE_TRY(in_the_way(differences(*now, *old, *twice, openings_, 2)));
      TREADLE_ASSIGN(const std::unique_ptr<Reading> thrice, read(openings_.sizes(3)));
      TREADLE_TRY(in_the_way(differences(*now, *old, *thrice, openings_, 3)));
      declared_.restore(*now, *old, openings_);
      TREADLE_ASSIGN(opened_.bytes, wire::serialize(model_));
      return std::move(opened_);
    }
  }

 private:
  Result<std::unique_ptr<Reading>> read(const SymbolSizes& sizes) {
    return Reading::of(*model_, file_, folder_, sizes);
  }

  Status check_symbols() {
    TREADLE_ASSIGN(const std::unique_ptr<Reading> old, read(openings_.sizes()));
    return declared_.check_symbols(*old, openings_);
  }

  Status edit(const std::vector<Edit>& edits) {
    const std::vector<std::string> whys = editor_.apply(edits);
    std::vector<Obstacle> obstacles;
    for (size_t i = 0; i < edits.size(); ++i) {
      if (whys[i].empty()) {
        opened_.changes.push_back(edits[i].text());
      } else {
        obstacles.push_back({edits[i].path, edits[i].op, fmt::format("{}: {}", edits[i].needs(), whys[i])});
      }
    }
    return in_the_way(obstacles);
  }

  // An error that names them; none without obstacles.
  Status in_the_way(const std::vector<Obstacle>& obstacles) const {
    if (obstacles.empty()) return {};
    constexpr size_t kMostLines = 20;
    std::string text = fmt::format("{} {} in the way of {}:", obstacles.size(),
                                   obstacles.size() == 1 ? "node stands" : "nodes stand", openings_.symbols());
    for (size_t i = 0; i < std::min(obstacles.size(), kMostLines); ++i) text += "\n  " + obstacles[i].text();
    if (obstacles.size() > kMostLines) text += fmt::format("\n  and {} more", obstacles.size() - kMostLines);
    return Status(Code::kInvalidModel, std::move(text));
  }

  const std::shared_ptr<wire::MappedFile>& file_;
  const std::string folder_;
  wire::Parsed<wire::ModelProto>& model_;
  Opened opened_;
  const Openings openings_;
  DeclaredSizes declared_;
  Editor editor_;
};

}  // namespace

Result<Opened> open_sizes(const std::shared_ptr<wire::MappedFile>& file, const std::string& folder,
                          std::vector<Opening> sizes) {
  TREADLE_ASSIGN(wire::Parsed<wire::ModelProto> model, wire::parse_model(file->bytes()));
  TREADLE_TRY(file->unchanged());
  if (!model->graph) return error(Code::kInvalidModel, "the model has no graph");
  TREADLE_TRY(open_inputs(*model, sizes, model.arena()));
  return Work(file, folder, model, std::move(sizes)).run();
}

}  // namespace treadle::open
