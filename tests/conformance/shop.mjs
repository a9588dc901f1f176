// A small TPP in Node, without packages, for
//   bank-emulator conformance run --command "node shop.mjs FOLDER" --claims ADDRESS
// It does the task that BANK_TASK names at the bank BANK_URL, with certificate and key of the plan, and writes what it
// believes of payments and accounts into FOLDER. `node shop.mjs FOLDER claims` prints the base of ADDRESS/{check}.
import { createHash, createPrivateKey, createSign, randomUUID, X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const [folder, mode] = process.argv.slice(2);
const belief = (check, kind, id) => join(folder, `${check}-${kind}-${encodeURIComponent(id)}.json`);
const believe = (kind, id, value) => writeFileSync(belief(process.env.BANK_CHECK, kind, id), JSON.stringify(value));

if (mode === "claims") {
  const claims = createServer((request, response) => {
    const [, check, kind, id] = request.url.split("/");
    try {
      response.end(readFileSync(belief(check, kind, decodeURIComponent(id))));
    } catch {
      response.writeHead(404).end(); // nothing is known of it
    }
  });
  await new Promise((listening) => claims.listen(0, "127.0.0.1", listening));
  console.log(`http://127.0.0.1:${claims.address().port}`);
  await new Promise(() => {}); // until it is stopped
}

const env = process.env;
const base = new URL(env.BANK_URL);
const key = createPrivateKey(readFileSync(env.BANK_KEY));
const certificate = new X509Certificate(readFileSync(env.BANK_CERTIFICATE));
const issuer = certificate.issuer.split("\n").reverse().join(",");
const keyId = `SN=${certificate.serialNumber},CA=${issuer}`;
const customer = "203.0.113.7";
const final = new Set(["ACSC", "RJCT", "CANC", "PART"]);
const session = { id: randomUUID() };
const flows = new Map();
const started = Date.now();

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// The customer's return: only to a flow that is open, and only once.
const server = createServer((request, response) => {
  if (request.method === "POST") {
    response.writeHead(204).end(); // a notification: somebody says that there is something to read, and it is read anyway
    return;
  }
  const query = new URL(request.url, "http://shop").searchParams;
  const flow = flows.get(query.get("state"));
  if (flow && !flow.over) {
    flow.over = true;
    if (query.has("psu-id")) {
      session.psu = query.get("psu-id");
      session.id = query.get("tpp-session-id") ?? session.id;
      session.agreement = query.get("psu-corporate-id") ?? undefined;
      session.context = query.get("context") ?? undefined;
    }
    flow.done();
  }
  response.end("Thank you.");
});

function startFlow() {
  const state = randomUUID();
  let done;
  const returned = new Promise((resolve) => (done = resolve));
  flows.set(state, { done, returned, over: false });
  session.redirect = `http://127.0.0.1:${server.address().port}/return?state=${state}`;
  return returned;
}

function address(path) {
  return path.startsWith("http") ? new URL(path) : new URL(base.pathname.replace(/\/$/, "") + path, base);
}

async function send(method, path, { json, headers = {}, id = randomUUID() } = {}) {
  const url = address(path);
  const body = json === undefined ? "" : JSON.stringify(json);
  const all = {
    date: new Date().toUTCString(),
    "x-request-id": id,
    "tpp-redirect-uri": session.redirect,
    "tpp-session-id": session.id,
    "tpp-notification-uri": `http://127.0.0.1:${server.address().port}/notifications`,
    "x-accept-fix": "amount-as-string",
    "tpp-signature-certificate": certificate.raw.toString("base64"),
    ...(session.attended === false ? {} : { "psu-ip-address": customer }),
    ...(session.psu ? { "psu-id": session.psu } : {}),
    ...(session.agreement ? { "psu-corporate-id": session.agreement } : {}),
    ...(session.context ? { "psu-context": session.context } : {}),
    ...(body ? { "content-type": "application/json", digest: `SHA-256=${createHash("sha256").update(body).digest("base64")}` } : {}),
    ...headers,
  };
  const names = ["date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri"].filter((name) => name in all);
  const text = names.map((name) => `${name}: ${all[name]}`).join("\n");
  const signature = createSign("RSA-SHA256").update(text).sign(key, "base64");
  all.signature = `keyId="${keyId}",algorithm="rsa-sha256",headers="${names.join(" ")}",signature="${signature}"`;
  try {
    const answer = await fetch(url, { method, headers: all, body: body || undefined, redirect: "manual" });
    const bytes = Buffer.from(await answer.arrayBuffer());
    const digest = answer.headers.get("digest");
    const honest = !digest || digest === `SHA-256=${createHash("sha256").update(bytes).digest("base64")}`;
    let value = {};
    try {
      value = JSON.parse(bytes.toString());
    } catch {
      // an answer that is no JSON has no members
    }
    return { status: answer.status, value, honest };
  } catch {
    return undefined; // the connection was closed without an answer
  }
}

// Lost answers are asked for again with the same X-Request-ID and the same bytes, a bank that is down later.
async function ask(method, path, options = {}) {
  const id = randomUUID();
  for (let attempt = 0; attempt < 6; attempt += 1) {
    const answer = await send(method, path, { ...options, id });
    if (answer && answer.honest && answer.status !== 503) return answer;
    await sleep(0.5);
  }
  throw new Error(`${method} ${path} has no answer`);
}

async function toTheBank(link, returned) {
  await fetch(link, { redirect: "manual" }); // the customer's browser opens the page
  return Promise.race([returned, sleep(5)]); // a customer who never returns
}

const identified = () => (session.psu ? {} : { "x-psu-identity": env.BANK_NATIONAL_ID, "psu-context": env.BANK_CONTEXT });

function note(payment, status) {
  const state = status === "ACSC" ? "paid" : ["RJCT", "CANC"].includes(status) ? "failed" : "open";
  believe("payments", payment, { state });
}

async function order() {
  const returned = startFlow();
  const answer = await ask("POST", "/v1/payments/sepa-credit-transfers", {
    headers: identified(),
    json: {
      instructedAmount: { amount: "12.50", currency: "EUR" },
      creditorName: "Muster Verlag",
      creditorAccount: { iban: "DE19999999990000123456", currency: "EUR" },
      debtorAccount: { iban: env.BANK_DEBTOR, currency: "NOK" },
    },
  });
  if (answer.status !== 201) return undefined;
  note(answer.value.paymentId, answer.value.transactionStatus);
  await toTheBank(answer.value._links.scaRedirect.href, returned);
  return answer.value;
}

async function pay() {
  const payment = await order();
  if (!payment) return;
  for (let read = 0; read < 8; read += 1) {
    const answer = await ask("GET", payment._links.status.href, { headers: identified() });
    if (answer.status >= 400) return;
    note(payment.paymentId, answer.value.transactionStatus);
    if (final.has(answer.value.transactionStatus)) return;
    await sleep(0.6 + read / 10);
  }
}

async function payAndCancel() {
  const payment = await order();
  if (!payment) return;
  const deleted = await ask("DELETE", payment._links.self.href);
  if (deleted.status !== 202) return;
  const returned = startFlow();
  const asked = await ask("POST", deleted.value._links.startAuthorisation.href);
  if (asked.status === 201) await toTheBank(asked.value._links.scaRedirect.href, returned);
}

async function accounts() {
  const returned = startFlow();
  let answer = await ask("GET", "/v1/accounts", { headers: { "psu-context": env.BANK_CONTEXT } });
  if (answer.status === 401) {
    await toTheBank(answer.value._links.scaRedirect.href, returned);
    answer = await ask("GET", "/v1/accounts");
  }
  return answer.status === 200 ? answer.value.accounts : [];
}

// All accounts, twice; a session that is over is renewed, after which the accounts may have other ids.
async function read() {
  for (let round = 0; round < 2; round += 1) {
    for (const account of await accounts()) {
      const answer = await readAccount(account);
      if (answer.value.tppMessages?.[0].code === "SCA_EXPIRED") break;
      if (answer.status !== 200) return;
    }
    await sleep(1); // here bank time passes
  }
}

async function readAccount(account) {
  const balances = await ask("GET", account._links.balances.href);
  if (balances.status !== 200) return balances;
  const balance = balances.value.balances.find((one) => one.balanceType === "closingBooked").balanceAmount.amount;
  const known = new Set(); // by what does not change when a feed changes its ids
  let link = account._links.transactions.href;
  let page = balances;
  while (link) {
    page = await ask("GET", link);
    if (page.status !== 200) return page;
    for (const { valueDate, transactionAmount, creditorName, debtorName } of page.value.transactions.booked)
      known.add(JSON.stringify([valueDate, transactionAmount.amount, creditorName, debtorName]));
    link = page.value.transactions._links?.next?.href;
  }
  believe("accounts", account.resourceId, { balance, transactions: known.size });
  return page;
}

async function readUnattended() {
  const [account] = await accounts();
  if (!account) return;
  await sleep(0.3); // here the customer leaves
  session.attended = false;
  for (let count = 0; count < 4; count += 1) {
    const page = await ask("GET", account._links.transactions.href);
    if (page.status !== 200) return;
    await sleep(0.2);
  }
}

server.listen(0, "127.0.0.1", async () => {
  try {
    await { pay, "pay-and-cancel": payAndCancel, read, "read-unattended": readUnattended }[env.BANK_TASK]();
  } catch (error) {
    console.error(`${env.BANK_CHECK}: ${error.message} after ${Date.now() - started} ms`);
  }
  process.exit(0); // nothing of a flow that is over keeps the program alive
});
