"""Files that are mistaken for a model, are damaged, or hold a model that Limpid does not run."""

from mistakes.mistake import READABLE, Mistake, asking, running

NO_MODEL = [
    running("empty.gguf", "empty.gguf is empty; download it again"),
    running(
        "page.gguf",
        "page.gguf is not a model but a web page: the download went wrong; look at it in a browser, and "
        "download again",
    ),
    running(
        "page.safetensors",
        "page.safetensors is not a model but a web page: the download went wrong; look at it in a browser, and "
        "download again",
    ),
    running(
        "denied.gguf",
        "denied.gguf is not a model but text that begins with 'Invalid username or password.': name the weights; "
        "if you downloaded it, this is the server's answer",
    ),
    running(
        "answer.gguf",
        'answer.gguf is not a model but text that begins with \'{"error":"Repository not found"}\': name the '
        "weights; if you downloaded it, this is the server's answer",
    ),
    running(
        "story.txt",
        "story.txt is not a model but text that begins with 'Once upon a time there was a model.': name the "
        "weights; if you downloaded it, this is the server's answer",
    ),
    running(
        "pointer.gguf",
        "pointer.gguf is not a model but a Git LFS pointer instead of the file: run `git lfs pull` in its folder",
    ),
    running(
        "pointers",
        "…pointers/model.safetensors is not a model but a Git LFS pointer instead of the file: run `git lfs "
        "pull` in its folder",
    ),
    running(
        "model.gguf.gz",
        "model.gguf.gz is not a model but a gzip archive: unpack it first (gunzip, or tar xzf)",
    ),
    running(
        "photos.zip",
        "photos.zip is a zip archive, but not one of PyTorch (no data.pkl): unpack it, and name the model in it",
    ),
    running(
        "no_tokenizer/config.json",
        "no_tokenizer/config.json describes a model but holds no weights: name its folder, no_tokenizer",
    ),
    running(
        "only_tokenizer/tokenizer.json",
        "only_tokenizer/tokenizer.json belongs to a tokenizer and holds no weights: name the model's folder or "
        "its weights (limpid tokenize needs no more than the tokenizer)",
    ),
    Mistake(
        "limpid tokenize -m linked -p hi",
        "linked: tokenizer.json: is a link that leads out of the model's folder; copy the file there",
    ),
    running(
        "binary.dat",
        "binary.dat: at byte 0: magic: begins with 00 01 02 03, which is not a known model format. "
        + READABLE,
    ),
    running(
        "old.bin",
        "old.bin is not a model but a GGJT file: a format before GGUF, which is not read: download the model as "
        "GGUF, or convert it with llama.cpp",
    ),
    running(
        "version9.gguf",
        "version9.gguf: at byte 4: header.version: GGUF version 9; versions 2 and 3 are read",
    ),
    running(
        "adapter.gguf",
        "adapter.gguf is an adapter (LoRA), not a model; name the model, or merge the adapter into "
        "it first",
    ),
    running(
        "mmproj.gguf",
        "mmproj.gguf is the vision part of a model (mmproj); name the file with the language model",
    ),
    running(
        "imatrix.gguf",
        "imatrix.gguf is an importance matrix, an input of quantisation; name the model instead",
    ),
    running(
        "vocabulary.gguf",
        "vocabulary.gguf: token_embd.weight: is missing or not a matrix; the file does not hold a "
        "runnable model (only a vocabulary?): name the file with the weights",
    ),
    running(
        "pickle.pt",
        "pickle.pt has the pickle or tar format of PyTorch before 1.6, which is not read: load it with "
        "torch.load(FILE, weights_only=True) and save it again with torch.save",
    ),
    running(
        "harmful.pt",
        "harmful.pt: at byte 48: archive/data.pkl: GLOBAL: the name __builtin__.print is not allowed in a "
        "checkpoint; save only the state dictionary, with plain numbers and text beside it",
    ),
]

DAMAGED = [
    running(
        "cut.gguf",
        "cut.gguf: at byte 6876: tensor 'output_norm.weight'.data: ends at byte 169344, but the file has "
        "100000 bytes: it is truncated; download it again",
    ),
    running(
        "cut_early.gguf",
        "cut_early.gguf: at byte 602: tokenizer.ggml.tokens: 299 elements of type string do not fit in the 290 "
        "bytes left of 900; is the download complete?",
    ),
    running(
        "cut.pth",
        "cut.pth: at byte 126: end record: is not at the end of the file: the download is incomplete, or "
        "bytes or a comment follow the archive",
    ),
    running(
        "cut",
        "…cut/model.safetensors: at byte 8: tensor 'model.layers.0.self_attn.q_proj.weight'.data_offsets: end "
        "at 49760, but the file has 43840 bytes of data; is the download complete?",
    ),
    running(
        "half-00001-of-00002.gguf",
        "half-00002-of-00002.gguf is missing: part 2 of 2 of half-00001-of-00002.gguf; download it too",
    ),
    running(
        "rest-00002-of-00002.gguf",
        "rest-00002-of-00002.gguf: split.no: this is part 2 of 2; name the first one (-00001-of-00002.gguf)",
    ),
    running(
        "shard_missing",
        "shard_missing/model-00002-of-00003.safetensors is missing, and model.safetensors.index.json names "
        "it: download it too",
    ),
    running(
        "nothing",
        "nothing is a folder without config.json, consolidated.00.pth or ckpt.pt (it is empty): name a file in it, or "
        "download the whole model. " + READABLE,
    ),
    running(
        "adapter",
        "adapter is a LoRA adapter, not a model: open the model that it adapts, with --lora adapter",
    ),
    running(
        "only_config",
        "only_config has config.json but neither model.safetensors nor model.safetensors.index.json; download "
        "the weights too",
    ),
    running(
        "old_torch",
        "old_torch holds its weights as pytorch_model.bin, which is not read; most models are published as "
        "model.safetensors too",
    ),
    running(
        "page_in_folder",
        "page_in_folder/config.json is not JSON but a web page: the download went wrong; look at it in a browser, "
        "and download again",
    ),
    running(
        "broken_config",
        "broken_config/config.json is not JSON: A string is opened, but never closed; is the download "
        "complete?",
    ),
    running(
        "wrong_shape",
        "wrong_shape: token_embd.weight: is f32[61, 32], expected [61, 64]; are configuration and weights of "
        "the same model?",
    ),
    running(
        "no_tokenizer",
        "no_tokenizer has no tokenizer: put tokenizer.json beside the weights, name one with "
        "--tokenizer, or work with token ids",
    ),
    Mistake(
        "limpid chat -m no_tokenizer -p hi",
        "no_tokenizer has no tokenizer: put tokenizer.json beside the weights, name one with "
        "--tokenizer, or work with token ids",
    ),
]

UNSUPPORTED = [
    running(
        "mamba.gguf",
        "mamba.gguf: architecture `mamba` is not supported; choose a model of one of these: llama, qwen2, "
        "qwen3, ernie4_5, gpt2",
    ),
    running(
        "mamba",
        "mamba: the model is a `MambaForCausalLM`, which is not supported; choose one of these: "
        "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, Ernie4_5ForCausalLM, "
        "GPT2LMHeadModel",
    ),
    running(
        "iq1_s.gguf",
        "iq1_s.gguf: at byte 5764: tensor 'token_embd.weight' has type IQ1_S, which is not read; obtain the "
        "model in one of F32, F16, …",
    ),
    asking(
        "-ts 3,1",
        "unknown option -ts: a model lies on the device of --device and on that of --split: share its layers out with "
        "--gpu-layers, and leave this out",
    ),
    asking("-ngl most", "-ngl: 'most' is not a number of layers, all or auto"),
    asking("-fa on", "unknown option -fa: there is nothing to switch here; leave it out"),
    asking(
        "--split opencl",
        "layers are to be split with 'opencl', but 'cpu' has all of them: give the number of layers that the device "
        "should hold (--gpu-layers)",
    ),
    asking(
        "--products f16",
        "products of f16 are for GPUs, and 'cpu' computes in f32: name another device (--device), or use f32 "
        "(--products)",
    ),
    asking(
        "--device reference --products bf16",
        "products of bf16 are for the CPU, and 'reference' computes in f32: name another device (--device), or use "
        "f32 (--products)",
    ),
    asking(
        "--device opencl --products bf16",
        "products of bf16 are for the CPU, and 'opencl' computes in f32: name another device (--device), or use "
        "f32 (--products)",
    ),
    asking("--device gpu", "--device gpu: choose cpu, opencl, cuda, reference"),
    asking("-ctk q8_0", "-ctk: unknown KV cache type q8_0; choose f16 or f32"),
    Mistake(
        "LIMPID_ISA=sse limpid run -m tiny.gguf -p hi",
        "LIMPID_ISA: instruction set `sse` is not available here; there are …scalar",
    ),
    asking(
        "--lora adapter.gguf",
        "adapter.gguf is a file; an adapter is a folder with adapter_config.json and adapter_model.safetensors",
    ),
    asking(
        "--tokenizer tiny.gguf",
        "tiny.gguf: at byte 0: max_token_length: 1179993927 is not from 1 to 65536; this is not a tokenizer: name a "
        "tokenizer.json, tokenizer.model, *.tiktoken, vocab.json or llama2.c's tokenizer.bin",
    ),
    asking(
        "--tokenizer no_tokenizer",
        "no_tokenizer has no tokenizer.json, tokenizer.model, *.tiktoken or vocab.json",
    ),
]
