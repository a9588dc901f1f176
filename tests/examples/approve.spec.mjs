import { expect, test } from "@playwright/test";

const BANK = process.env.BANK_URL ?? "http://127.0.0.1:8080";

test("a customer shares accounts", async ({ page, request }) => {
  await page.route("https://tpp.example/**", (route) => route.fulfill({ body: "Back in the application" }));
  const { sca } = await (await request.get(`${BANK}/_emulator/sca`)).json();
  await page.goto(`${BANK}/sca/${sca[0].id}`); // in place of your application, which opens the scaRedirect
  await page.getByLabel("National identity number").fill("14888520059");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("button", { name: "Continue" }).click(); // how to confirm
  await page.getByRole("button", { name: "Approve" }).click();
  await expect(page).toHaveURL(/psu-id=/);
});
