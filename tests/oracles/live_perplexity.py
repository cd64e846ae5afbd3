"""Perplexity of WikiText-2 beside llama.cpp's own count, on the same file and context.

llama.cpp's `perplexity` cuts the tokens of the text into chunks of n_ctx, replaces the first token of
each by BOS where the vocabulary asks for one, and scores the second half of each chunk, whose tokens have
at least n_ctx / 2 before them. Here that count is made over llama-cpp-python, chunk by chunk.

    live_perplexity.py [--chunks 40] [--model FILE] [-c 512]
"""

import argparse
import os
import pathlib
import sys

import limpid_program
import llama_cpp_oracle
import numpy

TOLERANCE = 0.005


def negative_log_likelihoods(logits: numpy.ndarray, targets: list[int]) -> numpy.ndarray:
    logits = logits.astype(numpy.float64)
    peak = logits.max(axis=1, keepdims=True)
    log_sum = numpy.log(numpy.exp(logits - peak).sum(axis=1)) + peak[:, 0]
    return log_sum - logits[numpy.arange(len(targets)), targets]


def perplexity_by_llama_cpp(
    model: llama_cpp_oracle.LlamaCpp, ids: list[int], n_ctx: int, n_chunks: int
) -> float:
    first = n_ctx // 2
    losses = []
    for chunk in range(n_chunks):
        part = ids[chunk * n_ctx : (chunk + 1) * n_ctx]
        if model.adds_bos:
            part[0] = model.bos
        logits = model.logits(part)
        losses.append(negative_log_likelihoods(logits[first : n_ctx - 1], part[first + 1 :]))
    return float(numpy.exp(numpy.concatenate(losses).mean()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=pathlib.Path, default=limpid_program.SMOLLM2)
    parser.add_argument("--chunks", type=int, default=40)
    parser.add_argument("-c", type=int, default=512, help="context, in tokens")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    source = limpid_program.SHARED / "text" / "wiki.test.raw"
    for path in (arguments.model, source):
        if not path.exists():
            print(f"skipped: needs {path.name}")
            return limpid_program.EXIT_SKIPPED

    n_ctx = arguments.c
    with llama_cpp_oracle.opened(arguments.model, n_ctx, arguments.threads) as model:
        ids = model.tokenize(source.read_text(encoding="utf-8"), add_special=True)
        n_chunks = min(arguments.chunks, len(ids) // n_ctx)
        expected = perplexity_by_llama_cpp(model, ids, n_ctx, n_chunks)
    print(
        f"llama.cpp {expected:.4f} over {n_chunks} chunks of {n_ctx}, {len(ids)} tokens", flush=True
    )
    options = ("-f", source, "-c", n_ctx, "--chunks", n_chunks, "-t", arguments.threads, "--json")
    got = limpid_program.run_json("perplexity", "-m", arguments.model, *options)
    print(
        f"limpid    {got['perplexity']:.4f} over {got['chunks']} chunks, {got['n_tokens']} tokens"
    )
    if (got["chunks"], got["n_tokens"]) != (n_chunks, len(ids)):
        print("error: not the same tokens", file=sys.stderr)
        return 1
    if abs(got["perplexity"] / expected - 1) > TOLERANCE:
        print(f"error: more than {TOLERANCE:.1%} apart", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
