// The program of test images: it does what its arguments say, one after the other, e.g.
// `program print=hello sleep=500ms exit=3`. Static, so that an image needs nothing else.
//
//	print=TEXT      a line to standard output
//	error=TEXT      a line to standard error
//	lines=COUNT     numbered lines, as fast as they are taken
//	every=DURATION  numbered lines for ever, one each DURATION
//	fill=BYTES      one line of that length
//	sleep=DURATION  waits
//	cat             copies standard input to standard output, up to its end
//	digest          reads standard input to its end, and prints its bytes and its SHA-256
//	serve=PORT      HTTP: /env/NAME, /exit/CODE, /sleep/DURATION, /digest (of a body); else its host name and the path
//	size            prints rows and columns of its terminal each time that they change
//	pause           waits for a signal, and reaps what is left to it
//	exit=CODE       ends
//
// SIGTERM ends it with code 0; with `stubborn` before, it is ignored.
package main

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

var stubborn = false

func main() {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for range terminated {
			if !stubborn {
				fmt.Println("terminated")
				os.Exit(0)
			}
		}
	}()
	for _, argument := range os.Args[1:] {
		verb, value, _ := strings.Cut(argument, "=")
		step, known := steps[verb]
		if !known {
			fmt.Fprintln(os.Stderr, "unknown argument", argument)
			os.Exit(64)
		}
		step(value)
	}
}

var steps = map[string]func(string){
	"print":    func(text string) { fmt.Println(text) },
	"error":    func(text string) { fmt.Fprintln(os.Stderr, text) },
	"lines":    lines,
	"every":    every,
	"fill":     func(bytes string) { fmt.Println(strings.Repeat("x", number(bytes))) },
	"sleep":    func(text string) { time.Sleep(duration(text)) },
	"cat":      func(string) { io.Copy(os.Stdout, os.Stdin) },
	"digest":   func(string) { fmt.Println(digest(os.Stdin)) },
	"serve":    serve,
	"size":     size,
	"pause":    pause,
	"exit":     func(code string) { os.Exit(number(code)) },
	"stubborn": func(string) { stubborn = true },
}

func lines(count string) {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for i := 0; i < number(count); i++ {
		fmt.Fprintln(out, "line", i)
	}
}

func every(text string) {
	for i := 0; ; i++ {
		fmt.Println("line", i)
		time.Sleep(duration(text))
	}
}

func digest(from io.Reader) string {
	hash := sha256.New()
	bytes, err := io.Copy(hash, from)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %x", bytes, hash.Sum(nil))
}

func serve(port string) {
	name, _ := os.Hostname()
	handler := func(response http.ResponseWriter, request *http.Request) {
		fmt.Println(request.Method, request.URL.Path)
		first, last := path.Split(request.URL.Path)
		switch first {
		case "/env/":
			fmt.Fprint(response, os.Getenv(last))
		case "/exit/":
			os.Exit(number(last))
		case "/sleep/":
			time.Sleep(duration(last))
			fmt.Fprint(response, last)
		default:
			if last == "digest" {
				fmt.Fprint(response, digest(request.Body))
				return
			}
			fmt.Fprintln(response, name, request.URL.Path)
		}
	}
	fmt.Println("listening on", port)
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":"+port, http.HandlerFunc(handler)))
	os.Exit(1)
}

func size(string) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	for {
		var window struct{ rows, columns, x, y uint16 }
		syscall.Syscall(syscall.SYS_IOCTL, 1, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&window)))
		fmt.Println(window.rows, window.columns)
		<-changed
	}
}

func pause(string) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for range children {
		for {
			if pid, _ := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 {
				break
			}
		}
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, text, "is no number")
		os.Exit(64)
	}
	return value
}

func duration(text string) time.Duration {
	value, err := time.ParseDuration(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, text, "is no duration")
		os.Exit(64)
	}
	return value
}
