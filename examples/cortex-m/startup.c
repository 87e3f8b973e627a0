// The first instructions of a Cortex-M4 or M7 with a floating-point unit, and the board's services by semihosting: the
// debugger, or qemu, answers a breakpoint.

#include <string.h>

#include "board.h"

int main(void);

// From the linker's script.
extern uint32_t data_load[], data_begin[], data_end[], bss_begin[], bss_end[], stack_bottom[], stack_top[];

// --- services --------------------------------------------------------------------------------------------------------

enum { SYS_OPEN = 0x01, SYS_WRITE = 0x05, SYS_EXIT_EXTENDED = 0x20, WRITE_MODE = 4, APPLICATION_EXIT = 0x20026 };

static uint32_t semihosting(uint32_t operation, const void *arguments) {
  register uint32_t r0 __asm__("r0") = operation;
  register const void *r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

void board_write(const char *text, size_t bytes) {
  static uint32_t console;
  if (console == 0) {
    static const char name[] = ":tt";
    const uint32_t open[] = {(uint32_t)name, WRITE_MODE, sizeof name - 1};
    console = semihosting(SYS_OPEN, open);
  }
  const uint32_t write[] = {console, (uint32_t)text, (uint32_t)bytes};
  semihosting(SYS_WRITE, write);
}

void board_exit(int status) {
  const uint32_t reason[] = {APPLICATION_EXIT, (uint32_t)status};
  for (;;) semihosting(SYS_EXIT_EXTENDED, reason);
}

// --- measures --------------------------------------------------------------------------------------------------------

#define SYSTICK ((volatile uint32_t *)0xe000e010)  // control, reload, current
enum { PAINT = 0x5eaf00d, LONGEST = 0xffffff, MARGIN = 64 };

static volatile uint32_t laps;
static uint32_t *painted_below;

static void count_lap(void) { ++laps; }

void board_measure(void) {
  painted_below = (uint32_t *)__builtin_frame_address(0) - MARGIN / sizeof(uint32_t);
  for (uint32_t *word = stack_bottom; word < painted_below; ++word) *word = PAINT;
  laps = 0;
  SYSTICK[1] = LONGEST;
  SYSTICK[2] = 0;
  SYSTICK[0] = 7;  // on, with interrupt, by the processor's clock
}

uint64_t board_ticks(void) {
  const uint32_t left = SYSTICK[2];
  SYSTICK[0] = 0;
  return (uint64_t)laps * (LONGEST + 1u) + (LONGEST - left);
}

uint32_t board_stack_used(void) {
  const uint32_t *word = stack_bottom;
  while (word < painted_below && *word == PAINT) ++word;
  return (uint32_t)((const char *)painted_below - (const char *)word) + MARGIN;
}

// --- start -----------------------------------------------------------------------------------------------------------

static void fault(void) {
  static const char text[] = "the processor stopped by a fault\n";
  board_write(text, sizeof text - 1);
  board_exit(1);
}

static void reset(void) {
  *(volatile uint32_t *)0xe000ed88 |= 0xf00000;  // the floating-point unit on
  __asm__ volatile("dsb\n isb");
  memcpy(data_begin, data_load, (size_t)((char *)data_end - (char *)data_begin));
  memset(bss_begin, 0, (size_t)((char *)bss_end - (char *)bss_begin));
  board_exit(main());
}

__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, count_lap,
};
