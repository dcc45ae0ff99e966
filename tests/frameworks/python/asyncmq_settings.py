"""The settings of run_asyncmq.py: jobs of lost workers come back soon."""

from dataclasses import dataclass

from asyncmq.conf.global_settings import Settings as Defaults


@dataclass
class Settings(Defaults):
    enable_stalled_check: bool = True
    stalled_check_interval: float = 1.0
    stalled_threshold: float = 4.0
