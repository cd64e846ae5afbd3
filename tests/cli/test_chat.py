"""`limpid chat` as a person and as a script meet it, on a tiny model that says nothing sensible."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import limpid_program

TINY = pathlib.Path(__file__).resolve().parents[1] / "data" / "cli" / "tiny_chat.gguf"
GREEDY = ["-m", TINY, "--temp", "0", "-n", "8"]
ENDLESS = ["-m", TINY, "-n", "-1", "--ignore-eos", "--context-shift"]


def chat(*arguments: object, stdin: str = ""):
    command = [str(limpid_program.PROGRAM), "chat", *map(str, arguments)]
    done = subprocess.run(command, input=stdin.encode(), capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def one_answer(*arguments: object, stdin: str = "") -> dict:
    """Ids of the prompt and of the answer."""
    code, out, err = chat(*GREEDY, "-st", "--json", *arguments, stdin=stdin)
    assert code == 0, err
    answer = json.loads(out)
    return {"ids": answer["ids"], "n_prompt": answer["timings"]["n_prompt"]}


class Scripted(unittest.TestCase):
    def test_single_turn_prints_the_answer_alone(self):
        code, out, err = chat(*GREEDY, "-st", "-p", "hello")
        self.assertEqual((code, err), (0, ""))
        self.assertTrue(out.endswith("\n"))
        self.assertEqual(chat(*GREEDY, "-st", stdin="hello\nnever said\n"), (0, out, ""))

    def test_a_file_and_a_question_are_one_message(self):
        whole = one_answer("-p", "the world\nis in\n\nhello")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("the world\nis in\n")
            file.flush()
            self.assertEqual(one_answer("-f", file.name, "-p", "hello"), whole)
        self.assertEqual(one_answer("-p", "hello", stdin="the world\nis in\n"), whole)
        self.assertEqual(one_answer("-f", "-", "-p", "hello", stdin="the world\nis in\n"), whole)
        self.assertNotEqual(one_answer("-p", "hello"), whole)

    def test_without_input_it_answers_an_example_question(self):
        asked = chat(*GREEDY, "-st", "-p", "What is the capital of France?")
        code, out, err = chat(*GREEDY)
        self.assertEqual((code, out), asked[:2])
        self.assertIn("What is the capital of France?", err)
        closed = f"exec '{limpid_program.PROGRAM}' chat -m '{TINY}' --temp 0 -n 8 <&-"
        done = subprocess.run(["bash", "-c", closed], capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.decode()), asked[:2])
        # Input that asks nothing is input.
        self.assertEqual(chat(*GREEDY, stdin="/exit\n"), (0, "", ""))

    def test_a_block_is_one_message(self):
        block = '"""the\n\n/exit\nhello"""\n'
        code, out, _ = chat(*GREEDY, "--json", stdin=block)
        self.assertEqual(
            (code, json.loads(out)["ids"]), (0, one_answer("-p", "the\n\n/exit\nhello")["ids"])
        )

    def test_a_loop_ends_with_its_own_reason(self):
        code, out, err = chat("-m", TINY, "--temp", "0", "--json", stdin="in\n")
        self.assertEqual((code, json.loads(out)["stop_reason"]), (0, "repetition"))
        self.assertIn("had begun to repeat itself", err)

    def test_a_full_context_is_not_an_error(self):
        code, out, err = chat(
            *GREEDY, "-c", "96", "--json", stdin="the world is in the hello\n" * 8
        )
        self.assertEqual((code, len(out.splitlines())), (0, 8))
        self.assertIn("the model no longer sees its oldest", err)

    def test_each_line_is_a_turn_until_exit(self):
        for leave in ("", "exit\nnot this\n", "/exit\nnot this\n"):
            code, out, _ = chat(*GREEDY, "--json", stdin="hello\n\nthe world\n" + leave)
            answers = [json.loads(line) for line in out.splitlines()]
            self.assertEqual((code, len(answers)), (0, 2))
        self.assertGreater(answers[1]["timings"]["n_reused"], 0)

    def test_the_largest_seed_is_followed_by_the_smallest(self):
        out = chat(*GREEDY, "--seed", str(2**63 - 1), "--json", stdin="hello\n/regen\n")[1]
        seeds = [json.loads(line)["seed"] for line in out.splitlines()]
        self.assertEqual(seeds, [2**63 - 1, 0])

    def test_blanks_around_a_setting_do_not_count(self):
        self.assertEqual(chat(*GREEDY, stdin="/set\ttemp\t0.5 \n"), (0, "", "(temp 0.5)\n"))

    def test_clear_forgets(self):
        first, _, again = chat(*GREEDY, "--json", stdin="hello\nthe\n/clear\nhello\n")[
            1
        ].splitlines()
        self.assertEqual(json.loads(first)["ids"], json.loads(again)["ids"])

    def test_the_prompt_is_the_template_s(self):
        text = "<|im_start|>system\n{}<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
        for flags, system in (([], "You are a helpful assistant."), (["-sys", "the"], "the")):
            chatted = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello", *flags)[1])
            command = ["tokenize", "-m", TINY, "--special", "-p", text.format(system)]
            ids = limpid_program.run_json(*command)
            self.assertEqual(chatted["timings"]["n_prompt"], len(ids))
            command = [
                "run",
                "-m",
                TINY,
                "--temp",
                "0",
                "-n",
                "8",
                "--json",
                "-p",
                text.format(system),
            ]
        without = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello", "-sys", "")[1])
        self.assertLess(without["timings"]["n_prompt"], chatted["timings"]["n_prompt"])

    def test_what_a_user_types_is_never_a_control_token(self):
        plain = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello<|im_end|>")[1])
        clean = json.loads(chat(*GREEDY, "-st", "--json", "-p", "hello")[1])
        extra = plain["timings"]["n_prompt"] - clean["timings"]["n_prompt"]
        command = ["tokenize", "-m", TINY, "-p", "hello<|im_end|>"]
        spelled = len(limpid_program.run_json(*command)) - len(
            limpid_program.run_json(*command[:-1], "hello")
        )
        self.assertGreater(spelled, 1)
        self.assertEqual(extra, spelled)

    def test_a_template_that_refuses_system_messages(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(
                "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
                "{{ messages[0].content }}"
            )
            file.flush()
            options = [*GREEDY, "-st", "-p", "hello", "--chat-template-file", file.name]
            code, _, err = chat(*options)
            self.assertEqual(code, 0)
            self.assertIn("takes no system message", err)
            code, _, err = chat(*options, "-sys", "the")
            self.assertEqual(code, 1)
            self.assertIn("no system role", err)

    def test_other_errors_of_a_template_are_told(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ messages[0].content.no_such_method() }}")
            file.flush()
            code, _, err = chat(*GREEDY, "-st", "-p", "hello", "--chat-template-file", file.name)
            self.assertEqual(code, 1)
            self.assertIn("no_such_method", err)

    def test_a_blank_line_is_not_the_single_turn(self):
        self.assertEqual(
            chat(*GREEDY, "-st", stdin="\nhello\n"), chat(*GREEDY, "-st", "-p", "hello")
        )

    def test_interrupt_while_a_script_waits_is_130(self):
        command = [str(limpid_program.PROGRAM), "chat", *map(str, GREEDY)]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
            process.stdin.write(b"hello\n")
            process.stdin.flush()
            process.stdout.readline()
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 130)

    def test_interrupt_of_a_script_is_130(self):
        command = [str(limpid_program.PROGRAM), "chat", *map(str, ENDLESS), "-st", "-p", "the"]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.assertTrue(process.stdout.read(1))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    limpid_program.main()
