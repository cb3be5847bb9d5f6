// kfake, the broker in memory that franz-go's own tests talk to, as a process: `kfake PORT`.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	fmt.Println("kfake: serving on", cluster.ListenAddrs())
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt)
	<-ended
}
