// When many targets fail at once: whose fault it is, and what is told of it.
import { openNetworkGuard } from '../../jobs/observers/network_guard';
import { closedPort, startSilence } from '../support/deployments/breakable_target';
import { observersOf } from '../support/observers/observers';
import { startService } from '../support/service';

let clock = 0;
const now = (): number => clock;
const hosts = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `host-${from + index}`);

beforeEach(() => {
  clock = 1_000_000;
});

test('a few targets that can not be reached are down', async () => {
  const guard = openNetworkGuard({ references: [], now });
  for (const host of hosts(4)) guard.note(host, true);
  expect(await guard.isSuspended()).toBe(false);
  for (const host of hosts(20, 4)) guard.note(host, false);
  for (const host of hosts(6, 30)) guard.note(host, true);
  expect(await guard.isSuspended()).toBe(false);
});

test('without references most targets at once are suspicious for five minutes', async () => {
  const guard = openNetworkGuard({ references: [], now });
  const failAll = async (): Promise<boolean> => {
    for (const host of hosts(10)) guard.note(host, true);
    return guard.isSuspended();
  };
  expect(await failAll()).toBe(true);
  clock += 299_000;
  expect(await failAll()).toBe(true);
  clock += 2_000;
  expect(await failAll()).toBe(false);
});

test('a reference that answers proves that the network works, one that does not that it is down', async () => {
  const reference = await startSilence();
  const up = openNetworkGuard({ references: [{ host: '127.0.0.1', port: reference.port }], now });
  const down = openNetworkGuard({ references: [{ host: '127.0.0.1', port: await closedPort() }], now });
  for (const guard of [up, down]) for (const host of hosts(10)) guard.note(host, true);
  expect([await up.isSuspended(), await down.isSuspended()]).toEqual([false, true]);
  for (const host of hosts(10)) down.note(host, false);
  expect(await down.isSuspended()).toBe(false);
  await reference.close();
});

test('while the network of the platform is down nobody is alerted; projects and the operator are told', async () => {
  // Addresses that no packet reaches, and a reference that does not answer.
  const reference = `127.0.0.1:${await closedPort()}`;
  const service = await startService({
    worker: true,
    settings: {
      ALLOW_PRIVATE_ADDRESSES: '1',
      CHECK_REFERENCES: reference,
      DNS_RESOLVERS: `127.0.0.1:${await closedPort()}`,
    },
  });
  try {
    const observers = observersOf(service);
    const ids: string[] = [];
    for (const host of hosts(8))
      ids.push((await observers.made(`http://${host}.example.com/`, { failure_threshold: 1 })).id);
    for (let turn = 0; ; turn += 1) {
      const { body } = await service.call(
        'GET',
        `/v2/projects/${service.project}/activity?action=region.checks_suspended`,
      );
      if (body.data.length) {
        expect(body.data[0]).toMatchObject({ actor: { type: 'system' }, resource: { type: 'region', id: 'local' } });
        break;
      }
      if (turn > 200) throw new Error('nothing was said of the network');
      await service.sql('update observer_checks set check_at = now() - make_interval(secs => 1)');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(await (await fetch(`${service.adminUrl}/metrics`)).text()).toMatch(/^platform_check_regions_suspended 1$/m);
    const alerting = await service.sql(`select count(*) as count from observers where status = 'alerting'`);
    // The first few could not know.
    expect(Number(alerting[0].count)).toBeLessThan(ids.length);
  } finally {
    await service.close();
  }
});
