package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/bolidemq/bolide/internal/wire/listen"
)

// certificates reads the pair of files that was named, or the pair that was made at first
// start, or makes it. Files that change later are noticed.
func (d *dataFolder) certificates(certFile, keyFile string, log *slog.Logger) (*listen.Certificates, error) {
	if (certFile == "") != (keyFile == "") {
		return nil, errors.New("--tls-cert and --tls-key go together")
	}
	if certFile == "" {
		folder := filepath.Join(d.dir, "tls")
		certFile, keyFile = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
		if err := makeCertificate(folder, certFile, keyFile); err != nil {
			return nil, err
		}
	}
	for _, file := range []string{certFile, keyFile} {
		if _, err := os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("TLS certificate or key %s can't be read: %w", file, cause(err))
		}
	}
	if _, err := tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", certFile, keyFile, cause(err))
	}
	return listen.NewCertificates([]listen.Source{{
		Name: certFile,
		Read: func() (certificate, key []byte, err error) {
			if certificate, err = os.ReadFile(certFile); err == nil {
				key, err = os.ReadFile(keyFile)
			}
			return certificate, key, err
		},
	}}, log)
}

// makeCertificate makes a self-signed pair where there is none. The key is written first:
// whoever finds a certificate finds its key.
func makeCertificate(folder, certFile, keyFile string) error {
	if _, err := os.Stat(certFile); err == nil {
		return nil
	}
	hosts := []string{"localhost"}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, addr := range machineAddresses() {
		hosts = append(hosts, addr.String())
	}
	cert, key, err := listen.SelfSigned(hosts)
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = writeFile(keyFile, key, 0o600)
	}
	if err == nil {
		err = writeFile(certFile, cert, 0o644)
	}
	if err != nil {
		return fmt.Errorf("TLS certificate %s can't be made: %w", certFile, cause(err))
	}
	return nil
}
