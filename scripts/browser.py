"""Bring Chromium for the tests of report pages to a continuous-integration machine.

    python scripts/browser.py

The invariant: nobody's own machine is changed. Only where `CI` is set, on a Debian-like Linux, by root, is the package
installed; elsewhere, and where that fails, the reason is printed and the tests of pages in a browser are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
_SKIPPED = "Tests of pages in a browser will be skipped."


def main() -> None:
    """Install it, or say why not."""
    if any(shutil.which(name) for name in NAMES):
        return
    reason = _reason()
    if reason:
        print(f"No Chromium: {reason}. {_SKIPPED}", flush=True)
        return
    print("Installing Chromium (half a minute, 400 MB) ...", flush=True)
    started = time.monotonic()
    flags = ["-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30"]
    for command in (["update", "-q"], ["install", "-y", "-q", "--no-install-recommends", "chromium"]):
        try:
            done = subprocess.run(
                ["apt-get", *flags, *command], capture_output=True, text=True, timeout=300, check=False,
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"apt-get {command[0]} took more than five minutes. {_SKIPPED}", flush=True)
            return
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            print(f"apt-get {command[0]} failed: {''.join(said)}. {_SKIPPED}", flush=True)
            return
    print(f"Installed Chromium in {time.monotonic() - started:.0f} s.", flush=True)


def _reason() -> str:
    """Why it is not installed; empty where it can be."""
    if not os.environ.get("CI"):
        return "install your system's package chromium to have them"
    if sys.platform != "linux" or shutil.which("apt-get") is None:
        return "it is installed by apt-get only"
    if os.geteuid() != 0:
        return "apt-get needs root"
    return ""


if __name__ == "__main__":
    main()
