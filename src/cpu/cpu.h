/* cpu.h: the CPU as a device. */
#ifndef WF_CPU_CPU_H
#define WF_CPU_CPU_H

#include "run/device.h"

/* Picks the vector loops of the processor's level (cpu_level). Never fails. Close with dev->close.
 */
struct device *cpu_device_open(void);
/* Given instead of measured: for who wants to know how a choice depends on them. */
void cpu_rates_tell(struct device *cpu, const struct device_rates *rates);

#endif
