/* Of an ATmega328P in simavr: a timer and the output of a program. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#define LARGEST 0xFFFF
#define START UCSR0B = 1 << TXEN0; TCCR1A = 0; TCCR1B = 3; /* clock / 64 */
#define TIMER TCNT1
#define STOP cli(); sleep_mode();
static inline void print(char digit)
{
    while (!(UCSR0A & 1 << UDRE0)) {}
    UDR0 = digit;
}
