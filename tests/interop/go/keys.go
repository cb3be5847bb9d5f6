package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// keys are what a client shows at a lock: files of TLS, a password, a token.
func keys(config map[string]string) ([]kgo.Opt, error) {
	var options []kgo.Opt
	if path, given := config["ca"]; given {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(pem)
		settings := &tls.Config{RootCAs: trusted}
		if path, given := config["certificate"]; given {
			own, err := tls.LoadX509KeyPair(path, path)
			if err != nil {
				return nil, err
			}
			settings.Certificates = []tls.Certificate{own}
		}
		options = append(options, kgo.DialTLSConfig(settings))
	}
	if name, given := config["mechanism"]; given {
		mechanism, err := mechanismOf(name, config)
		if err != nil {
			return nil, err
		}
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

func mechanismOf(name string, config map[string]string) (sasl.Mechanism, error) {
	user, password := config["user"], config["password"]
	switch name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Auth{Token: config["token"]}.AsMechanism(), nil
	}
	return nil, fmt.Errorf("no mechanism %q", name)
}
