"""The spider of run_scrapy_redis.py."""

import json

from scrapy.crawler import CrawlerProcess
from scrapy_redis.spiders import RedisSpider


class Pages(RedisSpider):
    name = "pages"

    def parse(self, response):
        yield {"page": int(response.url.rsplit("/", 1)[1])}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


with open("settings.json") as text:
    settings = json.load(text)
process = CrawlerProcess(
    {
        **settings,
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "ITEM_PIPELINES": {"scrapy_redis.pipelines.RedisPipeline": 1},
        "SCHEDULER_PERSIST": True,
        "DOWNLOAD_DELAY": 0.1,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CONCURRENT_REQUESTS": 1,
        "TELNETCONSOLE_ENABLED": False,
    }
)
process.crawl(Pages)
process.start()
