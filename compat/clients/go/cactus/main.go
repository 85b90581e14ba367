// Go cactus/go-statsd-client: cactus TRANSPORT ADDRESS PREFIX
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/cactus/go-statsd-client/v5/statsd"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	address, prefix := os.Args[2], os.Args[3]
	config := &statsd.ClientConfig{Address: address, Prefix: prefix, UseBuffered: true, FlushInterval: 50 * time.Millisecond}
	client, err := statsd.NewClientWithConfig(config)
	must(err)

	must(client.Inc("hits", 1, 1.0))
	must(client.Inc("hits", 2, 1.0))
	must(client.Dec("hits", 1, 1.0))
	for _, milliseconds := range []int64{10, 20, 30} {
		must(client.Timing("lat", milliseconds, 1.0))
	}
	must(client.Gauge("temp", 20, 1.0))
	must(client.GaugeDelta("temp", 2, 1.0))
	for _, member := range []string{"a", "b", "a"} {
		must(client.Set("uid", member, 1.0))
	}
	must(client.Raw("packed", "9|c", 1.0))
	must(client.Close())
}
