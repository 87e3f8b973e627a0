// The form of a search's bodies, and the sizes that follow from it.
#include "ops/control/bodies.h"
#include "ops/generation/search.h"

namespace treadle::generation {

namespace {

Dim size_at(const Type& type, size_t axis) {
  return type.has_shape && axis < type.shape.size() ? type.shape[axis] : Dim();
}

Status too_few(const ir::Region& body, std::string_view what, size_t found, std::string_view expected) {
  return error(Code::kInvalidModel, "the graph of attribute {} has {} {}, expected {}", body.attribute, found, what,
               expected);
}

Status read_decoder_only(Form& form, const ir::Region& decoder) {
  form.first_past = 3;
  if (decoder.outputs.size() < 2) return too_few(decoder, "outputs", decoder.outputs.size(), "logits and a present");
  form.layers = decoder.outputs.size() - 1;
  if (decoder.inputs.size() == 3 + form.layers) return {};
  return too_few(decoder, "inputs", decoder.inputs.size(),
                 fmt::format("{}: tokens, positions, mask, and a past for each present", 3 + form.layers));
}

Status read_decoder_of_encoder(Form& form, const ir::Region& decoder, const ir::Region* encoder) {
  if (!encoder) return error(Code::kInvalidModel, "attribute encoder is missing");
  const bool whisper = form.family == Family::kWhisper;
  const size_t least = whisper ? 1 : 2, pairs = decoder.outputs.size() - 1;
  if (decoder.outputs.size() < 3 || pairs % 2 != 0) {
    return too_few(decoder, "outputs", decoder.outputs.size(), "logits, and a key and a value for each layer");
  }
  form.layers = pairs / 2;
  const size_t pasts = 4 * form.layers;
  form.takes_hidden = decoder.inputs.size() == least + 1 + pasts;
  form.first_past = least + (form.takes_hidden ? 1 : 0);
  if (decoder.inputs.size() != form.first_past + pasts) {
    return too_few(decoder, "inputs", decoder.inputs.size(),
                   fmt::format("{} or {}: of {} layers", least + pasts, least + 1 + pasts, form.layers));
  }
  form.encoder_decodes = encoder->inputs.size() == (whisper ? 2 : 3);
  if (!form.encoder_decodes && (whisper || encoder->inputs.size() != 2 || form.takes_hidden)) {
    return too_few(*encoder, "inputs", encoder->inputs.size(), whisper ? "2" : form.takes_hidden ? "3" : "2 or 3");
  }
  const size_t results = form.encoder_decodes ? 2 + pasts : 2 * form.layers;
  if (encoder->outputs.size() != results) {
    return too_few(*encoder, "outputs", encoder->outputs.size(), fmt::format("{}", results));
  }
  form.whole_sequence = !size_at(decoder.inputs[0]->type, 1).is_known(1);
  return {};
}

// From the shape of the logits, [rows, tokens, vocabulary].
int64_t vocabulary_of(const ir::Region& body) {
  if (body.outputs.empty() || !body.outputs[0]) return 0;
  const Dim inferred = size_at(body.outputs[0]->type, 2);
  if (inferred.is_known() || body.output_types.empty()) return inferred.value_or(0);
  return size_at(body.output_types[0], 2).value_or(0);
}

}  // namespace

Result<Form> read_form(const ir::NodeInfo& node, const ir::Region* decoder, const ir::Region* encoder,
                       const ir::Region* first) {
  if (!decoder) return error(Code::kInvalidModel, "attribute decoder is missing");
  const int64_t type = node.attributes.get_int("model_type");
  if (type < 0 || type > 2) {
    return error(Code::kInvalidModel, "attribute model_type is {}, expected 0 (a decoder), 1 or 2 (with an encoder)",
                 type);
  }
  Form form;
  form.family = static_cast<Family>(type);
  TREADLE_TRY(type == 0 ? read_decoder_only(form, *decoder) : read_decoder_of_encoder(form, *decoder, encoder));
  if (first && (first->inputs.size() != decoder->inputs.size() || first->outputs.size() != decoder->outputs.size())) {
    return error(Code::kInvalidModel, "the graphs of init_decoder and decoder take {} and {} inputs, expected as many",
                 first->inputs.size(), decoder->inputs.size());
  }
  const Type& past = decoder->inputs[form.first_past]->type;
  const size_t axis = type == 0 ? 2 : 1;
  form.heads = size_at(past, axis).value_or(0);
  form.head_size = size_at(past, axis + 2).value_or(0);
  form.element = past.element;
  form.vocabulary = vocabulary_of(*decoder);
  if (form.heads <= 0 || form.head_size <= 0) {
    return error(Code::kInvalidModel, "input {} of the decoder is {}, expected known numbers of heads and their size",
                 form.first_past, past.to_string());
  }
  if (form.element != ElementType::kFloat && form.element != ElementType::kFloat16) {
    return error(Code::kInvalidModel, "the decoder's pasts are {}, expected float or float16", name(form.element));
  }
  return form;
}

namespace {

std::vector<Type> decoder_arguments(const InferContext& ctx, const Form& form, const ir::Region& decoder,
                                    const Dim& rows) {
  const Dim source = form.family == Family::kEncoderDecoder && ctx.shape(0) ? size_at(ctx.input(0), 1) : Dim();
  std::vector<Type> types{Type::tensor(
      ElementType::kInt32, {rows, form.family != Family::kDecoder && !form.whole_sequence ? Dim(1) : Dim()})};
  if (form.family == Family::kDecoder) {
    types.push_back(types[0]);
    types.push_back(Type::tensor(ElementType::kInt32, {rows, Dim()}));
    for (size_t i = 0; i < form.layers; ++i) {
      types.push_back(Type::tensor(form.element, {2, rows, form.heads, Dim(), form.head_size}));
    }
    return types;
  }
  if (form.family == Family::kEncoderDecoder) types.push_back(Type::tensor(ElementType::kInt32, {rows, source}));
  if (form.takes_hidden) {
    const Type& hidden = decoder.inputs[form.first_past - 1]->type;
    types.push_back(Type::tensor(hidden.element, {rows, Dim(), size_at(hidden, 2)}));
  }
  for (size_t i = 0; i < 4 * form.layers; ++i) {
    types.push_back(
        Type::tensor(form.element, {rows, form.heads, i < 2 * form.layers ? Dim() : source, form.head_size}));
  }
  return types;
}

std::vector<Type> encoder_arguments(const InferContext& ctx, const Form& form, const Sizes& sizes) {
  std::vector<Type> types{ctx.input(0)};
  if (form.family == Family::kEncoderDecoder) {
    types.push_back(ctx.shape(0) ? Type::tensor(ElementType::kInt32, *ctx.shape(0))
                                 : Type::tensor(ElementType::kInt32));
  }
  if (form.encoder_decodes) types.push_back(Type::tensor(ElementType::kInt32, {sizes.batch, sizes.prompt}));
  return types;
}

Dim one_value(const InferContext& ctx, size_t operand, int64_t otherwise) {
  if (!ctx.has_input(operand)) return otherwise;
  const auto value = ctx.dims_value(operand);
  return value && value->size() == 1 ? (*value)[0] : Dim();
}

Status check_operands(const InferContext& ctx, const Operands& at, Family family) {
  const Shape* ids = ctx.shape(at.ids);
  const size_t rank = family == Family::kWhisper ? 3 : 2;
  if (ids && ids->size() != rank) {
    return error(Code::kInvalidArgument, "input_ids has shape {}, expected {} axes", to_string(*ids), rank);
  }
  const std::pair<size_t, const char*> single[] = {{at.max_length, "max_length"},
                                                   {at.min_length, "min_length"},
                                                   {at.beams, "num_beams"},
                                                   {at.returned, "num_return_sequences"},
                                                   {at.length_penalty, "length_penalty"},
                                                   {at.repetition_penalty, "repetition_penalty"},
                                                   {at.logits_processor, "logits_processor"},
                                                   {at.temperature, "temperature"},
                                                   {at.seed, "seed"}};
  for (const auto& [i, what] : single) {
    if (ctx.has_input(i)) TREADLE_TRY(check_one_element(ctx, i, what));
  }
  return {};
}

Status check_logits(const Type& logits) {
  if (!logits.has_shape || logits.shape.size() == 3) return {};
  return error(Code::kInvalidModel, "the decoder's logits have shape {}, expected [rows,tokens,vocabulary]",
               to_string(logits.shape));
}

}  // namespace

Result<Sizes> infer_bodies(InferContext& ctx, const Operands& at) {
  const ir::Region* decoder = ctx.bodies ? ctx.bodies->region("decoder") : nullptr;
  const ir::Region* encoder = ctx.bodies ? ctx.bodies->region("encoder") : nullptr;
  const ir::Region* first = ctx.bodies ? ctx.bodies->region("init_decoder") : nullptr;
  Form form;
  form.family = static_cast<Family>(ctx.attributes().get_int("model_type"));
  if (ctx.bodies) {
    TREADLE_ASSIGN(form, read_form(ctx.node, decoder, encoder, first));
  }
  TREADLE_TRY(check_operands(ctx, at, form.family));
  Sizes sizes;
  sizes.batch = ctx.shape(0) ? (*ctx.shape(0))[0] : Dim();
  sizes.beams = one_value(ctx, at.beams, 1);
  sizes.longest = one_value(ctx, at.max_length, 0);
  if (form.family == Family::kDecoder) {
    sizes.prompt = ctx.shape(0) ? (*ctx.shape(0))[1] : Dim();
  } else {
    sizes.prompt = !ctx.has_input(at.decoder_ids) ? Dim(1) : size_at(ctx.input(at.decoder_ids), 1);
  }
  if (!ctx.bodies) return sizes;
  const Dim rows = sizes.batch * sizes.beams;
  if (encoder && form.family != Family::kDecoder) {
    TREADLE_TRY(ctx.bodies->infer("encoder", encoder_arguments(ctx, form, sizes)).status());
  }
  if (first) TREADLE_TRY(ctx.bodies->infer("init_decoder", decoder_arguments(ctx, form, *decoder, rows)).status());
  TREADLE_TRY(ctx.bodies->infer("decoder", decoder_arguments(ctx, form, *decoder, rows)).status());
  form.vocabulary = vocabulary_of(*decoder);
  TREADLE_TRY(check_logits(decoder->outputs[0]->type));
  if (const int64_t named = ctx.attributes().get_int("vocab_size", -1); named > 0) {
    if (form.vocabulary > 0 && named > form.vocabulary) {
      return error(Code::kInvalidModel, "attribute vocab_size is {}, expected at most the {} tokens of the logits",
                   named, form.vocabulary);
    }
    form.vocabulary = named;
  }
  sizes.form = form;
  return sizes;
}

}  // namespace treadle::generation
