// A payment program that the bank can explore: it pays and reads, keeps what it knows in a folder, and tells it on request.
//
//   node explorable.mjs FOLDER            does the tasks of BANK_TASK; what it keeps is in FOLDER, by BANK_RUN or BANK_CHECK
//   node explorable.mjs FOLDER claims     serves GET /{run}/payments/{id} and /{run}/accounts/{id}, and prints its address
import { createHash, createSign, randomUUID, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const [folder, mode] = process.argv.slice(2);
const env = process.env;
const name = env.BANK_RUN ?? env.BANK_CHECK; // of `conformance explore`, of `conformance run`
const file = (run) => join(folder, `${run}.json`);
const load = (run) => (existsSync(file(run)) ? JSON.parse(readFileSync(file(run), "utf8")) : { orders: {}, accounts: {} });

if (mode === "claims") {
  const server = createServer((request, response) => {
    const [, run, kind, id] = new URL(request.url, "http://shop").pathname.split("/");
    const known = load(run);
    const payment = Object.values(known.orders).find((order) => order.payment === id);
    const claim = kind === "payments" ? payment && { state: payment.state } : known.accounts[id];
    response.writeHead(claim ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(claim ?? {}));
  });
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/{run}`));
} else {
  mkdirSync(folder, { recursive: true });
  await main();
}

async function main() {
  const disk = load(name);
  const save = () => {
    writeFileSync(`${file(name)}.new`, JSON.stringify(disk));
    renameSync(`${file(name)}.new`, file(name)); // a kill leaves the old file or the new one
  };
  const certificate = new X509Certificate(readFileSync(env.BANK_CERTIFICATE));
  const key = readFileSync(env.BANK_KEY);
  const issuer = certificate.issuer.split("\n").reverse().join(",");
  const keyId = `SN=${certificate.serialNumber},CA=${issuer}`;
  const base = new URL(env.BANK_URL);
  const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));
  const flows = new Map();

  // The customer's return, which belongs to the flow that it names.
  const server = createServer((request, response) => {
    const query = new URL(request.url, "http://shop").searchParams;
    flows.get(query.get("state"))?.(query);
    response.end("Thank you.");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));

  function startFlow() {
    const state = randomUUID();
    const returned = new Promise((resolve) => flows.set(state, resolve));
    return { redirect: `http://127.0.0.1:${server.address().port}/return?state=${state}`, returned };
  }

  async function send(method, path, { json, headers = {}, id, redirect }) {
    const url = path.startsWith("http") ? new URL(path) : new URL(base.pathname.replace(/\/$/, "") + path, base);
    const body = json === undefined ? "" : JSON.stringify(json);
    const all = {
      date: new Date().toUTCString(),
      "x-request-id": id,
      "tpp-redirect-uri": redirect ?? "http://127.0.0.1/return",
      "tpp-session-id": (disk.session ??= randomUUID()),
      "x-accept-fix": "amount-as-string",
      "tpp-signature-certificate": certificate.raw.toString("base64"),
      "psu-ip-address": "203.0.113.7",
      ...(body ? { "content-type": "application/json", digest: `SHA-256=${createHash("sha256").update(body).digest("base64")}` } : {}),
      ...headers,
    };
    const names = ["date", "digest", "x-request-id", "psu-id", "tpp-redirect-uri"].filter((name) => name in all);
    const text = names.map((name) => `${name}: ${all[name]}`).join("\n");
    const signature = createSign("RSA-SHA256").update(text).sign(key, "base64");
    all.signature = `keyId="${keyId}",algorithm="rsa-sha256",headers="${names.join(" ")}",signature="${signature}"`;
    try {
      const answer = await fetch(url, { method, headers: all, body: body || undefined, redirect: "manual" });
      return { status: answer.status, value: JSON.parse(await answer.text()) };
    } catch {
      return undefined; // lost, or no JSON
    }
  }

  // Lost and unreadable answers are asked for again: the same bytes under the same X-Request-ID; a bank that is down, later.
  async function ask(method, path, options, usable) {
    const id = options.id ?? randomUUID();
    for (let attempt = 0; attempt < 24; attempt += 1) {
      const answer = await send(method, path, { ...options, id });
      if (answer && answer.status !== 503 && answer.status !== 429) {
        if (answer.status >= 400 || usable(answer.value)) return answer;
      }
      await sleep(0.01);
    }
    return undefined;
  }

  async function toTheBank(link, returned) {
    await fetch(link, { redirect: "manual" }); // the customer's browser opens the page
    return Promise.race([returned, sleep(1)]); // a customer who never returns
  }

  // Every return of the customer carries who it is, and the session.
  function takeOver(query) {
    if (!query?.has("psu-id")) return false;
    Object.assign(disk, { psu: query.get("psu-id"), session: query.get("tpp-session-id") });
    save();
    return true;
  }

  const payer = { "x-psu-identity": env.BANK_NATIONAL_ID, "psu-context": "PRIVATE" };

  async function pay(number) {
    const order = (disk.orders[number] ??= { id: randomUUID(), state: "open" });
    save(); // before it is sent: after a kill the same request is sent again
    if (!order.payment && order.state === "open") {
      const { redirect, returned } = startFlow();
      const json = {
        instructedAmount: { amount: `12.${50 + number}`, currency: "NOK" },
        creditorName: "Muster Verlag",
        creditorAccount: { bban: "99990000014", currency: "NOK" },
        debtorAccount: { bban: env.BANK_DEBTOR.slice(4), currency: "NOK" },
        endToEndIdentification: `order-${number}`,
      };
      const path = "/v1/payments/norwegian-domestic-credit-transfers";
      const answer = await ask("POST", path, { json, redirect, headers: payer, id: order.id }, (value) => typeof value.paymentId === "string");
      if (!answer) return;
      if (answer.status !== 201) order.state = "failed";
      else Object.assign(order, { payment: answer.value.paymentId, status: answer.value._links.status.href });
      save();
      if (order.payment) takeOver(await toTheBank(answer.value._links.scaRedirect.href, returned));
    }
    for (let read = 0; read < 12; read += 1) if (await look(order)) return;
  }

  async function look(order) {
    if (!order.payment || order.final) return true;
    const answer = await ask("GET", order.status, { headers: payer }, (value) => typeof value.transactionStatus === "string");
    if (answer?.status !== 200) return true;
    const status = answer.value.transactionStatus;
    order.state = status === "ACSC" ? "paid" : ["RJCT", "CANC"].includes(status) ? "failed" : "open";
    if (env.PLANTED === "accp-is-paid" && status === "ACCP") order.state = "paid";
    order.final = ["ACSC", "RJCT", "CANC", "PART"].includes(status) || (env.PLANTED === "accp-is-paid" && status === "ACCP");
    save();
    return order.final;
  }

  async function read() {
    const { redirect, returned } = startFlow();
    const who = () => (disk.psu ? { "psu-id": disk.psu } : { "psu-context": "PRIVATE" });
    let answer = await ask("GET", "/v1/accounts", { redirect, headers: who() }, (value) => Array.isArray(value.accounts));
    const link = answer?.status === 401 && answer.value?._links?.scaRedirect?.href;
    if (link) {
      const query = await toTheBank(link, returned);
      if (!takeOver(query)) return; // nobody has signed
      answer = await ask("GET", "/v1/accounts", { headers: who() }, (value) => Array.isArray(value.accounts));
    }
    if (answer?.status !== 200) return;
    for (const account of answer.value.accounts.slice(0, 1)) {
      const balances = await ask("GET", account._links.balances.href, { headers: who() }, (value) => Array.isArray(value.balances));
      if (balances?.status !== 200) return;
      const { amount } = balances.value.balances.find((one) => one.balanceType === "closingBooked").balanceAmount;
      disk.accounts[account.resourceId] = { balance: amount };
      save();
    }
  }

  const tasks = { pay, read };
  for (const [number, task] of env.BANK_TASK.split(" ").entries()) await tasks[task]?.(number);
  for (let round = 0; round < 12; round += 1) {
    for (const order of Object.values(disk.orders)) await look(order); // at its end: all that is open, in turn
  }
  process.exit(0);
}
