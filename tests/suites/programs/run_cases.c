// Runs every case of cases.h and prints a line for each: its name, what the run returned, the bytes of stack and the
// ticks that it took where the board counts them, and its outputs, byte by byte in hexadecimal.

#include <stdint.h>
#include <string.h>

#include "cases.h"

#ifdef ON_BOARD
#include "board.h"
#else
#include <stdio.h>
static void board_write(const char *text, size_t bytes) { fwrite(text, 1, bytes, stdout); }
static void board_measure(void) {}
static uint32_t board_stack_used(void) { return 0; }
static uint64_t board_ticks(void) { return 0; }
#endif

enum { ALIGNMENT = 64, MOST_OUTPUTS = 64, UNTOUCHED = 0xa5 };

static _Alignas(ALIGNMENT) unsigned char workspace[WORKSPACE_BYTES];

static void write_text(const char *text) { board_write(text, strlen(text)); }

static void write_number(uint64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  do {
    digits[--at] = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  board_write(digits + at, sizeof digits - at);
}

static void write_bytes(const unsigned char *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  char text[256];
  size_t filled = 0;
  for (size_t i = 0; i < count; ++i) {
    text[filled++] = digits[bytes[i] >> 4];
    text[filled++] = digits[bytes[i] & 15];
    if (filled == sizeof text || i + 1 == count) {
      board_write(text, filled);
      filled = 0;
    }
  }
}

static size_t rounded_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

// Behind each piece of memory that a run gets, at least as many bytes that it must leave alone.
static int is_untouched(const unsigned char *end) {
  for (int i = 0; i < ALIGNMENT; ++i) {
    if (end[i] != UNTOUCHED) return 0;
  }
  return 1;
}

static void run_case(const struct tested_case *tested) {
  void *outputs[MOST_OUTPUTS];
  memset(workspace, UNTOUCHED, sizeof workspace);
  unsigned char *const scratch = workspace;
  size_t at = rounded_up(tested->scratch_bytes) + ALIGNMENT;
  for (size_t i = 0; i < tested->outputs; ++i) {
    outputs[i] = workspace + at;
    at += rounded_up(tested->output_bytes[i]) + ALIGNMENT;
  }
  board_measure();
  const int status = tested->run(tested->inputs, outputs, scratch);
  const uint64_t ticks = board_ticks();
  const uint32_t stack = board_stack_used();

  int untouched = is_untouched(scratch + tested->scratch_bytes);
  for (size_t i = 0; i < tested->outputs; ++i) {
    untouched &= is_untouched((const unsigned char *)outputs[i] + tested->output_bytes[i]);
  }
  write_text(tested->name);
  write_text(untouched ? " " : " overrun ");
  write_number((uint64_t)status);
  write_text(" ");
  write_number(stack);
  write_text(" ");
  write_number(ticks);
  for (size_t i = 0; i < tested->outputs; ++i) {
    write_text(" x");
    write_bytes((const unsigned char *)outputs[i], tested->output_bytes[i]);
  }
  write_text("\n");
}

int main(void) {
  for (size_t i = 0; i < sizeof tested_cases / sizeof tested_cases[0]; ++i) run_case(tested_cases[i]);
  return 0;
}
