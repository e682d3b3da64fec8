"""An environment for gymnasium in which an agent decides the rate of a session in the simulator.

    pip install "equipoise[gym]"

A step of the environment is a report interval of the session. The simulator runs in a separate thread and waits for the
agent at each report, so that the same seed and the same actions always result in the same episode.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from . import _native

SCENARIO: dict[str, Any] = {
    "name": "agent",
    "duration": "60 s",
    "link": [{"name": "link", "rate": "2 Mbit/s", "delay": "20 ms", "queue": "300 ms"}],
    "flow": [
        {
            "name": "media",
            "path": ["link"],
            "packet_size": "1000 B",
            "report_interval": "200 ms",
            "controller": {"name": "cbr", "rate": "1 Mbit/s"},
        }
    ],
}
"""The default scenario: a session without other traffic, on a link of 2 Mbit/s with a delay of 20 ms and a queue of
300 ms.
"""

Observation = NDArray[np.float32]
_AGENT = "agent"


class _Left(Exception):
    """The agent ended the episode before the run was complete."""


class _Law:
    """A control law that passes feedback to the agent, and waits for the agent's decision."""

    def __init__(self, start_rate_bps: float) -> None:
        self.rate_bps = start_rate_bps
        self.told: queue.SimpleQueue[_native.Interval | _native.Silence | BaseException | None] = queue.SimpleQueue()
        self.decided: queue.SimpleQueue[float | None] = queue.SimpleQueue()

    def on_feedback(self, now_s: float, feedback: _native.Interval | _native.Packets | _native.Silence) -> None:
        if isinstance(feedback, _native.Packets):
            return
        self.told.put(feedback)
        rate_bps = self.decided.get()
        if rate_bps is None:
            raise _Left
        self.rate_bps = rate_bps

    def allowance(self) -> float:
        return self.rate_bps


class SessionEnv(gymnasium.Env[Observation, NDArray[np.float32]]):
    """A session in the simulator; the agent decides the rate of the session at each report.

    The **action** is the binary logarithm, from -1 to 1, of the factor by which the rate changes. The **observation**
    has five values: the mean one-way delay in seconds, the standard deviation of the delay in seconds, the share of
    packets lost, and the delivered rate and the allowed rate as shares of ``max_rate_bps``. A value that a report does
    not contain keeps its last value; while no report arrives, all packets count as lost. The **reward** is the
    delivered rate as a share of ``max_rate_bps``, minus ``delay_weight`` times the mean delay in seconds, minus
    ``loss_weight`` times the share of packets lost. A subclass may override the method ``reward``.

    :param scenario: a scenario as for ``equipoise.run``. The agent replaces the controller of ``flow``.
    :param set: overrides, as for ``equipoise.run``.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: str | PathLike[str] | Mapping[str, Any] = SCENARIO,
        *,
        flow: str = "media",
        set: Mapping[str, Any] | None = None,
        min_rate_bps: float = 50e3,
        max_rate_bps: float = 5e6,
        start_rate_bps: float = 500e3,
        delay_weight: float = 2.0,
        loss_weight: float = 5.0,
    ) -> None:
        if not 0 < min_rate_bps <= start_rate_bps <= max_rate_bps:
            raise ValueError("rates must be above zero, and start_rate_bps between min_rate_bps and max_rate_bps")
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Box(0.0, np.inf, (5,), np.float32)
        self._scenario = scenario
        self._set = {**(set or {}), f"flow.{flow}.controller": {"name": _AGENT}}
        self._rates_bps = (min_rate_bps, start_rate_bps, max_rate_bps)
        self._weights = (delay_weight, loss_weight)
        self._law: _Law | None = None
        self._thread: threading.Thread | None = None
        self._seen = np.zeros(5, np.float32)
        self._result: _native.Result | None = None

    @property
    def result(self) -> _native.Result | None:
        """The result of the last complete episode; None before the first."""
        return self._result

    def reward(self, observation: Observation) -> float:
        """Return the reward for the observation of a step."""
        delay_weight, loss_weight = self._weights
        delay_s, _, lost, delivered, _ = (float(value) for value in observation)
        return delivered - delay_weight * delay_s - loss_weight * lost

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.close()
        law = self._law = _Law(self._rates_bps[1])
        self._seen = np.zeros(5, np.float32)
        run_seed = int(self.np_random.integers(1 << 32))
        self._thread = threading.Thread(target=self._run, args=(law, run_seed), daemon=True)
        self._thread.start()
        self._look()
        return self._seen.copy(), {"seed": run_seed}

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        if self._law is None:
            raise gymnasium.error.ResetNeeded("the episode is over, or has not begun; call reset()")
        least, _, most = self._rates_bps
        change = float(np.clip(np.asarray(action, dtype=float).reshape(-1)[0], -1, 1))
        rate_bps = min(max(self._law.rate_bps * 2.0**change, least), most)
        self._law.decided.put(rate_bps)
        is_over = not self._look()
        return self._seen.copy(), self.reward(self._seen), False, is_over, {"rate_bps": rate_bps}

    def close(self) -> None:
        """End the episode and its thread."""
        if self._law is not None and self._thread is not None:
            self._law.decided.put(None)
            self._thread.join()
        self._law = self._thread = None

    def _run(self, law: _Law, seed: int) -> None:
        try:
            self._result = _native.run(self._scenario, set=self._set, seed=seed, laws={_AGENT: lambda packet_bytes: law})
            law.told.put(None)
        except _Left:
            pass
        except BaseException as error:  # noqa: BLE001 - the agent's thread raises it
            law.told.put(error)

    def _look(self) -> bool:
        """Wait for the next report; return False if the episode is over."""
        assert self._law is not None
        told = self._law.told.get()
        if told is None or isinstance(told, BaseException):
            self._law = self._thread = None
            if told is not None:
                raise told
            return False
        delay_s, deviation_s, lost, delivered, _ = (float(value) for value in self._seen)
        most = self._rates_bps[2]
        if isinstance(told, _native.Silence):
            lost, delivered = 1.0, 0.0
        else:
            delay_s = delay_s if told.delay_mean_s is None else max(told.delay_mean_s, 0.0)
            deviation_s = deviation_s if told.delay_variance_s2 is None else told.delay_variance_s2**0.5
            lost = lost if told.fraction_lost is None else told.fraction_lost
            delivered = delivered if told.delivered_bps is None else told.delivered_bps / most
        self._seen = np.array([delay_s, deviation_s, lost, delivered, self._law.rate_bps / most], np.float32)
        return True
