"""Simulates a test case with `equipoise sim`. The session has a control law of Equipoise, and sends media like the
compared sender.
"""

import json
import os
import subprocess
import tempfile

from problems import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
LIMITS = 'initial_rate = "300 kbit/s", min_rate = "0.1 Mbit/s", max_rate = "5 Mbit/s"'


def law(name, format_, interval, more=""):
    """Returns the scenario keys of a session with this control law and this feedback. By default, the session sends
    evenly spaced packets at the allowed rate, as `equipoise send` does.
    """
    return {
        "controller": f'{{ name = "{name}", {LIMITS}{more} }}',
        "feedback": f'{{ format = "{format_}", interval = "{interval}" }}',
    }


def frames(rate):
    """Returns a source of frames of equal size. The size follows the rate immediately, as in the senders with pion and
    SCReAM.
    """
    return (
        f'[{{ kind = "encoder", frame_rate = {rate}, min_rate = "90 kbit/s", max_rate = "5 Mbit/s", reaction = "0 s", burst = "0 B", '
        "interval_spread = 0, size_spread = 0 }]"
    )


DRAFT = law("gcc", "twcc", "100 ms", ', form = "draft"')
LIBWEBRTC = law("gcc", "twcc", "50 ms", ', form = "libwebrtc"')
SCREAM = law("scream", "rfc8888", "20 ms")
# An encoder that follows the rate with a delay and has varying frame sizes. Except for the rate limits, its values are
# the example values of RFC 8593.
ENCODER = '[{ kind = "encoder", min_rate = "50 kbit/s", max_rate = "5 Mbit/s" }]'

# The simulated session for each sender, by the sender's name. A sender of another project is compared with a control
# law of Equipoise. The simulated session uses this control law, and media like those of the sender.
SESSIONS = {
    "gcc": LIBWEBRTC,
    "gcc-draft": DRAFT,
    "scream-ours": SCREAM,
    "nada": law("nada", "twcc", "100 ms"),
    "equipoise": law("equipoise", "twcc", "50 ms"),
    # Pion's pacer accumulates budget while it waits for a frame, so that it sends a whole frame without spacing.
    "pion": DRAFT | {"source": frames(30), "pacing": 100},
    # Chromium's pacer sends the data of 40 ms without spacing.
    "chromium": law("gcc", "twcc", "50 ms", ', form = "libwebrtc", pacing = 100') | {"source": ENCODER},
    "scream": SCREAM | {"source": frames(50)},
}


def simulate(equipoise, case, settings, runs):
    """Runs the simulations. Returns the results of each run, with the keys of `measure`."""
    words = [word for key, value in settings.items() for word in ("--set", f"flow.media.{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        command = [equipoise, "sim", f"{HERE}/case-{case.name}.toml", "--quiet", "--threads", "1", "--runs", str(runs), "--json", f"{folder}/out", *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failed(" ".join(command), done.returncode, done.stderr)
        with open(f"{folder}/out", encoding="utf-8") as file:
            return [result(run) for run in json.load(file)["runs"]]


def part(stretch):
    queueing = stretch["queueing"]
    return {"utilisation": stretch["utilisation"], "queueing_mean_s": queueing["mean_s"], "queueing_p95_s": queueing["p95_s"]}


def result(run):
    media = run["media"]
    whole = part(media) | {"loss": media["loss"]}
    return {"whole": whole, "phases": {f"{phase['start_s']:.0f}-{phase['end_s']:.0f}": part(phase) for phase in media["phases"]}}
