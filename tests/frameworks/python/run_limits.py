"""limits: windows of three kinds, which go on after the kill."""

from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowRateLimiter, MovingWindowRateLimiter, SlidingWindowCounterRateLimiter

from scenario import end, insist, kill, url

storage = storage_from_string(url)
limit = parse("5/hour")
limiters = {kind.__name__: kind(storage) for kind in [FixedWindowRateLimiter, MovingWindowRateLimiter]}
limiters["SlidingWindowCounterRateLimiter"] = SlidingWindowCounterRateLimiter(storage)
outcomes = {"before": {name: [one.hit(limit, name) for _ in range(3)] for name, one in limiters.items()}}
kill()
insist(storage.check)
if not storage.check():
    insist(storage.storage.ping)
outcomes["after"] = {name: [one.hit(limit, name) for _ in range(4)] for name, one in limiters.items()}
outcomes["left"] = {name: one.get_window_stats(limit, name).remaining for name, one in limiters.items()}
for name, one in limiters.items():
    one.clear(limit, name)
outcomes["cleared"] = {name: one.test(limit, name) for name, one in limiters.items()}
end(outcomes)
