"""The compared senders, with congestion controls of other projects and of Equipoise. Each `Peer` names the tools that
the sender needs, and the command lines that start the sender and its receiver.

All senders have an initial rate of 0.3 Mbit/s and a maximum rate of 5 Mbit/s. The minimum rate is 0.1 Mbit/s, except
for Chromium, which uses its own minimum rate of about 30 kbit/s.
"""

import dataclasses
import os
import shutil
import subprocess

from problems import Failed, Missing

HERE = os.path.dirname(os.path.abspath(__file__))
SENDER, RECEIVER = "10.77.0.1", "10.77.0.2"
PUPPETEER = "puppeteer-core@24.43.1"


@dataclasses.dataclass(frozen=True)
class Peer:
    """A sender and its receiver, as command lines. `Tools.words` replaces {name} in them."""

    about: str
    receive: str
    send: str
    needs: tuple
    # Name of the control law of Equipoise with which this sender is compared.
    law: str
    # Whether the sender is started before the link and begins to send at the signal SIGUSR2. This is for a browser,
    # which takes seconds to start. A sender that is started early has no real-time priority, because a browser needs
    # more processor time than a real-time process may use.
    early: bool = False


def own(about, law, feedback, settings):
    """Returns a sender with a control law of Equipoise (`equipoise send`), which sends evenly spaced packets at the
    allowed rate.
    """
    words = " ".join(f"--set {setting}" for setting in settings.split())
    send = (
        "{equipoise} send " + RECEIVER + " --insecure -q -J {out}/send.json -i 0.25 -t {seconds} -l 1200 --report-interval 200ms "
        f"--controller {law} --min-rate 100k --max-rate 5M {feedback} {words}"
    )
    return Peer(about, "{equipoise} receive --insecure -q -J {out}/receive.json", send, ("equipoise",), law)


PEERS = {
    "pion": Peer(
        "pion's GCC (pion/interceptor), the draft's form with a pacer; frames at 30/s, feedback every 100 ms",
        "{pionsend} -receive -listen " + RECEIVER + ":5004",
        "{pionsend} -to " + RECEIVER + ":5004 -t {seconds} -log {out}/pion.csv",
        ("pionsend",),
        "gcc-draft",
    ),
    "chromium": Peer(
        "Chromium's GCC, pacer and VP8 encoder; feedback every 50 ms by pion/webrtc",
        "{pionreceive} -listen " + RECEIVER + ":8080 -t {seconds}",
        "node {here}/chromium.js {chromium} http://" + RECEIVER + ":8080/ {seconds} {out}/chromium.json",
        ("chromium", "node", "puppeteer", "pionreceive"),
        "gcc",
        early=True,
    ),
    "scream": Peer(
        "SCReAM V2's bandwidth test tools; frames at 50/s, RFC 8888",
        "{scream}/scream_bw_test_rx " + SENDER + " 5004",
        "{scream}/scream_bw_test_tx -time {seconds} -initrate 300 -minrate 100 -maxrate 5000 -log {out}/scream.csv " + RECEIVER + " 5004",
        ("scream",),
        "scream-ours",
    ),
    "gcc": own("our GCC, libwebrtc's form", "gcc", "--feedback twcc --feedback-interval 50ms", "form=libwebrtc initial_rate=300k"),
    "gcc-draft": own("our GCC, the draft's form", "gcc", "--feedback twcc --feedback-interval 100ms", "form=draft initial_rate=300k"),
    "scream-ours": own("our SCReAM v2", "scream", "--feedback rfc8888 --feedback-interval 20ms", "initial_rate=300k"),
    "equipoise": own("our own law", "equipoise", "--feedback twcc --feedback-interval 50ms", "initial_rate=300k"),
    "nada": own("our NADA", "nada", "--feedback twcc --feedback-interval 100ms", "initial_rate=300k"),
}


class Tools:
    """The programs that the runs need. Each is found or built only once."""

    def __init__(self, equipoise, scream, chromium, work):
        self.given = {"equipoise": equipoise, "scream": scream, "chromium": chromium}
        self.work = work
        self.found = {}

    def need(self, names):
        """Finds or builds the tools with these names, unless this has been done before."""
        for name in names:
            if name not in self.found:
                self.found[name] = getattr(self, f"find_{name}", lambda name=name: self.on_path(name))()

    def words(self, text, out, seconds):
        """Returns the words of the command line `text`, with each {name} replaced by its value."""
        return text.format(**self.found, here=HERE, out=out, seconds=seconds).split()

    def environment(self):
        """Returns this program's environment with `NODE_PATH` set, so that Node.js finds its packages."""
        return dict(os.environ, NODE_PATH=self.found.get("puppeteer", ""))

    @staticmethod
    def on_path(name):
        found = shutil.which(name)
        if not found:
            raise Missing(name, "not on the PATH", f"apt-get install {PACKAGES.get(name, name)}")
        return found

    def find_equipoise(self):
        path = os.path.abspath(self.given["equipoise"])
        if not os.access(path, os.X_OK):
            raise Missing("equipoise", path, "cargo build --release -p equipoise-cli, or --equipoise PATH")
        return path

    def find_chromium(self):
        return self.given["chromium"] or self.on_path("chromium")

    def find_scream(self):
        path = self.given["scream"]
        hint = "build scream_bw_test_tx and scream_bw_test_rx of https://github.com/EricssonResearch/scream with its CMake, and give their folder by --scream DIR"
        if not path:
            raise Missing("SCReAM's bandwidth test tool", "no --scream", hint)
        if not os.access(f"{path}/scream_bw_test_tx", os.X_OK):
            raise Missing("scream_bw_test_tx", path, hint)
        return os.path.abspath(path)

    def find_puppeteer(self):
        modules = f"{self.work}/node_modules"
        if not os.path.isdir(f"{modules}/puppeteer-core"):
            npm = self.on_path("npm")
            build([npm, "install", "--no-save", "--prefix", self.work, PUPPETEER], HERE)
        return modules

    def find_pionsend(self):
        return self.built("pionsend")

    def find_pionreceive(self):
        return self.built("pionreceive")

    def built(self, name):
        """Builds one of the two Go programs that use pion. Returns the path of the program."""
        go = shutil.which("go") or "/usr/local/go/bin/go"
        if not os.access(go, os.X_OK):
            raise Missing("go", "not on the PATH", "https://go.dev/dl/, 1.24 or newer")
        build([go, "build", "-o", f"{self.work}/{name}", "."], f"{HERE}/{name}")
        return f"{self.work}/{name}"


PACKAGES = {"node": "nodejs", "tc": "iproute2", "ip": "iproute2"}


def build(words, where):
    done = subprocess.run(words, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(" ".join(words), done.returncode, done.stderr)
