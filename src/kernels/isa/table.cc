#include "kernels/isa/tables.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

KernelTable make_table() {
  KernelTable table{};
  add_f32_rows(table);
  add_f64_rows(table);
  add_32_bit_rows(table);
  add_64_bit_rows(table);
  add_bool_rows(table);
  add_conversions(table);
  add_reductions(table);
  table.chain = &chain_table();
  return table;
}

}  // namespace

const KernelTable& kernel_table() {
  static const KernelTable table = make_table();
  return table;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
