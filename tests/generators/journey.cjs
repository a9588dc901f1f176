// One journey with the generated TypeScript client: `node journey.cjs CLIENT PROXY BANK`; see journey.py.
const [client, proxy, bank] = process.argv.slice(2);
const generated = require(client);

const sepa = {
  instructedAmount: { amount: "12.50", currency: "EUR" },
  creditorName: "Librairie Exemple",
  creditorAccount: { iban: "FR8199999000010123456789A00", currency: "EUR" },
  debtorAccount: { iban: "NO8599901000014", currency: "NOK" },
};

async function control(path, body) {
  const answer = await fetch(`${bank}/_emulator/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

async function main() {
  const session = await control("sessions", { tpp: "demo", nationalId: "14888520059" });
  const who = { pSUID: session.psuId, tPPSessionID: session.tppSessionId };
  const configuration = new generated.Configuration({ basePath: proxy });
  const { accounts } = await new generated.AccountsApi(configuration).getAccounts(who);
  if (!accounts.some((account) => account.iban === sepa.debtorAccount.iban)) throw new Error("the account is missing");
  const payments = new generated.PaymentsApi(configuration);
  const created = await payments.createPaymentSepaCreditTransfers({ sepaTransfer: sepa, ...who });
  await control(`sca/${created.paymentId}/approve`, {});
  await control("clock/advance", { by: "10s" });
  const asked = { paymentId: created.paymentId, ...who };
  const status = await payments.getPaymentStatusSepaCreditTransfers(asked);
  console.log(status.transactionStatus);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
