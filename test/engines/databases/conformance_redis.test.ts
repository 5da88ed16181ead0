/** @tier heavy @quarter 2 @covers drivers/database/redis drivers/hosted_server */
// Redis and Valkey by the rules of all drivers.
import { createClient } from '@redis/client';
import { makeEngineFixture, placesForSuite } from '../../conformance/engine_fixture';
import { describeResourceDriver } from '../../conformance/resource_driver';
import type { Desired } from '../../../core/driver';
import type { ServerSpec } from '../../../drivers/database';
import { describeEngine } from '../../support/databases/database_hall';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const variants = [
  ...placesForSuite('redis').map((place) => ['redis', ...place] as const),
  ['valkey', 'valkey', undefined],
] as const;

for (const [engine, name, network] of variants) {
  describeEngine(engine, () =>
    describeResourceDriver(name, () =>
      makeEngineFixture({
        engine,
        network,
        program: /^\S*\/(redis|valkey)-server /,
        database_name: null,
        client: {
          write: async (r) => void (await command(r, 'SET', 'note', '7')),
          check: async (r) => expect(await command(r, 'GET', 'note')).toBe('7'),
        },
      }),
    ),
  );
}

async function command({ spec }: Desired<ServerSpec>, ...words: string[]): Promise<unknown> {
  const [user] = spec.users;
  const client = createClient({
    username: user?.username,
    password: user?.password,
    socket: {
      host: '127.0.0.1',
      port: spec.port,
      tls: true,
      ca: spec.tls.certificate,
      servername: 'localhost',
      reconnectStrategy: false,
    },
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await client.sendCommand(words);
  } finally {
    client.destroy();
  }
}
