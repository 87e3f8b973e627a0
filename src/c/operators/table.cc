// The operators whose code follows from the node.

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

OperatorFn operator_writer(const ir::Node& node) {
  for (const auto& family :
       {attention_operators(),    broadcast_operators(), byte_conv_operators(),   byte_product_operators(),
        cell_operators(),         conv_operators(),      deform_conv_operators(), feature_operators(),
        generate_operators(),     grid_operators(),      image_operators(),       label_operators(),
        linear_model_operators(), loss_operators(),      matrix_operators(),      ngram_operators(),
        norm_operators(),         pool_operators(),      quant_operators(),       random_operators(),
        region_operators(),       resample_operators(),  sequence_operators(),    signal_operators(),
        softmax_operators(),      state_operators(),     tensor_operators(),      training_operators(),
        tree_operators()}) {
    for (const OperatorRow& row : family) {
      if (row.name == node.op->name && row.domain == node.op->domain) return row.write;
    }
  }
  return node.op->alias_input >= 0 ? copy_operator() : nullptr;
}

}  // namespace treadle::c
