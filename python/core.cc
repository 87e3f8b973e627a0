#define TREADLE_IMPORTS_NUMPY
#include "support.h"

namespace treadle_python {

namespace {

nb::list operators() {
  nb::list result;
  for (size_t i = 0; i < treadle_operator_count(); ++i) {
    nb::list versions;
    for (size_t v = 0; v < treadle_operator_version_count(i); ++v) versions.append(treadle_operator_version(i, v));
    result.append(nb::make_tuple(treadle_operator_domain(i), treadle_operator_name(i), versions));
  }
  return result;
}

bool import_numpy() {
  return PyArray_ImportNumPyAPI() == 0;
}

}  // namespace

NB_MODULE(_core, m) {
  if (!import_numpy()) raise_pending();
  m.attr("__version__") = treadle_version();
  define_run_options(m);
  define_value(m);
  define_session(m);
  define_stream(m);
  m.def("operators", operators, "(domain, name, versions) of every operator that runs");
  m.def("element_of_dtype", element_of_dtype, "Number of the ONNX element type of a numpy dtype, 0 for none");
  m.def("element_name", treadle_element_name, nb::arg("element"));
}

}  // namespace treadle_python
