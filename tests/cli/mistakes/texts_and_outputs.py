"""Mistakes in what a command reads besides the model, and in where it writes."""

from mistakes.mistake import TYPES, Mistake, asking

TEXT = [
    Mistake(
        "limpid tokenize -m tiny.gguf --jsonl --count",
        "--jsonl writes ids: --pieces, --count, --json and --throughput are for one text",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -f long.txt -c 2",
        "-c 2: must be at least 3: one token of context, one that predicts, and the one that it predicts",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -f long.txt --chunks -2",
        "--chunks -2: must be at least 1, or -1 for all",
    ),
    Mistake(
        "limpid run -m tiny.gguf -f missing.txt",
        "cannot open missing.txt: No such file or directory",
    ),
    Mistake("limpid run -m tiny.gguf -f nothing", "nothing is a folder, not a file"),
    Mistake(
        'limpid run -m tiny.gguf -f "$(cat long.txt)"',
        "cannot open …: File name too long",
    ),
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
        "30517578.1 MiB, activations 1.1 MiB), but … MiB are available: use a smaller context (-c), a "
        "smaller batch (-b), or a model of fewer bits",
    ),
    *(
        Mistake(
            f"limpid {command} -m tiny.gguf -c 100000000000",
            "the model needs … MiB of memory (weights 0.0 MiB, KV cache of 100000000000 tokens … MiB, activations … "
            "MiB), but … MiB are available: use a smaller context (-c), a smaller batch (-b), or a model of fewer bits",
        )
        for command in (
            "bench",
            "explain -p hi",
            "logits -p hi -o out.npy",
            "run -p hi --trace",
            "verify --against tiny.gguf",
        )
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
    Mistake(
        "limpid run -m tiny.gguf -p ''",
        "the prompt is empty and the model adds no BOS token: give a text (-p)",
    ),
    Mistake(
        "limpid run -m tiny.gguf -p hi -p ''",
        "prompt 1 is empty and the model adds no BOS token: give a text (-p)",
    ),
    Mistake(
        "echo '{}' | limpid template -m tiny.gguf --messages -",
        "standard input is not an array but JSON of type object",
    ),
    Mistake("limpid detokenize -m tiny.gguf --ids hello", "--ids: 'hello' is not a whole number"),
    Mistake(
        "limpid detokenize -m tiny.gguf --ids 99999",
        "token id 99999 is outside a vocabulary of 299 tokens",
    ),
    Mistake(
        "limpid template -m tiny.gguf --messages messages.json",
        "messages.json: byte 17: this is not JSON",
    ),
    Mistake(
        "limpid template -m tiny.gguf --messages deep.json",
        "deep.json: this JSON is nested deeper than 128 levels",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -p short",
        "the text has 4 tokens; perplexity at -c 512 needs at least 1024: give a longer text, or a smaller -c",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -p ''",
        "the text is empty; perplexity at -c 512 needs at least 1024 tokens: give a text (-p, -f or standard input)",
    ),
    Mistake(
        "limpid perplexity -m tiny.gguf -p hi -f story.txt",
        "give one of -f and -p",
    ),
    asking("--logprobs 3", "--logprobs requires --json"),
    asking("--json --logprobs 21", "--logprobs: 21 must be in [0, 20]"),
    Mistake(
        "limpid verify -m tiny.gguf --against tiny.gguf -p ''",
        "the text of -p is empty: give some tokens, or leave it out",
    ),
    Mistake(
        "limpid verify -m tiny.gguf --against tiny.gguf --ids ''",
        "--ids '': the value is empty; give one, or leave the option out",
    ),
    Mistake(
        "limpid verify -m tiny.gguf",
        "compared with what? give --trace FILE (tools/golden/make_trace.py makes one; tiny.trace.safetensors is not "
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
        "cannot write no/such/out.npy: No such file or directory; create its folder first",
    ),
    Mistake(
        "limpid quantize tiny.gguf nothing q8_0",
        "cannot write nothing: it is a folder; name a file in it",
    ),
    Mistake(
        "limpid quantize tiny.gguf tiny.gguf q8_0",
        "tiny.gguf is where the model is read from; write to another place, so that it stays",
    ),
    *(
        Mistake(
            f"limpid {command} tiny.gguf",
            "tiny.gguf is where the model is read from; write to another place, so that it stays",
        )
        for command in (
            "explain -m tiny.gguf -p hi -o",
            "logits -m tiny.gguf -p hi -o",
            "inspect -m tiny.gguf --weights --svg",
            "inspect -m tiny.gguf --rope-svg",
        )
    ),
    Mistake(
        "limpid inspect -m tiny.gguf --weights --svg no/such/out.svg",
        "cannot write no/such/out.svg: No such file or directory; create its folder first",
    ),
    Mistake(
        "limpid inspect -m tiny.gguf --rope-svg - --json",
        "--rope-svg - and --json both write to standard output: name a file for the picture",
    ),
    Mistake(
        "limpid convert no_tokenizer no_tokenizer --to safetensors --dtype f16",
        "no_tokenizer is where the model is read from; write to another place, so that it stays",
    ),
    Mistake(
        "limpid quantize tiny.gguf no/such/out.gguf q4_k_m",
        "cannot write no/such/out.gguf: No such file or directory; create its folder first",
    ),
    Mistake(
        "limpid quantize tiny.gguf /dev/full q8_0",
        "cannot write /dev/full: it is a device or a pipe; name a file",
    ),
    Mistake(
        "limpid quantize tiny.gguf",
        "give the model, the file to write and a type: limpid quantize IN OUT TYPE",
    ),
    Mistake(
        "limpid quantize tiny.gguf out.gguf q4km", f"unknown type 'q4km'; the types are {TYPES}"
    ),
    Mistake(
        "limpid quantize tiny.gguf out.gguf q2_k --imatrix story.txt",
        "story.txt: at byte 0: number of entries: is 1701015119; this is not an importance matrix",
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
        "project/config.json belongs to a model that is there already: name another folder, or remove it",
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
        "cannot write no/such/x.safetensors: No such file or directory; create its folder first",
    ),
    Mistake(
        "limpid microgpt --load tiny.gguf --sample-only",
        "tiny.gguf: at byte 0: header.length: 14064895815 bytes, at most 100000000; this is not a safetensors file",
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
