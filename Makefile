.PHONY: build
build:
	cmake --preset release -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
	cmake --build --preset release
