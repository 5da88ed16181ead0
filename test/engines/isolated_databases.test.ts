// Databases whose project has a network of its own: their servers, poolers and public endpoints.
import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { HOST_NETWORK } from '../../drivers/network';
import { isPortTaken } from '../../drivers/network/connect';
import { locationOf } from '../../drivers/runtime/run_directory';
import { connect, describeEngine, eventually, openHall, outsideAddress, type Hall } from '../support/database_hall';

/* eslint-disable @typescript-eslint/no-explicit-any -- answers are whatever the service sends */
const BLOCK = '10.244.0.';
const outside = outsideAddress();
const isPossible = process.getuid?.() === 0 && (process.env.CI || existsSync('/usr/sbin/pgbouncer'));
const describeIsolated = isPossible ? describe : describe.skip;

describeEngine('postgresql', () =>
  describeIsolated('in networks of projects, as root', () => {
    let hall: Hall;
    beforeAll(async () => {
      hall = await openHall({ NETWORK: 'isolated', NETWORK_BLOCK: `${BLOCK}0/24` });
    }, 120_000);
    afterAll(() => hall?.close(), 60_000);

    const ofNetwork = (): string[] =>
      Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address));
    const addressIn = (unitId: string): string => {
      const location = locationOf(path.join(hall.service.platform.config.runtimeDir, 'units', unitId));
      return 'address' in location ? location.address : '';
    };

    test('servers and poolers are at 127.0.0.1 of project and host, public endpoints at its addresses', async () => {
      const { id } = await hall.create({ name: 'main', engine: 'postgresql', engine_version: '15' });
      const place = `/v2/databases/${id}/endpoints`;
      const endpoint = async (body: object): Promise<any> => {
        const made = await hall.call('POST', place, { body });
        expect([made.status, made.text]).toEqual([201, expect.anything()]);
        return eventually('the endpoint', async () => {
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
      const inside = addressIn(`${server?.server_id}.server`);
      expect(inside.startsWith(BLOCK)).toBe(true);
      expect(addressIn(`${pooled.id}.server`)).toBe(inside);

      const at = (address: string, atPort: number): string => own.replace(`127.0.0.1:${port}`, `${address}:${atPort}`);
      const places = [inside, '127.0.0.1'].flatMap((one) =>
        [port, pooled.port].map((atPort) => [one, atPort] as const),
      );
      for (const [address, atPort] of places)
        await connect(at(address, atPort), async (client) => {
          expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
        });
      await eventually('the public endpoint', () =>
        connect(at(outside!, open.port), async (client) => {
          expect((await client.query('select inet_client_addr() as from')).rows).toEqual([{ from: '127.0.0.1' }]);
        }).then(
          () => true,
          (error: NodeJS.ErrnoException) => (error.code === 'ECONNREFUSED' ? null : Promise.reject(error)),
        ),
      );

      await hall.remove(id);
      expect(await isPortTaken(HOST_NETWORK, port)).toBe(false);
      await eventually('the end of the network', () =>
        Promise.resolve(ofNetwork().some((address) => address.startsWith(BLOCK)) ? null : true),
      );
    }, 240_000);
  }),
);
