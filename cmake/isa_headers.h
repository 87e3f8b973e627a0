// What most files of src/kernels/isa include.
#include "kernels/isa/vector.h"
#include "kernels/table.h"
