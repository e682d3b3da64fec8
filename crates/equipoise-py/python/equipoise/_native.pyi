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
"""The scenario of the demo: a session with background traffic that increases in steps, 40 s."""

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
    :param seed: seed of the first run; later runs have the next seeds. The scenario's seed by default.
    :param laws: laws that the scenario can use: names with functions that make a law for a flow, called with the size of its packets in bytes.
    :param series: whether runs keep their values over time; by default only for a number of runs that fits into moderate memory.
    :param threads: number of threads, which does not affect the results. All cores by default.
    :param progress: True for a bar, or a function that is called with the completed share, 0 to 1, about ten times a second.
    :raises ScenarioError: with line and key, for a wrong scenario or override.
    :raises EquipoiseError: if a scenario cannot be simulated. An exception of a law, or of ``progress``, ends the runs and is raised.
    """

def explain(scenario: _Scenario, *, set: dict[str, Any] | None = None) -> str:
    """Describe in words what a scenario would run, without running it."""

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

    With ``controllers``, each of them replaces the controller of ``flow``; they may include names of ``laws``. Without it, ``scenario`` is
    a list of scenarios with different names, or a dict of scenarios by name. The other variants are compared with the first one, seed by seed.
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

    ``quick`` runs only the first variant of each case, with 3 seeds instead of 10. ``aqm`` sets all queues of bottleneck links to ``"codel"``,
    ``"fq_codel"``, ``"pie"``, ``"dualpi2"`` or ``"drop-tail"``.
    """

def capture_rtt(path: str | PathLike[str], *, acks: str = "pair", bin: str | None = None) -> Capture:
    """Measure the round-trip times of TCP in a capture: pcap or pcapng, with or without gzip compression.

    ``acks`` is ``"pair"`` for acknowledgements of two successive segments, which no delayed-ACK timer has sent, or ``"every"``. ``bin`` is the
    width of the histogram's bars, such as ``"2 ms"``.
    """

def capture_rtp(path: str | PathLike[str], *, clock_rate: int | None = None) -> RtpCapture:
    """Analyse the RTP streams in a capture: pcap, pcapng or a dump of rtpdump, with or without gzip compression. No signalling is needed.

    ``clock_rate`` is the rate of the media clock of dynamic payload types in ticks per second, such as 90000 for video; without it, their
    jitter is unknown.
    """

def controllers() -> list[dict[str, Any]]:
    """Return all rate controllers: name, summary, source, and the parameters with kind, default, range and meaning."""

@final
class Table:
    """Arrow columns; ``pandas.DataFrame.from_arrow``, ``polars.DataFrame`` and ``pyarrow.table`` accept a table as it is."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns; each name ends with the unit."""

    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> list[Any]:
        """The values of a column; None for values that were not measured."""

    def where(self, **values: Any) -> Table:
        """The rows whose columns have these values: ``intervals.where(flow="media", seed=1)``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Result:
    """All runs of a scenario. The keys are the same as in the JSON of ``equipoise sim --json``."""

    @property
    def scenario(self) -> str:
        """Name of the scenario."""

    @property
    def scenario_text(self) -> str:
        """The text of the whole scenario as it was run, with all changes."""

    @property
    def seed(self) -> int:
        """Seed of the first run; run number n, from 0, has the seed ``seed + n``."""

    @property
    def summary(self) -> dict[str, Any]:
        """The same as ``to_dict``, without the values over time."""

    def to_dict(self) -> dict[str, Any]:
        """All results as a dict."""

    def to_json(self) -> str:
        """All results as JSON, as written by ``equipoise sim --json``."""

    def to_html(self) -> str:
        """The report as an HTML page."""

    @property
    def flows(self) -> Table:
        """One row for each flow of each run."""

    @property
    def links(self) -> Table:
        """One row for each link of each run, for its forward direction."""

    @property
    def paths(self) -> Table:
        """One row for each path of a flow with several paths, in each run."""

    @property
    def phases(self) -> Table:
        """One row for each phase between planned changes of each run; a row covers all media flows."""

    @property
    def steps(self) -> Table:
        """Planned changes of capacities and loads; the initial values are at 0 s."""

    @property
    def means(self) -> Table:
        """For several runs: mean and 95 % confidence interval for each flow and metric."""

    @property
    def intervals(self) -> Table:
        """One row for each control interval of a flow, or report interval of one of its paths."""

    @property
    def link_samples(self) -> Table:
        """State of the links over time, in scenarios with TCP or playout buffers."""

    @property
    def tcp_samples(self) -> Table:
        """State of the TCP connections over time."""

    @property
    def received(self) -> Table:
        """Rates at the receivers over time, if the scenario requests them."""

    @property
    def beliefs(self) -> Table:
        """Estimates of the path over time, for control laws that report them."""

    @property
    def distribution(self) -> Table:
        """The complementary distribution function of each flow's one-way delay."""

@final
class Comparison:
    """Variants of a scenario, run on the same seeds. The keys are the same as in the JSON of ``equipoise compare --json``."""

    @property
    def flow(self) -> str:
        """The flow whose delay is plotted against its rate."""

    @property
    def metrics(self) -> Table:
        """One row for each flow, metric and variant: mean, interval, and difference from the first variant."""

    @property
    def values(self) -> Table:
        """One row for each flow, metric, variant and seed."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...

@final
class Suite:
    """Test cases under several controllers. The keys are the same as in the JSON of ``equipoise suite rfc8867 --json``."""

    @property
    def metrics(self) -> Table:
        """One row for each case, variant, controller and metric, of a whole run, flow, phase or bar: the rows and columns of ``to_csv``."""

    @property
    def not_run(self) -> Table:
        """The cases that a controller cannot run, with the reasons."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_html(self) -> str: ...

@final
class Capture:
    """Round-trip times in a capture. The keys are the same as in the JSON of ``equipoise capture rtt --json``."""

    @property
    def directions(self) -> Table:
        """One row for each direction of a connection that has samples, sorted by decreasing number of samples."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...

@final
class RtpCapture:
    """RTP streams in a capture. The keys are the same as in the JSON of ``equipoise capture rtp --json``."""

    @property
    def streams(self) -> Table:
        """One row for each stream at each interface, in the order of first packets; payload types are separated by commas."""

    @property
    def seconds(self) -> Table:
        """One row for each second of a stream in which packets arrived."""

    @property
    def round_trips(self) -> Table:
        """One row for each round trip, measured from RTCP reports, with its time."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...

@final
class Controller:
    """A rate controller with its pacer, for the caller's own stack. Times are in seconds by any clock of the caller.

    As in this package's sessions, its rate is at most twice the rate that feedback proved to arrive, and falls if no feedback arrives.

    :param name: a controller of the catalogue. Its parameters are texts with units, or numbers: ``Controller("gcc", max_rate="5 Mbit/s")``.
    :param feedback: ``"arrivals"`` for packets with arrival times, or ``"acks"`` for packets without them, both passed to ``feedback``;
        ``"twcc"`` for transport-wide feedback, or ``"rfc8888"`` for RFC 8888, both passed to ``rtcp``.
    :param packet_bytes: size of full IP packets.
    :param pacing: the packets of a frame are sent at this multiple of the rate.
    :param interval_s: interval length for controllers that decide once per interval.
    :param has_ecn: whether packets are sent as ECN-capable and feedback reports their marks.
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
        """Report a sent packet: the number that feedback will use, and its size with all headers. ``ssrc`` is used for RFC 8888 only."""

    def feedback(self, now_s: float, packets: Sequence[tuple[int, float | None]]) -> None:
        """Report packets: number, and arrival time by the receiver's clock (``nan`` if the time is unknown, None if the packet was lost)."""

    def rtcp(self, now_s: float, datagram: bytes) -> None:
        """Handle a received RTCP datagram. Only feedback in the chosen format has an effect."""

    def idle(self, now_s: float) -> None:
        """Report that nothing waits to be sent: the application limits the sender, not the rate."""

    def timer(self, now_s: float) -> None:
        """Advance the time; calling this too early or without need is harmless."""

    @property
    def next_timer_s(self) -> float | None:
        """When to call ``timer``, in s, if nothing else happens before."""

    def next_departure_s(self, now_s: float) -> float | None:
        """When the next packet may be sent, in s; None while the window is full or the rate is 0."""

    @property
    def rate_bps(self) -> int:
        """The current rate of IP packets, in bit/s."""

    @property
    def pace_bps(self) -> int:
        """The rate at which single packets may be sent, in bit/s."""

    @property
    def window_bytes(self) -> int | None:
        """Maximum data in flight, in bytes; None if the controller sets no limit."""

    @property
    def in_flight_bytes(self) -> int:
        """Data in flight, in bytes."""

    @property
    def round_trip_s(self) -> float:
        """The last round-trip time, in s; before the first measurement, an assumed value."""

    @property
    def why(self) -> str | None:
        """The reason for the rate, such as ``"law"`` or ``"unproved"``; None before the first decision."""

@final
class SweepFolder:
    """A sweep in its folder, for the function ``sweep``."""

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
    """The rate at which a session may send, in bit/s of IP packets, and the amount of data that may be in flight."""

    def __new__(cls, rate_bps: float, *, window_bytes: int | None = None, pace_bps: float | None = None) -> Allowance: ...
    @property
    def rate_bps(self) -> float: ...
    @property
    def window_bytes(self) -> int | None: ...
    @property
    def pace_bps(self) -> float | None:
        """The rate at which single packets may be sent, if the allowed data is sent in bursts, such as video frames."""

@final
class Interval:
    """The summary of a report interval, measured by the receiver; None for values that were not measured."""

    @property
    def delay_mean_s(self) -> float | None: ...
    @property
    def delay_variance_s2(self) -> float | None: ...
    @property
    def fraction_lost(self) -> float | None:
        """Share of packets that were lost, 0 to 1."""

    @property
    def fraction_marked(self) -> float | None:
        """Share of ECN-capable packets that arrived with a congestion mark (RFC 3168), 0 to 1."""

    @property
    def packets(self) -> int | None:
        """Number of packets sent in the report's interval, whether they arrived or not."""

    @property
    def delivered_bps(self) -> int | None:
        """Rate at which packets arrived, in bit/s."""

    @property
    def round_trip_s(self) -> float | None:
        """Time from a report request to its report, in s."""

    @property
    def bottleneck_bps(self) -> int | None:
        """Rate of the bottleneck from packet pairs, in bit/s."""

    @property
    def app_limited(self) -> bool:
        """The application sent less than the rate allowed, or the session's own limits did."""

@final
class Packet:
    """The result of a packet."""

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
        """Arrival time by the receiver's clock, in s; None if the packet was lost or its time is unknown."""

    @property
    def marked(self) -> bool:
        """Whether the packet arrived with a congestion mark."""

@final
class Packets:
    """The results of single packets, in the order in which they were sent."""

    @property
    def packets(self) -> list[Packet]: ...
    @property
    def round_trip_s(self) -> float | None: ...
    @property
    def in_flight_bytes(self) -> int:
        """Data in flight before this feedback arrived, in bytes; includes the packets in this feedback."""

    @property
    def app_limited(self) -> bool: ...
    def __len__(self) -> int: ...

@final
class Silence:
    """No report arrived for this number of report intervals, at least three."""

    @property
    def reports(self) -> int: ...

@final
class Sent:
    """A packet that was sent."""

    @property
    def number(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int: ...

@final
class Frame:
    """A frame of live media that is added to the send queue."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def waited_s(self) -> float: ...
