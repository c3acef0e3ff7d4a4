# Two commands set everything up: `make demo` and `make test`. The build itself is CMakeLists.txt.
.PHONY: all release install uninstall cub setup demo testable test test-full test-tsan fuzz mutate tidy docs bench compare format clean

# Kernels compiled ahead of time, where nvcc is, belong to what is used; tests do without (see `test`).
all: build/build.ninja
	@grep -q '^WF_AOT:BOOL=ON' build/CMakeCache.txt || cmake build -DWF_AOT=ON >/dev/null
	@cmake --build build

# The same with kernels for every chip from Turing on, in build-release: for machines that are not this one. Takes a while.
release: | setup
	@cmake --preset release -B build-release -DWF_AOT=ON '-DWF_CHIPS=75;80;86;89;90;100;120' >/dev/null
	@cmake --build build-release

# The program, the library (shared and static), headers, pkg-config file and manual page, below $(DESTDIR)$(PREFIX).
PREFIX ?= /usr/local
install: all
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)' --strip

# What `make install` wrote last, with the same DESTDIR.
uninstall:
	@while IFS= read -r file || [ -n "$$file" ]; do rm -f "$(DESTDIR)$$file"; done <build/install_manifest.txt

setup:
	@tools/setup

build/build.ninja: | setup
	@cmake --preset release >/dev/null

build-dev/build.ninja: | setup
	@cmake --preset dev >/dev/null

build-tsan/build.ninja: | setup
	@cmake --preset tsan >/dev/null

demo: all
	@tools/demo

# The simt driver runs kernels from their text: a fresh clone that is to be tested need not wait for nvcc.
testable: build-dev/build.ninja
	@[ -f build/build.ninja ] || cmake --preset release -DWF_AOT=OFF >/dev/null

# T=PATTERN runs what matches (tests/run --help).
picked = $(if $(T),'$(T)')

test: testable
	@tests/run $(picked)

test-full: testable
	@tests/run --full $(picked)

test-tsan: build-tsan/build.ninja
	@tests/run --tsan $(picked)

tidy: build/build.ninja
	@cmake --build build --target tidy && build/tidy .

docs: build/build.ninja
	@cmake --build build --target gendoc && build/gendoc docs

bench: all
	@build/warpfox bench virginian

# NVIDIA's own primitives as an optional module, where nvcc is; takes a minute.
cub: build/build.ninja
	@cmake --build build --target cub

compare: all
	@bench/compare

fuzz: build/build.ninja
	@tests/fuzz/run
	@tests/fuzz/run --mutate --seconds 600

# Small faults in the source, one at a time: which of them no test notices.
mutate: setup
	@tests/mutate/mutate

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-release build-dev build-tsan build-mutate
