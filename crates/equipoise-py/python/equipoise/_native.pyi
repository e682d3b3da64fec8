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
"""The text of the demo scenario: a session of 40 s with background traffic whose rate increases once."""

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
    """Run a scenario in the simulator, on all cores. The GIL is released, so other Python threads can run meanwhile.

    :param scenario: a dict, a text of several lines in TOML, or the path of a file.
    :param set: a dict of overrides from key paths, such as ``"flow.media.controller.target"``, to values; the value
        None removes the key.
    :param seed: seed of the first run, by default the scenario's seed; later runs have the next seeds.
    :param laws: control laws that the scenario can name: a dict from names to functions. A function creates a law for
        one flow, and is called with the size of the flow's packets in bytes.
    :param series: whether runs keep their values over time. By default only the first runs keep them, so that memory is
        bounded.
    :param threads: number of threads, by default one per core; it does not affect the results.
    :param progress: True for a progress bar, or a function that is called about ten times a second with the completed
        share, from 0 to 1.
    :raises ScenarioError: if the scenario or an override is wrong; the exception has the line and the key.
    :raises OSError: if the scenario's file cannot be read.
    :raises EquipoiseError: if the scenario cannot be simulated. In addition, an exception of a law or of ``progress``
        ends the runs and is raised unchanged.
    """

def explain(scenario: _Scenario, *, set: dict[str, Any] | None = None) -> str:
    """Describe in words what a scenario would run. The scenario is not run."""

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
    """Run one scenario with several controllers, or several scenarios, with the same seeds.

    If ``controllers`` is set, each of its controllers replaces the controller of ``flow`` in one variant; names of
    ``laws`` are allowed. Otherwise ``scenario`` is a list of scenarios with different names, or a dict from names to
    scenarios, and each scenario is a variant. All variants are compared with the first variant, seed by seed.
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
    """Run test cases of RFC 8867, such as ``"5.1"`` or ``"5.1/50ms-link"``, with several controllers. By default all
    cases are run.

    ``quick`` runs only the first variant of each case, with 3 seeds instead of 10. ``aqm`` sets the queue management of
    all bottleneck links: ``"codel"``, ``"fq_codel"``, ``"pie"``, ``"dualpi2"`` or ``"drop-tail"``.
    """

def capture_rtt(path: str | PathLike[str], *, acks: str = "pair", bin: str | None = None) -> Capture:
    """Measure the round-trip times of TCP in a packet capture. The file is pcap or pcapng, with or without gzip
    compression.

    ``acks`` selects the acknowledgements that are used. ``"pair"`` uses only acknowledgements of two successive
    segments, because the receiver's delayed-ACK timer does not delay such acknowledgements. ``"every"`` uses all
    acknowledgements.
    ``bin`` is the width of the histogram's bars, such as ``"2 ms"``.
    """

def capture_rtp(path: str | PathLike[str], *, clock_rate: int | None = None) -> RtpCapture:
    """Analyse the RTP streams in a packet capture. The file is pcap, pcapng or a dump of rtpdump, with or without gzip
    compression. RTP streams are found without their signalling.

    ``clock_rate`` is the clock rate of dynamic RTP payload types in Hz, such as 90000 for video. Without
    ``clock_rate``, the jitter of streams with dynamic payload types is unknown.
    """

def controllers() -> list[dict[str, Any]]:
    """Return all rate controllers: name, summary, source, and parameters with kind, default, range and meaning."""

@final
class Table:
    """A table of Arrow columns. ``pandas.DataFrame.from_arrow``, ``polars.DataFrame`` and ``pyarrow.table`` accept it
    directly.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns. If a column contains a quantity, the last part of its name is the unit."""

    def __len__(self) -> int: ...
    def __getitem__(self, column: str, /) -> list[Any]:
        """Return the values of a column; None for values that were not measured."""

    def where(self, **values: Any) -> Table:
        """Return the rows whose columns have the given values, as in ``where(flow="media", seed=1)``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Result:
    """The results of all runs of a scenario. The keys are the same as in the JSON of ``equipoise sim --json``."""

    @property
    def scenario(self) -> str:
        """Name of the scenario."""

    @property
    def scenario_text(self) -> str:
        """The complete text of the scenario that was run, with all overrides applied."""

    @property
    def seed(self) -> int:
        """Seed of the first run. Run number n, counted from 0, has the seed ``seed + n``."""

    @property
    def summary(self) -> dict[str, Any]:
        """All results as a dict, as from ``to_dict``, but without the values over time."""

    def to_dict(self) -> dict[str, Any]:
        """Return all results as a dict."""

    def to_json(self) -> str:
        """Return all results as JSON, as ``equipoise sim --json`` writes them."""

    def to_html(self) -> str:
        """Return the report on all runs as an HTML page."""

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
        """One row for each phase of each run. Phases are the times between planned changes. The values are for all
        media flows together.
        """

    @property
    def steps(self) -> Table:
        """One row for each planned change of a capacity or a load; the initial values have the time 0 s."""

    @property
    def means(self) -> Table:
        """Mean over all runs and its 95 % confidence interval, for each flow and metric. Empty for a single run."""

    @property
    def intervals(self) -> Table:
        """One row per control interval of a flow and, for flows with several paths, per report interval of a path."""

    @property
    def link_samples(self) -> Table:
        """State of the links over time, only in scenarios with TCP flows or playout buffers."""

    @property
    def tcp_samples(self) -> Table:
        """State of the TCP connections over time."""

    @property
    def received(self) -> Table:
        """Rates at which packets arrive at the receivers, over time, if the scenario requests these values."""

    @property
    def beliefs(self) -> Table:
        """A control law's estimates of the path over time, for the laws that report their estimates."""

    @property
    def distribution(self) -> Table:
        """The complementary distribution function of each flow's one-way delay."""

@final
class Comparison:
    """Results of several variants of a scenario that were run with the same seeds. The keys are the same as in the JSON
    of ``equipoise compare --json``.
    """

    @property
    def flow(self) -> str:
        """Name of the flow whose delay and rate are plotted in the HTML page."""

    @property
    def metrics(self) -> Table:
        """One row per flow, metric and variant: mean, confidence interval, and difference from the first variant."""

    @property
    def values(self) -> Table:
        """The value of each single run: one row for each flow, metric, variant and seed."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...

@final
class Suite:
    """Results of test cases with several controllers. The keys are the same as in the JSON of ``equipoise suite rfc8867
    --json``.
    """

    @property
    def metrics(self) -> Table:
        """One row for each case, variant, controller and metric. A metric has the scope of a whole run, a flow, a
        phase, or a bar (a requirement). The rows and columns are those of ``to_csv``.
        """

    @property
    def not_run(self) -> Table:
        """One row for each case that a controller cannot run, with the reason."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_csv(self) -> str: ...
    def to_html(self) -> str: ...

@final
class Capture:
    """Round-trip times of TCP in a packet capture. The keys are the same as in the JSON of ``equipoise capture rtt
    --json``.
    """

    @property
    def directions(self) -> Table:
        """One row per direction of a connection, for directions with round-trip samples. The row with the most samples
        is first.
        """

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...
    def to_html(self) -> str: ...

@final
class RtpCapture:
    """RTP streams in a packet capture. The keys are the same as in the JSON of ``equipoise capture rtp --json``."""

    @property
    def streams(self) -> Table:
        """One row per stream and interface, sorted by the first packet's time; payload types are joined by commas."""

    @property
    def seconds(self) -> Table:
        """One row for each second of each stream, except for seconds in which no packet arrived."""

    @property
    def round_trips(self) -> Table:
        """One row for each round-trip time that was computed from RTCP reports, with the time of the report."""

    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...

@final
class Controller:
    """A rate controller with its pacer, for a program with its own network code. Times are in seconds by any clock of
    the caller.

    The rate is at most twice the rate at which packets arrived according to feedback. It falls if no feedback arrives.

    :param name: the name of a built-in controller. Parameters of the controller are texts with units, or numbers:
        ``Controller("gcc", max_rate="5 Mbit/s")``.
    :param feedback: the kind of feedback. ``"arrivals"`` (packets with arrival times) and ``"acks"`` (packets without
        arrival times) are passed to the method ``feedback``. ``"twcc"`` (transport-wide RTCP feedback) and
        ``"rfc8888"`` (RTCP feedback of RFC 8888) are passed to the method ``rtcp``.
    :param packet_bytes: size of a full IP packet, in bytes.
    :param pacing: pacing rate of the packets of a frame, as a multiple of the controller's rate.
    :param interval_s: time between two decisions, for controllers that decide once per interval.
    :param has_ecn: whether packets are sent as ECN-capable and feedback reports their ECN marks.
    :param now_s: the present time by the caller's clock.
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
        """Report a packet that was sent. ``number`` identifies the packet in feedback, and ``size_bytes`` is its size
        with all headers. ``ssrc`` is only used for RFC 8888.
        """

    def feedback(self, now_s: float, packets: Sequence[tuple[int, float | None]]) -> None:
        """Report packets as arrived or lost. Each tuple has the number of a packet and its arrival time by the
        receiver's clock; ``nan`` means an unknown arrival time, and None means that the packet was lost.
        """

    def rtcp(self, now_s: float, datagram: bytes) -> None:
        """Process an RTCP datagram that arrived. Only feedback of the kind chosen at creation has an effect."""

    def idle(self, now_s: float) -> None:
        """Report that no packet waits to be sent: the application limits the sender, and the rate does not."""

    def timer(self, now_s: float) -> None:
        """Advance the controller's time to ``now_s``. A call that is too early or not needed is harmless."""

    @property
    def next_timer_s(self) -> float | None:
        """When to call ``timer``, in s; None if no call is needed. Other calls may change this time."""

    def next_departure_s(self, now_s: float) -> float | None:
        """Return when the next packet may be sent, in s; None while the window is full or the rate is 0."""

    @property
    def rate_bps(self) -> int:
        """The current rate of IP packets, in bit/s."""

    @property
    def pace_bps(self) -> int:
        """The pacing rate, at which the packets of a frame may be sent, in bit/s."""

    @property
    def window_bytes(self) -> int | None:
        """Maximum number of bytes in flight; None if the controller sets no limit."""

    @property
    def in_flight_bytes(self) -> int:
        """Number of bytes that were sent and neither acknowledged nor reported as lost."""

    @property
    def round_trip_s(self) -> float:
        """The last measured round-trip time, in s; before the first measurement, an assumed value."""

    @property
    def why(self) -> str | None:
        """The reason for the present rate, such as ``"law"`` or ``"unproved"``; None before the first decision."""

@final
class SweepFolder:
    """A sweep that is stored in a folder. The function ``sweep`` uses this class."""

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
    """A decision of a control law: the rate at which a session may send IP packets, and the amount of data that may be
    in flight.
    """

    def __new__(cls, rate_bps: float, *, window_bytes: int | None = None, pace_bps: float | None = None) -> Allowance: ...
    @property
    def rate_bps(self) -> float: ...
    @property
    def window_bytes(self) -> int | None: ...
    @property
    def pace_bps(self) -> float | None:
        """Pacing rate of the packets of a burst, such as a video frame, in bit/s."""

@final
class Interval:
    """The summary of a report interval, as measured by the receiver. Values that were not measured are None."""

    @property
    def delay_mean_s(self) -> float | None: ...
    @property
    def delay_variance_s2(self) -> float | None: ...
    @property
    def fraction_lost(self) -> float | None:
        """Share of the packets that were lost, from 0 to 1."""

    @property
    def fraction_marked(self) -> float | None:
        """Share of packets with a congestion mark (RFC 3168) among ECN-capable packets that arrived, from 0 to 1."""

    @property
    def packets(self) -> int | None:
        """Number of packets sent in the report interval, including packets that were lost."""

    @property
    def delivered_bps(self) -> int | None:
        """Rate at which packets arrived in the report interval, in bit/s."""

    @property
    def round_trip_s(self) -> float | None:
        """Round-trip time, measured from the request for a report to the arrival of the report, in s."""

    @property
    def bottleneck_bps(self) -> int | None:
        """Rate of the bottleneck, measured with packet pairs, in bit/s."""

    @property
    def app_limited(self) -> bool:
        """Whether less was sent than the control law allowed, because of the application or because of limits of the
        session.
        """

@final
class Packet:
    """Feedback on one packet: whether and when it arrived."""

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
        """Arrival time by the receiver's clock, in s; None if the packet was lost or its arrival time is unknown."""

    @property
    def marked(self) -> bool:
        """Whether the packet arrived with an ECN congestion mark."""

@final
class Packets:
    """Feedback on single packets, in the order in which they were sent."""

    @property
    def packets(self) -> list[Packet]: ...
    @property
    def round_trip_s(self) -> float | None: ...
    @property
    def in_flight_bytes(self) -> int:
        """Number of bytes in flight before this feedback arrived, including the packets in this feedback."""

    @property
    def app_limited(self) -> bool: ...
    def __len__(self) -> int: ...

@final
class Silence:
    """Feedback that no report arrived for ``reports`` report intervals. ``reports`` is at least 3."""

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
    """A frame of live media that the application adds to the send queue."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    @property
    def waited_s(self) -> float: ...
