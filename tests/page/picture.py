#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Take the picture of the dashboard for the documents: picture.py BUILD OUT [POOL [WIDTH [light|dark]]]

The page is the real one. made_up_pool.mjs invents the pool; POOL names one of its pools.
"""
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/support"))

import helper_folders  # noqa: E402, F401
import browser  # noqa: E402

READY = """document.documentElement.dataset.condition === 'live' && !document.getElementById('content').hidden
    && document.fonts.status === 'loaded' && document.getElementById('people-table').getAnimations().length === 0
    && (document.querySelectorAll('.lease-bar').length > 8 || !document.querySelector('.lease'))"""


def main(build, out, name="lab", width="1400", scheme="light"):
    os.environ["BERTH_BUILD_ROOT"] = str(Path(build).resolve())
    chrome = browser.Browser(SOURCE)
    words = [browser.node(), SOURCE / "tests/page/made_up_pool.mjs", name, "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as pool:
        try:
            page = chrome.open(pool.stdout.readline().strip(), width=int(width), scheme=scheme)
            page.until(READY)
            page.do("screenshot", path=str(Path(out).resolve()))
        finally:
            pool.terminate()
            chrome.close()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
