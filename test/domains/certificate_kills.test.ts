/** @tier heavy @quarter 4 @covers drivers/certificates jobs/domains/certificate */
// SIGKILL of the worker before and after each request of an order, and of the ingress while it is asked for proof: the
// next worker goes on with the same order, and what was served before is served all the time.
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectControl } from '../../engines/ingress/process/control_socket';
import { openSocketChannel } from '../../core/process/channel';
import { OWN, openPlatformSite, type PlatformSite } from '../support/ingress/platform_site';
import { endPrograms, startProgram, type Program } from '../support/processes/program';
import { needs } from '../support/runner/programs';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';
import { configIn, withConfig } from '../support/config';

jest.setTimeout(180_000);

const NAME = OWN[0] as string;
const PAST = '2020-01-01T00:00:00.000Z';
const WILDCARD = '*.apps.example.com';
const { describe: described } = needs('pebble', 'openssl');

described('with an authority', () => {
  let site: PlatformSite;
  let service: TestService;
  let worker: Program;
  let served: Record<string, string>;
  const programs: Program[] = [];

  async function startWorker(): Promise<void> {
    const { databaseUrl } = service.platform;
    worker = startProgram(
      {
        ...{ DATABASE_URL: databaseUrl, PLATFORM_DATA_DIR: service.dataDir, WORKER: 'separate' },
        ...site.settings,
        ...withConfig({ ...configIn(site.settings), ingressProcess: 'separate' }),
      },
      { entry: 'server/worker.ts' },
    );
    programs.push(worker);
    await worker.ready();
  }

  beforeAll(async () => {
    site = await openPlatformSite(90 * 86_400);
    service = await startService({ settings: site.settings });
    await startWorker();
    served = await site.furnish((method, route, options) => service.call(method, route, options));
    await waitFor('the first certificates', async () => (await missing()).length === 0, 120_000);
  });
  afterAll(async () => {
    const socket = service && (await connectControl(ingressDirectory()));
    if (socket) process.kill((await helloOf(socket)).pid, 'SIGKILL');
    await endPrograms();
    await service?.close();
    await site?.close();
  });

  const ingressDirectory = (): string => path.join(service.platform.config.runtimeDir, 'ingress');

  async function helloOf(socket: NonNullable<Awaited<ReturnType<typeof connectControl>>>): Promise<{ pid: number }> {
    const channel = openSocketChannel(socket, {});
    const hello = (await channel.call('hello')) as { pid: number };
    channel.close();
    return hello;
  }

  const missing = (): Promise<unknown[]> =>
    service.sql(`select id from certificates where chain is null and id = any($1)`, [
      [...OWN, WILDCARD, served.cdn, served.domain],
    ]);

  /** Makes a renewal due, as if its moment had come: what was ordered before is older than an hour, and a day. */
  async function renew(name: string): Promise<void> {
    await service.sql(`update certificate_orders set created_at = created_at - interval '1 hour'`);
    await service.sql(
      `update certificates set renewal = $2, issued_at = issued_at - interval '1 day', attempts = 0, next_at = now(),
        lease_until = null, lease_owner = null where id = $1`,
      [name, JSON.stringify({ start: PAST, end: PAST, at: PAST, ask_at: '2999-01-01T00:00:00.000Z' })],
    );
  }

  /** Kills the worker at this request, starts another one, and waits for the renewed certificate. */
  async function killAt(when: 'before' | 'after', step: string, name: string): Promise<number> {
    const chain = await chainOf(name);
    const { placed } = site.authority;
    let killed: Promise<unknown> | undefined;
    site.authority.on = async (at, route) => {
      if (killed || at !== when || !route.startsWith(step)) return;
      worker.signal('SIGKILL');
      killed = worker.ended;
      await killed;
    };
    await renew(name);
    await waitFor(`the kill ${when} ${step}`, () => Promise.resolve(killed !== undefined), 30_000);
    await killed;
    site.authority.on = () => undefined;
    await startWorker();
    // Its lease would end by itself within half a minute.
    await service.sql('update certificates set lease_until = null, lease_owner = null, next_at = now() where id = $1', [
      name,
    ]);
    await untilRenewed(name, chain);
    return site.authority.placed - placed;
  }

  /** What the authority refused is tried again after a minute; here at once. */
  const untilRenewed = (name: string, chain: string): Promise<unknown> =>
    waitFor(
      'the renewed certificate',
      async () => {
        if ((await chainOf(name)) !== chain) return true;
        await service.sql('update certificates set next_at = now() where id = $1 and lease_owner is null', [name]);
        return false;
      },
      90_000,
    );

  async function chainOf(name: string): Promise<string> {
    const [row] = await service.sql<{ chain: string }>('select chain from certificates where id = $1', [name]);
    return row?.chain ?? '';
  }

  test.each([
    ['before', '/sign-me-up', NAME, 1],
    ['before', '/order-plz', NAME, 1],
    // Its address is lost with the answer.
    ['after', '/order-plz', NAME, 2],
    ['before', '/authZ', NAME, 1],
    ['before', '/chalZ', NAME, 1],
    // The authority asks for the proof meanwhile, and gets none: that order is over.
    ['after', '/chalZ', NAME, 2],
    ['before', '/chalZ', WILDCARD, 1],
    ['before', '/finalize-order', NAME, 1],
    ['after', '/finalize-order', NAME, 1],
    ['before', '/certZ', NAME, 1],
    ['after', '/certZ', WILDCARD, 1],
  ] as const)('the worker killed %s %s, for %s: %d order', async (when, step, name, orders) => {
    const names = [NAME, served.application as string, served.cdn as string, served.domain as string];
    const problems: string[] = [];
    let watching = true;
    const watch = (async () => {
      while (watching) {
        for (const one of names)
          await site.serial(one).catch((error: Error) => problems.push(`${one}: ${error.message}`));
        await sleep(50);
      }
    })();
    try {
      const placed = await killAt(when, step, name);
      expect([placed >= 1, placed <= orders, placed]).toEqual([true, true, placed]);
    } finally {
      watching = false;
      await watch;
    }
    expect([...new Set(problems)]).toEqual([]);
    const records = await service.sql(`select name from dns_records where name like '\\_acme%'`);
    expect([records, await service.sql('select token from acme_challenges')]).toEqual([[], []]);
  });

  test('the ingress killed while it is asked for proof is back, and so is the certificate', async () => {
    const chain = await chainOf(NAME);
    let killed = false;
    site.authority.on = async (at, route) => {
      if (killed || at !== 'before' || !route.startsWith('/chalZ')) return;
      killed = true;
      const socket = await connectControl(ingressDirectory());
      if (socket) process.kill((await helloOf(socket)).pid, 'SIGKILL');
    };
    await renew(NAME);
    await waitFor('the kill', () => Promise.resolve(killed), 30_000);
    site.authority.on = () => undefined;
    await untilRenewed(NAME, chain);
    expect(await site.serial(NAME)).toBeTruthy();
  });
});
