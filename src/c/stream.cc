// A stream as C: one function that takes the samples of a push, and the structure that it carries.

#include <algorithm>
#include <optional>

#include "c/types.h"
#include "c/writer.h"
#include "type/shape.h"

namespace treadle::c {

namespace {

using plan::StreamPrograms;
using Run = StreamPrograms::Run;

int64_t count_of(const Type& type) {
  return known_element_count(type.shape);
}

// A run as a C function.
struct Block {
  std::string name;
  const Run* run = nullptr;
  Body body;
};

class StreamWriter {
 public:
  StreamWriter(const StreamPrograms& stream, const Options& options) : s_(stream), file_(options) {}

  Result<Files> write() {
    for (const char* name : {"begin", "push", "flush", "inputs", "outputs", "stream"}) {
      file_.names().reserve(file_.prefix() + "_" + name);
    }
    TREADLE_TRY(add("first", s_.first, first_));
    TREADLE_TRY(add("steady", s_.steady, steady_));
    if (s_.has_end) TREADLE_TRY(add("rest", s_.rest, rest_));
    if (!refusals_.empty()) return refused(refusals_);
    for (const Block* block : blocks()) scratch_ = std::max(scratch_, block->body.scratch_bytes);
    scratch_ = aligned(scratch_);
    find_members();
    std::string code = functions();
    Files files;
    code += begin() + push();
    if (s_.has_end) code += flush();
    files.source = file_.source(code);
    files.header = header();
    files.weights = file_.weights();
    return files;
  }

 private:
  struct Timed {
    int64_t outer = 1, inner = 1;  // elements in front of and behind the time axis
    int64_t room = 0;              // samples that may wait
    ElementType type = ElementType::kFloat;
    std::string name;
  };

  Status add(const char* name, const Run& run, std::optional<Block>& block) {
    if (!run.program) return {};
    block.emplace();
    block->name = file_.names().add(file_.prefix() + "_" + name);
    block->run = &run;
    TREADLE_ASSIGN(block->body, write_body(file_, *run.program, {}, false));
    for (Refusal& refusal : block->body.refusals) {
      const auto is_same = [&](const Refusal& r) { return r.node == refusal.node && r.reason == refusal.reason; };
      if (std::ranges::none_of(refusals_, is_same)) refusals_.push_back(std::move(refusal));
    }
    return {};
  }

  std::vector<const Block*> blocks() const {
    std::vector<const Block*> all;
    for (const std::optional<Block>* block : {&first_, &steady_, &rest_}) {
      if (*block) all.push_back(&**block);
    }
    return all;
  }
  // Whether pushes differ, also in the numbers of elements that they write.
  bool counts_pushes() const { return first_ || s_.waiting_pushes > 0 || s_.has_end; }

  static size_t timed_at(const std::vector<StreamPrograms::Timed>& timed, std::string_view name) {
    size_t at = 0;
    while (at < timed.size() && timed[at].name != name) ++at;
    return at;
  }
  size_t state_at(std::string_view name) const {
    size_t at = 0;
    while (at < s_.states.size() && s_.states[at].name != name) ++at;
    return at;
  }

  void find_members() {
    std::vector<std::string> states, outputs;
    for (const auto& state : s_.states) states.push_back(state.name);
    for (const auto& output : s_.outputs) outputs.push_back(output.name);
    state_names_ = member_names(states);
    output_names_ = member_names(outputs);
    for (const Member& input : steady_->body.inputs) {
      if (state_at(input.own) < s_.states.size()) continue;
      inputs_.push_back(input);
      for (const Block* block : blocks()) {
        for (const Member& same : block->body.inputs) inputs_.back().is_used |= same.own == input.own && same.is_used;
      }
    }
    // What is not used is bound, or has no influence.
    std::erase_if(inputs_, [](const Member& input) { return !input.is_used; });
    std::vector<std::string> inputs;
    for (const Member& input : inputs_) inputs.push_back(input.own);
    const std::vector<std::string> names = member_names(inputs);
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i].name = names[i];
    const bool waits = s_.waiting_pushes > 0 || s_.context + s_.waiting > 0;
    for (const auto& timed : s_.timed) {
      const auto member = std::ranges::find_if(inputs_, [&](const Member& input) { return input.own == timed.name; });
      if (member == inputs_.end()) {
        timed_.emplace_back();
        continue;
      }
      const auto axis = static_cast<size_t>(timed.axis);
      member->type.shape[axis] = s_.samples;
      const Dims dims = known_dims(member->type.shape);
      Timed made{.type = member->type.element, .name = member->name};
      made.outer = product(dims, 0, axis);
      made.inner = product(dims, axis + 1, dims.size());
      if (waits) made.room = std::max(s_.context + s_.waiting, s_.waiting_pushes * s_.samples);
      timed_.push_back(made);
    }
    // The most that a run writes.
    for (size_t o = 0; o < s_.outputs.size(); ++o) {
      int64_t most = 0;
      for (const Block* block : blocks()) most = std::max(most, elements(*block, o));
      most_.push_back(most);
    }
  }

  // Of an output: those that a run gives to the caller.
  int64_t elements(const Block& block, size_t o) const {
    const Type& type = block.body.outputs[block.run->outputs[o]].type;
    if (s_.outputs[o].axis < 0 || s_.context == 0) return count_of(type);
    const auto frames = type.shape[static_cast<size_t>(s_.outputs[o].axis)].value();
    return frames == 0 ? 0 : count_of(type) / frames * new_frames(frames);
  }
  // Without those that belong to the context.
  int64_t new_frames(int64_t frames) const { return frames - s_.context * frames / (s_.context + s_.samples); }

  // --- the source

  // The functions of the runs.
  std::string functions() const {
    Text text;
    for (const Block* block : blocks()) {
      text.line("");
      std::string parameters;
      for (const Member& input : block->body.inputs) {
        if (input.is_used) parameters += fmt::format("const {} *const {}, ", stored(input.type.element), input.name);
      }
      for (const Member& output : block->body.outputs) {
        if (output.is_used) parameters += fmt::format("{} *const {}, ", stored(output.type.element), output.name);
      }
      parameters += file_.weights_parameter("const unsigned char *const ");
      text.open("static int {}({}unsigned char *const memory)", block->name, parameters);
      if (block->body.may_fail) text.line("int error = 0;");
      text.append(block->body.declarations);
      text.line("(void)memory;");
      if (file_.options().weights_apart) text.line("(void)weights;");
      text.append(block->body.text);
      text.line("return {};", file_.error("OK"));
      text.close();
    }
    return text.str();
  }

  std::string begin() {
    Text text;
    text.line("");
    text.open("void {0}_begin({0}_stream *stream)", file_.prefix());
    text.line("memset(stream, 0, sizeof *stream);");
    for (size_t i = 0; i < s_.states.size(); ++i) {
      const Tensor& initial = s_.states[i].initial;
      if (!initial.defined() || initial.element_count() == 0) continue;
      const auto count = static_cast<size_t>(initial.element_count());
      const std::string table = file_.table(s_.states[i].name, initial.type(), initial.raw(), count);
      text.line("memcpy(stream->states.{}[0], {}, {});", state_names_[i], table, count * byte_width(initial.type()));
    }
    text.close();
    return text.str();
  }

  std::string memory(size_t bytes, ElementType type) {
    const std::string at = fmt::format("({} *)(void *)(memory + {})", stored(type), scratch_ + used_);
    used_ += aligned(bytes);
    most_used_ = std::max(most_used_, used_);
    return at;
  }

  // Copies `bytes` of each of `rows` rows.
  std::string copy_rows(const std::string& to, int64_t to_step, const std::string& from, int64_t from_step,
                        int64_t rows, int64_t bytes) {
    if (rows == 1) return fmt::format("memcpy({}, {}, {});", to, from, bytes);
    const std::string function = file_.functions().get("copy_rows", [](Text& text, const std::string& name) {
      text.open(
          "static inline void {}(void *to, ptrdiff_t to_step, const void *from, ptrdiff_t from_step, "
          "ptrdiff_t rows, size_t bytes)",
          name);
      text.open("for (ptrdiff_t i = 0; i < rows; ++i)");
      text.line("memcpy((unsigned char *)to + i * to_step, (const unsigned char *)from + i * from_step, bytes);");
      text.close();
      text.close();
    });
    return fmt::format("{}({}, {}, {}, {}, {}, {});", function, to, to_step, from, from_step, rows, bytes);
  }

  // The samples of a run, of `waiting` that waited and new ones: an expression.
  std::string window(Text& text, size_t t, int64_t waiting, int64_t samples) {
    const Timed& timed = timed_[t];
    const auto width = static_cast<int64_t>(byte_width(timed.type));
    const int64_t before = s_.context + waiting, all = s_.context + samples, row = timed.inner * width;
    std::string given = "inputs->" + timed.name, kept = "stream->waiting." + timed.name;
    if (before == 0 && (timed.outer == 1 || samples == s_.samples)) return given;
    if (samples == waiting && s_.context == 0 && (timed.outer == 1 || timed.room == waiting)) return kept;
    const std::string name = timed.name + "_window";
    text.line("{} *const {} = {};", stored(timed.type), name,
              memory(static_cast<size_t>(timed.outer * all * row), timed.type));
    if (before > 0) text.line("{}", copy_rows(name, all * row, kept, timed.room * row, timed.outer, before * row));
    if (samples > waiting) {
      text.line("{}", copy_rows(fmt::format("{} + {}", name, before * timed.inner), all * row, given, s_.samples * row,
                                timed.outer, (samples - waiting) * row));
    }
    return name;
  }

  // Keeps the samples that the next push sees again.
  void keep(Text& text, size_t t) {
    const Timed& timed = timed_[t];
    if (timed.room == 0) return;
    const auto width = static_cast<int64_t>(byte_width(timed.type));
    const int64_t row = timed.inner * width;
    const std::string kept = "stream->waiting." + timed.name;
    if (s_.context > 0) {
      const int64_t all = s_.context + s_.samples;
      text.line("{}",
                copy_rows(kept, timed.room * row, fmt::format("{}_window + {}", timed.name, s_.samples * timed.inner),
                          all * row, timed.outer, s_.context * row));
    } else if (s_.waiting > 0) {
      text.line("{}", copy_rows(kept, timed.room * row,
                                fmt::format("inputs->{} + {}", timed.name, (s_.samples - s_.waiting) * timed.inner),
                                s_.samples * row, timed.outer, s_.waiting * row));
    }
  }

  // Runs a block; returns from the function if it fails. `waiting`: samples that wait before it.
  void write_run(Text& text, const Block& block, int64_t waiting) {
    used_ = 0;
    std::string arguments;
    for (const Member& input : block.body.inputs) {
      if (!input.is_used) continue;
      const size_t state = state_at(input.own), timed = timed_at(s_.timed, input.own);
      if (state < s_.states.size()) {
        arguments += fmt::format("stream->states.{}[now], ", state_names_[state]);
      } else if (timed < timed_.size()) {
        arguments += window(text, timed, waiting, block.run->samples) + ", ";
      } else {
        const auto given = std::ranges::find_if(inputs_, [&](const Member& member) { return member.own == input.own; });
        arguments += "inputs->" + given->name + ", ";
      }
    }
    Text after;
    after.set_depth(text.depth());
    for (size_t k = 0; k < block.body.outputs.size(); ++k) {
      if (block.body.outputs[k].is_used) arguments += destination(text, after, block, k) + ", ";
    }
    text.line("error = {}({}{}memory);", block.name, arguments, file_.weights_parameter(""));
    text.line("if (error != {}) return error;", file_.error("OK"));
    text.append(after.str());
  }

  // Where a run writes its output `k`: an expression. What is to be done behind the run goes to `after`.
  std::string destination(Text& text, Text& after, const Block& block, size_t k) {
    const Type& type = block.body.outputs[k].type;
    const auto bytes = static_cast<size_t>(count_of(type)) * byte_width(type.element);
    std::string made;
    const auto also = [&](const std::string& to) {
      if (made.empty()) {
        made = to;
      } else {
        after.line("memcpy({}, {}, {});", to, made, bytes);
      }
    };
    for (size_t j = 0; j < block.run->states.size(); ++j) {
      if (block.run->states[j] == k) also(fmt::format("stream->states.{}[1 - now]", state_names_[j]));
    }
    for (size_t o = 0; o < s_.outputs.size(); ++o) {
      if (block.run->outputs[o] != k) continue;
      if (s_.context == 0 || s_.outputs[o].axis < 0) {
        also("outputs->" + output_names_[o]);
        continue;
      }
      if (made.empty()) {
        made = output_names_[o] + "_frames";
        text.line("{} *const {} = {};", stored(type.element), made, memory(bytes, type.element));
      }
      const Dims dims = known_dims(type.shape);
      const auto axis = static_cast<size_t>(s_.outputs[o].axis);
      const int64_t outer = product(dims, 0, axis), inner = product(dims, axis + 1, dims.size());
      const int64_t row = inner * static_cast<int64_t>(byte_width(type.element));
      const int64_t fresh = new_frames(dims[axis]);
      after.line("{}", copy_rows("outputs->" + output_names_[o], fresh * row,
                                 fmt::format("{} + {}", made, (dims[axis] - fresh) * inner), dims[axis] * row, outer,
                                 fresh * row));
    }
    if (made.empty()) made = memory(bytes, type.element);
    return made;
  }

  void count_elements(Text& text, const Block* block) {
    if (!counts_pushes()) return;
    for (size_t o = 0; o < s_.outputs.size(); ++o) {
      text.line("stream->written.{} = {};", output_names_[o], block ? elements(*block, o) : 0);
    }
  }

  // `weights`: the name of the parameter for constants that are apart; empty: none are.
  std::string declaration(std::string_view name, std::string_view weights) const {
    const std::string apart = weights.empty() ? std::string() : fmt::format("const void *{}, ", weights);
    return fmt::format(
        "int {0}_{1}({0}_stream *stream, const {0}_inputs *inputs, const {0}_outputs *outputs, {2}void *scratch)",
        file_.prefix(), name, apart);
  }

  void open_function(Text& text, const char* name) const {
    text.line("");
    const bool apart = file_.options().weights_apart;
    text.open("{}", declaration(name, apart ? "constants" : ""));
    if (apart) text.line("const unsigned char *const weights = (const unsigned char *)constants;");
    text.line("unsigned char *const memory = (unsigned char *)scratch;");
    text.line("const int now = stream->now;");
    text.line("int error;");
    text.line("(void)inputs;");
    text.line("(void)outputs;");
    text.line("(void)now;");
  }

  std::string push() {
    Text text;
    open_function(text, "push");
    if (s_.has_end) text.line("if (stream->pushes < 0) return {};", file_.error("STREAM_ENDED"));
    if (s_.waiting_pushes > 0) {
      text.line("/* The first run needs {} samples. */", s_.first.samples);
      text.open("if (stream->pushes < {})", s_.waiting_pushes);
      for (const Timed& timed : timed_) {
        if (timed.room == 0) continue;
        const int64_t row = timed.inner * static_cast<int64_t>(byte_width(timed.type));
        text.line(
            "{}",
            copy_rows(fmt::format("stream->waiting.{} + stream->pushes * {}", timed.name, s_.samples * timed.inner),
                      timed.room * row, "inputs->" + timed.name, s_.samples * row, timed.outer, s_.samples * row));
      }
      text.line("++stream->pushes;");
      count_elements(text, nullptr);
      text.line("return {};", file_.error("OK"));
      text.close();
    }
    if (first_) {
      text.open("if (stream->pushes == {})", s_.waiting_pushes);
      write_run(text, *first_, s_.waiting_pushes * s_.samples);
      count_elements(text, &*first_);
      text.line("++stream->pushes;");
      text.otherwise();
    }
    write_run(text, *steady_, s_.waiting);
    if (!first_ && s_.context > 0) {
      for (size_t t = 0; t < timed_.size(); ++t) keep(text, t);
    }
    count_elements(text, &*steady_);
    if (!first_ && counts_pushes()) text.line("stream->pushes = 1;");
    if (first_) text.close();
    if (s_.context == 0) {
      for (size_t t = 0; t < timed_.size(); ++t) keep(text, t);
    }
    if (!s_.states.empty()) text.line("stream->now = 1 - now;");
    text.line("return {};", file_.error("OK"));
    text.close();
    return text.str();
  }

  std::string flush() {
    Text text;
    open_function(text, "flush");
    text.line("if (stream->pushes < 0) return {};", file_.error("STREAM_ENDED"));
    text.line("if (stream->pushes <= {}) return {};", s_.waiting_pushes, file_.error("TOO_FEW_SAMPLES"));
    write_run(text, *rest_, s_.waiting);
    count_elements(text, &*rest_);
    text.line("stream->pushes = -1;");
    text.line("return {};", file_.error("OK"));
    text.close();
    return text.str();
  }

  // --- the header

  std::string header() const {
    const std::string& p = file_.prefix();
    const std::string& upper = file_.upper();
    Text text;
    file_.open_header(text, scratch_ + most_used_, "push", s_.has_end);
    if (!s_.timed.empty()) {
      text.line("/* Samples that each push takes. */");
      text.line("#define {}_SAMPLES {}", upper, s_.samples);
      text.blank();
    }
    write_structure(text, file_, "inputs", "const ", inputs_);
    text.open("typedef struct {}_outputs", p);
    for (size_t o = 0; o < s_.outputs.size(); ++o) {
      const Type& type = steady_->body.outputs[steady_->run->outputs[o]].type;
      text.line("{} *{}; /* \"{}\": {}, at most {} elements */", stored(type.element), output_names_[o],
                in_comment(s_.outputs[o].name), in_comment(type.to_string()), most_[o]);
    }
    if (s_.outputs.empty()) text.line("char none;");
    text.close(fmt::format(" {}_outputs;", p));
    text.blank();
    write_stream(text);
    text.line("/* Sets the stream to its beginning. */");
    text.line("void {0}_begin({0}_stream *stream);", p);
    text.blank();
    text.line("/* Takes the next samples, and writes the frames that follow from them. Tensors are row-major.");
    text.line("   `scratch`: {}_SCRATCH_BYTES bytes, aligned as for any type. Inputs, outputs, stream and scratch may",
              upper);
    text.line(
        "   not overlap. Allocates nothing; streams may be pushed on several threads at once, each with scratch of");
    text.line("   its own. Returns {}_OK or an error: then the stream is as before, and outputs hold anything. */",
              upper);
    text.line("{};", declaration("push", file_.options().weights_apart ? "weights" : ""));
    if (s_.has_end) {
      text.blank();
      text.line(
          "/* The frames that depend on the end of the signal. It ends the stream; of the inputs, those that have");
      text.line("   samples are not read. */");
      text.line("{};", declaration("flush", file_.options().weights_apart ? "weights" : ""));
    }
    File::close_header(text);
    return text.str();
  }

  void write_stream(Text& text) const {
    text.line("/* What is carried from push to push. A copy is a stream of its own, which goes on from there. */");
    text.open("typedef struct {}_stream", file_.prefix());
    text.line("int now; /* which of the two copies of each state is in use */");
    if (counts_pushes()) text.line("int pushes; /* up to the first that runs; -1: the signal has ended */");
    if (!s_.states.empty()) {
      text.open("struct");
      for (size_t i = 0; i < s_.states.size(); ++i) {
        const Type& type = s_.states[i].type;
        text.line("{} {}[2][{}]; /* \"{}\": {} */", stored(type.element), state_names_[i],
                  std::max<int64_t>(count_of(type), 1), in_comment(s_.states[i].name), in_comment(type.to_string()));
      }
      text.close(" states;");
    }
    if (std::ranges::any_of(timed_, [](const Timed& timed) { return timed.room > 0; })) {
      text.open("struct");
      for (const Timed& timed : timed_) {
        if (timed.room == 0) continue;
        text.line("{} {}[{}];", stored(timed.type), timed.name, timed.outer * timed.room * timed.inner);
      }
      text.close(" waiting; /* samples that the next push sees again */");
    }
    if (counts_pushes() && !s_.outputs.empty()) {
      text.open("struct");
      for (const std::string& name : output_names_) text.line("size_t {};", name);
      text.close(" written; /* elements of each output that the last push wrote */");
    }
    text.close(fmt::format(" {}_stream;", file_.prefix()));
    text.blank();
  }

  const StreamPrograms& s_;
  File file_;
  std::optional<Block> first_, steady_, rest_;
  std::vector<Refusal> refusals_;
  std::vector<std::string> state_names_, output_names_;
  std::vector<Member> inputs_;  // of a push: those that are no states
  std::vector<Timed> timed_;
  std::vector<int64_t> most_;                      // elements of each output
  size_t scratch_ = 0, used_ = 0, most_used_ = 0;  // bytes: of the runs; behind them, in the run at hand and at most
};

}  // namespace

Result<Files> compile_stream(const plan::StreamPrograms& stream, const Options& options) {
  return StreamWriter(stream, options).write();
}

}  // namespace treadle::c
