"""Mistakes in what a tokenizer is trained on, and in what it is to become."""

from mistakes.mistake import Mistake


def training(options: str, answer: str) -> Mistake:
    return Mistake(f"limpid tokenizer train {options}", answer)


TRAINING = [
    Mistake("limpid tokenizer", "give what to do: limpid tokenizer train FILE... -o OUT"),
    Mistake(
        "limpid tokenizer story.txt -o out.json",
        "unknown action 'story.txt'; the only one is train: limpid tokenizer train FILE... -o OUT",
    ),
    training("-o out.json", "which text? limpid tokenizer train FILE... -o OUT"),
    training(
        "story.txt",
        "where is the tokenizer to be written? give -o OUT, as in -o tokenizer.json",
    ),
    training("missing.txt -o out.json", "cannot open missing.txt: No such file or directory"),
    training("'' -o out.json", "cannot open '': No such file or directory"),
    training("nothing -o out.json", "nothing is a folder, not a file"),
    training(
        "empty.txt -o out.json",
        "empty.txt is empty: nothing to learn from",
    ),
    training(
        "empty.txt - -o out.json </dev/null",
        "empty.txt is empty, and so are all other texts: nothing to learn from",
    ),
    training(
        "latin1.txt -o out.json",
        "latin1.txt: at byte 3: text: the byte 0xe9 is not part of valid UTF-8",
    ),
    training(
        "story.txt -o out.json --vocab-size 200",
        "a vocabulary of 200 tokens is too small: the bytes need 256",
    ),
    training(
        "story.txt -o out.json --vocab-size 257 --special '<s>,</s>'",
        "a vocabulary of 257 tokens is too small: the bytes and the special tokens need 258",
    ),
    training("story.txt -o out.json --vocab-size 0", "--vocab-size: 0 must be at least 1"),
    training(
        "story.txt -o out.json --vocab-size 99999999",
        "a vocabulary of 99999999 tokens is too large; at most 16777216 are supported",
    ),
    training(
        "story.txt -o out.json --special '<s>,</s>' --special '<s>'",
        "the special token '<s>' is listed twice",
    ),
    training(
        "story.txt -o out.json --special '<s>,,</s>'",
        "--special '<s>,,</s>': a special token is empty",
    ),
    training(
        "story.txt -o out.json --pre-tokenizer gpt-2",
        "--pre-tokenizer: 'gpt-2' is not one of gpt2, llama3, qwen2, none; did you mean gpt2?",
    ),
    training(
        "story.txt -o story.txt",
        "story.txt is read by this command; write to another place, so that it stays",
    ),
    training("story.txt -o nothing", "cannot write nothing: it is a folder; name a file in it"),
    training(
        "story.txt -o no/such/out.json",
        "cannot write no/such/out.json: No such file or directory; create its folder first",
    ),
    training(
        "story.txt -o - --json",
        "-o - and --json both write to standard output; give one of them",
    ),
    training("story.txt -o out.json --min-frequency -1", "--min-frequency: -1 must be at least 0"),
]
