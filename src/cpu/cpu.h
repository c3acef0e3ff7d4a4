/* cpu.h: the CPU as a device. */
#ifndef WF_CPU_CPU_H
#define WF_CPU_CPU_H

#include "run/device.h"

/* Picks the vector loops of the processor's level (cpu_level). Never fails. Close with dev->close.
 */
struct device *cpu_device_open(void);

#endif
