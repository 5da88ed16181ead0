// Databases whose project has a network of its own: their servers, poolers and public endpoints.
import { execFile } from 'node:child_process';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { HOST_NETWORK, isPortTaken } from '../../../core/outbound/network_location';
import { listNetworkDirectories } from '../../../drivers/network/network_directory';
import { locationOf } from '../../../drivers/runtime/run_directory';
import { processesWith, signalAll } from '../processes/processes';
import type { Answer } from '../service';
import { connect, openHall, outsideAddress, verdict, type Hall } from './database_hall';
import { waitFor } from '../wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
const outside = outsideAddress();

const psql = async (...args: string[]): Promise<string> => (await promisify(execFile)('psql', args)).stdout;

/** The kernel leads few addresses to a server, so the program that would has nothing to do. */
async function expectNoProxy(target: string, serverId: string): Promise<void> {
  const proxy = processesWith(serverId).flatMap(({ pid, args }) => (args.includes('access_proxy.js') ? [pid] : []));
  expect(proxy).not.toEqual([]);
  signalAll(proxy, 'SIGSTOP');
  try {
    expect((await psql(target, '-Atc', 'select 1')).trim()).toBe('1');
  } finally {
    signalAll(proxy, 'SIGCONT');
  }
}

/** @param block three octets of a network, with a dot behind */
export function isolatedDatabaseCases(block: string): void {
  let hall: Hall;
  beforeAll(async () => {
    hall = await openHall({ NETWORK: 'isolated', NETWORK_BLOCK: `${block}0/24` });
  }, 120_000);
  afterAll(() => hall?.close(), 60_000);

  const ofNetwork = (): string[] =>
    Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
  const placeOf = (unitId: string) => locationOf(path.join(hall.service.platform.config.runtimeDir, 'units', unitId));

  test('servers and poolers are at 127.0.0.1 of project and host, public endpoints at its addresses', async () => {
    const { id } = await hall.create({ name: 'main', engine: 'postgresql', engine_version: '15' });
    const place = `/v2/databases/${id}/endpoints`;
    const endpoint = async (body: object): Promise<any> => {
      const made = await hall.call('POST', place, { body });
      expect([made.status, made.text]).toEqual([201, expect.anything()]);
      return waitFor('the endpoint', async () => {
        const { body: found } = await hall.call('GET', `${place}/${made.body.id}`);
        return found.status === 'active' ? found : null;
      });
    };
    const pooled = await endpoint({ name: 'pooled', pool_mode: 'transaction', pool_size: 2 });
    const open = await endpoint({ name: 'open', access: 'public', allowed_sources: [`${outside}/32`] });
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    const own = body.endpoints[0].connection_string as string;
    const port = Number(/:(\d+)\//.exec(own)?.[1]);
    const [server] = await hall.service.sql<{ server_id: string }>('select server_id from databases');
    const inside = placeOf(`${server?.server_id}.server`);
    expect('address' in inside ? inside.address.startsWith(block) : inside.gate).toBeTruthy();
    expect(placeOf(`${pooled.id}.server`)).toEqual(inside);

    const at = (address: string, atPort: number): string => own.replace(`127.0.0.1:${port}`, `${address}:${atPort}`);
    const refusal = (atPort: number): Promise<string | null> => verdict(at(outside!, atPort), outside);
    const places = [...('address' in inside ? [inside.address] : []), '127.0.0.1'].flatMap((one) =>
      [port, pooled.port].map((atPort) => [one, atPort] as const),
    );
    for (const [address, atPort] of places)
      await connect(at(address, atPort), async (client) => {
        expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
      });
    await waitFor('the public endpoint', () =>
      connect(at(outside!, open.port), async (client) => {
        expect((await client.query('select inet_client_addr() as from')).rows).toEqual([{ from: '127.0.0.1' }]);
      }).then(
        () => true,
        (error: NodeJS.ErrnoException) => (error.code === 'ECONNREFUSED' ? null : Promise.reject(error)),
      ),
    );
    for (const target of [at('127.0.0.1', pooled.port), at(outside!, open.port)])
      expect((await psql(target, '-Atc', 'select 40 + 2')).trim()).toBe('42');
    const allow = (...allowed_sources: string[]): Promise<Answer> =>
      hall.call('PATCH', `${place}/${open.id}`, { body: { allowed_sources } });
    if ('address' in inside) await expectNoProxy(at(outside!, open.port), server!.server_id);
    await allow('0.0.0.0/0');
    await waitFor('a connection of anybody', async () => ((await refusal(open.port)) === null ? true : null));
    await connect(at(outside!, open.port), async (client) => {
      client.on('error', () => undefined);
      await allow('198.51.100.7/32');
      await waitFor('the refusal', () => refusal(open.port));
      await expect(client.query('select 1')).rejects.toThrow();
    });

    await hall.remove(id);
    expect(await isPortTaken(HOST_NETWORK, port)).toBe(false);
    await waitFor('the end of the network', async () => {
      const left = await listNetworkDirectories(path.join(hall.service.platform.config.runtimeDir, 'networks'));
      return left.length || ofNetwork().some((address) => address.startsWith(block)) ? null : true;
    });
  }, 240_000);
}
