# The jobs of run_sidekiq.rb, and the settings of its processes.

require_relative "scenario"
require "sidekiq"

Sidekiq.configure_server do |config|
  config.redis = { url: URL }
  # Its default is some seconds, and more with more processes.
  settings = config.respond_to?(:options) ? config.options : config
  settings[:poll_interval_average] = 1
end

class Work
  include Sidekiq::Worker
  sidekiq_options queue: "work"

  def perform(name)
    work(name)
  end
end

class Again
  include Sidekiq::Worker
  sidekiq_options queue: "work", retry: 3
  sidekiq_retry_in { 1 }

  def perform(times)
    fails_until("again", times)
  end
end

class Hopeless
  include Sidekiq::Worker
  sidekiq_options queue: "work", retry: 1
  sidekiq_retry_in { 1 }

  def perform
    note("hopeless", "tried")
    raise ArgumentError, "hopeless"
  end
end

class Later
  include Sidekiq::Worker
  sidekiq_options queue: "work"

  def perform(name)
    note(name, Time.now.to_f)
  end
end
