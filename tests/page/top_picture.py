#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the picture of berth top that the documents show: top_picture.py BUILD OUT

berth top and its pool are real; the devices are those of an inventory, and the jobs sleep. tmux is
the terminal, and a browser draws what it shows.
"""
import html
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests/support"))

import helper_folders  # noqa: E402, F401
import browser  # noqa: E402

COLUMNS, LINES = 124, 32
LOADS = (0.97, 0.94, 0.88, 0.91, 0.42, 0.07, 0.0, 0.0)
JOBS = (
    ("llama-finetune", ["-n", "4", "--time", "6h"]),
    ("whisper", ["--time", "2h"]),
    ("notebook", ["--sharing", "time-slice", "--share", "0.5", "--memory", "16GiB"]),
    ("diffusion-eval", ["-n", "4", "--time", "1h"]),
    ("tokenizer", ["-n", "2"]),
)
COLOURS = ("#1c1e26", "#e95678", "#29d398", "#fab795", "#26bbd9", "#ee64ae", "#59e3e3", "#d5d8da")
STYLE = re.compile(r"\x1b\[([\d;]*)m")


def inventory():
    lines = ["devices:"]
    for index, load in enumerate(LOADS):
        lines.append(
            f"  - {{vendor: nvidia, index: {index}, name: NVIDIA A100-SXM4-80GB, memory: 80GiB, free: {80 - int(load * 70)}GiB,"
            f" utilization: {load}, temperature: {34 + int(load * 30)}, power: {60 + int(load * 320)}, health: ok,"
            f" numa: {index // 4}}}"
        )
    return "\n".join(lines) + "\n"


def colour_of(codes, start):
    """Returns the colour that the codes 30 to 37 (or 40 to 47) name, or that 38;5;N does."""
    for code in codes:
        if start <= code < start + 8:
            return COLOURS[code - start]
        if start + 60 <= code < start + 68:
            return COLOURS[code - start - 60]
    return None


def to_html(screen):
    """Turns a screen with escape sequences into a page."""
    body = []
    for line in screen.splitlines():
        codes = []
        for number, part in enumerate(STYLE.split(line)):
            if number % 2 == 1:
                new = [int(code or 0) for code in part.split(";")]
                codes = [] if 0 in new else codes
                codes += [code for code in new if code != 0]
                continue
            front, back = colour_of(codes, 30) or COLOURS[7], colour_of(codes, 40)
            if 7 in codes:
                front, back = back or COLOURS[0], front
            style = f"color:{front}" + (f";background:{back}" if back else "")
            style += ";font-weight:bold" * (1 in codes) + ";opacity:.6" * (2 in codes)
            body.append(f'<span style="{style}">{html.escape(part)}</span>')
        body.append("\n")
    return (
        f'<!doctype html><meta charset="utf-8"><body style="margin:0;background:{COLOURS[0]}">'
        f'<pre style="margin:14px;font:14px/18px \'DejaVu Sans Mono\',monospace">{"".join(body)}</pre>'
    )


def take_screen(build, directory):
    """Runs berth top beside some jobs; returns its screen."""
    (directory / "lab.yaml").write_text(inventory())
    environment = {
        **os.environ,
        "BERTH_INVENTORY": str(directory / "lab.yaml"),
        "BERTH_RUNTIME_DIR": str(directory / "run"),
        "HOME": str(directory),
    }
    berth = Path(build).resolve() / "berth"
    tmux = ["tmux", "-S", str(directory / "tmux"), "-f", "/dev/null"]
    jobs = []
    try:
        for name, request in JOBS:
            jobs.append(subprocess.Popen([berth, "run", "--name", name, *request, "sleep", "600"], env=environment))
            time.sleep(0.3)
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        subprocess.run([*tmux, "new-session", "-d", *size, str(berth), "top"], check=True, env=environment)
        time.sleep(4)
        done = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True)
        return done.stdout.replace(f"{directory}/lab.yaml", "lab.yaml".ljust(len(f"{directory}/lab.yaml")))
    finally:
        subprocess.run([*tmux, "kill-server"], check=False, capture_output=True)
        for job in jobs:
            job.terminate()
            job.wait()


def main(build, out):
    os.environ["BERTH_BUILD_ROOT"] = str(Path(build).resolve())
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "run").mkdir(mode=0o700)
        page_file = directory / "top.html"
        page_file.write_text(to_html(take_screen(build, directory)))
        chrome = browser.Browser(SOURCE)
        try:
            page = chrome.open(page_file.as_uri(), width=COLUMNS * 843 // 100 + 28, height=LINES * 18 + 28, scheme="dark")
            page.do("screenshot", path=str(Path(out).resolve()))
        finally:
            chrome.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
