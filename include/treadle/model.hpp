// Reads, checks, infers and prints models without running them; lists the passes and operators of this build
// (treadle.hpp).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "treadle/value.hpp"

namespace treadle {
inline namespace v1 {

// Names of the rewrites, in the order in which they run.
inline std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  while (const char* name = treadle_pass_name(names.size())) names.emplace_back(name);
  return names;
}

// The bytes of a regular file, or of a pipe.
inline std::string read_file(const std::string& path) {
  return detail::take_bytes(treadle_file_read, path.c_str());
}

// A model: a file, or the bytes of one (binary or text).
struct ModelFile {
  std::string path;
  static ModelFile bytes(std::string contents) { return {{}, std::move(contents)}; }
  ModelFile(std::string name) : path(std::move(name)) {}   // NOLINT(google-explicit-constructor)
  ModelFile(const char* name) : path(name ? name : "") {}  // NOLINT(google-explicit-constructor)

  template <class Fn, class... Args>
  auto given_to(Fn fn, Args... args) const {
    return fn(path.empty() ? nullptr : path.c_str(), contents_.data(), contents_.size(), args...);
  }

 private:
  ModelFile(std::string name, std::string contents) : path(std::move(name)), contents_(std::move(contents)) {}
  std::string contents_;
};

struct Problem {
  bool is_error;
  std::string code;  // "name-unknown"
  std::string path;  // through functions and bodies to the node; "" is the model
  std::string message;
};

// What is wrong or surprising about a model; made by check_model().
class Report {
 public:
  explicit Report(treadle_report* handle) : handle_(handle) {}
  size_t error_count() const { return treadle_report_error_count(get()); }
  size_t warning_count() const { return treadle_report_warning_count(get()); }
  // With TREADLE_CHECK_RUNS: why no session accepts the model; empty when a session accepts it.
  std::string refusal() const {
    const char* refusal = treadle_report_refusal(get());
    return refusal ? refusal : "";
  }
  // With TREADLE_CHECK_RUNS: whether treadle will be much faster than others, and why; empty if that is not known.
  std::string outlook() const {
    const char* outlook = treadle_report_outlook(get());
    return outlook ? outlook : "";
  }
  // At most as many problems as the check lists; see treadle.h.
  std::vector<Problem> problems() const {
    std::vector<Problem> problems;
    for (size_t i = 0; i < treadle_report_size(get()); ++i) {
      problems.push_back({treadle_report_is_error(get(), i) != 0, treadle_report_code(get(), i),
                          treadle_report_path(get(), i), treadle_report_message(get(), i)});
    }
    return problems;
  }
  std::string text(bool colour = false) const { return detail::take(treadle_report_text(get(), colour)); }
  std::string json() const { return detail::take(treadle_report_json(get())); }
  treadle_report* get() const { return handle_.get(); }

 private:
  detail::Handle<treadle_report, treadle_report_free> handle_;
};

// A model with problems is no error: the report lists them. `flags`: TREADLE_CHECK_*, or-ed.
inline Report check_model(const ModelFile& model, int flags = TREADLE_CHECK_FULL) {
  treadle_report* report = nullptr;
  check(model.given_to(treadle_model_check, flags, &report));
  return Report(report);
}

// The model with the inferred types of its values written into it. `flags`: TREADLE_INFER_*, or-ed.
inline std::string infer_model(const ModelFile& model, unsigned flags = 0) {
  return detail::take_bytes(
      [&](char** typed, size_t* size) { return model.given_to(treadle_model_infer, flags, typed, size); });
}

// The graph as a readable tree of bodies, with the types of all values.
inline std::string model_tree(const ModelFile& model, unsigned flags = 0) {
  return detail::take_text([&](char** text) { return model.given_to(treadle_model_tree, flags, text); });
}

// The smallest model found for which `fails(bytes, so_far)` returns TREADLE_FAILS; as in treadle_model_reduce. Exceptions
// of `fails` must not leave it.
inline std::string reduce_model(
    const ModelFile& model,
    const std::function<treadle_verdict(std::string_view bytes, const treadle_reduction& so_far)>& fails,
    size_t attempts = 1000, size_t jobs = 1) {
  using Fails = std::function<treadle_verdict(std::string_view, const treadle_reduction&)>;
  const auto call = [](void* context, const void* bytes, size_t size, const treadle_reduction* so_far) {
    return (*static_cast<const Fails*>(context))({static_cast<const char*>(bytes), size}, *so_far);
  };
  return detail::take_bytes([&](char** reduced, size_t* size) {
    return model.given_to(treadle_model_reduce, +call, const_cast<Fails*>(&fails), attempts, jobs, reduced, size);
  });
}

// The model with fixed sizes of its inputs opened, such as "frames:0=batch"; as in treadle_model_open_sizes. `json`: gets
// what changed.
inline std::string open_sizes(const ModelFile& model, const std::vector<std::string>& sizes,
                              std::string* json = nullptr) {
  std::vector<const char*> texts;
  texts.reserve(sizes.size());
  for (const std::string& size : sizes) texts.push_back(size.c_str());
  std::string opened;
  const std::string said = detail::take_text([&](char** text) {
    char* bytes = nullptr;
    size_t size = 0;
    treadle_status* const status =
        model.given_to(treadle_model_open_sizes, texts.data(), texts.size(), &bytes, &size, text);
    const std::unique_ptr<char, void (*)(void*)> owned(bytes, treadle_free);
    if (!status) opened.assign(bytes, size);
    return status;
  });
  if (json) *json = said;
  return opened;
}

// Whether the bytes are a model's text, and not a serialised model.
inline bool is_text(const std::string& bytes) {
  return treadle_is_text(bytes.data(), bytes.size());
}
// Parses the text of one part of a model and returns the part serialised.
inline std::string parse_text(treadle_part part, const std::string& text) {
  return detail::take_bytes(treadle_text_parse, part, text.data(), text.size());
}
// The text of a serialised part of a model. Tensors of more elements than `max_elements` are written without their
// values; negative: no limit.
inline std::string print_text(treadle_part part, const std::string& bytes, int64_t max_elements = -1) {
  return detail::take_bytes(treadle_text_print, part, bytes.data(), bytes.size(), max_elements);
}

// An operator that this build knows.
class Operator {
 public:
  explicit Operator(size_t index) : index_(index) {}
  std::string name() const { return treadle_operator_name(index_); }
  std::string domain() const { return treadle_operator_domain(index_); }  // "" is ai.onnx
  std::vector<int> versions() const {
    std::vector<int> versions;
    for (size_t i = 0; i < treadle_operator_version_count(index_); ++i) {
      versions.push_back(treadle_operator_version(index_, i));
    }
    return versions;
  }
  std::string json() const { return detail::take(treadle_operator_json(index_)); }
  std::string text() const { return detail::take(treadle_operator_text(index_)); }

 private:
  size_t index_;
};

inline std::vector<Operator> operators() {
  std::vector<Operator> operators;
  for (size_t i = 0; i < treadle_operator_count(); ++i) operators.emplace_back(i);
  return operators;
}
// The known operator whose name is nearest to a misspelt one; empty when none is near.
inline std::string operator_like(const std::string& name) {
  const char* like = treadle_operator_like(name.c_str());
  return like ? like : "";
}

}  // namespace v1
}  // namespace treadle
