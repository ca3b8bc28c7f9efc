/* Enables the FPU where there is one, and starts the C library. */
extern void _start(void);

void reset_handler(void)
{
#ifdef __ARM_FP
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* coprocessors 10, 11 */
    __asm volatile("dsb\nisb");
#endif
    _start();
}

__attribute__((section(".vectors"), used)) static const void *vectors[] = {
    (const void *)0x20400000, /* the end of RAM, where the stack begins */
    (const void *)reset_handler,
};
