// Go, into C, back into Go: main.main, main.recurse × 10, c_recurse × 10, main.callback, main.spin.
package main

/*
typedef unsigned long count;
void callback(count);
static __attribute__((noinline)) int c_recurse(int depth) {
	volatile char room[50];
	room[depth] = 1;
	if (depth == 1) callback(depth);
	else room[depth] += c_recurse(depth - 1);
	return room[depth];
}
static __attribute__((noinline)) void c_spin(int n) {
	for (volatile int i = 0; i < 2000000; i++) n += i;
}
static __attribute__((noinline)) int c_only(int depth) {
	volatile char room[50];
	room[depth] = 1;
	if (depth == 1) c_spin(depth);
	else room[depth] += c_only(depth - 1);
	return room[depth];
}
*/
import "C"
import "os"

var sink uint64

//export callback
func callback(n C.count) { spin() }

//go:noinline
func spin() {
	for i := 0; i < 2000000; i++ {
		sink = sink*6364136223846793005 + 1
	}
}

//go:noinline
func recurse(depth int, back bool) int {
	if depth > 1 {
		return recurse(depth-1, back) + 1
	}
	if back {
		return int(C.c_recurse(10))
	}
	return int(C.c_only(10))
}

func main() {
	for {
		sink += uint64(recurse(10, len(os.Args) > 1))
	}
}
