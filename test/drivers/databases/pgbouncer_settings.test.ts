/** @tier heavy @quarter 4 @covers drivers/endpoint drivers/database/postgresql */
// What clients say at the start of a connection to a pool.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import type { DatabaseServer } from '../../../drivers/database';
import type { PoolDriver, PoolSpec } from '../../../drivers/endpoint';
import { openPooler } from '../../../drivers/endpoint/pgbouncer';
import { hostFacts } from '../../../drivers/host';
import { ctx, settle } from '../../support/databases/database_server';
import { openEngineTrial, postgresqlSpec, rows, type EngineTrial } from '../../support/engines';
import { fileNeeds } from '../../support/runner/programs';

fileNeeds('openssl');

const present = readdirSync('/usr/sbin').includes('pgbouncer') || Boolean(process.env.CI);

(present ? describe : describe.skip)(
  `settings of pooled sessions${present ? '' : ' (pgbouncer is not installed)'}`,
  () => {
    let engine: EngineTrial;
    let driver: PoolDriver;
    let server: DatabaseServer;
    let port = 0;

    beforeAll(async () => {
      engine = await openEngineTrial();
      port = engine.firstPort;
      driver = openPooler({
        runtime: engine.trial.runtime,
        directory: path.join(engine.trial.root, 'endpoints'),
        found: async () => (await hostFacts()).programs.pgbouncer ?? null,
      });
      server = postgresqlSpec(engine.found[0]?.series ?? '', engine.firstPort + 2);
      await settle(engine.driver, server);
    }, 60_000);
    afterAll(async () => {
      await driver?.forget('dbe_settings', ctx());
      await engine?.close();
    }, 30_000);

    async function openPool(mode: PoolSpec['mode']): Promise<void> {
      const { tenant, tls } = server;
      const spec: PoolSpec = {
        ...{ tenant, tls, port, mode, size: 2, running: true, allowed_sources: [], database_name: 'app' },
        server: await engine.driver.pooled!(server),
      };
      await driver.forget('dbe_settings', ctx());
      await driver.ensure({ id: 'dbe_settings', spec }, { state: 'absent' }, ctx());
    }

    /** A setting of a session that says this at its start; the code where it is refused. */
    async function atStart(parameters: Record<string, string>, name: string): Promise<string> {
      const client = new Client({
        ...{ host: '127.0.0.1', port, database: 'app', user: 'app', password: 'first-word' },
        ssl: { ca: server.tls.certificate, servername: 'localhost' },
      });
      client.on('error', () => undefined);
      Object.assign(client, { getStartupConf: () => ({ user: 'app', database: 'app', ...parameters }) });
      try {
        await client.connect();
        return (await client.query<{ value: string }>('select current_setting($1) as value', [name])).rows[0]!.value;
      } catch (error) {
        return (error as { code: string }).code;
      } finally {
        await client.end().catch(() => undefined);
      }
    }

    test.each(['transaction', 'session'] as const)(
      'pools that last a %s hold or refuse what clients say',
      async (mode) => {
        await rows(
          server,
          `alter role app set statement_timeout = '7s'; alter role app set search_path = private, public`,
        );
        await openPool(mode);
        const [major = 0, minor = 0] = (await hostFacts()).programs.pgbouncer!.version.split('.').map(Number);
        const isNew = major > 1 || minor >= 20;
        const holdsPath = isNew && Number(server.version) >= 18;
        const said: [string, string, string][] = [
          ['TimeZone', 'Asia/Tokyo', 'Asia/Tokyo'],
          ['DateStyle', 'German, DMY', 'German, DMY'],
          ['application_name', 'reports', 'reports'],
          ['IntervalStyle', 'iso_8601', isNew ? 'iso_8601' : '08P01'],
          ['extra_float_digits', '3', '1'],
          ['jit', 'off', await atStart({}, 'jit')],
          ['search_path', 'public', holdsPath ? 'public' : '08P01'],
          ['statement_timeout', '1s', '08P01'],
          ['lock_timeout', '1s', '08P01'],
          ['idle_in_transaction_session_timeout', '1s', '08P01'],
        ];
        for (const [name, value, held] of said)
          expect([name, await atStart({ [name]: value }, name)]).toEqual([name, held]);
        const byOption = await atStart({ options: '-c search_path=public' }, 'search_path');
        expect(byOption).toBe(holdsPath ? 'public' : '08P01');
        // Nobody else's, and what the user has said.
        expect(await atStart({}, 'TimeZone')).toBe('UTC');
        expect(await atStart({}, 'statement_timeout')).toBe('7s');
        expect(await atStart({}, 'search_path')).toBe('private, public');
        await rows(server, 'alter role app reset all');
      },
    );
  },
);
