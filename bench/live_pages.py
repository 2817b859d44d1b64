"""Pages of `cues live` at once, each with the demo's answer; none may underrun. Needs Chromium and a quiet machine.

python -m bench.live_pages [PAGES]    exits with 1 if a page underruns; 10 pages by default
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from bench.pictures import chromium, wait

OVER = "live.events.some(event => event.type === 'live.end') && live.report.state === 'idle'"
ANSWER_MS = 9000


def main(n_pages: int) -> int:
    """Play, print the underruns of each page and the machine's load, and return the exit code."""
    command = [sys.executable, "-m", "cues", "live", "--port", "0", "--speaker", "espeak"]
    before = os.getloadavg()[0]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server, chromium() as browser:
        assert server.stdout is not None
        url = server.stdout.readline().split()[1]
        pages = [browser.new_page(viewport={"width": 390, "height": 700}) for _ in range(n_pages)]
        for page in pages:
            page.goto(url)
            wait(page, "live.state.open")
            page.evaluate("live.startSound()")
        for page in pages:
            page.click("#scripts button")
        pages[0].wait_for_timeout(ANSWER_MS)  # asking meanwhile would load the machine
        for page in pages:
            wait(page, OVER)
        underruns = [page.evaluate("live.report.underruns") for page in pages]
        server.send_signal(signal.SIGINT)
    print(f"{n_pages} pages, underruns {underruns}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    return int(any(underruns))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10))
