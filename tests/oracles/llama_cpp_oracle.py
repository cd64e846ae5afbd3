"""llama.cpp through the low-level interface of llama-cpp-python: logits, tokens, quantised files."""

import contextlib
import ctypes
import os
import pathlib
from collections.abc import Iterator

import llama_cpp
import numpy

KV_TYPES = {"f32": llama_cpp.GGML_TYPE_F32, "f16": llama_cpp.GGML_TYPE_F16}


@llama_cpp.llama_log_callback
def _silent(_level, _text, _data):
    pass


llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
llama_cpp.llama_backend_init()


class LlamaCpp:
    """A model and a context of `n_ctx` positions. Defaults are llama.cpp's own: f16 KV, flash attention auto."""

    def __init__(self, path: pathlib.Path, n_ctx: int, n_threads: int, kv: str = "f16") -> None:
        self.model = llama_cpp.llama_model_load_from_file(
            os.fsencode(path), llama_cpp.llama_model_default_params()
        )
        if not self.model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = params.n_ubatch = min(n_ctx, 512)
        params.n_threads = params.n_threads_batch = n_threads
        params.type_k = params.type_v = KV_TYPES[kv]
        self.n_batch = params.n_batch
        self.context = llama_cpp.llama_init_from_model(self.model, params)
        if not self.context:
            raise RuntimeError(f"llama.cpp cannot make a context of {n_ctx} for {path}")
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(self.vocab)
        self.batch = llama_cpp.llama_batch_init(self.n_batch, 0, 1)

    def close(self) -> None:
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)

    def tokenize(self, text: str, add_special: bool) -> list[int]:
        raw = text.encode()
        room = (ctypes.c_int32 * (len(raw) + 8))()
        n = llama_cpp.llama_tokenize(self.vocab, raw, len(raw), room, len(room), add_special, False)
        if n < 0:
            raise RuntimeError(f"llama.cpp wants room for {-n} tokens")
        return list(room[:n])

    @property
    def adds_bos(self) -> bool:
        return bool(llama_cpp.llama_vocab_get_add_bos(self.vocab))

    @property
    def bos(self) -> int:
        return llama_cpp.llama_vocab_bos(self.vocab)

    def clear(self) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)

    def decode(self, ids: list[int], first_position: int, wanted: bool) -> None:
        """One batch; with `wanted` every position gets logits, else the last."""
        batch = self.batch
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i] = token
            batch.pos[i] = first_position + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = wanted or i + 1 == len(ids)
        status = llama_cpp.llama_decode(self.context, batch)
        if status != 0:
            raise RuntimeError(f"llama_decode: {status}")

    def synchronize(self) -> None:
        llama_cpp.llama_synchronize(self.context)

    def logits(self, ids: list[int]) -> numpy.ndarray:
        """f32 [len(ids), vocab_size], of a sequence that begins at position 0."""
        self.clear()
        rows = []
        for begin in range(0, len(ids), self.n_batch):
            part = ids[begin : begin + self.n_batch]
            self.decode(part, begin, True)
            pointer = llama_cpp.llama_get_logits(self.context)
            rows.append(numpy.ctypeslib.as_array(pointer, (len(part), self.n_vocab)).copy())
        return numpy.concatenate(rows)


@contextlib.contextmanager
def opened(path: pathlib.Path, n_ctx: int, n_threads: int, kv: str = "f16") -> Iterator[LlamaCpp]:
    model = LlamaCpp(path, n_ctx, n_threads, kv)
    try:
        yield model
    finally:
        model.close()


# Names of files as people know them -> llama.cpp's file types (llama_ftype).
FILE_TYPES = {
    "F32": llama_cpp.LLAMA_FTYPE_ALL_F32,
    "F16": llama_cpp.LLAMA_FTYPE_MOSTLY_F16,
    "BF16": llama_cpp.LLAMA_FTYPE_MOSTLY_BF16,
    "Q4_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q4_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_1,
    "Q5_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_0,
    "Q5_1": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_1,
    "Q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q2_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q2_K,
    "Q3_K_M": llama_cpp.LLAMA_FTYPE_MOSTLY_Q3_K_M,
    "Q4_K_M": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M,
    "Q5_K_M": llama_cpp.LLAMA_FTYPE_MOSTLY_Q5_K_M,
    "Q6_K": llama_cpp.LLAMA_FTYPE_MOSTLY_Q6_K,
    "IQ4_NL": llama_cpp.LLAMA_FTYPE_MOSTLY_IQ4_NL,
    "IQ4_XS": llama_cpp.LLAMA_FTYPE_MOSTLY_IQ4_XS,
}


def quantize(
    source: pathlib.Path, target: pathlib.Path, file_type: str, pure: bool, n_threads: int
) -> None:
    """Writes `target` in `file_type`; `pure`: every matrix in that one type, no mixture."""
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = FILE_TYPES[file_type]
    params.nthread = n_threads
    params.allow_requantize = True
    params.pure = pure
    partial = target.with_suffix(".partial")
    status = llama_cpp.llama_model_quantize(
        os.fsencode(source), os.fsencode(partial), ctypes.byref(params)
    )
    if status != 0:
        raise RuntimeError(f"llama_model_quantize {source} to {file_type}: {status}")
    partial.replace(target)
