// What most files of src/ include. Each change to it compiles them anew.
#include "op/op_def.h"
