// Hundreds of applications on a cluster: how long a worker takes, after it was killed and all of them have become due,
// until it has looked at all of them, with how many requests and how much memory.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Stage } from '../../demo/stage';
import type { Application } from '../hosts/deployments';
import { serviceUsage } from '../idle';
import { printLine } from '../run';
import { answeredRequests, type BenchCluster } from './cluster';

interface Many {
  cluster: BenchCluster;
  databaseUrl: string;
  /** With the one that is copied. */
  count: number;
  /** kill -9, the work, and a start. */
  restart(meanwhile: () => Promise<void>): Promise<Stage>;
}

const TARGET = { seconds: 60, megabytes: 200 };
const WITHIN_MS = 600_000;
const REST_MS = 10_000;
const MB = 1_000_000;

/** Copies of an application that is deployed: its release, and process types of their own. */
const COPIES = `with made as (
  insert into applications select (jsonb_populate_record(null::applications, to_jsonb(a) || jsonb_build_object(
    'id', 'app_' || lpad(n::text, 26, '0'), 'name', 'copy-' || n, 'next_at', now(),
    'default_hostname', 'copy-' || n || '.' || a.default_hostname,
    'tenant', nextval(pg_get_serial_sequence('applications', 'tenant'))))).*
  from applications a, generate_series(1, $2::int) n where a.id = $1 returning id)
  insert into processes select (jsonb_populate_record(null::processes, to_jsonb(p) || jsonb_build_object(
    'id', 'prc_' || substr(made.id, 5), 'application_id', made.id))).*
  from processes p, made where p.application_id = $1`;

const WORKLOADS = `select count(*)::int as all,
  count(*) filter (where fence > 0 and lease_owner is null)::int as applied from workloads`;
/** As after a long while: those that wait for room are not new any more. */
const ALL_DUE = `update workloads set next_at = now(), updated_at = now() - interval '1 hour'`;
/** A row that is being looked at is due until that has ended. */
const OPEN = 'select count(*)::int as open from workloads where next_at <= $1';

export async function measureMany({ cluster, databaseUrl, count, restart }: Many, sample: Application): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 });
  try {
    await pool.query(COPIES, [sample.id, count - 1]);
    const made = await until('the workloads', async () => {
      const { rows } = await pool.query<{ all: number; applied: number }>(WORKLOADS);
      return rows[0]?.all === count && rows[0].applied === count;
    });
    await sleep(REST_MS);
    let [before, startedAt, clock] = [0, new Date(), 0];
    const stage = await restart(async () => {
      before = await answeredRequests(cluster);
      await pool.query(ALL_DUE);
      [startedAt, clock] = [new Date(), performance.now()];
    });
    const ready = performance.now() - clock;
    await until('all of them', async () => {
      const { rows } = await pool.query<{ open: number }>(OPEN, [startedAt]);
      return rows[0]?.open === 0;
    });
    const all = performance.now() - clock;
    const requests = (await answeredRequests(cluster)) - before;
    await sleep(REST_MS);
    const { rss, cpu } = await serviceUsage(stage);
    printLine(`${count} applications: instances ${await instancesIn(pool)}\n`);
    printLine('| | value | target |\n|---|--:|---|');
    printLine(`| created and applied, s | ${seconds(made)} | |`);
    printLine(`| service ready after its start, s | ${seconds(ready)} | |`);
    printLine(`| all looked at after its start, s | ${seconds(all)} | ${verdict(all / 1000, TARGET.seconds)} |`);
    printLine(`| requests for objects of workloads | ${requests} | |`);
    printLine(`| memory of the service, MB | ${(rss / MB).toFixed(0)} | ${verdict(rss / MB, TARGET.megabytes)} |`);
    printLine(`| its processor time since the start, s | ${cpu.toFixed(1)} | |`);
  } finally {
    await pool.end();
  }
}

async function instancesIn(pool: pg.Pool): Promise<string> {
  const { rows } = await pool.query<{ status: string; count: number }>(
    'select status, count(*)::int from instances group by 1 order by 1',
  );
  return rows.map((one) => `${one.count} ${one.status}`).join(', ');
}

/** @returns milliseconds that it took */
async function until(what: string, holds: () => Promise<boolean>): Promise<number> {
  const begun = performance.now();
  while (!(await holds())) {
    if (performance.now() - begun > WITHIN_MS) throw new Error(`waited in vain for ${what}`);
    await sleep(100);
  }
  return performance.now() - begun;
}

function verdict(value: number, target: number): string {
  return `< ${target}: ${value < target ? 'met' : 'MISSED'}`;
}

const seconds = (ms: number): string => (ms / 1000).toFixed(1);
