<?php
// One signed request with PHP (8.1 or later) and its extension openssl.
//
//   export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
//   php sign.php GET  http://127.0.0.1:8080/v1/accounts
//   php sign.php POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
//
// After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
// payment may name its customer by the national identity number: PSU_IDENTITY.
declare(strict_types=1);

// Each of these that a request carries must be signed.
const SIGNED = ['date', 'digest', 'x-request-id', 'psu-id', 'psu-corporate-id', 'tpp-redirect-uri'];

/** The headers with what every request needs, and the signature over them. */
function signed(string $method, string $url, string $body, array $given, string $certificate, string $key): array
{
    $der = preg_replace('/-----[A-Z ]+-----|\s/', '', $certificate);
    $headers = [
        'date' => gmdate('D, d M Y H:i:s') . ' GMT',
        'x-request-id' => bin2hex(random_bytes(16)),
        'tpp-session-id' => bin2hex(random_bytes(16)),
        'tpp-redirect-uri' => 'https://tpp.example/callback',
        'psu-ip-address' => '192.0.2.1',
        'x-accept-fix' => 'amount-as-string',
        'tpp-signature-certificate' => $der,
        ...$given,
    ];
    if ($body !== '') { // over exactly the bytes that are sent
        $headers['content-type'] = 'application/json';
        $headers['digest'] = 'SHA-256=' . base64_encode(hash('sha256', $body, true));
    }

    // One line for each signed header; (request-target) ties the signature to this address.
    $path = parse_url($url, PHP_URL_PATH);
    $query = parse_url($url, PHP_URL_QUERY);
    $values = ['(request-target)' => strtolower($method) . ' ' . $path . ($query === null ? '' : "?$query")];
    foreach (SIGNED as $name) {
        if (isset($headers[$name])) {
            $values[$name] = $headers[$name];
        }
    }
    $lines = array_map(fn ($name, $value) => "$name: $value", array_keys($values), $values);
    openssl_sign(implode("\n", $lines), $signature, $key, OPENSSL_ALGO_SHA256);

    $parsed = openssl_x509_parse($certificate);
    $serial = ltrim(str_replace('0x', '', $parsed['serialNumberHex']), '0');
    $header = sprintf(
        'keyId="SN=%s,CA=%s",algorithm="rsa-sha256",headers="%s",signature="%s"',
        strtoupper($serial), issuer($parsed['issuer']), implode(' ', array_keys($values)), base64_encode($signature)
    );
    if (preg_match('/[^\x20-\x7e]/', $header)) { // as a MIME word
        $header = '=?utf-8?B?' . base64_encode($header) . '?=';
    }
    $headers['signature'] = $header;
    return $headers;
}

/** A name as RFC 2253 writes it: the last part first, special characters with a backslash. */
function issuer(array $name): string
{
    $parts = [];
    foreach ($name as $type => $values) {
        $type = $type === 'organizationIdentifier' ? '2.5.4.97' : $type;
        foreach ((array) $values as $value) {
            $value = preg_replace('/[,+"\\\\<>;=]|^[ #]| $/', '\\\\$0', $value);
            $parts[] = "$type=$value";
        }
    }
    return implode(',', array_reverse($parts));
}

if ($argc < 3 || !getenv('CERTIFICATE') || !getenv('KEY')) {
    fwrite(STDERR, "Usage: CERTIFICATE=certificate.pem KEY=key.pem php sign.php METHOD URL [BODY]\n");
    exit(2);
}
[, $method, $url] = $argv;
$body = $argv[3] ?? '';
$given = [];
foreach (['PSU_ID' => 'psu-id', 'SESSION_ID' => 'tpp-session-id', 'PSU_IDENTITY' => 'x-psu-identity'] as $from => $to) {
    if (getenv($from)) {
        $given[$to] = getenv($from);
    }
}
$certificate = file_get_contents(getenv('CERTIFICATE'));
$headers = signed($method, $url, $body, $given, $certificate, file_get_contents(getenv('KEY')));
$sent = array_map(fn ($name, $value) => "$name: $value", array_keys($headers), $headers);
$context = stream_context_create(['http' => [
    'method' => $method, 'header' => $sent, 'content' => $body, 'ignore_errors' => true, 'protocol_version' => 1.1,
]]);
$text = file_get_contents($url, false, $context);
if ($text === false) {
    exit(1);
}
echo $text, "\nHTTP ", explode(' ', $http_response_header[0])[1], "\n";
