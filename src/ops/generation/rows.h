#pragma once
// Checks of operands of a search's steps, since a decoder's outputs may have unexpected sizes.
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/control/bodies.h"

namespace treadle::generation {

// Input `sequences` has a row of tokens for each row of input `scores`, which has a score for each token.
inline Status check_rows(const InferContext& ctx, size_t scores, size_t sequences) {
  const Shape *found = ctx.shape(scores), *tokens = ctx.shape(sequences);
  if (found && found->size() != 2) {
    return error(Code::kInvalidArgument, "the scores of the next token have shape {}, expected [rows,tokens]",
                 to_string(*found));
  }
  if (found && tokens && differ((*found)[0], (*tokens)[0])) {
    return error(Code::kInvalidArgument, "the scores of the next token have shape {}, expected a row for each of {}",
                 to_string(*found), (*tokens)[0].to_string());
  }
  return {};
}

// Lengths and numbers of sequences: one number each, int64 [1].
struct SearchSizes {
  Dim longest, prompt, beams, returned;
};
Status check_sizes(const SearchSizes& sizes);  // unknown sizes fit

}  // namespace treadle::generation
