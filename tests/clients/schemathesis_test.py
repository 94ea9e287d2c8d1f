"""Runs schemathesis on /openapi.json: no 5xx, responses as described, valid requests are not refused.

    schemathesis_test.py --quire BINARY [--max-examples N] [--seed N]
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from served import Served

# An invalid request that is accepted may ask for the whole context 128 times; a valid one may ask
# for 128 samples for each of 8 prompts.
FLAGS = ("--max-model-len", "1024", "--max-num-seqs", "128", "--max-num-queued-reqs", "1024",
         "--log-level", "error")  # fmt: skip
HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quire", type=Path, required=True, help="the binary")
    parser.add_argument("--max-examples", type=int, default=300, help="of an operation and phase")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with Served(options.quire, *FLAGS) as served:
        command = [
            str(Path(sys.executable).with_name("schemathesis")),
            "run",
            f"{served.url}/openapi.json",
            "--checks=all",
            f"--max-examples={options.max_examples}",
            f"--seed={options.seed}",
            # Python before 3.11.8 can parse in one thread only (CPython issue 106905), and threads
            # that generate cases would take turns anyway.
            "--workers=1",
            "--continue-on-failure",
            "--request-timeout=60",
            "--generation-database=none",
            "--no-color",
        ]
        paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
        hooks = {"SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": os.pathsep.join(paths)}
        status = subprocess.run(command, check=False, env=os.environ | hooks).returncode
        served.seconds_until_free()
    return status


if __name__ == "__main__":
    sys.exit(main())
