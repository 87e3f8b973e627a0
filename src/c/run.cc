// A model as one function that runs it.

#include "c/file.h"

namespace treadle::c {

namespace {

std::string header(const File& file, const Body& body) {
  const std::string& p = file.prefix();
  const std::string& upper = file.upper();
  Text text;
  file.open_header(text, body.scratch_bytes, "run");
  write_structure(text, file, "inputs", "const ", body.inputs);
  std::vector<Member> outputs = body.outputs;
  for (Member& output : outputs) output.is_used = true;
  write_structure(text, file, "outputs", "", outputs);
  text.line("/* Runs the model. Tensors are row-major. `scratch`: {}_SCRATCH_BYTES bytes, aligned as for any type.",
            upper);
  text.line(
      "   Inputs, outputs and scratch may not overlap. Allocates nothing, and may run on several threads at once,");
  text.line("   each with scratch of its own. Returns {}_OK or an error; outputs then hold anything. */", upper);
  text.line("int {0}_run(const {0}_inputs *inputs, const {0}_outputs *outputs, {1}void *scratch);", p,
            file.weights_parameter("const void *"));
  File::close_header(text);
  return text.str();
}

std::string function(const File& file, const Body& body) {
  Text text;
  text.line("");
  const std::string apart = file.weights_parameter("const void *");
  text.open("int {0}_run(const {0}_inputs *inputs, const {0}_outputs *outputs, {1}void *scratch)", file.prefix(),
            apart.empty() ? "" : "const void *constants, ");
  if (!apart.empty()) text.line("const unsigned char *const weights = (const unsigned char *)constants;");
  text.line("unsigned char *const memory = (unsigned char *)scratch;");
  if (body.may_fail) text.line("int error = 0;");
  text.append(body.declarations);
  text.line("(void)inputs;");
  text.line("(void)outputs;");
  text.line("(void)memory;");
  if (!apart.empty()) text.line("(void)weights;");
  text.append(body.text);
  text.line("return {}_OK;", file.upper());
  text.close();
  return text.str();
}

}  // namespace

Result<Files> compile(const plan::Program& program, const Options& options) {
  File file(options);
  for (const char* name : {"run", "inputs", "outputs"}) file.names().reserve(file.prefix() + "_" + name);
  TREADLE_ASSIGN(const Body body, write_body(file, program, options.outputs, true));
  if (!body.refusals.empty()) return refused(body.refusals);
  Files files;
  files.source = file.source(function(file, body));
  files.header = header(file, body);
  files.weights = file.weights();
  return files;
}

}  // namespace treadle::c
