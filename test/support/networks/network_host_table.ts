// The rules of the host for networks of root: other programs remove them, and killed services leave them.
import { mkdtempSync, rmSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { openNetworks, type NetworkOptions } from '../../../drivers/network/open';
import { ask, openNetworkTrial, output, type NetworkTrial } from './network_trial';
import { firstOutput, kill, spawnProgram } from '../processes/processes';
import { until } from '../builds/runtime';

// It has no network when it is killed.
const LEAVE = `
const { openNetworks } = require('./drivers/network/open');
openNetworks({ ...JSON.parse(process.argv[1]), memberOf: async () => null }).then(({ tag }) => console.log(tag));
setInterval(() => {}, 1000);`;

const PEERS = /elements = \{([^}]*)\}/;

export function networkHostTableCases(): void {
  let directory: string;
  beforeAll(() => void (directory = mkdtempSync('/tmp/platform-net-')));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const hasTable = (tag: string): boolean => output('nft', 'list', 'tables').includes(`platform_${tag}\n`);
  const optionsOf = (name: string): NetworkOptions => ({
    directory: path.join(directory, name),
    block: '10.242.0.0/24',
    openings: { resolvers: [], loopbackResolver: null, services: [], databases: [30_000, 30_999], allowed: [] },
    memberOf: () => Promise.resolve(null),
  });

  test('rules of a service that was killed go with any other start, those of one that runs stay', async () => {
    const [killed, alive] = ['killed', 'alive'].map((name) => spawnProgram(LEAVE, [JSON.stringify(optionsOf(name))]));
    const [gone, stays] = [await firstOutput(killed!), await firstOutput(alive!)];
    expect([hasTable(gone), hasTable(stays)]).toEqual([true, true]);
    await kill(killed!);
    const next = await openNetworks(optionsOf('next'));
    expect([hasTable(gone), hasTable(stays), hasTable(next.tag)]).toEqual([false, true, true]);
    await kill(alive!);
    const networks = await openNetworks(optionsOf('alive'));
    await next.close();
    await networks.close();
    expect([next.tag, stays].filter(hasTable)).toEqual([]);
  }, 60_000);

  describe('of units with networks of their own', () => {
    let one: NetworkTrial;
    beforeAll(async () => void (one = await openNetworkTrial()), 60_000);
    afterAll(() => one?.close(), 60_000);

    const table = (): string => `platform_${one.networks.tag}`;
    const peers = (): string[] => {
      const [, elements = ''] = PEERS.exec(output('nft', 'list', 'set', 'inet', table(), 'peers')) ?? [];
      return elements
        .split(',')
        .map((pair) => pair.trim())
        .filter(Boolean);
    };
    const ctx = () => driverContext(20_000);

    test('come back by themselves where another program removes them, with all that units may reach', async () => {
      await one.serve('db_own', 'prj_own', 30_005);
      await one.networks.ensureMember!('ins_web', { within: 'prj_own', port: 80, reached_at: 24_001 }, ctx());
      await one.networks.ensureMember!('ins_two', { within: 'prj_own', port: 80, reached_at: 24_002 }, ctx());
      expect(peers()).toHaveLength(2);
      for (const removal of [
        ['flush', 'table'],
        ['delete', 'table'],
      ]) {
        output('nft', ...removal, 'inet', table());
        await until(() => peers().length === 2 && output('nft', 'list', 'table', 'inet', table()).includes('jump'));
      }
      await one.networks.remove('ins_two', ctx());
      expect(peers()).toHaveLength(1);
      // Gone at this moment: the change loads all of them.
      output('nft', 'delete', 'table', 'inet', table());
      await one.networks.remove('ins_web', ctx());
      await until(() => output('nft', 'list', 'table', 'inet', table()).includes('jump'));
      expect(peers()).toEqual([]);
      expect(await ask(one.trial.runtime.locationOf('db_own'), 30_005)).toBe('db_own 127.0.0.1');
      await one.destroy('db_own');
    }, 60_000);
  });
}
