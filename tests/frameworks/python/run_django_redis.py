"""django-redis: a cache with its own commands, and sessions, which are there after the kill."""

import django
from django.conf import settings

from scenario import end, insist, kill, url

cache_settings = {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"{url}/1"}
settings.configure(CACHES={"default": cache_settings}, SESSION_ENGINE="django.contrib.sessions.backends.cache")
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402
from django.core.cache import cache  # noqa: E402

outcomes = {
    "added": [cache.add("a", 1), not cache.add("a", 2)] == [True, True],
    "incremented": [cache.incr("a", 4), cache.decr("a", 2)],
}
cache.set("short", "gone", timeout=600)
cache.set_many({f"many:{number}": {"number": number} for number in range(20)}, timeout=None)
session = SessionStore()
session["user"] = "ann"
session.save()
lock = cache.lock("lock", timeout=60)
outcomes["locked"] = lock.acquire(blocking=False)
kill()
insist(lambda: cache.get("a"))
outcomes.update(
    {
        "many": len(cache.get_many([f"many:{number}" for number in range(20)])),
        "kept": cache.get("a"),
        "session": SessionStore(session.session_key)["user"],
        "still locked": not cache.lock("lock", timeout=60).acquire(blocking=False),
        "ttl": 500 < cache.ttl("short") <= 600,
        "persistent": cache.persist("short") and cache.ttl("short") is None,
        "expires": cache.expire("short", 100) and 90 < cache.ttl("short") <= 100,
        "keys": sorted(cache.iter_keys("many:1*")),
        "touched": cache.touch("a", 50),
        "deleted": [cache.delete("a"), cache.delete_pattern("many:*"), cache.delete_many(["short"])],
        "versions": [cache.set("v", 1, version=1), cache.incr_version("v"), cache.get("v", version=2)],
    }
)
lock.release()
cache.clear()
outcomes["left"] = cache.keys("*")
end(outcomes)
