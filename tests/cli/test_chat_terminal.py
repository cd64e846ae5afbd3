"""`limpid chat` as a person meets it: keys, pastes, commands, notes. On a tiny model that says nothing sensible."""

import json
import os
import pathlib
import re
import stat
import tempfile
import unittest

import limpid_program
from terminal import PROMPT, TINY, Terminal

GREEDY = ["-m", TINY, "--temp", "0", "-n", "8"]
ENDLESS = ["-m", TINY, "--ignore-eos", "--context-shift", "--seed", "1"]


class OnATerminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def open(self, *arguments: object, **options) -> Terminal:
        terminal = self.enterContext(Terminal(*arguments, **options))
        terminal.read_until(PROMPT)
        return terminal

    def messages(self, terminal: Terminal) -> list[tuple[str, str]]:
        """What the conversation holds, by /save."""
        path = self.folder / "saved.json"
        self.assertIn("(kept ", terminal.say(f"/save {path}"))
        return [(m["role"], m["content"]) for m in json.loads(path.read_text())]

    def questions(self, terminal: Terminal) -> list[str]:
        return [text for role, text in self.messages(terminal) if role == "user"]


class Lines(OnATerminal):
    def test_a_paste_is_one_message(self):
        for newline in ("\r", "\n", "\r\n"):
            terminal = self.open(*GREEDY)
            terminal.type(f"see:\x1b[200~one{newline}two{newline}\tthree\x1b[201~")
            terminal.say(" end")
            self.assertEqual(self.questions(terminal), ["see:one\ntwo\n    three end"])

    def test_alt_enter_and_a_backslash_go_on_in_the_next_line(self):
        terminal = self.open(*GREEDY)
        terminal.say("one\x1b\rtwo")
        terminal.type("three\\\r")
        terminal.read_until(". ")
        terminal.say("four")
        self.assertEqual(self.questions(terminal), ["one\ntwo", "three\nfour"])

    def test_a_block_is_one_message_and_never_a_command(self):
        terminal = self.open(*GREEDY)
        terminal.type('"""\r/clear\rthe\r')
        terminal.say('world"""')
        terminal.say('"""/exit"""')
        terminal.say('\x1b[200~"""\rpasted\r"""\x1b[201~')
        self.assertEqual(self.questions(terminal), ["/clear\nthe\nworld", "/exit", "pasted"])

    def test_characters_are_erased_whole(self):
        terminal = self.open(*GREEDY)
        terminal.say("añ日本\x7f\x7fb")
        self.assertEqual(self.questions(terminal), ["añb"])

    def test_a_byte_that_is_not_utf8_leaves_the_next_key_alone(self):
        terminal = self.open(*GREEDY)
        os.write(terminal.fd, b"caf\xe9\r")  # Latin-1
        terminal.read_until("\x1b[0m")
        terminal.read_until(PROMPT)
        self.assertEqual(self.questions(terminal), ["caf\ufffd"])

    def test_what_is_typed_during_an_answer_is_not_shown_and_is_the_next_line(self):
        terminal = self.open(*ENDLESS, "-n", "200")
        terminal.type("hello\r")
        terminal.read_until("\x1b[0m")
        terminal.wait_for(1)
        terminal.type("typed ahead")
        self.assertNotIn("typed ahead", terminal.read_until(PROMPT))
        terminal.read_until("typed ahead")

    def test_a_resize_draws_the_line_where_it_was(self):
        terminal = self.open(*GREEDY)
        # With the prompt 102 columns: two rows of 80, which a terminal without a size has, three of 40, one of 120.
        terminal.type("x" * 100)
        terminal.read_until("\x08" + "x" * 22)  # the second row is complete
        for columns, rows_above in ((40, 2), (120, 0), (60, 1)):
            terminal.resize(24, columns)
            up = f"\x1b[{rows_above}A" if rows_above else ""
            terminal.read_until(f"{up}\r\x1b[J\x1b[1;36m> {'x' * 100}")
        terminal.say("")
        self.assertEqual(self.questions(terminal), ["x" * 100])

    def test_a_resize_keeps_the_row_between_a_full_row_and_a_newline(self):
        terminal = self.open(*GREEDY)
        terminal.type("x" * 38 + "\x1b\ryy")
        terminal.read_until("yy")
        terminal.resize(24, 40)  # with the prompt the first line has as many columns
        terminal.read_until("> " + "x" * 38 + " \r")
        terminal.read_until("yy")


class Keys(OnATerminal):
    def test_exit_and_control_d_leave(self):
        for keys in ("/exit\r", "exit\r", "\x04"):
            terminal = self.open(*GREEDY)
            terminal.type(keys)
            self.assertEqual(terminal.exit_code(), 0)
            self.assertIn("\n", terminal.seen[terminal.read :])  # the shell's prompt begins a line
            self.assertTrue(
                terminal.seen.endswith("\x1b[?2004l"), terminal.seen
            )  # pastes as before

    def stopped(self) -> Terminal:
        """A chat whose answer Ctrl-C has stopped."""
        terminal = self.open(*ENDLESS)
        terminal.type("the\r")
        terminal.read_until("\x1b[0m")
        terminal.wait_for(200)
        terminal.type("\x03")
        terminal.read_until("(stopped; Ctrl-C again leaves)")
        terminal.read_until(PROMPT)
        return terminal

    def test_a_second_control_c_after_an_answer_leaves(self):
        terminal = self.stopped()
        terminal.type("\x03")
        self.assertEqual(terminal.exit_code(), 130)

    def test_control_d_after_a_stopped_answer_leaves(self):
        terminal = self.stopped()
        terminal.type("\x04")
        self.assertEqual(terminal.exit_code(), 0)

    def test_a_message_after_a_stopped_answer_counts_anew(self):
        terminal = self.stopped()
        terminal.say("/set temp 0")
        terminal.type("\x03")
        terminal.read_until("(Ctrl-C again")
        terminal.read_until(PROMPT)

    def test_control_c_stops_the_answer_only(self):
        terminal = self.stopped()
        self.assertEqual(self.questions(terminal), ["the"])
        self.assertGreater(len(self.messages(terminal)[-1][1]), 0)

    def test_control_c_drops_the_line_and_twice_leaves_with_130(self):
        terminal = self.open(*GREEDY)
        terminal.type("never sent\x03")
        terminal.read_until("(Ctrl-C again")
        terminal.read_until(PROMPT)
        terminal.say("hello")
        self.assertEqual(self.questions(terminal), ["hello"])
        terminal.type("\x03")
        terminal.read_until("(Ctrl-C again")
        terminal.type("\x03")
        self.assertEqual(terminal.exit_code(), 130)
        self.assertIn("\x1b[?2004l", terminal.seen)

    def test_control_c_in_a_block_drops_it(self):
        terminal = self.open(*GREEDY)
        terminal.type('"""one\r')
        terminal.read_until(". ")
        terminal.type("\x03")
        terminal.read_until(PROMPT)
        terminal.say("two")
        self.assertEqual(self.questions(terminal), ["two"])


class Commands(OnATerminal):
    def test_help_has_every_command(self):
        shown = self.open(*GREEDY).say("/help")
        commands = re.findall(r"^ *(?:\x1b\[2m)? *(/\w+)", shown, re.M)
        self.assertEqual(
            set(commands),
            {"/help", "/regen", "/undo", "/clear", "/system", "/set", "/save", "/load", "/exit"},
        )

    def test_undo_takes_the_last_question_back(self):
        terminal = self.open(*GREEDY)
        self.assertIn("the conversation has no question yet", terminal.say("/undo"))
        terminal.say("hello")
        before = self.messages(terminal)
        terminal.say("the world")
        self.assertIn("(taken back: the world)", terminal.say("/undo"))
        self.assertEqual(self.messages(terminal), before)

    def test_regen_answers_again(self):
        terminal = self.open(*GREEDY)
        self.assertIn("the conversation has no question yet", terminal.say("/regen"))
        terminal.say("hello")
        before = self.messages(terminal)
        self.assertIn("the same words come again", terminal.say("/regen"))
        self.assertEqual(self.messages(terminal), before)

    def test_regen_with_a_seed_answers_otherwise(self):
        terminal = self.open("-m", TINY, "-n", "8", "--seed", "1")
        terminal.say("hello")
        before = self.messages(terminal)
        terminal.say("/regen")
        after = self.messages(terminal)
        self.assertEqual(after[:-1], before[:-1])
        self.assertNotEqual(after[-1], before[-1])

    def test_clear_says_what_it_forgot_and_keeps_the_system_message(self):
        terminal = self.open(*GREEDY)
        terminal.say("hello")
        terminal.say("/system Be brief.")
        self.assertIn("(forgot 2 messages)", terminal.say("/clear"))
        self.assertEqual(self.messages(terminal), [("system", "Be brief.")])

    def test_system_changes_the_system_message(self):
        terminal = self.open(*GREEDY)
        self.assertIn("You are a helpful assistant.", terminal.say("/system"))
        terminal.say("hello")
        terminal.say("/system  Be  brief. ")
        self.assertIn("Be  brief.", terminal.say("/system"))
        saved = self.messages(terminal)
        self.assertEqual(saved[0], ("system", "Be  brief."))
        self.assertEqual([role for role, _ in saved], ["system", "user", "assistant"])

    def test_set_changes_a_setting(self):
        terminal = self.open(*GREEDY)
        self.assertIn("temp 0, top-k 40", terminal.say("/set"))
        self.assertIn("(temp 0.5)", terminal.say("/set temp 0.5"))
        self.assertIn("temp 0.5, top-k 40", terminal.say("/set"))
        self.assertIn("(top-k 7)", terminal.say("/set top_k 7"))
        self.assertIn("(temp 0.25)", terminal.say("/set temperature 0.25"))
        terminal.say("/set temp 0.5")
        terminal.say("/set top-k 40")
        for wrong, answer in (
            ("/set tmep 1", "no setting 'tmep'; did you mean temp?"),
            ("/set temp warm", "temp: 'warm' is not a number"),
            ("/set top-k 1.5", "top-k: '1.5' is not a whole number"),
            ("/set temp", "/set temp: the value is missing"),
            ("/set repeat-penalty 0", "repeat"),
        ):
            self.assertIn(answer, terminal.say(wrong))
        self.assertIn("temp 0.5, top-k 40", terminal.say("/set"))

    def test_what_was_saved_is_loaded(self):
        terminal = self.open(*GREEDY)
        terminal.say("/system Be brief.")
        terminal.say("hello")
        saved = self.messages(terminal)
        other = self.open(*GREEDY)
        other.say("never mind")
        self.assertIn("(3 messages from ", other.say(f"/load {self.folder}/saved.json"))
        (self.folder / "saved.json").unlink()
        self.assertEqual(self.messages(other), saved)
        # It goes on alike in both.
        terminal.say("the world")
        other.say("the world")
        self.assertEqual(self.messages(other), self.messages(terminal))

    def test_save_and_load_say_what_is_wrong(self):
        terminal = self.open(*GREEDY)
        precious = self.folder / "precious.txt"
        precious.write_text("not a conversation")
        self.assertIn("is not a conversation", terminal.say(f"/save {precious}"))
        self.assertEqual(precious.read_text(), "not a conversation")
        for text in ("not a conversation", "{}", '[{"role": "user"}]'):
            precious.write_text(text)
            said = terminal.say(f"/load {precious}")
            self.assertIn("precious.txt is not a conversation: /load reads what /save", said)
        self.assertIn("No such file", terminal.say(f"/load {self.folder}/absent"))
        self.assertIn("/save FILE: the argument is missing", terminal.say("/save"))

    def test_an_unknown_command_is_refused(self):
        terminal = self.open(*GREEDY)
        self.assertIn("no command /hlep; did you mean /help?", terminal.say("/hlep"))
        self.assertIn("no command /Help; did you mean /help?", terminal.say("/Help"))
        self.assertIn("no command /frobnicate (", terminal.say("/frobnicate now"))
        self.assertIn("/clear takes nothing after it", terminal.say("/clear all"))
        terminal.say("/usr/bin is a folder")
        self.assertEqual(self.questions(terminal), ["/usr/bin is a folder"])


class Notes(OnATerminal):
    def test_a_loop_is_ended_and_said(self):
        terminal = self.open("-m", TINY, "--temp", "0")
        self.assertIn("(ended: the answer had begun to repeat itself)", terminal.say("in"))
        self.assertEqual(len(self.messages(terminal)), 3)

    def test_a_full_context_drops_the_oldest_turns(self):
        terminal = self.open(*GREEDY, "-c", "96")
        for _ in range(8):
            shown = terminal.say("the world is in the hello")
        self.assertRegex(shown, r"the model no longer sees its oldest \d+ messages?\)")
        self.assertEqual(len(self.questions(terminal)), 8)

    def test_a_question_longer_than_the_context_is_said_and_not_kept(self):
        terminal = self.open(*GREEDY, "-c", "64")
        self.assertIn("limpid: ", terminal.say("the " * 100))
        self.assertEqual(self.questions(terminal), [])

    def test_the_banner_names_model_context_settings_and_keys(self):
        with Terminal("-m", TINY, "-c", "128") as terminal:
            shown = terminal.read_until(PROMPT)
        for part in (
            "\x1b[2mtiny_chat;",
            "context 128 tokens",
            "sampling: ",
            "/help",
            "Ctrl-C",
        ):
            self.assertIn(part, shown)

    def test_colours_are_for_terminals_that_want_them(self):
        with Terminal(*GREEDY, NO_COLOR="1") as terminal:
            terminal.read_until("> ")
            terminal.type("hello\r")
            terminal.read_until("\n> ")
            terminal.type("/exit\r")
            self.assertEqual(terminal.exit_code(), 0)
            self.assertNotRegex(terminal.seen, r"\x1b\[[0-9;]+m.*hello")
            self.assertNotIn("\x1b[1;36m", terminal.seen)
            self.assertNotIn("\x1b[2m", terminal.seen)
        with Terminal(*GREEDY, TERM="dumb") as terminal:
            terminal.read_until("> ")
            terminal.type("/exit\r")
            self.assertEqual(terminal.exit_code(), 0)
            self.assertNotIn("\x1b", terminal.seen.split("tiny_chat;")[1])  # after the bar


class History(OnATerminal):
    def file(self) -> pathlib.Path:
        return self.folder / "limpid" / "chat_history"

    def test_it_is_kept_between_conversations_for_its_owner_alone(self):
        first = self.open(*GREEDY, state=self.folder)
        first.say("hello wörld")
        first.say(" a secret")
        self.assertEqual(stat.S_IMODE(self.file().stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.file().parent.stat().st_mode), 0o700)
        self.assertNotIn("secret", self.file().read_text())
        first.type("\x03")  # also when it does not end well
        first.read_until("(Ctrl-C again")
        first.type("\x03")
        first.exit_code()
        second = self.open(*GREEDY, state=self.folder)
        second.say("\x1b[A")
        self.assertEqual(self.questions(second), ["hello wörld"])

    def test_a_message_of_several_lines_is_one_entry(self):
        first = self.open(*GREEDY, state=self.folder)
        first.type('"""one\r')
        first.say('two"""')
        second = self.open(*GREEDY, state=self.folder)
        second.say("\x1b[A")
        self.assertEqual(self.questions(second), ["one\ntwo"])

    def test_two_conversations_at_once_both_keep_theirs(self):
        first = self.open(*GREEDY, state=self.folder)
        second = self.open(*GREEDY, state=self.folder)
        first.say("one")
        second.say("two")
        first.say("three")
        self.assertEqual(self.file().read_text().split("\n")[1:4], ["one", "two", "three"])

    def test_what_cannot_be_kept_does_not_matter(self):
        self.file().parent.mkdir()
        self.file().mkdir()
        terminal = self.open(*GREEDY, state=self.folder)
        terminal.say("hello")
        self.assertEqual(self.questions(terminal), ["hello"])


if __name__ == "__main__":
    limpid_program.main()
