"""Runs lm-eval's `local-completions` against the real binary: each score equals the score of `quire generate`.

    lm_eval_test.py --quire BINARY [TEST …]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lm_eval
from lm_eval.tasks import TaskManager
from lm_eval.utils import check_remote_tokenizer_support

from served import Served

options = argparse.Namespace()
TASKS = Path(__file__).parent / "tasks"
CHOICE, WORDS = "apples_choice", "apples_words"


@dataclass
class Scored:
    """One row of a task: the arguments of its requests, their results, and the task's scores."""

    arguments: list[tuple[Any, ...]]
    responses: list[Any]
    sample: dict[str, Any]


def evaluate(url: str, model: str, task: str, **more: Any) -> list[Scored]:
    with tempfile.TemporaryDirectory() as folder:
        # A task names its rows by an absolute path, which is known only here.
        for template in TASKS.glob("*.yaml"):
            text = template.read_text().replace("${TASKS}", str(TASKS))
            (Path(folder) / template.name).write_text(text)
        arguments = {"model": model, "base_url": f"{url}/v1/completions", "max_length": 4096} | more
        results = lm_eval.simple_evaluate(
            model="local-completions",
            model_args=arguments,
            tasks=[task],
            task_manager=TaskManager(include_path=folder, include_defaults=False),
            bootstrap_iters=0,
        )
    samples = sorted(results["samples"][task], key=lambda sample: sample["doc_id"])
    return [
        Scored(
            [tuple(each.values()) for each in sample["arguments"].values()]
            if isinstance(sample["arguments"], dict)
            else sample["arguments"],
            sample["resps"],
            sample,
        )
        for sample in samples
    ]


def generate(rows: list[dict[str, Any]], *flags: str) -> list[dict[str, Any]]:
    """The engine's outputs, without a server."""
    run = subprocess.run(
        [str(options.quire.resolve()), "generate", "--input", "-", "--format", "json", *flags],
        input="".join(json.dumps(row) + "\n" for row in rows),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return sorted(answers, key=lambda answer: answer["index"])


class LmEvalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.served = Served(options.quire)

    @classmethod
    def tearDownClass(cls) -> None:
        status = cls.served.stop()
        if status != 0:
            raise AssertionError(f"SIGTERM ended the server with {status}: {cls.served.log()}")

    def tokens(self, text: str) -> list[int]:
        body = json.dumps({"prompt": text, "add_special_tokens": False}).encode()
        call = urllib.request.Request(
            self.served.url + "/tokenize", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(call, timeout=30) as answer:
            return json.load(answer)["tokens"]

    def direct_scores(self, pairs: list[tuple[str, str]]) -> list[tuple[float, bool]]:
        """Returns each continuation's log-likelihood, and whether greedy decoding gives it."""
        rows = [{"prompt_token_ids": self.tokens(context + more)} for context, more in pairs]
        answers = generate(rows, "--max-tokens", "1", "--prompt-logprobs", "1")
        scores = []
        for (context, _), answer in zip(pairs, answers, strict=True):
            positions = answer["prompt_logprobs"][len(self.tokens(context)) :]
            total = sum(position[0]["logprob"] for position in positions)
            scores.append((total, all(position[0]["rank"] == 1 for position in positions)))
        return scores

    def check_choices(self, rows: list[Scored]) -> None:
        pairs = [pair for row in rows for pair in row.arguments]
        scores = [response for row in rows for [response] in row.responses]
        self.assertEqual(len(pairs), 17)
        for got, expected in zip(scores, self.direct_scores(pairs), strict=True):
            self.assertAlmostEqual(float(got[0]), expected[0], delta=2e-3)
            self.assertEqual(str(got[1]), str(expected[1]))

    def test_log_likelihoods(self) -> None:
        rows = evaluate(self.served.url, self.served.model, CHOICE, tokenizer_backend="remote")
        self.check_choices(rows)

    def test_log_likelihoods_of_many_at_once(self) -> None:
        rows = evaluate(self.served.url, self.served.model, CHOICE, tokenizer_backend="remote",
                        num_concurrent=4, batch_size=4)  # fmt: skip
        self.check_choices(rows)

    def test_generation(self) -> None:
        rows = evaluate(self.served.url, self.served.model, WORDS, tokenizer_backend="none",
                        tokenized_requests=False, num_concurrent=3)  # fmt: skip
        prompts = [{"prompt": row.arguments[0][0]} for row in rows]
        expected = generate(prompts, "--max-tokens", "48", "--temperature", "0",
                            "--stop", "\n", "--stop", "####")  # fmt: skip
        self.assertEqual(len(rows), 6)
        for row, answer in zip(rows, expected, strict=True):
            self.assertEqual(row.responses, [[answer["text"]]])
            self.assertNotEqual(answer["text"], "")

    def test_finds_the_tokenizer_by_itself(self) -> None:
        """Without a flag, lm-eval uses /tokenizer_info, or loads a tokenizer by the model's name."""
        self.assertTrue(check_remote_tokenizer_support(self.served.url + "/v1/completions"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("tests", nargs="*", help="names, as unittest's")
    parser.parse_args(namespace=options)
    unittest.main(argv=[sys.argv[0], *options.tests])


if __name__ == "__main__":
    main()
