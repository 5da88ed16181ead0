// What a hostile project tries, and what it must be able to do, on networks of root and of an ordinary user.
import os from 'node:os';
import { driverContext } from '../../../core/driver';
import { listNetworkDirectories } from '../../../drivers/network/network_directory';
import { hasWayOut } from '../../../drivers/network/open';
import { networkObstacle } from '../../../drivers/runtime/network_obstacle';
import { ask, hostServer, useNetworkTrial, type NetworkTrial } from './network_trial';
import { until } from '../builds/runtime';

const UNREACHED = /^E(CONNREFUSED|HOSTUNREACH|NETUNREACH|ACCES|PERM)$/;

const FLOOD = `
const net = require("net");
let left = 500;
for (let i = 0; i < 500; i++) net.connect(5432, "ADDRESS").on("error", () => --left || console.log("refused"));`;

export function networkCases(): void {
  let one: NetworkTrial;
  let service: { port: number };
  useNetworkTrial((...opened) => ([one, service] = opened));

  test('two projects use the same port, and each one meets its own at 127.0.0.1', async () => {
    const [a, b] = [await one.serve('ins_a', 'prj_a', 5432), await one.serve('ins_b', 'prj_b', 5432)];
    expect([await ask(a, 5432), await ask(b, 5432)]).toEqual(['ins_a 127.0.0.1', 'ins_b 127.0.0.1']);
    expect(await one.reach('dep_a.build', 'prj_a', ['127.0.0.1:5432'])).toEqual({
      '127.0.0.1:5432': 'ins_a 127.0.0.1',
    });
    expect(await one.reach('dep_b.build', 'prj_b', ['127.0.0.1:5432'])).toEqual({
      '127.0.0.1:5432': 'ins_b 127.0.0.1',
    });
    expect(await ask(a, 5433)).toBe('ECONNREFUSED');
    for (const id of ['ins_a', 'ins_b']) {
      const handle = await one.trial.runtime.find(id);
      expect(await one.trial.runtime.listening(handle!)).toEqual([5432]);
    }
    await one.destroy('ins_a', 'ins_b', 'dep_a.build', 'dep_b.build');
  });

  test('what the host sends to a network that is gone does not leave the host', async () => {
    const location = await one.serve('ins_gone', 'prj_gone', 5432);
    await one.destroy('ins_gone');
    if (!('address' in location)) return;
    const target = `${location.address}:5432`;
    await until(async () => UNREACHED.test((await one.reach('ins_late', undefined, [target]))[target] ?? ''));
    await one.destroy('ins_late');
  });

  test('a port is free in the network where nothing listens, whatever listens on the host', async () => {
    await one.serve('ins_first', 'prj_a', 24_000);
    const rest = new Set(Array.from({ length: 98 }, (_, index) => 24_002 + index));
    expect(await one.trial.runtime.freePort(rest, 'prj_a')).toBe(24_001);
    expect([24_000, 24_001]).toContain(await one.trial.runtime.freePort(rest, 'prj_b'));
    await one.destroy('ins_first');
  });

  test('a project reaches neither ports of others nor of the host, nor private and metadata addresses', async () => {
    const location = await one.serve('ins_victim', 'prj_a', 6000);
    const [loopback, everywhere] = [await hostServer('127.0.0.1'), await hostServer('0.0.0.0')];
    const victims =
      'address' in location ? [`${location.address}:6000`, `${gatewayOf(location.address)}:${everywhere.port}`] : [];
    const own = Object.values(os.networkInterfaces()).flatMap((all) => all ?? []);
    const addresses = own
      .filter(({ internal, family }) => !internal && family === 'IPv4')
      .map(({ address }) => address);
    const targets = new Set([
      '127.0.0.1:6000',
      `127.0.0.1:${loopback.port}`,
      `127.0.0.1:${everywhere.port}`,
      ...addresses.map((address) => `${address}:${everywhere.port}`),
      ...['169.254.169.254:80', '10.1.2.3:80', '192.168.1.1:80', '172.16.0.1:80', '100.64.0.1:80'],
      ...victims,
    ]);
    const found = await one.reach('ins_hostile', 'prj_b', [...targets]);
    expect(Object.keys(found).sort()).toEqual([...targets].sort());
    for (const [target, answer] of Object.entries(found))
      expect([target, answer]).toEqual([target, expect.stringMatching(UNREACHED)]);
    // On the network of the host, the same program reaches it.
    const near = `127.0.0.1:${loopback.port}`;
    expect(await one.reach('ins_near', undefined, [near])).toEqual({ [near]: 'the host' });
    loopback.server.close();
    everywhere.server.close();
    await one.destroy('ins_victim', 'ins_hostile', 'ins_near');
  });

  test('servers of the platform are at 127.0.0.1 of every network', async () => {
    const own = `127.0.0.1:${service.port}`;
    expect(await one.reach('ins_a', 'prj_a', [own])).toEqual({ [own]: 'the host' });
    expect(await one.reach('ins_b', 'prj_b', [own, '127.0.0.1:1'])).toEqual({
      [own]: 'the host',
      '127.0.0.1:1': 'ECONNREFUSED',
    });
    // They are reached again by the next control plane, also from a network that is there.
    await one.serve('ins_stays', 'prj_a', 6001);
    await one.reopenNetworks();
    expect(await one.reach('ins_c', 'prj_a', [own])).toEqual({ [own]: 'the host' });
    await one.destroy('ins_a', 'ins_b', 'ins_c', 'ins_stays');
  });

  test('a flood of connections of a project does not reach the server of another one', async () => {
    const location = await one.serve('ins_served', 'prj_a', 5432);
    const address = 'address' in location ? location.address : '127.0.0.1';
    const flood = FLOOD.replace('ADDRESS', address);
    expect(await one.shell('ins_flood', 'prj_b', `exec node -e '${flood}'`)).toEqual(['refused']);
    expect(await ask(location, 5432)).toBe('ins_served 127.0.0.1');
    await one.destroy('ins_served', 'ins_flood');
  });

  test('a tenant changes neither its network nor that of others', async () => {
    const attempts = ['ip link set lo down', 'ip addr add 10.9.9.9/8 dev lo', 'nft flush ruleset', 'nft list ruleset'];
    const script = attempts.map((attempt) => `(${attempt}) >/dev/null 2>&1 && echo "${attempt}"`).join('; ');
    expect(await one.shell('ins_admin', 'prj_a', `export PATH=$PATH:/usr/sbin:/sbin; ${script}; echo end`)).toEqual([
      'end',
    ]);
    await one.destroy('ins_admin');
  });

  test('services on the network of the host keep it the default, until there are none', async () => {
    const obstacle = (sandbox: 'auto' | 'none'): Promise<string | null> =>
      networkObstacle(sandbox, one.trial.options.directory, one.options.block);
    expect(await obstacle('none')).toContain('SANDBOX is none');
    if (!(await hasWayOut())) return expect(await obstacle('auto')).toContain('/dev/net/tun');
    expect(await obstacle('auto')).toBeNull();
    await one.trial.start(one.trial.spec('dbs_before.server', 'exec sleep 600'));
    await one.trial.start(one.trial.spec('dbs_before.proxy', 'exec sleep 600'));
    expect(await obstacle('auto')).toMatch(/^1 applications and databases run on the network of the host\./);
    await one.serve('ins_after', 'prj_a', 7004);
    expect(await obstacle('auto')).toBeNull();
    await one.destroy('dbs_before.server', 'ins_after');
    expect(await obstacle('auto')).toBeNull();
    await one.destroy('dbs_before.proxy');
  });

  test('the network is there as long as a unit of the project is', async () => {
    await one.serve('ins_1', 'prj_life', 7001);
    await one.serve('ins_2', 'prj_life', 7002);
    await one.destroy('ins_1');
    expect(await one.networks.list()).toContain('prj_life');
    await one.destroy('ins_2');
    expect(await one.networks.list()).toEqual([]);
    await until(() => one.leftOvers().length === 0);
  });

  test('a new control plane finds the networks of the last one, and removes what nobody uses', async () => {
    const location = await one.serve('ins_kept', 'prj_kept', 7003);
    await one.networks.ensure('prj_lost', driverContext(20_000));
    await one.trial.reopen();
    expect(await one.networks.list()).toEqual(['prj_kept']);
    expect(await ask(location, 7003)).toBe('ins_kept 127.0.0.1');
    expect(await one.reach('dep_kept.build', 'prj_kept', ['127.0.0.1:7003'])).toEqual({
      '127.0.0.1:7003': 'ins_kept 127.0.0.1',
    });
    await one.destroy('ins_kept', 'dep_kept.build');
    expect(await listNetworkDirectories(one.options.directory)).toEqual([]);
  });
}

function gatewayOf(address: string): string {
  return address.replace(/\d+$/, (last) => String(Number(last) - 1));
}
