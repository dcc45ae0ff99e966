# The jobs of run_resque.rb, and its workers: `ruby resque_jobs.rb QUEUE…` is one.

require_relative "scenario"
require "resque"

Resque.redis = URL

class Work
  @queue = :work

  def self.perform(name)
    work(name)
  end
end

class Again
  @queue = :work

  def self.perform(times)
    fails_until("again", times)
  end
end

class Note
  @queue = :low

  def self.perform(name)
    note(name, Time.now.to_f)
  end
end

if $PROGRAM_NAME == __FILE__
  worker = Resque::Worker.new(*ARGV)
  worker.term_child = true
  worker.work(0.1)
end
