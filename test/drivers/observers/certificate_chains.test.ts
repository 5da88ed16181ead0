// Chains of certificates as servers send them: what ends first in the one that is trusted, and what lies beside it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openOutbound } from '../../../core/outbound';
import type { CheckOutcome, UptimeCheck } from '../../../core/protocols/checks';
import type { Monitor } from '../../../drivers/monitor';
import { openMonitor } from '../../../drivers/monitor/open';
import { makeAuthority, type Authority, type Leaf } from '../../support/databases/authority';
import { startTarget, type Target } from '../../support/deployments/breakable_target';

let authority: Authority;
let monitor: Monitor;
let directory: string;
const open: Target[] = [];

beforeAll(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'chains-'));
  authority = await makeAuthority();
  const caFile = authority.write(path.join(directory, 'ca.pem'));
  monitor = openMonitor(openOutbound({ isAllowed: () => true, hostsFile: false, resolvers: [], caFile }));
});

afterAll(async () => {
  await Promise.all(open.map((one) => one.close()));
  rmSync(directory, { recursive: true });
});

function check(changes: Pick<UptimeCheck, 'target'> & Partial<UptimeCheck>): Promise<CheckOutcome> {
  return monitor.check({
    ...{ check: 'http', method: 'GET', headers: [], expected_status_codes: [], expected_body: null },
    ...{ follow_redirects: true, verify_tls: true, timeout_seconds: 5, ...changes },
  });
}

const chained = async (leaf: Promise<Leaf>, ...further: string[]): Promise<string> => {
  const { cert, key } = await leaf;
  const secure = await startTarget({ cert: [cert, ...further].join('\n'), key });
  open.push(secure);
  return `https://127.0.0.1:${secure.port}/ok`;
};
const daysUntil = (at: string | null): number => Math.round((Date.parse(at ?? '') - Date.now()) / 86_400_000);
const names = ['127.0.0.1'];

test('an authority whose certificate ends before that of the target is what counts, by its name', async () => {
  const between = await authority.intermediate('Short\u202eLived CA', { from: -1, until: 5 });
  const outcome = await check({ target: await chained(between.issue(names, { from: -1, until: 60 }), between.pem) });
  expect(outcome).toMatchObject({ status: 'pass', certificate_authority: 'Short Lived CA' });
  expect(daysUntil(outcome.certificate_expires_at)).toBe(5);
  const over = await authority.intermediate('Old CA', { from: -30, until: -3 });
  const failed = await check({ target: await chained(over.issue(names, { from: -1, until: 60 }), over.pem) });
  expect(failed).toMatchObject({
    ...{ status: 'fail', certificate_authority: 'Old CA' },
    error: expect.stringMatching(
      /^The certificate of the authority "Old CA", on which that of the target depends, expired at 20/,
    ),
  });
  expect(daysUntil(failed.certificate_expires_at)).toBe(-3);
});

test('what is sent beside the path that is trusted does not count', async () => {
  // As the root DST Root CA X3 in 2021: a trusted root, signed by another one that nobody trusts, both expired.
  const gone = await makeAuthority('Gone root');
  const cross = await gone.crossSign(authority, { from: -900, until: -800 });
  const between = await authority.intermediate('R3', { from: -1, until: 40 });
  const stranger = await (await makeAuthority('Test root')).intermediate('R3', { from: -9, until: -8 });
  const orders = [
    [between.pem, cross],
    [between.pem, cross, gone.pem],
    [stranger.pem, between.pem, cross],
    [
      between.pem,
      authority.pem,
      stranger.pem,
      (await authority.issue(['x.example.com'], { from: -9, until: -8 })).cert,
    ],
  ];
  for (const further of orders) {
    const outcome = await check({ target: await chained(between.issue(names, { from: -1, until: 60 }), ...further) });
    expect(outcome).toMatchObject({ status: 'pass', error: null, certificate_authority: 'R3' });
    expect(daysUntil(outcome.certificate_expires_at)).toBe(40);
  }
});

test('of two paths that are trusted the one that holds longer counts; of none, the certificate alone', async () => {
  const between = await authority.intermediate('Twice', { from: -1, until: 3 });
  const longer = await authority.crossSign(between, { from: -1, until: 50 });
  for (const further of [
    [between.pem, longer],
    [longer, between.pem],
  ]) {
    const outcome = await check({ target: await chained(between.issue(names, { from: -1, until: 60 }), ...further) });
    expect([outcome.status, daysUntil(outcome.certificate_expires_at)]).toEqual(['pass', 50]);
  }
  const unknown = await (await makeAuthority('Nobody')).intermediate('Nobody below', { from: -1, until: 2 });
  const target = await chained(unknown.issue(names, { from: -1, until: 60 }), unknown.pem);
  const unverified = await check({ target, verify_tls: false });
  expect([unverified.status, daysUntil(unverified.certificate_expires_at)]).toEqual(['pass', 60]);
  expect(unverified.certificate_authority).toBeNull();
});
