// Two goroutines with labels of their own wait in system calls, the one called "a" for less. At the end of the standard input it
// says how long each has waited, in nanoseconds.
package main

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
	"time"
)

//go:noinline
func wait(d time.Duration) {
	ts := syscall.NsecToTimespec(d.Nanoseconds())
	syscall.Nanosleep(&ts, nil)
}

func spin(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

func main() {
	var waited [2]int64
	for i, who := range []string{"a", "b"} {
		i, parts := i, time.Duration(3+4*i)
		go pprof.Do(context.Background(), pprof.Labels("who", who), func(context.Context) {
			for {
				begin := time.Now()
				wait(parts * 10 * time.Millisecond)
				atomic.AddInt64(&waited[i], int64(time.Since(begin)))
				spin((10 - parts) * 10 * time.Millisecond)
			}
		})
	}
	fmt.Scanln()
	fmt.Println(atomic.LoadInt64(&waited[0]), atomic.LoadInt64(&waited[1]))
}
