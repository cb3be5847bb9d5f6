"""Headless Chromium: pages of a folder are shown in frames of a width, and a script reports what is there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--enable-logging=stderr",
)
# Four frames load at a time; a script's value is what is reported of its page.
HARNESS = """<!doctype html><meta charset="utf-8"><title>harness</title><script type="module">
const jobs = @JOBS@, seen = [];
const look = async (window, document, width) => {@SCRIPT@};
async function work() {
  for (let job; (job = jobs.shift());) {
    const [page, width] = job, frame = document.createElement("iframe");
    // Laid out, but not painted.
    frame.style = `width:${width}px;height:900px;border:0;visibility:hidden`;
    const loaded = new Promise(done => frame.onload = done);
    frame.src = page;
    document.body.append(frame);
    await loaded;
    try { seen.push({page, width, ...await look(frame.contentWindow, frame.contentDocument, width)}) }
    catch (error) { seen.push({page, width, failed: String(error.stack)}) }
    frame.remove();
  }
}
await Promise.all([work(), work(), work(), work()]);
await fetch("/seen", {method: "POST", body: JSON.stringify(seen)});
</script>"""


def browser(folder: Path, address: str, *flags: str) -> subprocess.Popen[str]:
    """Start it at an address, with a profile of its own in `folder`."""
    if shutil.which("chromium") is None:
        pytest.fail("the tests of pages need chromium on PATH", pytrace=False)
    command = ["chromium", *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def console(errors: str) -> list[str]:
    """Return the lines of a browser's console."""
    return re.findall(r'CONSOLE:\d+\] "(.*?)", source', errors)


class _Server(ThreadingHTTPServer):
    seen: list[dict[str, Any]]

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(root)))
        self.files = files
        self.ended = threading.Event()


class _Handler(SimpleHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        text = self.server.files.get(self.path)
        if text is None:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", str(self.guess_type(self.path)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        self.server.seen = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.ended.set()

    def log_message(self, *_: object) -> None:
        pass


def look(
    root: Path,
    jobs: Iterable[tuple[str, int]],
    script: str,
    profile: Path,
    *flags: str,
    files: Mapping[str, str] = MappingProxyType({}),
    patience_s: float = 300,
) -> list[dict[str, Any]]:
    """Return what the script reports of each page of `root` at each width, in no order.

    It is the body of a function of `window`, `document` and `width`. `files` are served beside the folder.
    """
    harness = HARNESS.replace("@JOBS@", json.dumps(sorted(jobs))).replace("@SCRIPT@", script)
    with _Server(root, {"/harness.html": harness, **files}) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running = browser(profile, f"http://127.0.0.1:{server.server_port}/harness.html", *flags)
        try:
            assert server.ended.wait(patience_s), "the browser reported nothing"
        finally:
            running.terminate()
            running.communicate()
            server.shutdown()
        assert [each for each in server.seen if "failed" in each] == []
        return server.seen
