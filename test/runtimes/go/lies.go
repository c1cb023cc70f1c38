// Labels that lie: as a slice, which Go has since 1.24, or as a map before. The argument says how.
package main

import (
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"unsafe"
)

//go:linkname setLabels runtime/pprof.runtime_setProfLabel
func setLabels(labels unsafe.Pointer)

type label struct{ key, value string }

type hashMap struct {
	count          uint64
	flags, bits    uint8
	other          [6]byte
	buckets, moved unsafe.Pointer
}

type bucket struct {
	hashes   [8]uint8
	keys     [8]string
	values   [8]string
	overflow *bucket
}

var sink int

//go:noinline
func spin() {
	for i := 0; i < 1_000_000; i++ {
		sink += i
	}
}

// Memory of which the collector knows nothing.
func unmanaged(size int) unsafe.Pointer {
	pages, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	return unsafe.Pointer(&pages[0])
}

func text(at uintptr, length int) (s string) {
	words := (*[2]uintptr)(unsafe.Pointer(&s))
	words[0], words[1] = at, uintptr(length)
	return s
}

func asSlice(mode string) {
	head := (*[3]uintptr)(unmanaged(4096))
	labels := (*[100]label)(unmanaged(8192))
	labels[0] = label{"who", mode}
	*head = [3]uintptr{uintptr(unsafe.Pointer(labels)), 1, 1}
	switch mode {
	case "null":
		head[0] = 0
	case "nowhere":
		head[0] = 0xdead000
	case "kernel":
		head[0] = 0xffffffff81000000
	case "endless":
		// two pages were mapped
		head[1] = 1 << 60
		for i := range labels {
			labels[i] = label{"k" + string(rune('A'+i%26)) + string(rune('a'+i/26)), "v"}
		}
	case "long":
		labels[1] = label{text(uintptr(unsafe.Pointer(labels)), 1<<40), "v"}
		labels[2] = label{"value", text(uintptr(unsafe.Pointer(labels)), 1<<40)}
		labels[3] = label{strings.Repeat("k", 200), "v"}
		labels[4] = label{"", "v"}
		head[1] = 5
	case "unread":
		// a page of the program's own file that nobody has touched here
		file, _ := syscall.Open("/proc/self/exe", syscall.O_RDONLY, 0)
		pages, _ := syscall.Mmap(file, 0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE)
		labels[1] = label{"value", text(uintptr(unsafe.Pointer(&pages[0])), 4)}
		head[1] = 2
	case "bytes":
		labels[1] = label{"\xff\x00\n\"", "\xf0\x9f\x00\x1b[31m"}
		head[1] = 2
	case "many":
		for i := 1; i < len(labels); i++ {
			labels[i] = label{string(rune('A' + i)), strings.Repeat("é", 150)}
		}
		head[1] = 100
	case "changing":
		go func() {
			for i := uintptr(0); ; i++ {
				head[1] = i * i
				labels[0].key = text(uintptr(unsafe.Pointer(labels))+i*64, int(i%300))
			}
		}()
	}
	setLabels(unsafe.Pointer(head))
}

func asMap(mode string) {
	first := (*bucket)(unmanaged(4096))
	first.hashes[0], first.keys[0], first.values[0] = 9, "who", mode
	labels := (*hashMap)(unmanaged(4096))
	labels.count, labels.buckets = 1, unsafe.Pointer(first)
	switch mode {
	case "null":
		labels.buckets = nil
	case "nowhere":
		labels.buckets = unsafe.Pointer(uintptr(0xdead000))
	case "circle":
		first.overflow = first
	case "endless":
		labels.count, labels.bits = 1<<60, 14
	case "bits":
		labels.bits = 255
	case "moved":
		labels.moved = labels.buckets
		labels.flags, labels.bits = 8, 3
	}
	at := (*unsafe.Pointer)(unmanaged(4096))
	*at = unsafe.Pointer(labels)
	setLabels(unsafe.Pointer(at))
}

func main() {
	debug.SetGCPercent(-1)
	if os.Args[1] == "map" {
		asMap(os.Args[2])
	} else {
		asSlice(os.Args[2])
	}
	for {
		spin()
	}
}
