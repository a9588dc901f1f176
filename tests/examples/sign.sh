#!/usr/bin/env bash
# One signed request with curl and openssl, for this bank or any other that asks for the same signature.
#
#   export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
#   sign.sh GET  http://127.0.0.1:8080/v1/accounts
#   sign.sh POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
#
# After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
# payment may name its customer by the national identity number: PSU_IDENTITY.
set -euo pipefail

if [ $# -lt 2 ] || [ -z "${CERTIFICATE-}" ] || [ -z "${KEY-}" ]; then
  echo "Usage: CERTIFICATE=certificate.pem KEY=key.pem sign.sh METHOD URL [BODY]" >&2
  exit 2
fi
method=$1 url=$2 body=${3-} certificate=$CERTIFICATE key=$KEY

# Who signs: the serial number in upper-case hex and the issuer as RFC 2253 writes it.
serial=$(openssl x509 -in "$certificate" -noout -serial | cut -d= -f2)
issuer=$(openssl x509 -in "$certificate" -noout -issuer -nameopt RFC2253 | sed 's/^issuer= *//')
key_id="SN=$serial,CA=$issuer"

# What the request carries. Every one of these that is there must be signed; the order is free, but the same twice.
names=() lines=() headers=()
add() { # name value: send the header and sign it
  headers+=(-H "$1: $2")
  sign "$1" "$2"
}
sign() { # name value: sign only
  local lower
  lower=$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]')
  names+=("$lower")
  lines+=("$lower: $2")
}

# Method in lower case, path and query as sent: it ties the signature to this address.
sign "(request-target)" "$(printf '%s' "$method" | tr '[:upper:]' '[:lower:]') /$(printf '%s' "$url" | cut -d/ -f4-)"
add Date "$(LC_ALL=C date -u '+%a, %d %b %Y %H:%M:%S GMT')"
if [ -n "$body" ]; then # over exactly the bytes that are sent
  add Digest "SHA-256=$(printf '%s' "$body" | openssl dgst -sha256 -binary | openssl base64 -A)"
  headers+=(-H "Content-Type: application/json" --data-binary "$body")
fi
add X-Request-ID "$(openssl rand -hex 16)"
if [ -n "${PSU_ID-}" ]; then add PSU-ID "$PSU_ID"; fi
add TPP-Redirect-URI "${REDIRECT_URI:-https://tpp.example/callback}"

# The lines joined by newlines, none at the end; signed with the certificate's key.
text=$(printf '%s\n' "${lines[@]}")
signature=$(printf '%s' "$text" | openssl dgst -sha256 -sign "$key" | openssl base64 -A)

# Not among the signed headers: what the bank requires beside them.
headers+=(
  -H "TPP-Signature-Certificate: $(openssl x509 -in "$certificate" -outform DER | openssl base64 -A)"
  -H "Signature: keyId=\"$key_id\",algorithm=\"rsa-sha256\",headers=\"${names[*]}\",signature=\"$signature\""
  -H "TPP-Session-ID: ${SESSION_ID:-$(openssl rand -hex 16)}"
  -H "PSU-IP-Address: 192.0.2.1"
  -H "x-accept-fix: amount-as-string"
)
if [ -n "${PSU_IDENTITY-}" ]; then headers+=(-H "X-PSU-IDENTITY: $PSU_IDENTITY"); fi

curl --silent --show-error --request "$method" "${headers[@]}" --write-out '\nHTTP %{http_code}\n' "$url"
