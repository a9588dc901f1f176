// One signed request with Node (18 or later), without dependencies.
//
//   export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
//   node sign.mjs GET  http://127.0.0.1:8080/v1/accounts
//   node sign.mjs POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
//
// After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
// payment may name its customer by the national identity number: PSU_IDENTITY.

import { createHash, createPrivateKey, createSign, randomUUID, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

// Each of these that a request carries must be signed.
const SIGNED = ["date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri"];

export function signed(method, url, body, given, certificate, key) {
  const headers = {
    "date": new Date().toUTCString(),
    "x-request-id": randomUUID(),
    "tpp-session-id": randomUUID(),
    "tpp-redirect-uri": "https://tpp.example/callback",
    "psu-ip-address": "192.0.2.1",
    "x-accept-fix": "amount-as-string",
    "tpp-signature-certificate": certificate.raw.toString("base64"),
    ...given,
  };
  if (body.length > 0) { // over exactly the bytes that are sent
    headers["content-type"] = "application/json";
    headers["digest"] = `SHA-256=${createHash("sha256").update(body).digest("base64")}`;
  }

  // One line for each signed header; (request-target) ties the signature to this address.
  const names = ["(request-target)", ...SIGNED.filter((name) => name in headers)];
  const target = `${method.toLowerCase()} ${url.pathname}${url.search}`;
  const text = names.map((name) => `${name}: ${name === "(request-target)" ? target : headers[name]}`).join("\n");
  const signature = createSign("RSA-SHA256").update(text).sign(key, "base64");

  // Node writes the issuer's parts from the country down, one a line; RFC 2253 writes them the other way round.
  const issuer = certificate.issuer.split("\n").reverse().join(",");
  const keyId = `SN=${certificate.serialNumber},CA=${issuer}`;
  const header = `keyId="${keyId}",algorithm="rsa-sha256",headers="${names.join(" ")}",signature="${signature}"`;
  // What is not plain ASCII goes as a MIME word.
  const ascii = /^[\x20-\x7e]*$/.test(header);
  headers["signature"] = ascii ? header : `=?utf-8?B?${Buffer.from(header).toString("base64")}?=`;
  return headers;
}

// fetch() would do as well; http.request sends the headers as they are given.
function send(method, url, headers, body) {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? https : http).request(url, { method, headers }, async (answer) => {
      answer.setEncoding("utf8");
      let text = "";
      for await (const part of answer) text += part;
      resolve({ status: answer.statusCode, text });
    });
    request.on("error", reject);
    if (body.length > 0) request.setHeader("content-length", body.length);
    request.end(body);
  });
}

const [method, address, content = ""] = process.argv.slice(2);
if (!address || !process.env.CERTIFICATE || !process.env.KEY) {
  console.error("Usage: CERTIFICATE=certificate.pem KEY=key.pem node sign.mjs METHOD URL [BODY]");
  process.exit(2);
}
const url = new URL(address);
const body = Buffer.from(content);
const given = {};
if (process.env.PSU_ID) given["psu-id"] = process.env.PSU_ID;
if (process.env.SESSION_ID) given["tpp-session-id"] = process.env.SESSION_ID;
if (process.env.PSU_IDENTITY) given["x-psu-identity"] = process.env.PSU_IDENTITY;
const certificate = new X509Certificate(readFileSync(process.env.CERTIFICATE));
const key = createPrivateKey(readFileSync(process.env.KEY));
const { status, text } = await send(method, url, signed(method, url, body, given, certificate, key), body);
console.log(text);
console.log(`HTTP ${status}`);
