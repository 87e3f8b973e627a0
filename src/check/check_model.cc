#include <algorithm>
#include <charconv>

#include "check/types.h"
#include "check/walk.h"
#include "ir/text.h"
#include "model/functions.h"
#include "model/import.h"
#include "model/newest_versions.h"
#include "model/other_formats.h"
#include "model/text_file.h"
#include "wire/parse.h"

namespace treadle {

namespace checking {

std::string bare(std::string_view text) {
  const std::string in_quotes = quoted(text);
  return in_quotes.substr(1, in_quotes.size() - 2);
}

std::string node_name(const wire::NodeProto& node, ptrdiff_t index) {
  std::string_view name = node.name;
  if (name.starts_with('/')) name.remove_prefix(1);
  return name.empty() ? fmt::format("{}_{}", bare(node.op_type), index) : bare(name);
}

std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string join_quoted(const std::vector<std::string_view>& names, size_t most) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < most; ++i) {
    if (i > 0) text += ", ";
    text += quoted(names[i]);
  }
  if (names.size() > most) text += fmt::format(", and {} more", names.size() - most);
  return text;
}

Walk::Walk(const wire::ModelProto* model, const wire::MappedFile* file, const CheckOptions& options, Report& report)
    : model_(model), file_(file), options_(options), report_(report), external_files_(options.folder) {
  if (model) ir_version_ = model->ir_version;
}

void Walk::check_model(model::NameUses* uses) {
  uses_ = model_->functions.empty() ? uses : nullptr;
  check_ir_version();
  check_imports(model_->opset_imports, main_.imports);
  check_metadata(model_->metadata_props, "the model's");
  check_configurations();
  collect_functions();
  std::vector<wire::Parsed<wire::TrainingInfoProto>> trainings;
  trainings.reserve(model_->training_infos.size());
  if (model_->graph) {
    frames_.emplace_back();
    open_graph(*model_->graph, true);
    for (const std::string_view bytes : model_->training_infos) {
      auto training = wire::parse_training_info(bytes);
      if (!training.ok()) {
        report(Problem::kFileInvalid, bytes, "training information {}: {}", trainings.size(),
               training.error().to_string());
        continue;
      }
      trainings.push_back(std::move(*training));
      check_training(*trainings.back(), trainings.size() - 1);
    }
    close_graph();
    frames_.pop_back();
  } else {
    report(Problem::kGraphMissing, {}, "the model has no graph");
  }
  check_functions();
  if (!uses) return;
  uses->definitions = main_names_.definitions();
  uses->complete &= uses_ != nullptr;
}

void Walk::check_ir_version() {
  if (ir_version_ < model::kOldestIrVersion || ir_version_ > model::kNewestIrVersion) {
    Diagnostic& d = report(Problem::kIrVersion, {}, "the model's IR version");
    d.expected = fmt::format("{} to {}", model::kOldestIrVersion, model::kNewestIrVersion);
    d.found = ir_version_ == 0 ? "none" : std::to_string(ir_version_);
  }
  if (file_ && file_->bytes().size() > INT32_MAX) {
    report(Problem::kFileSize, {}, "the file has {} bytes", file_->bytes().size()).hint =
        "store large tensors as external data";
  }
}

namespace {

using model::kNewestMlOpset, model::kNewestOnnxOpset;

}  // namespace

void Walk::check_imports(const wire::List<wire::OperatorSetId>& imports, Imports& result) {
  const bool of_model = &imports == &model_->opset_imports;
  if (of_model && ir_version_ < 3) {
    result.emplace("", 1);
    if (!imports.empty() && ir_version_ > 0) {
      report(Problem::kOpsetInvalid, {},
             "models before IR version 3 import no operator sets, this one of version {} does", ir_version_);
    }
  } else if (of_model && imports.empty()) {
    report(Problem::kOpsetMissing, {}, "the model imports no operator set").hint =
        "add an opset_import for domain \"\" (ai.onnx)";
  }
  for (const wire::OperatorSetId& import : imports) {
    check_text(import.domain, "a domain");
    const std::string_view domain = canonical_domain(import.domain);
    if (import.version < 1 || import.version > INT32_MAX) {
      Diagnostic& d = report(Problem::kOpsetInvalid, import.domain, "the imported version of domain {}",
                             quoted(shown_domain(domain)));
      d.expected = "1 or more";
      d.found = std::to_string(import.version);
    }
    const auto [it, fresh] = result.emplace(domain, import.version);
    if (!fresh && it->second != import.version && !(of_model && ir_version_ < 3)) {
      report(Problem::kOpsetDuplicate, import.domain, "domain {} is imported in versions {} and {}",
             quoted(shown_domain(domain)), it->second, import.version);
    }
    const int64_t newest = domain.empty() ? kNewestOnnxOpset : domain == "ai.onnx.ml" ? kNewestMlOpset : 0;
    if (newest > 0 && import.version > newest) {
      Diagnostic& d = report(Problem::kOpsetUnknown, import.domain, "operator set {} of domain {}", import.version,
                             quoted(shown_domain(domain)));
      d.expected = fmt::format("at most {}", newest);
      d.hint = "operators that changed since are checked by their last version known";
    }
  }
}

void Walk::check_metadata(const wire::List<wire::StringStringEntry>& entries, std::string_view whose) {
  if (entries.size() < 2) return;
  std::unordered_set<std::string_view> keys;
  for (const wire::StringStringEntry& entry : entries) {
    if (!keys.insert(entry.key).second) {
      report(Problem::kMetadataDuplicate, entry.key, "{} metadata has the key {} twice", whose, quoted(entry.key));
    }
  }
}

// ---- Reports

Diagnostic& Walk::add(Problem problem, std::string_view at) {
  const bool is_error = info(problem).severity == Severity::kError;
  ++(is_error ? report_.errors : report_.warnings);
  if (report_.diagnostics.size() >= options_.max_diagnostics) return beyond_limit_ = {};
  Diagnostic& d = report_.diagnostics.emplace_back();
  d.problem = problem;
  d.path = path();
  const wire::NodeProto* node = frames_.empty() ? nullptr : frames_.back().node;
  if (node) d.op = operator_text(*node);
  if (file_) {
    if (!is_present(at) && node) at = node->op_type;
    d.offset = offset_in(file_->bytes(), at);
    d.length = at.size();
  }
  return d;
}

std::string Walk::path() const {
  return path_to(frames_.size());
}

std::string Walk::path_of_graph(size_t depth) const {
  const std::string text = path_to(depth);
  return frames_[depth].attribute.empty() ? text : fmt::format("{}:{}", text, bare(frames_[depth].attribute));
}

std::string Walk::path_to(size_t frames) const {
  constexpr size_t kMaxLength = 1000;
  std::string text;
  if (here_->function) text = "function " + model::function_name(*here_->function);
  for (size_t i = 0; i < frames; ++i) {
    const Frame& frame = frames_[i];
    if (!frame.attribute.empty()) text += fmt::format(":{}", bare(frame.attribute));
    if (frame.node) text += "/" + node_name(*frame.node, frame.node - frame.nodes->data());
  }
  if (text.size() <= kMaxLength) return text;
  return text.substr(0, kMaxLength / 2) + "..." + text.substr(text.size() - kMaxLength / 2);
}

std::string Walk::operator_text(const wire::NodeProto& node) {
  std::string text = bare(node.op_type);
  const std::string_view domain = canonical_domain(node.domain);
  const Callee* callee = resolve(node);
  if (!domain.empty()) text = fmt::format("{}.{}", bare(domain), text);
  return callee->version ? fmt::format("{}-{}", text, callee->version->since) : text;
}

void Walk::set_origin(Diagnostic& diagnostic, std::string text, std::string_view at) {
  diagnostic.origin = std::move(text);
  diagnostic.origin_offset = file_ ? offset_in(file_->bytes(), at) : kNoOffset;
  diagnostic.origin_length = at.size();
}

void Walk::set_origin(Diagnostic& diagnostic, std::string_view name, const Definition& definition) {
  switch (definition.by) {
    case DefinedBy::kNothing:
      return;
    case DefinedBy::kInput: {
      const auto* input = static_cast<const wire::ValueInfoProto*>(definition.proto);
      return set_origin(
          diagnostic,
          fmt::format("{} is an input of {}", quoted(name), definition.depth > 0 ? "the body" : "the graph"),
          input ? input->name : std::string_view());
    }
    case DefinedBy::kInitializer:
      return set_origin(diagnostic, fmt::format("{} is an initializer", quoted(name)),
                        static_cast<const wire::TensorProto*>(definition.proto)->name);
    case DefinedBy::kNode: {
      const auto* node = static_cast<const wire::NodeProto*>(definition.proto);
      const auto depth = static_cast<size_t>(definition.depth);
      const std::string before = depth < frames_.size() ? path_of_graph(depth) : std::string();
      const ptrdiff_t index = depth < frames_.size() ? node - frames_[depth].nodes->data() : 0;
      return set_origin(
          diagnostic,
          fmt::format("{} is made by {}/{} ({})", quoted(name), before, node_name(*node, index), operator_text(*node)),
          *std::ranges::find(node->outputs, name));
    }
  }
}

void Walk::report_encoding(std::string_view text, std::string_view what) {
  report(Problem::kTextEncoding, text, "{} is not UTF-8: {}", what, quoted(text));
}

void Walk::note_feature(int64_t since, std::string_view at, std::string_view what) {
  if (ir_version_ >= since || ir_version_ < 1 || (features_noted_ >> since & 1)) return;
  features_noted_ |= uint64_t{1} << since;
  Diagnostic& d = report(Problem::kIrFeature, at, "{} came with IR version {}", what, since);
  d.found = fmt::format("IR version {}", ir_version_);
}

}  // namespace checking

namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

namespace {

// All checks except checks of types.
Report check_structure(const wire::ModelProto& model, const wire::MappedFile* file, const CheckOptions& options,
                       model::NameUses* uses = nullptr) {
  Report report;
  CheckOptions complete = options;
  if (file) report.file = file->path();
  if (complete.folder.empty() && !report.file.empty()) complete.folder = folder_of(report.file);
  checking::Walk(&model, file, complete, report).check_model(uses);
  return report;
}

Report unreadable(const wire::MappedFile& file, const Status& status) {
  Report report;
  report.file = file.path();
  Diagnostic& d = report.diagnostics.emplace_back();
  d.problem = status.code() == Code::kLimit ? Problem::kFileLimit : Problem::kFileInvalid;
  d.message = status.message();
  d.origin = status.place();
  report.errors = 1;
  return report;
}

// The byte offset of "line:column"; kNoOffset if it has another form.
size_t offset_of(std::string_view text, std::string_view place) {
  size_t line = 0, column = 0;
  const char* const end = place.data() + place.size();
  const auto first =
      std::from_chars(place.data(), end, line);  // NOLINT(bugprone-suspicious-stringview-data-usage): up to end
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') return kNoOffset;
  if (std::from_chars(first.ptr + 1, end, column).ec != std::errc()) return kNoOffset;
  size_t offset = 0;
  for (; line > 1 && offset < text.size(); ++offset) line -= text[offset] == '\n';
  for (; column > 1 && offset < text.size(); --column) {
    do ++offset;
    while (offset < text.size() && (text[offset] & 0xc0) == 0x80);
  }
  return offset < text.size() ? offset : kNoOffset;
}

// The report shows the line itself, so the excerpt in the reader's message is dropped.
Report unreadable_text(const wire::MappedFile& file, const Status& status) {
  Report report = unreadable(file, status);
  Diagnostic& d = report.diagnostics[0];
  d.offset = offset_of(file.bytes(), d.origin);
  if (d.offset == kNoOffset) return report;
  d.length = 1;
  d.origin.clear();
  d.message = d.message.substr(0, d.message.find('\n'));
  return report;
}

// For a model that was converted from another format: byte offsets in the converted model mean nothing to users.
void forget_offsets(Report& report) {
  for (Diagnostic& d : report.diagnostics) {
    d.offset = d.origin_offset = kNoOffset;
    d.length = d.origin_length = 0;
  }
}

// Names of a model that is text are views into it, which give problems their lines. Types are inferred from the text,
// too.
Report check_text(const std::shared_ptr<wire::MappedFile>& file, const CheckOptions& options) {
  ir::TextStorage storage;
  auto model = ir::parse_text<wire::ModelProto>(file->bytes(), storage);
  if (!model.ok()) return unreadable_text(*file, model.error());
  Report report = check_structure(*model, file.get(), options);
  if (!options.full) return report;
  auto binary = model::binary_model(file);
  if (!binary.ok()) return unreadable(*file, binary.error());
  auto same = wire::parse_model((*binary)->bytes());
  if (!same.ok()) return unreadable(*file, same.error());
  const WrittenModel written{*model, file->bytes()};
  check_types(**same, *binary, options, nullptr, &written, report);
  return report;
}

}  // namespace

Report check_model(const wire::ModelProto& model, const std::shared_ptr<wire::MappedFile>& file,
                   const CheckOptions& options) {
  model::NameUses uses;
  Report report = check_structure(model, file.get(), options, options.full ? &uses : nullptr);
  if (options.full && file) check_types(model, file, options, &uses, nullptr, report);
  return report;
}

Report check_model(const std::shared_ptr<wire::MappedFile>& file, const CheckOptions& options) {
  if (const Status status = model::refuse_other_formats(file->bytes()); !status.ok()) return unreadable(*file, status);
  if (ir::looks_like_text(file->bytes())) return check_text(file, options);
  auto binary = model::binary_model(file);
  if (!binary.ok()) return unreadable(*file, binary.error());
  auto model = wire::parse_model((*binary)->bytes());
  if (!model.ok()) return unreadable(*file, model.error());
  Report report = check_model(**model, *binary, options);
  if (*binary != file) forget_offsets(report);
  return report;
}

namespace {

template <class Check>
Report check_alone(const CheckOptions& options, Check check) {
  Report report;
  checking::Walk walk(nullptr, nullptr, options, report);
  check(walk);
  return report;
}

}  // namespace

Report check_value(const wire::TensorProto& value, const CheckOptions& options) {
  return check_alone(options, [&](checking::Walk& walk) { walk.check_tensor(value, "the tensor"); });
}

Report check_value(const wire::SparseTensorProto& value, const CheckOptions& options) {
  return check_alone(options, [&](checking::Walk& walk) { walk.check_sparse_tensor(value, "the sparse tensor"); });
}

Report check_value(const wire::SequenceProto& value, const CheckOptions& options) {
  return check_alone(options, [&](checking::Walk& walk) { walk.check_sequence(value); });
}

Report check_value(const wire::OptionalProto& value, const CheckOptions& options) {
  return check_alone(options, [&](checking::Walk& walk) { walk.check_optional(value); });
}

Report check_value(const wire::MapProto& value, const CheckOptions& options) {
  return check_alone(options, [&](checking::Walk& walk) { walk.check_map(value); });
}

}  // namespace treadle
