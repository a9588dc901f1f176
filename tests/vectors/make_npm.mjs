// Record npm.json: requests signed by npm's http-signature, with names read by Node's own X509Certificate.
//
// Run by hand, outside the repository, so that nothing is installed into it:
//   mkdir /tmp/http-signature && cd /tmp/http-signature && npm install http-signature@1.4.0
//   node <repository>/tests/vectors/make_npm.mjs
// Needs the openssl command for keys and certificates.

import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const httpSignature = require("http-signature");
const { version } = require("http-signature/package.json");

const folder = mkdtempSync(join(tmpdir(), "vectors-"));
const made = new Date(Date.now() + 300_000);
made.setMilliseconds(0);
const BODY = JSON.stringify({ instructedAmount: { amount: "10.00", currency: "EUR" }, creditorName: "Bjørn" });

function identity(name, subject) {
  const key = join(folder, `${name}-key.pem`);
  const certificate = join(folder, `${name}.pem`);
  execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-noenc", "-keyout", key, "-out", certificate,
    "-subj", subject, "-utf8", "-days", "7300"], { stdio: "ignore" });
  const read = new X509Certificate(readFileSync(certificate));
  return { key: readFileSync(key, "ascii"), header: read.raw.toString("base64"), read };
}

// The order in which tools that go through Node's issuer object write it.
function toolOrder(read) {
  const issuer = read.toLegacyObject().issuer;
  const parts = [["CN", "CN"], ["O", "O"], ["OU", "OU"], ["L", "L"], ["S", "ST"], ["C", "C"]];
  const present = parts.filter(([, from]) => issuer[from] !== undefined);
  return `SN=${read.serialNumber},CA=${present.map(([name, from]) => `${name}=${issuer[from]}`).join(",")}`;
}

function vector(name, signer, { method = "GET", path = "/v1/accounts", given = {}, body = "", ...options }) {
  const headers = [];
  const request = {
    method,
    path,
    _stringToSign: "",
    getHeader: (wanted) => headers.find(([known]) => known.toLowerCase() === wanted.toLowerCase())?.[1],
    setHeader: (known, value) => headers.push([known, value]),
  };
  request.setHeader("Date", made.toUTCString());
  for (const [known, value] of Object.entries(given)) request.setHeader(known, value);
  if (body) request.setHeader("Digest", `SHA-256=${createHash("sha256").update(body).digest("base64")}`);
  request.setHeader("TPP-Signature-Certificate", signer.header);
  httpSignature.sign(request, {
    key: signer.key,
    algorithm: "rsa-sha256",
    authorizationHeaderName: "Signature",
    keyId: `SN=${signer.read.serialNumber},CA=${signer.read.issuer.split("\n").reverse().join(",")}`,
    ...options,
  });
  // With the header's usual name it writes the scheme in front; clients then copy the value over.
  const sent = headers.map(([known, value]) => [known === "Authorization" ? "Signature" : known, value]);
  return { name, method, target: path, headers: sent, body, now: made.toISOString(), signingString: request._stringToSign };
}

const plain = identity("plain", "/C=NO/ST=Oslo/L=Oslo/O=Example TPP/OU=Payments/OU=Cards/CN=Example Seal");
const given = {
  "X-Request-ID": "9c6cbbcb-0d42-4b2b-9d6a-9b5fbd0a1c11",
  "PSU-ID": "0f8fad5b-d9cb-469f-a165-70867728950e",
  "TPP-Redirect-URI": "https://tpp.example/callback",
};
const all = ["date", "x-request-id", "psu-id", "tpp-redirect-uri"];
const post = { method: "POST", path: "/v1/payments/sepa-credit-transfers?allowLogicalDuplicate=true", given, body: BODY };
const vectors = [
  vector("no headers parameter", plain, {}),
  vector("no headers parameter but candidates sent", plain, { given }),
  vector("all candidates", plain, { given, headers: all }),
  vector("request target and digest", plain, { ...post, headers: ["(request-target)", ...all, "digest"] }),
  vector("rsa-sha512", plain, { given, headers: all, algorithm: "rsa-sha512" }),
  vector("rsa-sha1", plain, { given, headers: all, algorithm: "rsa-sha1" }),
  vector("tool order", plain, { given, headers: all, keyId: toolOrder(plain.read) }),
  vector("scheme in front", plain, { given, headers: all, authorizationHeaderName: "Authorization" }),
  vector("opaque parameter", plain, { given, headers: all, opaque: "x" }),
  vector("created of a later draft", plain, { given, headers: [...all, "(created)"] }),
];
rmSync(folder, { recursive: true });
const file = join(dirname(fileURLToPath(import.meta.url)), "npm.json");
writeFileSync(file, `${JSON.stringify({ madeBy: `http-signature ${version}, node ${process.version}`, vectors }, null, 1)}\n`);
console.log(`${vectors.length} vectors in npm.json`);
