# SPDX-License-Identifier: Apache-2.0
"""The page of berth web in a real Chromium: what it shows, and that it stays up to date."""
import json
import os
import signal

import pytest
from browser import Browser
from hardware_pool import SICK
from lease_history import configure
from pool import inventory_of, let_go
from waiting import until_pending, until_served

LIVE = "document.documentElement.dataset.condition === 'live'"
# Nothing overflows the page, not even hidden elements at the side.
NO_OVERFLOW = "document.documentElement.scrollWidth <= innerWidth"
# Every figure stays within its device and does not overlap the next one.
FIGURES_FIT = """[...document.querySelectorAll('.device')].slice(0, 2).every((device) => {
  const edge = device.getBoundingClientRect().right - 4;
  const boxes = [...device.querySelectorAll('.value, .bar, .sparkline')].filter((node) => node.checkVisibility())
    .map((node) => node.getBoundingClientRect());
  const apart = (one, other) => one.right <= other.left + 0.5 || other.right <= one.left + 0.5 ||
    one.bottom <= other.top + 0.5 || other.bottom <= one.top + 0.5;
  return boxes.every((box, i) => box.right <= edge && boxes.every((other, j) => i === j || apart(box, other)));
})"""
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser(source_root):
    made = Browser(source_root)
    yield made
    made.close()


class Web:
    """A running berth web that can be restarted at the same address."""

    def __init__(self, sandbox, options):
        self.sandbox = sandbox
        self.options = options
        self.address = "127.0.0.1:0"
        self.start()

    def start(self):
        self.program = self.sandbox.start(["berth", "web", "--listen", self.address, *self.options])
        self.url = self.program.wait_for_line("^berth web: ").split()[-1]
        self.address = self.url.split("/")[2]

    def end(self, number=signal.SIGTERM):
        if self.program.code is None:
            self.program.kill(signal.SIGCONT)
            self.program.kill(number)
            self.program.wait()


@pytest.fixture
def shown(browser, sandbox, pool_of, hardware_of):
    """Open the page of the sandbox's pool: shown(width=390); shown.web is the berth web behind it."""
    webs, pages = [], []

    def show(*options, **how):
        if not webs or options:
            webs.append(Web(sandbox, options))
        page = browser.open(webs[-1].url, **how)
        page.web = webs[-1]
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.close()
    for web in webs:
        web.end()


def text_is(selector, text):
    return f"document.querySelector({json.dumps(selector)})?.textContent === {json.dumps(text)}"


def text_has(selector, text):
    return f"!!document.querySelector({json.dumps(selector)})?.textContent.includes({json.dumps(text)})"


def count_is(selector, count):
    return f"[...document.querySelectorAll({json.dumps(selector)})].filter((node) => node.checkVisibility()).length === {count}"


def state_of(page, device):
    return page.evaluate(f"document.getElementById('device-{device}').dataset.state")


def state_is(device, state):
    return f"document.getElementById('device-{device}')?.dataset.state === {json.dumps(state)}"


# ---- Content ----


def test_devices_and_their_figures(shown, hardware_of):
    pool = hardware_of()
    configure(pool, "squatter_memory: 0\n")
    pool.says([
        pool.device(0, utilization=870, memory_free=20 << 30, temperature=61500, power=312400),
        pool.device(1, name="NVIDIA H100 PCIe", utilization=0, memory_free=80 << 30),
        pool.device(2, utilization=None, memory_total=None),
    ])
    page = shown()
    page.until(count_is(".device", 3))
    page.until(text_is("#device-nvidia0 .load .value", "87 %"))
    assert page.texts("#device-nvidia0 .value") == ["87 %", "60 / 80 GiB", "62 °C", "312 W"]
    assert page.texts("#device-nvidia1 .model") == ["H100 PCIe"]
    # An unknown value is never shown as 0.
    assert page.texts("#device-nvidia1 .value") == ["0 %", "0 / 80 GiB", "– °C", "– W"]
    assert page.texts("#device-nvidia2 .value") == ["unknown", "unknown", "– °C", "– W"]
    page.until("document.querySelector('#device-nvidia0 .line').getAttribute('d').length > 10")
    assert page.evaluate("document.querySelector('#device-nvidia2 .line').getAttribute('d') ?? ''") == ""
    assert page.texts("#count-free") == ["3"]
    assert page.evaluate("document.title") == "3 free – berth"
    page.screenshot("devices")
    pool.says([pool.device(0, utilization=120), pool.device(1), pool.device(2)])
    page.until(text_is("#device-nvidia0 .load .value", "12 %"))
    assert page.complaints() == []


def test_a_claim_waits_and_is_granted_and_ends(shown, pool_of):
    pool = pool_of(1)
    first = pool.hold("--name", "first", "--time", "1h")
    page = shown()
    page.until(text_is("#device-nvidia0 .job", "first"))
    page.until(text_has("#device-nvidia0 .left", "59 m"))
    page.until(text_is("#queue-empty", "Nobody waits."))
    waiting = pool.start("run", "--name", "second", "--", "sh", "-c", "echo holding $BERTH_LEASE; exec cat")
    until_pending(pool, 1)
    page.until(text_is("#queue-list .job", "second"))
    page.until(text_has("#queue-list .estimate", "in about"))
    assert page.texts("#count-waiting") == ["1"]
    assert page.texts("#queue-list .why")[0] != ""
    page.screenshot("queue")
    assert page.audit() == []
    pool.let_go(first)
    waiting.wait_for_line("^holding ")
    page.until(text_is("#device-nvidia0 .job", "second"))
    page.until(count_is("#queue-list .claim", 0))
    page.until(count_is("#timeline .lease-bar", 2))
    pool.let_go(waiting)
    page.until(state_is("nvidia0", "free"))
    page.until(count_is(".lease", 0))
    page.until(text_is("#count-free", "1"))
    # Ended leases stay in the timeline; very short ones share one bar.
    page.until("document.querySelector('#timeline .lease-bar')?.getAttribute('aria-label').includes('2 short leases')")
    # A page that is opened later shows them, too, from the history.
    ended = "fetch('/api/history?hours=6').then((answer) => answer.json()).then((past) => past.leases)"
    page.until(f"{ended}.then((leases) => leases.length === 2 && leases.every((lease) => lease.ended_at))")
    # Answers are cached for 2 s, each by itself.
    used = "fetch('/api/report?by=user&hours=6').then((answer) => answer.json()).then((report) => report.rows.length === 1)"
    page.until(used)
    page.reload()
    page.until("document.querySelector('#timeline .lease-bar')?.getAttribute('aria-label').includes('2 short leases')")
    page.until(text_is("#people-rows .hours", "0.0"))
    assert page.complaints() == []


def test_what_needs_attention_stands_out(shown, hardware_of, sleeper):
    squatter = sleeper()
    pool = hardware_of()
    process = {"pid": squatter.pid, "uid": os.getuid(), "memory": 1 << 30, "command": "sleep 1000"}
    pool.says([
        0,
        pool.device(1, health=SICK, health_reason="XID 79: fallen off the bus"),
        pool.device(2, processes=[process]),
        3,
    ])
    page = shown()
    page.until(state_is("nvidia1", "sick"))
    page.until(state_is("nvidia2", "squatted"))
    page.until(text_is("#attention-title", "2 need attention"))
    assert any("XID 79" in text for text in page.texts("#attention-list li"))
    assert any(f"pid {squatter.pid}" in text and "sleep" in text for text in page.texts("#attention-list li"))
    assert f"pid {squatter.pid}" in page.texts("#device-nvidia2 .reason")[0]
    assert pool.berth("drain", "nvidia3", "--reason", "new fan").code == 0
    page.until(state_is("nvidia3", "drained"))
    page.until(text_has("#device-nvidia3 .reason", "new fan"))
    page.screenshot("attention")
    assert page.audit() == []
    pool.says([0, 1, 2, 3])
    page.until("document.getElementById('attention').hidden")


# ---- Outages ----


@pytest.fixture
def served(sandbox):
    """Start a daemon that no command starts on demand. It can be restarted at the same place."""
    inventory = sandbox.directory / "inventory.yaml"
    inventory.write_text(inventory_of(2))
    sandbox.environment["BERTH_SOCKET"] = str(sandbox.directory / "berth.sock")

    def start():
        daemon = sandbox.start(["berthd", "--socket", sandbox.environment["BERTH_SOCKET"], "--inventory", inventory])
        until_served(sandbox.environment["BERTH_SOCKET"])
        return daemon

    return start


def test_the_daemon_dies_and_comes_back(served, shown, sandbox):
    daemon = served()
    page = shown()
    page.until(LIVE)
    page.until(count_is(".device", 2))
    daemon.stop()
    page.until(text_has("#live-words", "the daemon is gone since"))
    assert page.evaluate("getComputedStyle(document.getElementById('content')).filter") != "none"
    assert page.texts("#spoken")[0].startswith("the daemon is gone")
    assert page.evaluate(count_is(".device", 2))
    page.screenshot("gone")
    daemon = served()
    holder = sandbox.start(["berth", "run", "--name", "afterwards", "--", "cat"])
    page.until(LIVE)
    page.until(text_is(".device .job", "afterwards"))
    page.until("getComputedStyle(document.getElementById('content')).filter === 'none'")
    let_go(holder)
    page.until(count_is(".lease", 0))
    daemon.kill()
    daemon.wait()


def test_berth_web_dies_and_comes_back(shown, pool_of):
    pool_of(2)
    page = shown()
    page.until(LIVE)
    page.web.end(signal.SIGKILL)
    page.until(text_has("#live-words", "cannot reach berth web, reconnecting"))
    page.web.start()
    page.until(LIVE)
    page.until(count_is(".device", 2))


def test_what_is_old_is_marked(shown, pool_of):
    """The daemon hangs, and then berth web hangs."""
    pool = pool_of(1)
    page = shown()
    quiet = shown(clock=True)
    page.until(LIVE)
    quiet.until(LIVE)
    [daemon] = pool.daemons()
    os.kill(daemon, signal.SIGSTOP)
    page.evaluate("fetch('/api/status').then(() => true)")  # berth web queries the daemon, which does not answer
    page.until(text_has("#live-words", "the daemon has not answered since"), timeout=20000)
    page.screenshot("old")
    os.kill(daemon, signal.SIGCONT)
    page.until(LIVE)
    quiet.until(LIVE)
    page.web.program.kill(signal.SIGSTOP)
    quiet.do("pass", milliseconds=17000)
    quiet.until(text_has("#live-words", "no news for 1"))
    assert "as of" in quiet.texts("#live-words")[0]
    page.web.program.kill(signal.SIGCONT)
    assert pool.berth("drain", "nvidia0").code == 0  # sooner than the next tick
    quiet.until(LIVE)


# ---- Untrusted texts ----

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(2)</script></style></svg>",
    "\u202egnp.exe\u2066\u200f\u061c",
    "a" * 255,
    "\"' onmouseover=alert(3) x=\"",
    "&lt;b&gt; \\u003cb\\u003e {{7*7}} ${7*7}",
]


def test_hostile_texts_stay_texts(shown, hardware_of, sleeper):
    pool = hardware_of()
    hostile_process = {"pid": sleeper().pid, "uid": os.getuid()}
    pool.says([
        *range(len(HOSTILE)),
        pool.device(10, name="NVIDIA <b>bold</b>\u202e\u0007", health=SICK, health_reason="<i>ill</i>\u2067"),
        pool.device(11, processes=[{**hostile_process, "command": "<u>x</u>\u202e\u001b[31m" + "long" * 200}]),
    ])
    holders = [pool.hold("--name", name) for name in HOSTILE]
    waiting = pool.start("run", "--name", HOSTILE[0], "--device", "nvidia0", "--", "echo", HOSTILE[1], HOSTILE[2], "long " * 800)
    until_pending(pool, 1)
    page = shown(**PHONE)
    page.until(count_is("#queue-list .claim", 1))
    page.until(count_is("#timeline .lease-bar", len(HOSTILE)))
    page.until(text_is("#attention-title", "2 need attention"))
    assert page.evaluate(NO_OVERFLOW)
    page.screenshot("hostile-phone")
    assert page.audit() == []
    page.resize(width=1280, height=900)
    page.click(selector="#timeline-as-table summary")
    page.until(count_is("#timeline-table tr", len(HOSTILE)))
    page.hover(selector="#timeline .lease-bar")
    page.until("!document.getElementById('timeline-details').hidden")
    page.screenshot("hostile")
    assert page.evaluate(NO_OVERFLOW)
    made = "img, b, i, u, body script, body style, [onerror], [onmouseover]"
    assert page.evaluate(f"document.querySelectorAll({json.dumps(made)}).length") == 0
    everything = page.evaluate(
        "[...document.querySelectorAll('*')].flatMap((node) => [node.getAttribute('title'), node.getAttribute('aria-label')])"
        ".concat([document.body.textContent, document.title]).join('|')"
    )
    assert HOSTILE[0] in everything
    assert "{{7*7}}" in everything and "${7*7}" in everything
    assert not set(everything) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u0007\u001b")
    # Every text from a user is isolated from the surrounding text.
    assert page.evaluate("[...document.querySelectorAll('.job, .user, .why, .request')].every((node) => node.tagName === 'BDI')")
    long = "document.querySelector('#device-nvidia3 .job')"
    assert len(page.evaluate(f"{long}.textContent")) <= 80
    assert page.evaluate(f"{long}.title") == HOSTILE[3]
    assert page.complaints() == []
    waiting.kill(signal.SIGINT)
    waiting.wait()
    for holder in holders:
        pool.let_go(holder)


def test_words_and_figures(shown, pool_of):
    """The modules that only compute, as the browser loads them."""
    pool_of(1)
    page = shown()
    page.until(LIVE)

    def of(module, expression):
        return page.evaluate(f"import('/assets/{module}.js').then((it) => {expression})")

    assert of("text", r"it.plain('a\u202eb\u0000c\u{e0041}d\ud800')") == r"a\u202eb\x00c\u{e0041}d\ud800"
    assert of("text", r"it.plain('\u0645\u06cc\u200c\u062e')") == "\u0645\u06cc\u200c\u062e"
    assert of("text", "it.cut('abcdef', 4)") == "abc…"
    assert of("text", "[0, 59.9, 61, 3600, 90061, null, NaN].map(it.duration)") == [
        "0 s", "59 s", "1 m 01 s", "1 h 00 m", "1 d 1 h", "–", "–",
    ]
    assert of("text", "[it.percent(null), it.percent(0), it.sizeOf(null, null), it.sizeOf(0, 2 ** 30)]") == [
        "–", "0 %", "unknown", "0 / 1 GiB",
    ]
    # A thousand leases on one device give as many bars as can be distinguished, and no lease is
    # lost.
    spans = "Array.from({length: 1000}, (_, i) => ({key: i, devices: ['a'], start: i * 10, end: i * 10 + 9}))"
    bars = of("timeline_layout", f"it.layOut({spans}, 0, 10000, 100).get('a')")
    assert len(bars) < 110 and sum(len(bar["spans"]) for bar in bars) == 1000
    both = "[0, 1].map((i) => ({key: i, devices: ['a'], start: i, end: 10}))"
    assert [(bar["lane"], bar["lanes"]) for bar in of("timeline_layout", f"it.layOut({both}, 0, 10, 100).get('a')")] == [
        (0, 2), (1, 2),
    ]
    # The page keeps the load of the last five minutes only, however long it is open.
    load = "(() => { const load = new it.LoadHistory(); for (let i = 0; i < 9e4; i++) load.add(1e12 + i * 1000, 0.5); return load; })()"
    assert of("store", f"(() => {{ let count = 0; {load}.each(() => count++); return count; }})()") == 150
    assert page.complaints() == []


# ---- Sizes and colours ----


def test_sixty_four_devices(shown, hardware_of):
    pool = hardware_of()
    configure(pool, "squatter_memory: 0\n")
    figures = {"memory_free": (92 << 30) + (1 << 28), "memory_total": 192 << 30, "temperature": 101000, "power": 1000000}
    pool.says([pool.device(0, utilization=None), *(pool.device(i, utilization=1000, **figures) for i in range(1, 64))])
    holders = [pool.hold("-n", "8", "--name", f"job-{number}") for number in range(3)]
    page = shown(width=1400, height=900)
    page.until(count_is(".device", 64))
    page.until(count_is(".lease", 24))
    page.until(text_is("#device-nvidia63 .load .value", "100 %"))
    assert page.evaluate("document.getElementById('device-list').classList.contains('rows')")
    assert page.evaluate(NO_OVERFLOW)
    page.screenshot("64-devices")
    # The page may be open for days: it creates no elements when nothing has changed.
    page.evaluate("document.getElementById('device-nvidia63').kept = true")
    nodes = page.evaluate("document.querySelectorAll('*').length")
    page.evaluate("globalThis.before = document.querySelector('.held').textContent")
    page.until("document.querySelector('.held').textContent !== globalThis.before")
    assert page.evaluate("document.querySelectorAll('*').length") == nodes
    assert page.evaluate("document.getElementById('device-nvidia63').kept") is True
    page.check(selector="input[name=layout][value=cards]")
    page.until("document.getElementById('device-list').classList.contains('cards')")
    page.screenshot("64-devices-cards", full=False)
    page.reload()
    page.until(count_is(".device", 64))
    page.until("document.getElementById('device-list').classList.contains('cards')")
    for width in (1180, 800, 721, 390, 360):
        page.resize(width=width, height=844)
        for layout in ("rows", "cards"):
            page.check(selector=f"input[name=layout][value={layout}]")
            page.until(f"document.getElementById('device-list').classList.contains('{layout}')")
            assert page.evaluate(NO_OVERFLOW), (width, layout)
            assert page.evaluate(FIGURES_FIT), (width, layout)
    page.screenshot("64-devices-phone", full=False)
    assert page.complaints() == []
    for holder in holders:
        pool.let_go(holder)


def test_light_and_dark(shown, pool_of):
    pool_of(3)
    page = shown(scheme="dark")
    page.until(count_is(".device", 3))
    brightness = "getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + +b, 0)"
    assert page.evaluate(brightness) < 200
    page.screenshot("dark")
    assert page.audit() == []
    page.check(selector="input[name=theme][value=light]")
    assert page.evaluate(brightness) > 600
    page.reload()
    page.until(count_is(".device", 3))
    assert page.evaluate(brightness) > 600
    page.check(selector="input[name=theme][value=auto]")
    assert page.evaluate(brightness) < 200


def test_an_empty_pool(shown, pool_of):
    pool_of("devices: []\n")
    page = shown(**PHONE)
    page.until(text_is("#device-empty", "This pool has no devices."))
    page.until(text_is("#queue-empty", "Nobody waits."))
    assert page.evaluate(NO_OVERFLOW)
    page.screenshot("empty")


# ---- Keyboard ----

FOCUSED = """(() => {
  const node = document.activeElement;
  const seen = node.matches('.choice input') ? node.nextElementSibling : node;
  const style = getComputedStyle(seen);
  const marked = style.outlineStyle !== 'none' || getComputedStyle(node.firstElementChild ?? node).strokeWidth === '2px';
  return [node.id || node.name || node.className.baseVal || node.className || node.tagName, marked];
})()"""


def test_everything_is_reached_by_the_keyboard(shown, pool_of):
    pool = pool_of(3)
    holders = [pool.hold("--name", f"job-{number}") for number in range(2)]
    page = shown()
    page.until(count_is("#timeline .lease-bar", 2))
    reached = []
    for _ in range(14):
        page.press("Tab")
        name, marked = page.evaluate(FOCUSED)
        assert marked, f"the focus on {name} is not visible"
        reached.append(name)
        if name == "A" and reached.count("A") == 2:
            break
    wanted = ["skip", "filter", "theme", "layout", "hours", "lease-bar running", "SUMMARY", "A", "A"]
    assert reached == wanted
    # Within the timeline the arrow keys move the focus.
    page.evaluate("document.querySelector('.lease-bar').focus()")
    page.until("!document.getElementById('timeline-details').hidden")
    page.until(text_is("#timeline-details .job", "job-0"))
    page.press("ArrowDown")
    page.until(text_is("#timeline-details .job", "job-1"))
    page.press("Escape")
    page.until("document.getElementById('timeline-details').hidden")
    # The filter is reachable from anywhere.
    page.press("/")
    page.type(text="job-1")
    page.until(count_is(".device", 1))
    assert page.texts("#device-count") == ["1 of 3 devices"]
    page.press("Control+a")
    page.type(text="nobody has this")
    page.until(text_is("#device-empty", "No device matches the filter."))
    page.press("Escape")
    page.until(count_is(".device", 3))
    for holder in holders:
        pool.let_go(holder)


# ---- The token ----


def test_the_token_is_asked_for_once(shown, pool_of, sandbox):
    pool_of(2)
    token = sandbox.directory / "token"
    token.write_text("open-sesame-1234567\n")
    token.chmod(0o600)
    page = shown("--token", token)
    page.until(count_is("#login", 1))
    page.until("document.activeElement.id === 'token'")
    page.until(count_is(".device", 0))
    page.screenshot("token")
    assert page.audit() == []
    page.type(text="open-sesame-7654321")
    page.press("Enter")
    page.until(text_is("#login-problem", "Wrong token."))
    page.fill(selector="#token", text="open-sesame-1234567")
    page.press("Enter")
    page.until(count_is(".device", 2))
    page.until(LIVE)
    page.until(count_is("#login", 0))
    page.reload()
    page.until(count_is(".device", 2))
    assert "open-sesame" not in page.evaluate("document.cookie + JSON.stringify({...localStorage})")
    page.click(selector="#log-out")
    page.until(count_is("#login", 1))
    assert page.evaluate(count_is(".device", 0))
