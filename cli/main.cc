// treadle: the command-line tool.

#include "tool.h"

int main(int argc, char** argv) {
  return cli::run_tool(argc, argv);
}
