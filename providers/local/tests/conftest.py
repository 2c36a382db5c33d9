"""What the tests of local models share."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from concertino_local import LocalModel
from concertino_local.settings import read_settings
from filelock import FileLock

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))
from local_models import make_network, make_tokenizer, save, teach


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return make_tokenizer()


@pytest.fixture(scope="session")
def scripted(tmp_path_factory: pytest.TempPathFactory, tokenizer: Any) -> Path:
    """A folder with a model that knows the script by heart; made once for all processes of a test run."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "scripted"
    with FileLock(shared / "scripted.lock"):
        if not folder.is_dir():
            save(own / "scripted-unfinished", taught(tokenizer), tokenizer).rename(folder)
    return folder


def taught(tokenizer: Any) -> Any:
    """A network that knows the script by heart."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    network = make_network(tokenizer)
    assert teach(network, tokenizer) < 0.01
    torch.set_num_threads(threads)
    return network


@pytest.fixture(scope="session")
def rambler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random model whose replies never end by themselves."""
    tokenizer = make_tokenizer(ends=False)
    return save(
        tmp_path_factory.mktemp("rambler"), make_network(tokenizer, seed=7, max_position_embeddings=8192), tokenizer
    )


@pytest_asyncio.fixture
async def open_model() -> AsyncIterator[Callable[..., LocalModel]]:
    """Makes models that are closed after the test."""
    opened: list[LocalModel] = []

    def make(path: Path, **options: Any) -> LocalModel:
        opened.append(
            LocalModel(read_settings("test", {"path": str(path), "dtype": "float32", "threads": 1, **options}))
        )
        return opened[-1]

    yield make
    for model in opened:
        await model.close()
