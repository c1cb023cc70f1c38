// Two goroutines with labels of their own take turns on one thread: the one called "a" works 3 of 10 parts of the time. With a
// path as argument the runtime's own CPU profile goes there, at the end of the standard input.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

var sink int

//go:noinline
func spin(n int) {
	for i := 0; i < n; i++ {
		sink += i ^ n
	}
}

// In turns so short that the scheduler, which asks for a turn after 10 ms, has no say.
func work(ctx context.Context, parts int) {
	for ctx.Err() == nil {
		spin(parts * 30_000)
		runtime.Gosched()
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	if len(os.Args) > 1 {
		file, err := os.Create(os.Args[1])
		if err != nil || pprof.StartCPUProfile(file) != nil {
			os.Exit(1)
		}
		defer file.Close()
		defer pprof.StopCPUProfile()
	}
	ctx, cancel := context.WithCancel(context.Background())
	for who, parts := range map[string]int{"a": 3, "b": 7} {
		parts := parts // one for each, also before Go 1.22
		go pprof.Do(ctx, pprof.Labels("who", who, "service", "demo"), func(ctx context.Context) {
			work(ctx, parts)
		})
	}
	fmt.Scanln()
	cancel()
}
