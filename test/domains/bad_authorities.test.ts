/** @tier heavy @quarter 4 @covers drivers/certificates jobs/domains/certificate models/domains/certificate */
// A year with authorities that misbehave in every way that was seen of one, each when renewals are due: certificates of
// before are served meanwhile, the reason is a sentence, and nobody is warned of what mends itself.
import { certificateFigures } from '../../models/domains/certificate/expiry_warnings';
import type { Authority } from '../support/ingress/authority';
import { openPlatformSite, passTime, type PlatformSite } from '../support/ingress/platform_site';
import { fileNeeds } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

fileNeeds('pebble', 'openssl', 'named');
jest.setTimeout(1_200_000);

const LIFE_DAYS = 90;
const DAY_MS = 86_400_000;
/** How long a fault lasts after it was met, and how long there is none. */
const [FAULT_DAYS, CALM_DAYS] = [3, 2];
/** Nothing is due while more of each certificate is left: time passes in larger steps then. */
const [RENEWED_DAYS, LARGE_STEP_DAYS] = [32, 5];
const PROBLEM = 'urn:ietf:params:acme:error:';

interface Fault {
  name: string;
  answer?: Authority['answer'];
  alter?: Authority['alter'];
  /** What the authority suggests for each certificate. */
  window?: string;
  /** Shown to the owner; none: certificates are renewed all the same. */
  reason?: RegExp;
}

const onOrders =
  (status: number, type: string | null, headers: Record<string, string>): Fault['answer'] =>
  (path) =>
    path === '/order-plz'
      ? { status, headers, body: JSON.stringify(type && { type: PROBLEM + type, detail: 'no' }) }
      : null;
const windowOf = (start: string, end: string): string => JSON.stringify({ suggestedWindow: { start, end } });
const PAST = windowOf('2000-01-01T00:00:00Z', '2000-01-02T00:00:00Z');
const NEVER = windowOf('2999-01-01T00:00:00Z', '2999-01-02T00:00:00Z');
const ofOrders =
  (edit: object): Fault['alter'] =>
  (path, body) =>
    path.startsWith('/my-order/') ? JSON.stringify({ ...(JSON.parse(body.toString()) as object), ...edit }) : body;
const CERTIFICATES = /-----BEGIN[^]+?-----END CERTIFICATE-----\n/g;
/** Not of an answer that refuses the nonce, as pebble does at random. */
const ofChains =
  (edit: (certificates: string[]) => string): Fault['alter'] =>
  (path, body) => {
    const found = path.startsWith('/certZ/') ? body.toString().match(CERTIFICATES) : null;
    return found ? edit(found) : body;
  };
const PAGE = '<html>Down for maintenance</html>';
const IS_PAGE =
  /^The certificate authority is not available \(it answers with a web page\)\. The platform tries again\.$/;

const FAULTS: Fault[] = [
  {
    name: 'a limit that names an hour',
    answer: onOrders(429, 'rateLimited', { 'Retry-After': '3600' }),
    reason: /^The certificate authority accepts no more requests at the moment: no\.$/,
  },
  { name: 'renewal information that is garbage', window: PAGE },
  {
    name: 'an outage that names a day',
    answer: onOrders(503, null, { 'Retry-After': '86400' }),
    reason: /^The certificate authority is not available \(status 503\)\. The platform tries again\.$/,
  },
  { name: 'a window in the past, always', window: PAST },
  {
    name: 'orders that become invalid',
    alter: ofOrders({ status: 'invalid', error: { type: `${PROBLEM}serverInternal`, detail: 'lost' } }),
    reason: /^The certificate authority refused: lost\.$/,
  },
  { name: 'a window that never comes', window: NEVER },
  { name: 'a chain with its root', alter: ofChains((all) => [...all, root].join('')) },
  { name: 'a certificate that is a page', alter: ofChains(() => PAGE), reason: IS_PAGE },
  { name: 'a window whose end is before its start', window: windowOf('2999-01-02T00:00:00Z', '2000-01-01T00:00:00Z') },
  {
    name: 'a directory that is a page',
    answer: (path) => (path === '/dir' ? { status: 200, body: PAGE } : null),
    reason: IS_PAGE,
  },
  { name: 'a chain with its intermediate twice', alter: ofChains((all) => [...all, all.at(-1)].join('')) },
];

let site: PlatformSite;
let service: TestService;
let served: string[];
let fault: Fault | null = null;
/** PEM. */
let root = '';
/** Answers that the fault has spoilt. */
let hits = 0;

beforeAll(async () => {
  site = await openPlatformSite(LIFE_DAYS * 86_400);
  root = await site.pebble.root();
  misbehave(site.authority);
  service = await startService({ worker: true, settings: site.settings });
  const names = await site.furnish((method, path, options) => service.call(method, path, options));
  served = ['console.example.com', names.application as string, names.domain as string];
});
afterAll(async () => {
  await service?.close();
  await site?.close();
});

/** Gives it renewal information, which pebble of Debian has not, and what the fault of the moment does. */
function misbehave(authority: Authority): void {
  const issuedAt = new Map<string, number>();
  const usual = (id: string): string => {
    if (!issuedAt.has(id)) issuedAt.set(id, authority.elapsedMs);
    const from = Date.now() - authority.elapsedMs + (issuedAt.get(id) as number);
    const at = (part: number): string => new Date(from + part * LIFE_DAYS * DAY_MS).toISOString();
    return windowOf(at(0.65), at(0.7));
  };
  authority.answer = (path, method) => {
    const bad = fault?.answer?.(path, method) ?? null;
    if (bad) hits += 1;
    const [, id] = /^\/renewal-info\/(.+)$/.exec(path) ?? [];
    return bad ?? (id === undefined ? null : { status: 200, body: fault?.window ?? usual(id) });
  };
  authority.alter = (path, body) => {
    if (path === '/dir') {
      const renewalInfo = new URL('/renewal-info', authority.directory).href;
      return JSON.stringify({ ...(JSON.parse(body.toString()) as object), renewalInfo });
    }
    const altered = fault?.alter?.(path, body) ?? body;
    if (altered !== body) hits += 1;
    return altered;
  };
}

interface Row {
  id: string;
  reason: string | null;
  days: number | null;
}

const rows = (): Promise<Row[]> =>
  service.sql<Row>(`select id, reason, extract(epoch from expires_at - now())::float8 / 86400 as days
    from certificates where chain is not null or reason is not null order by id`);

test('no name is ever without a good certificate, and each fault is told in a sentence', async () => {
  const { authority } = site;
  await waitFor('the first certificates', async () => (await rows()).filter(({ days }) => days).length === 5, 120_000);
  const problems: string[] = [];
  const orders = new Map<string, number>();
  let days = 0;
  const passDay = async (count: number): Promise<string[]> => {
    await passTime(service, authority, 24 * count);
    days += count;
    const at = `day ${days}, ${fault?.name ?? 'no fault'}: `;
    const all = await rows();
    for (const { id, days: left } of all) if (!(left !== null && left > 0)) problems.push(`${at}${id} has none`);
    for (const name of served)
      await site.serial(name).catch((error: Error) => problems.push(`${at}${name}: ${error.message}`));
    const { own } = await certificateFigures(service.platform.database);
    problems.push(...own.filter((one) => one.needs_warning).map(({ id }) => `${at}a warning of ${id}`));
    return all.flatMap(({ reason }) => reason ?? []);
  };
  const soonest = async (): Promise<number> => Math.min(...(await rows()).map((one) => one.days ?? 0));
  for (const one of FAULTS) {
    const before = authority.placed;
    [fault, hits] = [one, 0];
    const told = new Set<string>();
    const isMet = (): boolean => (one.reason ? hits > 0 : authority.placed > before);
    for (let left = FAULT_DAYS; left > 0;) {
      const step = isMet() || (await soonest()) < RENEWED_DAYS || one.window === PAST ? 1 : LARGE_STEP_DAYS;
      for (const reason of await passDay(step)) told.add(reason);
      if (isMet()) left -= 1;
    }
    expect([one.name, [...told].filter((reason) => !one.reason?.test(reason))]).toEqual([one.name, []]);
    expect([one.name, told.size > 0]).toEqual([one.name, one.reason !== undefined]);
    orders.set(one.name, authority.placed - before);
    fault = null;
    for (let left = CALM_DAYS; left > 0; left -= 1) await passDay(1);
    const still = (await rows()).filter(({ reason }) => reason !== null);
    expect([one.name, still]).toEqual([one.name, []]);
  }
  expect(problems).toEqual([]);
  expect(days).toBeGreaterThan(365);
  // One a day of each name: as many as it takes to find out that the authority says so of each.
  expect(orders.get('a window in the past, always')).toBeLessThanOrEqual(5 * (FAULT_DAYS + 1));
});
