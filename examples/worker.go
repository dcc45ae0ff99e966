// A worker for a task queue, with go-redis: `go run worker.go redis://127.0.0.1:6379 jobs`.
//
// It extends the lease of the task that it works on, tries failed tasks again later and says why they failed, survives
// restarts of the server, and finishes its task when it gets SIGTERM.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	block    = time.Second
	delayMax = time.Hour
)

// handle is the work itself. ctx is cancelled if another worker has the task by now, so that this one should give up.
func handle(ctx context.Context, payload string) error {
	word, rest, _ := strings.Cut(payload, " ")
	switch word {
	case "fail":
		return errors.New(rest)
	case "sleep":
		ms, err := strconv.Atoi(rest)
		if err != nil {
			return err
		}
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// keep extends the lease until ctx is cancelled, and calls lost if another worker has the task.
func keep(ctx context.Context, rdb *redis.Client, queue, id, token string, lease time.Duration, lost func()) {
	ticks := time.NewTicker(lease / 3)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			reply, err := rdb.Do(ctx, "TASK.EXTEND", queue, id, lease.Milliseconds(), "TOKEN", token).Int()
			if err == nil && reply != 1 {
				lost()
				return
			}
		}
	}
}

// finish sends the outcome until the server has it. Sent twice, the second reply is 0: there is no such task any more.
func finish(ctx context.Context, rdb *redis.Client, command ...any) {
	for rdb.Do(ctx, command...).Err() != nil {
		time.Sleep(500 * time.Millisecond)
	}
}

func work(ctx context.Context, rdb *redis.Client, queue string, task []any, lease time.Duration) {
	id, tries, payload, token := task[0].(string), task[2].(int64), task[4].(string), task[5].(string)
	held, end := context.WithCancel(ctx)
	defer end()
	go keep(held, rdb, queue, id, token, lease, end)
	err := handle(held, payload)
	if err == nil {
		fmt.Println("done:", id)
		finish(ctx, rdb, "TASK.ACK", queue, id, "TOKEN", token)
		return
	}
	fmt.Printf("failed: %s: %v\n", id, err)
	delay := min(time.Second<<min(tries-1, 20), delayMax)
	delay = delay/2 + rand.N(delay/2)
	finish(ctx, rdb, "TASK.NACK", queue, id, "DELAY", delay.Milliseconds(), "REASON", err.Error(), "TOKEN", token)
}

func main() {
	options, err := redis.ParseURL(os.Args[1])
	if err != nil {
		panic(err)
	}
	queue, lease := os.Args[2], 30*time.Second
	if len(os.Args) > 3 {
		ms, err := strconv.Atoi(os.Args[3])
		if err != nil {
			panic(err)
		}
		lease = time.Duration(ms) * time.Millisecond
	}
	// The protocol with flat lists for maps, and a task in the form that work expects.
	options.Protocol = 2
	rdb := redis.NewClient(options)
	host, _ := os.Hostname()
	name := fmt.Sprintf("%s:%d", host, os.Getpid())
	stopping, _ := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	ctx := context.Background()
	for stopping.Err() == nil {
		tasks, err := rdb.Do(ctx, "TASK.TAKE", queue, "LEASE", lease.Milliseconds(), "WORKER", name,
			"BLOCK", block.Milliseconds()).Slice()
		if err != nil && !errors.Is(err, redis.Nil) {
			time.Sleep(500 * time.Millisecond)
		}
		for _, task := range tasks {
			work(ctx, rdb, queue, task.([]any), lease)
		}
	}
}
