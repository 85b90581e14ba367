// Go datadog-go: clients TRANSPORT ADDRESS PREFIX
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/DataDog/datadog-go/v5/statsd"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	transport, address, prefix := os.Args[1], os.Args[2], os.Args[3]
	options := []statsd.Option{statsd.WithNamespace(prefix + "."), statsd.WithoutTelemetry()}
	switch transport {
	case "udp":
		options = append(options, statsd.WithoutClientSideAggregation())
	case "unixgram":
		// The client adds up counters and packs the values of a timer into one line.
		address = "unixgram://" + address
		options = append(options, statsd.WithExtendedClientSideAggregation())
	case "unix-frames":
		address = "unixstream://" + address
		options = append(options, statsd.WithoutClientSideAggregation())
	}
	client, err := statsd.New(address, options...)
	must(err)

	must(client.Incr("hits", nil, 1))
	must(client.Count("hits", 2, nil, 1))
	must(client.Decr("hits", nil, 1))
	for _, milliseconds := range []int{10, 20, 30} {
		must(client.Timing("lat", time.Duration(milliseconds)*time.Millisecond, nil, 1))
	}
	must(client.Gauge("temp", 20, nil, 1))
	must(client.Gauge("temp", 22, nil, 1))
	for _, member := range []string{"a", "b", "a"} {
		must(client.Set("uid", member, nil, 1))
	}
	must(client.Incr("tagged", []string{"env:prod", "dc:x"}, 1))
	for _, value := range []float64{1, 2, 3} {
		must(client.Histogram("size", value, []string{"env:prod"}, 1))
		must(client.Distribution("spread", value, nil, 1))
	}
	must(client.Event(&statsd.Event{Title: "deployed", Text: "by hand\nin two lines", Tags: []string{"env:prod"}}))
	must(client.ServiceCheck(&statsd.ServiceCheck{Name: "db.up", Status: statsd.Ok, Message: "fine"}))
	must(client.Flush())
	must(client.Close())
}
