# Sidekiq: two processes of two threads each.

require_relative "scenario"
require "sidekiq"
require "sidekiq/api"
require_relative "sidekiq_jobs"

LOST = [defined?(RedisClient) ? RedisClient::ConnectionError : nil,
        defined?(Redis) ? Redis::BaseConnectionError : nil].compact

Sidekiq.configure_client { |config| config.redis = { url: URL } }

def dead
  Sidekiq::DeadSet.new.map { |job| [job.klass, job["error_message"], job["retry_count"]] }
end

started = Time.now.to_f
Later.perform_in(2, "later")
workers = %w[worker-1 worker-2].map do |name|
  Worker.new(name, "sidekiq", "-r", File.join(__dir__, "sidekiq_jobs.rb"), "-c", "2", "-q", "work", "-t", "5")
end
while_killed(workers: 4) { |name| insist(*LOST) { Work.perform_async(name) } }

wait_until("the later job has run") { notes("later").any? }
Again.perform_async(2)
Hopeless.perform_async
never = Later.perform_in(3600, "never")
wait_until("the failing job succeeds") { notes("again").size == 3 }
wait_until("the hopeless job is dead") { dead.any? }
Sidekiq::Client.push_bulk("class" => Later, "args" => (0...100).map { |number| ["bulk-#{number}"] })
wait_until("all of the bulk have run") { (0...100).all? { |number| notes("bulk-#{number}").any? } }
processes = wait_until("both processes are known") { Sidekiq::ProcessSet.new.size == 2 && 2 }

outcomes = {
  "again" => notes("again").size,
  "hopeless" => notes("hopeless").size,
  "dead" => dead,
  "on time" => (1.5..60).cover?(notes("later").first.to_f - started),
  "processes" => processes,
  "scheduled" => Sidekiq::ScheduledSet.new.map(&:klass),
  "found" => Sidekiq::ScheduledSet.new.find_job(never).jid == never,
}
wait_until("nothing runs") { Sidekiq::Stats.new.then { |stats| stats.enqueued + stats.retry_size + stats.workers_size == 0 } }
workers.each(&:stop)
stats = Sidekiq::Stats.new
outcomes["processed"] = stats.processed >= 30
outcomes["stuck"] = [stats.enqueued, stats.retry_size, Sidekiq::Queue.new("work").latency]
outcomes["deleted"] = !!Sidekiq::ScheduledSet.new.find_job(never).delete
outcomes["processes after"] = Sidekiq::ProcessSet.new.size
Sidekiq::DeadSet.new.each(&:retry)
outcomes["enqueued again"] = Sidekiq::Queue.new("work").map(&:klass)
Sidekiq::Queue.new("work").clear
[Sidekiq::ScheduledSet, Sidekiq::RetrySet, Sidekiq::DeadSet].each { |set| set.new.clear }
Sidekiq::Stats.new.reset
outcomes["keys left"] = Sidekiq.redis do |redis|
  # Counts of each day, and what the processes said of their memory, expire.
  redis.call("KEYS", "*").reject { |key| redis.call("TTL", key) > 0 }.sort
end
finish(outcomes)
