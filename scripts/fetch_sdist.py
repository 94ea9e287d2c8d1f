"""Downloads one source package, by name, version and SHA-256, as a plain file.

`pip download` would also install and run the package's build backend. This script uses pip only to
find and fetch the file, so that pip's own settings (index, certificates, proxy) apply.
"""

import argparse
import hashlib
import pathlib
import sys

from pip._internal.commands import create_command


def fetch(name: str, version: str) -> bytes:
    command = create_command("download")
    options, _ = command.parse_args([name])
    with command.main_context():
        session = command.get_default_session(options)
        finder = command._build_package_finder(options=options, session=session)
        wanted = f"{name}-{version}.tar.gz"
        for candidate in finder.find_all_candidates(name):
            if candidate.link.filename == wanted:
                answer = session.get(candidate.link.url_without_fragment)
                answer.raise_for_status()
                return answer.content
    sys.exit(f"fetch_sdist: pip's index has no {wanted}; is it the full index?")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("version")
    parser.add_argument("sha256")
    parser.add_argument("file", type=pathlib.Path, help="where it goes")
    args = parser.parse_args()
    content = fetch(args.name, args.version)
    digest = hashlib.sha256(content).hexdigest()
    if digest != args.sha256:
        sys.exit(f"fetch_sdist: {args.name} {args.version} is not the pinned file; "
                 f"got sha256 {digest}, expected {args.sha256}")
    args.file.write_bytes(content)


if __name__ == "__main__":
    main()
