#include "op/op_def.h"

namespace treadle {

namespace {

Status infer_image_decoder(InferContext& ctx) {
  const std::string_view format = ctx.attributes().get_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    return error(Code::kInvalidModel, "attribute pixel_format is \"{}\", expected RGB, BGR or Grayscale", format);
  }
  ctx.set_output(0, ElementType::kUint8, {Dim(), Dim(), Dim(format == "Grayscale" ? 1 : 3)});
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(ImageDecoder, "") {
  op.since(20)
      .in("encoded_stream", "T1")
      .out("image", "T2")
      .attr("pixel_format", "RGB")
      .type("T1", types::kUint8s)
      .type("T2", types::kUint8s);
  op.infer(infer_image_decoder).not_run("decode images");
}
