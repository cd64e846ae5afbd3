"""The fast subset of tests/oracles/tokenizer_files_differential.py."""

import sys

import tokenizer_files_differential

if __name__ == "__main__":
    sys.exit(tokenizer_files_differential.main([]))
