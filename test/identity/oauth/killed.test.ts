/** @tier heavy @quarter 3 @covers server/oauth models/identity/oauth */
/** @user any */
// A process that is killed while it gives out tokens: in one transaction, so the client asks again.
import { named } from '../../../db/statement';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram } from '../../support/processes/program';
import { startService, type TestService } from '../../support/service';
import { openClient, type Client } from './client';
import { newPerson, type Person } from '../../support/identity/person';
import { retryCheck } from '../../support/wait_for';

let service: TestService;
let client: Client;
let person: Person;

beforeAll(async () => {
  service = await startService();
  person = await newPerson(service, 'killed@example.com', 'owner');
  client = await openClient(service);
});
afterAll(async () => {
  await endPrograms();
  await service.close();
});

const LOCK = named(`select 1 from api_keys where kind = 'oauth' and revoked_at is null for update`);

/** Sends a request to a process of its own, which is killed between two steps of the answer. */
async function killWhileAnswering(fields: Record<string, string>): Promise<void> {
  const port = String(await freePort());
  const program = startProgram({
    PORT: port,
    ...{ DATABASE_URL: service.platform.config.databaseUrl as string, PLATFORM_DATA_DIR: service.dataDir },
    ...{ BASE_URL: service.url, WORKER: 'separate' },
  });
  await program.ready();
  await service.platform.database.transaction(async (session) => {
    await session.query(LOCK, []);
    const body = new URLSearchParams({ client_id: 'platform-cli', ...fields });
    const sent = fetch(`http://127.0.0.1:${port}/oauth/token`, { method: 'POST', body }).then(
      ({ status }) => `answered ${status}`,
      () => 'no answer',
    );
    for (let waiting = 0; waiting === 0;) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const [row] = await service.sql(
        `select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock' and
          datname = current_database()`,
      );
      waiting = row.waiting;
    }
    program.signal('SIGKILL');
    await program.ended;
    expect(await sent).toBe('no answer');
  });
  // The server notices that its client is gone when it has got the lock; until then the record is in use.
  await retryCheck(async () => {
    const held = `select mode from pg_locks where relation = 'oauth_records'::regclass and mode like 'Row%'`;
    expect(await service.sql(held)).toEqual([]);
  });
}

it('leaves a refresh token as it was', async () => {
  const { refresh_token } = await client.connect(person);
  await killWhileAnswering({ grant_type: 'refresh_token', refresh_token: refresh_token as string });
  expect((await client.refresh(refresh_token as string)).access_token).toBeTruthy();
});

it('leaves a code as it was', async () => {
  const asked = await client.ask();
  const back = await client.agree(person, asked);
  await killWhileAnswering({
    ...{ grant_type: 'authorization_code', code_verifier: asked.verifier },
    ...{ code: new URL(back.url).searchParams.get('code') as string, redirect_uri: 'http://127.0.0.1:49152/callback' },
  });
  expect((await client.redeem(asked, back)).access_token).toBeTruthy();
});
