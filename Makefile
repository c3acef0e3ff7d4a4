# Two commands set everything up: `make demo` and `make test`. The build itself is CMakeLists.txt.
.PHONY: all cub setup demo test test-full test-tsan fuzz tidy docs bench compare format clean

all: build/build.ninja
	@cmake --build build

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

test: build/build.ninja build-dev/build.ninja
	@tests/run

test-full: build/build.ninja build-dev/build.ninja
	@tests/run --full

test-tsan: build-tsan/build.ninja
	@tests/run --tsan

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

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	@rm -rf build build-dev build-tsan
