// One signed request with Go (1.19 or later), with the standard library only.
//
//	export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
//	go run sign.go GET  http://127.0.0.1:8080/v1/accounts
//	go run sign.go POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
//
// After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
// payment may name its customer by the national identity number: PSU_IDENTITY.
package main

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Each of these that a request carries must be signed.
var signedNames = []string{"date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri"}

// signed returns the headers with what every request needs, and the signature over them.
func signed(method string, address *url.URL, body []byte, given map[string]string,
	certificate *x509.Certificate, key *rsa.PrivateKey) (map[string]string, error) {
	headers := map[string]string{
		"date":                      time.Now().UTC().Format(http.TimeFormat),
		"x-request-id":              randomID(),
		"tpp-session-id":            randomID(),
		"tpp-redirect-uri":          "https://tpp.example/callback",
		"psu-ip-address":            "192.0.2.1",
		"x-accept-fix":              "amount-as-string",
		"tpp-signature-certificate": base64.StdEncoding.EncodeToString(certificate.Raw),
	}
	for name, value := range given {
		headers[name] = value
	}
	if len(body) > 0 { // over exactly the bytes that are sent
		sum := sha256.Sum256(body)
		headers["content-type"] = "application/json"
		headers["digest"] = "SHA-256=" + base64.StdEncoding.EncodeToString(sum[:])
	}

	// One line for each signed header; (request-target) ties the signature to this address.
	names := []string{"(request-target)"}
	lines := []string{"(request-target): " + strings.ToLower(method) + " " + address.RequestURI()}
	for _, name := range signedNames {
		if value, sent := headers[name]; sent {
			names = append(names, name)
			lines = append(lines, name+": "+value)
		}
	}
	hash := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, hash[:])
	if err != nil {
		return nil, err
	}

	// The issuer as it is encoded; String writes it as RFC 2253 does.
	var issuer pkix.RDNSequence
	if _, err := asn1.Unmarshal(certificate.RawIssuer, &issuer); err != nil {
		return nil, err
	}
	header := fmt.Sprintf(`keyId="SN=%X,CA=%s",algorithm="rsa-sha256",headers="%s",signature="%s"`,
		certificate.SerialNumber, issuer, strings.Join(names, " "), base64.StdEncoding.EncodeToString(signature))
	for _, letter := range header {
		if letter > 126 { // as a MIME word
			header = "=?utf-8?B?" + base64.StdEncoding.EncodeToString([]byte(header)) + "?="
			break
		}
	}
	headers["signature"] = header
	return headers, nil
}

func randomID() string {
	bytes := make([]byte, 16)
	if _, err := rand.Read(bytes); err != nil {
		log.Fatal(err)
	}
	return hex.EncodeToString(bytes)
}

func readPEM(file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		log.Fatalf("%s is not a PEM file", file)
	}
	return block.Bytes
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 3 || os.Getenv("CERTIFICATE") == "" || os.Getenv("KEY") == "" {
		log.Fatal("Usage: CERTIFICATE=certificate.pem KEY=key.pem go run sign.go METHOD URL [BODY]")
	}
	certificate, err := x509.ParseCertificate(readPEM(os.Getenv("CERTIFICATE")))
	if err != nil {
		log.Fatal(err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(readPEM(os.Getenv("KEY")))
	if err != nil {
		log.Fatal(err)
	}
	key, isRSA := parsed.(*rsa.PrivateKey)
	if !isRSA {
		log.Fatal("an RSA key is needed")
	}
	method := os.Args[1]
	address, err := url.Parse(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var body []byte
	if len(os.Args) > 3 {
		body = []byte(os.Args[3])
	}
	given := map[string]string{}
	for from, to := range map[string]string{"PSU_ID": "psu-id", "SESSION_ID": "tpp-session-id", "PSU_IDENTITY": "x-psu-identity"} {
		if value := os.Getenv(from); value != "" {
			given[to] = value
		}
	}
	headers, err := signed(method, address, body, given, certificate, key)
	if err != nil {
		log.Fatal(err)
	}

	request, err := http.NewRequest(method, address.String(), bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\nHTTP %d\n", text, answer.StatusCode)
}
