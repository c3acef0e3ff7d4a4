set(WF_SIMT_SOURCES check.c compile.c driver.c fiber.c launch.c memory.c module.c queue.c report.c)
