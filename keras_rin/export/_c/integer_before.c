#include <stdint.h>
#ifdef __AVR__
#include <avr/pgmspace.h>
#define ${private}_PLACE PROGMEM
#else
#define ${private}_PLACE
#endif

/* What 1 in y stands for, for the computer that compares. */
#define ${name}_output_scale ${scale}
