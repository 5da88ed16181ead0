/** @tier heavy @quarter 4 @covers jobs/databases/database models/databases/database */
// A password is rotated while an application uses it: what the application has is valid at every moment.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startDeployService, QUICK, type DeployService, type TestApplication } from '../../support/deployments/deploy';
import { describeEngine, openDatabaseWorkshop, type DatabaseWorkshop } from '../../support/databases/database_hall';
import { waitFor } from '../../support/wait_for';

// Comes up slowly: meanwhile the one of before serves with the old password.
const SERVER = `
if (process.env.BROKEN) process.exit(1);
const http = require('http');
const answer = (request, response) => response.end(process.env.DATABASE_URL);
setTimeout(() => http.createServer(answer).listen(process.env.PORT), 2000);
`;

describeEngine('postgresql', () => {
  let place: DatabaseWorkshop;
  let service: DeployService;
  let application: TestApplication;
  let database: string;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    service = await startDeployService(place.settings);
    const made = await service.call('POST', '/v2/databases', { body: { name: 'orders', engine: 'postgresql' } });
    database = `/v2/databases/${made.body.id}`;
    await waitFor('the database', async () =>
      (await service.call('GET', database)).body.status === 'available' ? true : null,
    );
    application = await service.application({ 'server.js': SERVER, Procfile: 'web: node server.js' }, QUICK);
    await service.call('POST', `${database}/attachments`, { body: { application_id: application.id } });
    expect((await application.deploy()).status).toBe('active');
  }, 120_000);
  afterAll(async () => {
    await service.clear();
    await service.call('DELETE', database);
    await waitFor('the end of all databases', async () =>
      (await service.sql('select 1 from databases')).length ? null : true,
    ).finally(() => service.close());
    place.clear();
  }, 120_000);

  /** The user by whom a connection acts; the code where it is refused. */
  async function actsAs(connectionString: string): Promise<string> {
    const client = new pg.Client({
      connectionString: connectionString.replace('?sslmode=require', ''),
      ssl: { rejectUnauthorized: false },
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query('select current_user::text as role');
      return rows[0].role;
    } catch (error) {
      return (error as { code: string }).code;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  /** Connects with what the application has, again and again; answers what went wrong. */
  function requests(): () => Promise<{ total: number; lost: string[]; seen: Set<string> }> {
    const lost: string[] = [];
    const seen = new Set<string>();
    let total = 0;
    let isOver = false;
    const loop = (async () => {
      while (!isOver) {
        const { status, body } = await application.visit();
        seen.add(body);
        total += 1;
        const role = status === 200 ? await actsAs(body) : `status ${status}`;
        if (role !== 'app') lost.push(role);
        await sleep(20);
      }
    })();
    return async () => {
      isOver = true;
      await loop;
      return { total, lost, seen };
    };
  }

  const credentials = async (): Promise<{
    username: string;
    password: string;
    previous_password_valid_until: string | null;
    endpoints: { connection_string: string }[];
  }> => (await service.call('GET', `${database}/credentials`)).body;
  const address = async (): Promise<string> => (await credentials()).endpoints[0]!.connection_string;
  const rotate = (body?: object): ReturnType<DeployService['call']> =>
    service.call('POST', `${database}/credentials/rotate`, body ? { body } : {});
  const ended = (): Promise<unknown> =>
    waitFor(
      'the end of the rotation',
      async () => ((await credentials()).previous_password_valid_until === null ? true : null),
      60_000,
    );

  test('no request finds a password that is not valid, and in the end the old one is not', async () => {
    for (const login of ['app.1', 'app.2', 'app.1']) {
      const old = await address();
      const stop = requests();
      const { body } = await rotate();
      expect([body.username, typeof body.previous_password_valid_until]).toEqual([login, 'string']);
      expect(await Promise.all([old, body.endpoints[0].connection_string].map(actsAs))).toEqual(['app', 'app']);
      expect(await rotate()).toMatchObject({ status: 409, body: { code: 'resource_busy' } });
      await ended();
      const { total, lost, seen } = await stop();
      expect({ lost, seen: seen.size, many: total > 10 }).toEqual({ lost: [], seen: 2, many: true });
      await waitFor('the end of the old password', async () => ((await actsAs(old)) === '28P01' ? true : null));
      // By its own name too, as whoever is not attached knows it.
      expect((await credentials()).username).toBe('app');
      expect(await actsAs(await address())).toBe('app');
      expect(await actsAs((await application.visit()).body)).toBe('app');
    }
  }, 180_000);

  test('where code would tell a second login from its user, there is none, and the reason is told', async () => {
    const send = async (text: string): Promise<void> => {
      const client = new pg.Client({
        connectionString: (await address()).replace('?sslmode=require', ''),
        ssl: { rejectUnauthorized: false },
      });
      await client.connect();
      await client.query(text).finally(() => client.end());
    };
    await send('create view who as select session_user');
    const { body } = await rotate();
    expect((await credentials()).previous_password_valid_until).toBeNull();
    expect(await actsAs(body.endpoints[0].connection_string)).toBe('app');
    expect((await service.call('GET', database)).body.status_reason).toContain(
      'The previous password of app ended at once instead of when all applications have the new one, because ' +
        'the view public.who asks for session_user',
    );
    const current = await address();
    await waitFor('the own login in the application', async () =>
      (await application.visit()).body === current ? true : null,
    );
    expect(new URL(current).username).toBe('app');
    await send('drop view who');
  }, 60_000);

  test('a password that has leaked ends at once', async () => {
    const [old, running] = [await address(), (await application.visit()).body];
    const { body } = await rotate({ immediate: true });
    expect(body).toMatchObject({ username: 'app', previous_password_valid_until: null });
    expect(await actsAs(old)).toBe('28P01');
    expect(['28P01', '28000']).toContain(await actsAs(running));
    expect(await actsAs(body.endpoints[0].connection_string)).toBe('app');
    await waitFor('the new password in the application', async () =>
      (await actsAs((await application.visit()).body)) === 'app' ? true : null,
    );
  }, 60_000);

  test('a rotation ends by itself where an application does not come up with the new password', async () => {
    const set = await service.call('PUT', `/v2/applications/${application.id}/env/BROKEN`, { body: { value: '1' } });
    expect(set.status).toBe(201);
    const old = await address();
    await rotate();
    await sleep(6_000);
    expect(await actsAs(old)).toBe('app');
    await service.sql(`update database_users set previous_until = now() where previous_until is not null`);
    await ended();
    await waitFor('the end of the old password', async () => ((await actsAs(old)) === '28P01' ? true : null));
  }, 90_000);
});
