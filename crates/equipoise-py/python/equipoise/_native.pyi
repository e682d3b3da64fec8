from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, TypeAlias, final

from ._law import Law

__all__ = [
    "Allowance",
    "Capture",
    "Comparison",
    "Controller",
    "DEMO",
    "Frame",
    "Interval",
    "Packet",
    "Packets",
    "Result",
    "RtpCapture",
    "Sent",
    "Silence",
    "Suite",
    "SweepFolder",
    "Table",
    "__version__",
    "capture_rtp",
    "capture_rtt",
    "compare",
    "controllers",
    "explain",
    "run",
    "suite",
]

__version__: Final[str]
DEMO: Final[str]
"""The scenario of the demo: a session beside background traffic that steps up, 40 s."""

_Scenario: TypeAlias = str | PathLike[str] | Mapping[str, Any]
_Laws: TypeAlias = dict[str, Callable[[int], Law]]
_Progress: TypeAlias = bool | Callable[[float], object]

def run(
    scenario: _Scenario,
    *,
    set: dict[str, Any] | None = None,
    seed: int | None = None,
    runs: int = 1,
    laws: _Laws | None = None,
    series: bool | None = None,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Result:
    """Run a scenario in the simulator, on all cores, without the GIL.

    :param scenario: a dict, a text of several lines in TOML, or the path of a file.
    :param set: overrides: paths of keys such as ``"flow.media.controller.target"`` with their values; None removes a key.
    :param seed: seed of the first run; further runs count on from it. The scenario's own by default.
    :param laws: laws that the scenario can name: each name with what makes a law for a flow, called with the size of its packets in bytes.
    :param series: whether runs keep what they have over time; by default as many runs as fit into moderate memory.
    :param threads: threads; the results do not depend on it. All cores by default.
    :param progress: True for a bar, or called with the share that is done, 0 to 1, about ten times a second.
    :raises ScenarioError: with line and key, for a scenario or an override that is wrong.
    :raises EquipoiseError: for what cannot be simulated. An exception of a law, or of ``progress``, ends the runs and is raised.
    """

def explain(scenario: _Scenario, *, set: dict[str, Any] | None = None) -> str:
    """What a scenario would run, in words, without running it."""

def compare(
    scenario: _Scenario | Sequence[_Scenario] | dict[str, _Scenario],
    controllers: Sequence[str] | None = None,
    *,
    flow: str | None = None,
    set: dict[str, Any] | None = None,
    seed: int | None = None,
    runs: int = 20,
    laws: _Laws | None = None,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Comparison:
    """Run one scenario with several controllers, or several scenarios, on the same seeds.

    With ``controllers``, each is put in the place of that of ``flow``; names of ``laws`` are among them. Without, ``scenario`` is a list of
    scenarios, each with a name of its own, or a dict of them by name. The others are compared with the first one, seed by seed.
    """

def suite(
    cases: Sequence[str] | None = None,
    controllers: Sequence[str] | None = None,
    *,
    quick: bool = False,
    runs: int | None = None,
    seed: int = 1,
    aqm: str | None = None,
    laws: _Laws | None = None,
    threads: int | None = None,
    progress: _Progress | None = None,
) -> Suite:
    """Run cases of RFC 8867, such as ``"5.1"`` or ``"5.1/50ms-link"``, all by default, under several controllers.

    ``quick`` runs the first variant of each case with 3 seeds in place of 10. ``aqm`` makes all queues of narrow links ``"codel"``, ``"fq_codel"``,
    ``"pie"``, ``"dualpi2"`` or ``"drop-tail"``.
    """

def capture_rtt(path: str | PathLike[str], *, acks: str = "pair", bin: str | None = None) -> Capture:
    """Round-trip times of TCP in a capture: pcap or pcapng, compressed by gzip or not.

    ``acks`` is ``"pair"`` for acknowledgements of two successive segments, which no delayed-ACK timer sent, or ``"every"``; ``bin`` is the width
    of the histogram's bars, such as ``"2 ms"``.
    """

def capture_rtp(path: str | PathLike[str], *, clock_rate: int | None = None) -> RtpCapture:
    """Streams of RTP in a capture: pcap, pcapng or a dump of rtpdump, compressed by gzip or not. No signalling is needed.

    ``clock_rate`` is that of the media clock of dynamic payload types in ticks a second, such as 90000 of video: their jitter is not known without.
    """

def controllers() -> list[dict[str, Any]]:
    """All rate controllers: name, summary, source, and the parameters with kind, default, range and meaning."""

@final
class Table:
    """Columns of Arrow: ``pandas.DataFrame.from_arrow``, ``polars.DataFrame`` and ``pyarrow.table`` take it as it is."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns; a name carries its unit."""

    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> list[Any]:
        """The values of a column; None for what was not measured."""

    def where(self, **values: Any) -> Table:
        """The rows in which columns have these values: ``intervals.where(flow="media", seed=1)``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Result:
    """All runs of a scenario. The keys are those of the JSON that ``equipoise sim --json`` writes."""

    @property
    def scenario(self) -> str:
        """Name of the scenario."""

    @property
    def scenario_text(self) -> str:
        """The scenario as it was run, whole."""

    @property
    def seed(self) -> int:
        """Seed of the first run; the n-th has ``seed + n``."""

    @property
    def summary(self) -> dict[str, Any]:
        """As ``to_dict``, without what runs have over time."""

    def to_dict(self) -> dict[str, Any]:
        """All of it."""

    def to_json(self) -> str:
        """All of it, as ``equipoise sim --json`` writes it."""

    def to_html(self) -> str:
        """The report, a page of its own."""

    @property
    def flows(self) -> Table:
        """A row a flow and run."""

    @property
    def links(self) -> Table:
        """A row a link and run: its forward direction."""

    @property
    def paths(self) -> Table:
        """A row a path of a flow over several paths, and run."""

    @property
    def phases(self) -> Table:
        """A row a stretch between planned changes, and run: all media together."""

    @property
    def steps(self) -> Table:
        """Planned changes of capacities and loads; at 0 s the initial values."""

    @property
    def means(self) -> Table:
        """Of several runs: mean and 95 % confidence interval by flow and metric."""

    @property
    def intervals(self) -> Table:
        """A row a control interval of a flow, or a report interval of one of its paths."""

    @property
    def link_samples(self) -> Table:
        """Links over time, in scenarios with TCP or playout buffers."""

    @property
    def tcp_samples(self) -> Table:
        """TCP connections over time."""

    @property
    def received(self) -> Table:
        """Rates at the receivers over time, where the scenario asks for them."""

    @property
    def beliefs(self) -> Table:
        """What laws believed of the path over time, of those that say so."""

    @property
    def distribution(self) -> Table:
        """The complementary distribution of each flow's one-way delay."""

@final
class Comparison:
    """Variants of a scenario on the same seeds. The keys are those of ``equipoise compare --json``."""

    @property
    def flow(self) -> str:
        """The flow whose delay is set against its rate."""

    @property
    def metrics(self) -> Table:
        """A row a flow, metric and variant: mean, interval, and difference from the first variant."""

    @property
    def values(self) -> Table:
        """A row a flow, metric, variant and seed."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...

@final
class Suite:
    """Cases under controllers. The keys are those of ``equipoise suite rfc8867 --json``."""

    @property
    def metrics(self) -> Table:
        """A row a case, variant, controller and metric of the whole run, of a flow, of a phase or of a bar: the rows and columns of ``to_csv``."""

    @property
    def not_run(self) -> Table:
        """What a controller cannot run, and why."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_html(self) -> str: ...

@final
class Capture:
    """Round-trip times in a capture. The keys are those of ``equipoise capture rtt --json``."""

    @property
    def directions(self) -> Table:
        """A row a direction of a connection that has samples, those with most samples first."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...

@final
class RtpCapture:
    """Streams of RTP in a capture. The keys are those of ``equipoise capture rtp --json``."""

    @property
    def streams(self) -> Table:
        """A row a stream at each interface that saw it, in the order of their first packets; payload types stand between commas."""

    @property
    def seconds(self) -> Table:
        """A row a second of a stream in which packets came."""

    @property
    def round_trips(self) -> Table:
        """A row a round trip that reports give, with its time."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...

@final
class Controller:
    """A rate controller by hand, with its pacer, for a stack of one's own. Times are in seconds by any clock of the caller's.

    It is held to what was proved to arrive, to silence and to what was never proved, as in our own sessions.

    :param name: a controller of the catalogue; its parameters are texts with their unit, or numbers: ``Controller("gcc", max_rate="5 Mbit/s")``.
    :param feedback: ``"arrivals"`` for packets with the times of their arrivals, ``"acks"`` for packets without, both in ``feedback``; ``"twcc"`` for transport-wide
        feedback and ``"rfc8888"`` for RFC 8888, both in ``rtcp``.
    :param packet_bytes: size of full IP packets.
    :param pacing: packets of a frame follow each other at this multiple of the rate.
    :param interval_s: length of an interval for controllers that decide by intervals.
    :param has_ecn: whether packets are sent as ECN-capable and feedback tells their marks.
    :param now_s: the present time.
    """

    def __new__(
        cls,
        name: str,
        /,
        *,
        feedback: str = "arrivals",
        packet_bytes: int = 1240,
        pacing: float = 1.5,
        interval_s: float = 0.25,
        has_ecn: bool = False,
        now_s: float = 0.0,
        **parameters: str | float,
    ) -> Controller: ...
    def sent(self, now_s: float, number: int, size_bytes: int, *, ssrc: int = 0) -> None:
        """A packet left, with the number that feedback will name, and its size with all headers. ``ssrc`` counts for RFC 8888 alone."""

    def feedback(self, now_s: float, packets: Sequence[tuple[int, float | None]]) -> None:
        """What became of packets: number, and time of arrival by the receiver's clock, ``nan`` if nobody knows when, None if it was lost."""

    def rtcp(self, now_s: float, datagram: bytes) -> None:
        """A datagram of RTCP arrived. What in it is feedback of the format has effect."""

    def idle(self, now_s: float) -> None:
        """Nothing waits to be sent: it is the application that holds the sender back, and not the rate."""

    def timer(self, now_s: float) -> None:
        """Time has passed; too early or without need does no harm."""

    @property
    def next_timer_s(self) -> float | None:
        """When to call ``timer``, if nothing else happens before."""

    def next_departure_s(self, now_s: float) -> float | None:
        """When the next packet may leave; None while the window is full or the rate 0."""

    @property
    def rate_bps(self) -> int:
        """The rate of IP packets from now on."""

    @property
    def pace_bps(self) -> int:
        """The rate at which single packets may follow each other."""

    @property
    def window_bytes(self) -> int | None:
        """The most data that may be in flight; None if the controller leaves that open."""

    @property
    def in_flight_bytes(self) -> int:
        """Data in flight."""

    @property
    def round_trip_s(self) -> float:
        """The last round trip, or the one that is assumed before there is one."""

    @property
    def why(self) -> str | None:
        """Why the rate is what it is, such as ``"law"`` or ``"unproved"``; None before the first decision."""

@final
class SweepFolder:
    """A sweep in its folder, which ``sweep`` uses."""

    @staticmethod
    def open(path: str | PathLike[str]) -> SweepFolder: ...
    @staticmethod
    def create(
        path: str | PathLike[str],
        scenario: _Scenario,
        *,
        set: dict[str, Any] | None,
        vary: dict[str, Sequence[Any]] | None,
        draw: dict[str, str] | None,
        points: int,
        runs: int,
        seed: int | None,
    ) -> SweepFolder: ...
    @property
    def parts(self) -> int: ...
    @property
    def runs(self) -> int: ...
    def missing(self) -> list[int]: ...
    def put(self, part: int, content: bytes) -> None: ...
    def run(self, shard: str, *, threads: int | None = None, progress: _Progress | None = None) -> None: ...
    def merge(self, file: str | PathLike[str]) -> None: ...

@final
class Allowance:
    """How fast a session may send, in bit/s of IP packets, and how much may be in flight."""

    def __new__(cls, rate_bps: float, *, window_bytes: int | None = None, pace_bps: float | None = None) -> Allowance: ...
    @property
    def rate_bps(self) -> float: ...
    @property
    def window_bytes(self) -> int | None: ...
    @property
    def pace_bps(self) -> float | None:
        """Rate at which single packets may follow each other, where what the rate allows comes in bursts, as frames do."""

@final
class Interval:
    """The summary of a report interval, as the receiver measured it; None for what was not measured."""

    @property
    def delay_mean_s(self) -> float | None: ...
    @property
    def delay_variance_s2(self) -> float | None: ...
    @property
    def fraction_lost(self) -> float | None:
        """Share of the packets that were lost, 0 to 1."""

    @property
    def fraction_marked(self) -> float | None:
        """Share of the packets that may be marked and came with a mark of congestion (RFC 3168), 0 to 1."""

    @property
    def packets(self) -> int | None:
        """Packets sent in the interval of the report, whether they arrived or not."""

    @property
    def delivered_bps(self) -> int | None:
        """Rate at which packets came out of the network."""

    @property
    def round_trip_s(self) -> float | None:
        """From a request to its report."""

    @property
    def bottleneck_bps(self) -> int | None:
        """Rate of the bottleneck, from packet pairs."""

    @property
    def app_limited(self) -> bool:
        """The application gave less than the rate allowed, or the session let less pass."""

@final
class Packet:
    """What became of a packet."""

    @property
    def number(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def departed_s(self) -> float: ...
    @property
    def lost(self) -> bool: ...
    @property
    def arrived_s(self) -> float | None:
        """When it arrived by the receiver's clock; None if it was lost, or nobody knows."""

    @property
    def marked(self) -> bool:
        """It came with a mark of congestion."""

@final
class Packets:
    """What became of single packets, in the order in which they were sent."""

    @property
    def packets(self) -> list[Packet]: ...
    @property
    def round_trip_s(self) -> float | None: ...
    @property
    def in_flight_bytes(self) -> int:
        """Data in flight before this feedback arrived, with the packets that it covers."""

    @property
    def app_limited(self) -> bool: ...
    def __len__(self) -> int: ...

@final
class Silence:
    """No report came for this number of report intervals, at least three."""

    @property
    def reports(self) -> int: ...

@final
class Sent:
    """A packet that has left."""

    @property
    def number(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int: ...

@final
class Frame:
    """A frame of live media that joins what waits to be sent."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def waited_s(self) -> float: ...
