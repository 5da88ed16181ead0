/** @tier heavy @quarter 1 @covers drivers/database/mariadb drivers/hosted_server */
// MariaDB by the rules of all drivers.
import { createConnection, type RowDataPacket } from 'mysql2/promise';
import { makeEngineFixture, placesForSuite } from '../../conformance/engine_fixture';
import { describeResourceDriver } from '../../conformance/resource_driver';
import type { Desired } from '../../../core/driver';
import type { ServerSpec } from '../../../drivers/database';
import { describeEngine } from '../../support/databases/database_hall';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

for (const [name, network] of placesForSuite('mariadb')) {
  describeEngine('mariadb', () =>
    describeResourceDriver(name, () =>
      makeEngineFixture({
        engine: 'mariadb',
        network,
        program: /^\S*\/mariadbd /,
        database_name: 'app',
        client: {
          write: async (r) => {
            await query(r, 'create table notes (id int)');
            await query(r, 'insert into notes values (7)');
          },
          check: async (r) => expect(await query(r, 'select id from notes')).toEqual([{ id: 7 }]),
        },
      }),
    ),
  );
}

async function query({ spec }: Desired<ServerSpec>, sql: string): Promise<RowDataPacket[]> {
  const [user] = spec.users;
  const connection = await createConnection({
    host: '127.0.0.1',
    port: spec.port,
    user: user?.username,
    password: user?.password,
    database: spec.database_name ?? undefined,
    ssl: { ca: spec.tls.certificate },
  });
  try {
    return (await connection.query<RowDataPacket[]>(sql))[0];
  } finally {
    await connection.end();
  }
}
