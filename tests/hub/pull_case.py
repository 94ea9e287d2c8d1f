"""The common part of the tests that pull from a hub on this machine."""

from pathlib import Path

from hub_server import Hub, blob_hash
from quire_case import QuireCase

NAME = "tiny/stories"


class PullTest(QuireCase):
    """A hub, and an empty cache for each test."""

    name = NAME  # of the model that the test pulls

    def setUp(self) -> None:
        super().setUp()
        self.cache = self.home / "cache"
        self.hub = Hub()
        self.enterContext(self.hub)

    def own_variables(self) -> dict[str, str]:
        return {"HF_ENDPOINT": self.hub.url, "HF_HUB_CACHE": str(self.cache), "HF_HOME": str(self.home)}

    def pull(self, name: str = "", **variables: str) -> Path:
        """Succeeds, and returns the snapshot or the GGUF file."""
        return Path(self.succeed("pull", name or self.name, **variables).strip())

    def refuse(self, *expected: str, name: str = "", **variables: str) -> str:
        return self.refuse_pull(name or self.name, *expected, **variables)

    def folder(self) -> Path:
        return self.cache / ("models--" + self.name.replace("/", "--"))

    def blob(self, content: bytes) -> Path:
        return self.folder() / "blobs" / blob_hash(content)

    def partial(self, content: bytes) -> Path:
        return Path(str(self.blob(content)) + ".incomplete")
