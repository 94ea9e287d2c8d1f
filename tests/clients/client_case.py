"""The common part of the tests of clients: a server for all tests of a class."""

import argparse
import json
import sys
import unittest
import urllib.request
from pathlib import Path
from typing import Any

from served import Served

options = argparse.Namespace()


class ServedCase(unittest.TestCase):
    flags: tuple[str, ...] = ()
    key = "none"

    @classmethod
    def setUpClass(cls) -> None:
        cls.served = Served(options.quire, *cls.flags)
        cls.model = cls.served.model

    @classmethod
    def tearDownClass(cls) -> None:
        status = cls.served.stop()
        if status != 0:
            raise AssertionError(f"SIGTERM ended the server with {status}: {cls.served.log()}")

    def closing_bias(self) -> dict[str, int]:
        """The model was not trained on JSON: without a bias, it may fill the context with one text."""
        bias = {}
        for mark in ('"', "}"):
            body = json.dumps({"prompt": mark, "add_special_tokens": False}).encode()
            headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key}"}
            request = urllib.request.Request(self.served.url + "/tokenize", body, headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                bias |= {str(token): 100 for token in json.load(answer)["tokens"]}
        return bias


class ClientCase(ServedCase):
    """A server and a client for all tests of a class; new_client() of the class makes the client."""

    client: Any

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.client = cls.new_client()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        super().tearDownClass()

    @classmethod
    def new_client(cls) -> Any:
        raise NotImplementedError


def tool_template() -> str:
    """A chat template with tools and their results, which the embedded model's own does not have."""
    return str(Path(__file__).with_name("tool_template.jinja"))


def main(description: str | None) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("--write-checkpoint", type=Path, help="write_dialect_checkpoint")
    parser.add_argument("tests", nargs="*", help="names, as unittest's")
    parser.parse_args(namespace=options)
    unittest.main(argv=[sys.argv[0], *options.tests])
