// Command site builds the web page around the decoder and serves it:
//
//	go run ./site                          site/dist/index.html
//	go run ./site --serve localhost:8080   and serve it there
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/alecthomas/kong"
	"github.com/klauspost/compress/gzhttp"
)

var arguments struct {
	Out   string `default:"site/dist" help:"Folder to write the page to."`
	Whole bool   `help:"Put the weights into the page, for places that serve one file, instead of beside it."`
	Serve string `help:"Address to serve the page at, for instance localhost:8080." placeholder:"HOST:PORT"`
}

func main() {
	kong.Parse(&arguments, kong.Description("Builds the web page around the decoder."))
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if err := Build(arguments.Out, arguments.Whole); err != nil {
		return fmt.Errorf("site: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(arguments.Out, "index.html"))
	if err != nil {
		return err
	}
	fmt.Printf("built file://%s\n", path)
	if arguments.Serve == "" {
		return nil
	}
	listener, err := net.Listen("tcp", arguments.Serve)
	if err != nil {
		return fmt.Errorf("site: %w; make site SITE=localhost:8081 takes another address", err)
	}
	fmt.Printf("serving http://%s/\n", listener.Addr())
	return http.Serve(listener, Handler(arguments.Out))
}

// Handler serves the folder that Build wrote, compressed where the browser takes it.
func Handler(dir string) http.Handler {
	files := gzhttp.GzipHandler(http.FileServer(http.Dir(dir)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}
