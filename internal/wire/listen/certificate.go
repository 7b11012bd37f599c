package listen

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"sync"
	"time"
)

// SelfSigned makes a certificate for hosts, names or IP addresses, and its key, both PEM.
// It is signed by itself: clients that check certificates do not accept it.
func SelfSigned(hosts []string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{Organization: []string{"Bolide"}, CommonName: "Bolide, signed by itself"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return certificate, key, nil
}

// Source is where a certificate and its key come from, each time they are looked at.
type Source struct {
	Name string // for messages
	Read func() (certificate, key []byte, err error)
}

// Certificates hands out the certificates of its sources and notices when they change: a
// handshake that comes a second or more after the last look looks again. A source that
// cannot be read or does not fit together keeps its last good certificate.
type Certificates struct {
	log *slog.Logger
	mu  struct {
		sync.Mutex
		looked time.Time
		loaded []loaded
	}
}

type loaded struct {
	source           Source
	certificate, key []byte // as last read, good or not
	pair             *tls.Certificate
	lastErr          string
}

// lookAgain is how old a look at the sources may be.
const lookAgain = time.Second

// NewCertificates reads all sources; each has to be good now.
func NewCertificates(sources []Source, log *slog.Logger) (*Certificates, error) {
	if len(sources) == 0 {
		return nil, errors.New("no certificate")
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificates{log: log}
	for _, s := range sources {
		l := loaded{source: s}
		if err := l.look(); err != nil {
			return nil, fmt.Errorf("certificate %s: %w", s.Name, err)
		}
		c.mu.loaded = append(c.mu.loaded, l)
	}
	c.mu.looked = time.Now()
	return c, nil
}

// look reads the source and takes over what is new.
func (l *loaded) look() error {
	certificate, key, err := l.source.Read()
	if err != nil {
		return err
	}
	if bytes.Equal(certificate, l.certificate) && bytes.Equal(key, l.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	l.certificate, l.key, l.pair = certificate, key, &pair
	return nil
}

// Get returns the certificate for a handshake: the first whose names fit, else the first.
func (c *Certificates) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.mu.looked) >= lookAgain {
		c.mu.looked = now
		for i := range c.mu.loaded {
			c.lookAgainLocked(&c.mu.loaded[i])
		}
	}
	for _, l := range c.mu.loaded {
		if len(c.mu.loaded) > 1 && hello.SupportsCertificate(l.pair) == nil {
			return l.pair, nil
		}
	}
	return c.mu.loaded[0].pair, nil
}

func (c *Certificates) lookAgainLocked(l *loaded) {
	before := l.pair
	err := l.look()
	switch {
	case err != nil && err.Error() != l.lastErr:
		l.lastErr = err.Error()
		c.log.Warn("certificate not renewed, the last good one stays", "certificate", l.source.Name, "err", err)
	case err == nil:
		l.lastErr = ""
		if l.pair != before {
			c.log.Info("certificate renewed", "certificate", l.source.Name)
		}
	}
}

// Config returns the TLS configuration of a port: gRPC clients ask for HTTP/2 by ALPN,
// Remoting clients ask for nothing.
func (c *Certificates) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, GetCertificate: c.Get}
}
