// Command refreg is a registry with the referrers API, in memory, for tests: go-containerregistry's own
// registry behind one listener. Its argument is the address to listen on (127.0.0.1:0 when there is
// none); the address it got is its first line on stdout.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	address := "127.0.0.1:0"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		log.Fatalf("refreg: listening on %s: %v", address, err)
	}
	fmt.Println(listener.Addr())
	quiet := log.New(io.Discard, "", 0)
	handler := registry.New(registry.WithReferrersSupport(true), registry.Logger(quiet))
	log.Fatal(http.Serve(listener, handler))
}
