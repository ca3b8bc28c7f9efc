/* Of a Cortex-M in QEMU: a timer, the output and the start of a program. */
#include <stdint.h>
#define LARGEST 0xFFFFFF
#define START timer[1] = LARGEST; timer[2] = 0; timer[0] = 5;
#define TIMER (LARGEST - timer[2])
#define STOP call(0x18, (void *)0x20026);
static volatile uint32_t *const timer = (volatile uint32_t *)0xE000E010;
static inline void call(int number, const void *argument)
{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = argument;
    __asm volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static inline void print(char digit) { call(3, &digit); }
int main(void);
static void start(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* the FPU is on */
    __asm volatile("dsb\nisb");
#endif
    main();
    for (;;) {}
}
const void *const vectors[] __attribute__((section(".vectors"))) = {
    (void *)0x20400000, (void *)start
};
