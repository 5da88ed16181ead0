/** @tier heavy @quarter 4 @covers drivers/database/postgresql drivers/hosted_server */
// PostgreSQL by the rules of all drivers.
import { makeEngineFixture, placesForSuite } from '../../conformance/engine_fixture';
import { describeResourceDriver } from '../../conformance/resource_driver';
import type { Desired } from '../../../core/driver';
import type { ServerSpec } from '../../../drivers/database';
import { describeEngine } from '../../support/databases/database_hall';
import { asUser } from '../../support/engines';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

for (const [name, network] of placesForSuite('postgresql')) {
  describeEngine('postgresql', () =>
    describeResourceDriver(name, () =>
      makeEngineFixture({
        engine: 'postgresql',
        network,
        program: /^\S*\/postgres /,
        database_name: 'app',
        client: {
          write: (r) => query(r, 'create table notes as select 7 as id').then(() => undefined),
          check: async (r) => expect(await query(r, 'select id from notes')).toEqual([{ id: 7 }]),
        },
      }),
    ),
  );
}

function query({ id, spec }: Desired<ServerSpec>, sql: string): Promise<unknown[]> {
  return asUser({ ...spec, id }, {}, async (client) => (await client.query<Record<string, unknown>>(sql)).rows);
}
