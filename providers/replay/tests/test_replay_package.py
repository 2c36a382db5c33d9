"""The package as a plugin: light to import, and its check is complete."""

import subprocess
import sys

from concertino.testing import check_package


def test_importing_it_reads_nothing() -> None:
    program = (
        "import sys\n"
        "shown = lambda event, args: print(args[0]) if event == 'open' and 'jsonl' in str(args[0]) else None\n"
        "sys.addaudithook(shown)\n"
        "import concertino_replay\n"
        "print(*{'aiohttp', 'numpy', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_its_names_are_there() -> None:
    import concertino_replay

    assert len(set(concertino_replay.__all__)) == len(concertino_replay.__all__)
    assert all(hasattr(concertino_replay, name) for name in concertino_replay.__all__)
    assert set(concertino_replay.__all__) <= set(dir(concertino_replay))


def test_the_check_of_the_package_is_complete() -> None:
    report = check_package("replay")
    assert report.ok, report.render()
    assert report.complete, report.render()
