"""Tests of the environment for gymnasium."""

import threading
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import equipoise

from equipoise.gym import SessionEnv


@pytest.mark.filterwarnings("ignore:.*not within the recommended.*", "ignore:.*Box observation space.*", "ignore:.*infinity.*")
def test_its_checker_passes() -> None:
    """If this test fails, gymnasium's own checker rejects the environment."""
    check_env(SessionEnv(set={"duration": "5 s"}), skip_render_check=True)


def episode(env: SessionEnv, seed: int, change: float) -> list[float]:
    """Run an episode in which every action is ``change``, and return its rewards."""
    env.reset(seed=seed)
    rewards, is_over = [], False
    while not is_over:
        _, reward, _, is_over, _ = env.step(np.array([change], np.float32))
        rewards.append(reward)
    return rewards


def test_the_same_seed_and_actions_give_the_same_episode(root: Path) -> None:
    """If this test fails, the same seed and actions give different episodes, or different seeds give the same
    episode."""
    env = SessionEnv("scenarios/demo-short.toml", max_rate_bps=15e6)
    assert episode(env, 3, 0.1) == episode(env, 3, 0.1) != episode(env, 4, 0.1)


def test_actions_move_the_rate_and_the_result_is_there_at_the_end() -> None:
    """If this test fails, actions do not change the rate, or a complete episode has no result. With the action 1, the
    rate rises until the queue is full. Delay and loss reduce the reward, so the sum of the rewards is negative. With
    the action 0, the rate stays at 0.5 Mbit/s.
    """
    env = SessionEnv(max_rate_bps=4e6)
    up, steady = sum(episode(env, 1, 1.0)), sum(episode(env, 1, 0.0))
    assert steady > 0 > up
    assert env.result is not None and env.result.flows["mean_rate_bps"][0] == pytest.approx(5e5, rel=0.05)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))


def test_an_episode_that_is_left_leaves_no_thread() -> None:
    """If this test fails, ``reset`` and ``close`` leave the threads of incomplete episodes running."""
    before = threading.active_count()
    env = SessionEnv()
    for seed in range(5):
        env.reset(seed=seed)
        env.step(np.zeros(1, np.float32))
    env.close()
    assert threading.active_count() == before


def test_what_is_wrong_is_raised() -> None:
    """If this test fails, an exception of the simulator's thread is not raised in the agent's thread."""
    with pytest.raises(equipoise.ScenarioError):
        SessionEnv(set={"duration": "long"}).reset(seed=1)
    with pytest.raises(ValueError, match="between"):
        SessionEnv(start_rate_bps=1)
