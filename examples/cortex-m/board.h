// What programs ask of the board: text out, an end, and what a piece of code took.
#pragma once

#include <stddef.h>
#include <stdint.h>

void board_write(const char* text, size_t bytes);
_Noreturn void board_exit(int status);

// Between the two calls: the bytes of stack below the caller, and the ticks of the processor's clock.
void board_measure(void);
uint32_t board_stack_used(void);
uint64_t board_ticks(void);
