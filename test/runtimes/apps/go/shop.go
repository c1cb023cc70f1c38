// Orders and their prices, with the route as a label.
package main

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime/pprof"
)

//go:noinline
func price(order int) float64 {
	sum := 0.0
	for n := 1; n <= order; n++ {
		sum += math.Sqrt(float64(n))
	}
	return sum
}

func orders(w http.ResponseWriter, r *http.Request) {
	for order := 1; order <= 2000; order++ {
		fmt.Fprintf(w, "%.2f\n", price(order))
	}
}

func labelled(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		labels := pprof.Labels("route", r.URL.Path, "user", r.URL.Query().Get("user"))
		pprof.Do(r.Context(), labels, func(ctx context.Context) { handler(w, r.WithContext(ctx)) })
	}
}

func main() {
	http.HandleFunc("/orders", labelled(orders))
	panic(http.ListenAndServe("127.0.0.1:18800", nil))
}
