// Accounts take turns in the loops that claim many rows at a time: mail, notifications and checks.
import { setTimeout as sleep } from 'node:timers/promises';
import { claimInTurns, openTurns } from '../../core/accounts/turns';
import { startClaimLoop, type ClaimLoop } from '../../jobs/claim_loop';
import { openWakeSignal } from '../../jobs/wake_signal';
import { claimDeliveries } from '../../models/email/mail/queue';
import { claimMessages } from '../../models/observers/notification/delivery';
import { claimChecks } from '../../models/observers/observer/claim';
import { observersOf } from '../support/observers/observers';
import { until } from '../support/runner/workshop';
import { startService, type TestService } from '../support/service';

let service: TestService;

beforeAll(async () => {
  service = await startService({});
  await service.sql(`insert into accounts (id, name) values ('acc_other', 'other')`);
  await service.sql(
    `insert into projects select (jsonb_populate_record(p, '{"id": "prj_other", "account_id": "acc_other"}')).*
      from projects p where id = $1`,
    [service.project],
  );
});
afterAll(() => service.close());

interface Claimed {
  account: string;
}

/** The accounts of the rows of three claims, of ten rows each. */
async function accountsOf(claim: (limit: number, passOver: string[]) => Promise<Claimed[]>): Promise<string[][]> {
  const turns = openTurns();
  const claims: string[][] = [];
  while (claims.length < 3) {
    const rows = await claimInTurns(turns, 'rows', { limit: 10, busy: [] }, claim);
    claims.push(rows.map(({ account }) => account));
  }
  return claims;
}

/** Behind 500 rows of one account, the two of another are among the second ten. */
function expectTurns(claims: string[][]): void {
  expect(claims.map((rows) => rows.length)).toEqual([10, 10, 10]);
  expect(claims.map((rows) => rows.filter((account) => account === 'acc_other').length)).toEqual([0, 2, 0]);
}

const OWNERS = [
  ['mine', 500, 60],
  ['prj_other', 2, 1],
] as const;
const projectOf = (owner: string): string => (owner === 'mine' ? service.project : owner);

test('notifications', async () => {
  for (const [owner, count, age] of OWNERS)
    await service.sql(
      `insert into notifications (message_id, project_id, notifier_id, event, subject, data, next_at)
        select $1 || n, $1, 'ntf_' || $1, 'activity', n::text, '{}', now() - $3 * interval '1 second'
          from generate_series(1, $2::int) n`,
      [projectOf(owner), count, age],
    );
  expectTurns(await accountsOf((limit, passOver) => claimMessages(service.platform.database, limit, passOver)));
});

test('checks of observers', async () => {
  const { id } = await observersOf(service).made('https://shop.example.com/');
  for (const [owner, count, age] of OWNERS) {
    await service.sql(
      `insert into observers select (jsonb_populate_record(o, jsonb_build_object('project_id', $2::text,
        'id', left(o.id, 20) || $3 || lpad(n::text, 4, '0')))).*
        from observers o, generate_series(1, $4::int) n where o.id = $1`,
      [id, projectOf(owner), owner.slice(0, 2), count],
    );
    await service.sql(
      `insert into observer_checks (observer_id, region, check_at)
        select id, 'local', now() - $2 * interval '1 second' from observers where project_id = $1 and id <> $3`,
      [projectOf(owner), age, id],
    );
  }
  await service.sql('delete from observer_checks where observer_id = $1', [id]);
  const { database } = service.platform;
  expectTurns(await accountsOf((limit, passOver) => claimChecks(database, 'local', limit, passOver)));
});

test('mail', async () => {
  const { body: domain } = await service.call('POST', '/v2/email_domains', { body: { name: 'shop.example' } });
  await service.sql(`update email_domains set status = 'verified' where id = $1`, [domain.id]);
  for (const [owner, count, age] of OWNERS) {
    const body = { name: owner.replace('_', '-'), email_domain_ids: [domain.id] };
    const { body: zone } = await service.call('POST', '/v2/email_relay_zones', { body });
    expect(zone).toMatchObject({ id: expect.any(String) });
    await service.sql('update email_relay_zones set project_id = $2 where id = $1', [zone.id, projectOf(owner)]);
    await service.sql(
      `insert into email_messages (id, project_id, email_relay_zone_id, sender, header_from, message_id, body_hash,
          size_bytes, file, body_offset)
        values ($1, $2, $3, 'a@shop.example', 'a@shop.example', $1, '', 1, 'file', 0)`,
      [`msg_${owner}`, projectOf(owner), zone.id],
    );
    await service.sql(
      `insert into email_deliveries (message_id, number, email_relay_zone_id, recipient, destination, next_at,
          expires_at)
        select $1, n, $2, 'b@' || n || '.example', n || '.example', now() - $4 * interval '1 second',
          now() + interval '1 day' from generate_series(1, $3::int) n`,
      [`msg_${owner}`, zone.id, count, age],
    );
  }
  const room = { blocked: [], free: {}, each: 10 };
  const { database } = service.platform;
  expectTurns(await accountsOf((limit, passOver) => claimDeliveries(database, limit, room, passOver)));
});

test('slow work of one account leaves a place for others', async () => {
  const rows = Array.from({ length: 50 }, () => 'acc_mine');
  const running: string[] = [];
  const signal = openWakeSignal();
  const loop: ClaimLoop = startClaimLoop<Claimed>(
    {
      places: 10,
      room: () => 10 - running.length,
      async claim(limit, passOver) {
        const found = rows.filter((account) => !passOver.includes(account)).slice(0, limit);
        for (const account of found) rows.splice(rows.indexOf(account), 1);
        return found.map((account) => ({ account }));
      },
      start(claimed, track) {
        for (const { account } of claimed) {
          running.push(account);
          track(account === 'acc_mine' ? new Promise(() => {}) : Promise.resolve(), account);
        }
      },
      pauseAfter: (claimed) => (claimed ? 0 : 'poll'),
      pollMs: 20,
      failed: (error) => {
        throw error;
      },
    },
    signal,
  );
  await until('it has its share', async () => running.length === 9);
  await sleep(100);
  expect(running.length).toBe(9);
  rows.push('acc_other');
  signal.notify();
  await until('the other one is served', async () => running.includes('acc_other'));
  await loop.stopClaiming();
});
