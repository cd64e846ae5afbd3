"""The fast subset of tests/oracles/tokenizer_differential.py."""

import sys

import tokenizer_differential

if __name__ == "__main__":
    sys.exit(tokenizer_differential.main([]))
