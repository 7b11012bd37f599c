// Command record stands between Remoting clients and their servers and keeps the frames that
// pass: the bytes of official clients and of Apache RocketMQ that the codecs' golden tests read.
//
//	go run ./test/record --namesrv HOST:PORT --broker HOST:PORT --out DIR
//
// It prints the address that clients take for their name server. In the name server's answers
// the broker's address is replaced by its own, which has as many digits, so that clients come
// to the broker through it. Files are named code-side-number.hex; a comment says what they hold.
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

func main() {
	namesrv := flag.String("namesrv", "", "the real name server")
	broker := flag.String("broker", "", "the real broker, as its route names it")
	out := flag.String("out", "", "folder for the frames")
	listen := flag.String("listen", "127.0.0.1:0", "where clients find their name server")
	keep := flag.Int("keep", 3, "frames kept of each code, side and client language")
	flag.Parse()
	r := &recorder{dir: *out, keep: *keep, seen: map[string]int{}}
	b, err := listenLike(*broker)
	check(err)
	n, err := net.Listen("tcp", *listen)
	check(err)
	fmt.Println(n.Addr())
	go r.serve(b, *broker, nil, nil)
	r.serve(n, *namesrv, []byte(*broker), []byte(b.Addr().String()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// listenLike listens on a port with as many digits as addr's.
func listenLike(addr string) (net.Listener, error) {
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		if len(l.Addr().String()) == len(addr) {
			return l, nil
		}
		l.Close()
	}
	return nil, fmt.Errorf("no port is as long as that of %s", addr)
}

type recorder struct {
	dir  string
	keep int
	mu   sync.Mutex
	seen map[string]int
}

func (r *recorder) serve(l net.Listener, to string, replace, by []byte) {
	for {
		c, err := l.Accept()
		check(err)
		go r.pass(c, to, replace, by)
	}
}

// pass copies both directions frame by frame. The answer's code of the request is known from
// the opaque of the other direction.
func (r *recorder) pass(client net.Conn, to string, replace, by []byte) {
	defer client.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var asked, pushed sync.Map // opaque → code
	done := make(chan struct{}, 2)
	copyFrames := func(dst, src net.Conn, own, other *sync.Map, replace, by []byte) {
		defer func() { done <- struct{}{} }()
		in := bufio.NewReader(src)
		for {
			var length [4]byte
			if _, err := io.ReadFull(in, length[:]); err != nil {
				return
			}
			frame := make([]byte, 4+binary.BigEndian.Uint32(length[:]))
			copy(frame, length[:])
			if _, err := io.ReadFull(in, frame[4:]); err != nil {
				return
			}
			r.keepFrame(frame, own, other)
			if replace != nil {
				frame = bytes.ReplaceAll(frame, replace, by)
			}
			if _, err := dst.Write(frame); err != nil {
				return
			}
		}
	}
	go copyFrames(server, client, &asked, &pushed, nil, nil)
	go copyFrames(client, server, &pushed, &asked, replace, by)
	<-done
}

func (r *recorder) keepFrame(frame []byte, own, other *sync.Map) {
	code, opaque, flag, language := head(frame)
	side, of := "request", code
	if flag&1 != 0 {
		side = "response"
		request, ok := other.Load(opaque)
		if !ok {
			return
		}
		of = request.(int)
		side = fmt.Sprintf("response%d", code)
	} else {
		own.Store(opaque, code)
	}
	kind := fmt.Sprintf("%d-%s-%s", of, side, strings.ToLower(language))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[kind] >= r.keep || len(frame) > 6000 {
		return
	}
	r.seen[kind]++
	var text strings.Builder
	fmt.Fprintf(&text, "# code %d, %s, language %s\n", of, side, language)
	for rest := frame; len(rest) > 0; rest = rest[min(32, len(rest)):] {
		fmt.Fprintln(&text, hex.EncodeToString(rest[:min(32, len(rest))]))
	}
	check(os.WriteFile(filepath.Join(r.dir, fmt.Sprintf("%s-%d.hex", kind, r.seen[kind])), []byte(text.String()), 0o644))
}

// head reads a frame's header as far as the file's name needs it.
func head(frame []byte) (code, opaque, flag int, language string) {
	word := binary.BigEndian.Uint32(frame[4:])
	header := frame[8 : 8+word&0xffffff]
	if word>>24 == 1 {
		return int(int16(binary.BigEndian.Uint16(header))), int(int32(binary.BigEndian.Uint32(header[5:]))),
			int(binary.BigEndian.Uint32(header[9:])), "binary"
	}
	var h struct {
		Code, Opaque, Flag int
		Language           any
	}
	json.Unmarshal(header, &h)
	return h.Code, h.Opaque, h.Flag, fmt.Sprint(h.Language)
}
