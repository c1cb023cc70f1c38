// Much code out of few lines: the standard library, for test/oracle/symbols-main.ts.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"sort"
)

type pair[T any] struct {
	name  string
	value T
}

func sorted[T int | float64](all map[string]T) []pair[T] {
	pairs := make([]pair[T], 0, len(all))
	for name, value := range all {
		pairs = append(pairs, pair[T]{name, value})
	}
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].value < pairs[j].value })
	return pairs
}

func main() {
	word := regexp.MustCompile(`\w+`)
	counts := map[string]int{}
	for _, argument := range os.Args {
		for _, found := range word.FindAllString(argument, -1) {
			counts[found]++
		}
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(answer).Encode(counts)
	})
	fmt.Println(sorted(counts), sorted(map[string]float64{"a": 1}))
	if len(os.Args) > 1 {
		fmt.Println(http.ListenAndServe(os.Args[1], nil))
	}
}
