// A deployed application on a database of its own, with units of a real runtime: what the shipper and the sampler see.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { mintId } from '../../../core/ids';
import { createLog } from '../../../core/log/log';
import { openLogBudget } from '../../../core/log/log_budget';
import { openLocalRuntime, type LocalRuntimeOptions } from '../../../drivers/runtime/local';
import { describeTables, openControlDatabase, type ControlDatabase } from '../../../db/control_database';
import { named } from '../../../db/statement';
import { startShipper } from '../../../server/agents/shipper';
import { createTestDatabase } from '../databases/database';
import { deployed, instanceOf, type DeployedApplication } from '../deployments/deployed';
import { openTrial, type Trial } from '../builds/runtime';

export interface Observed {
  url: string;
  database: ControlDatabase;
  trial: Trial;
  project: string;
  application: DeployedApplication;
  sql<Row = Record<string, unknown>>(text: string, values?: unknown[]): Promise<Row[]>;
  /** A running instance of `web` without a unit. */
  instance(columns?: Record<string, unknown>): Promise<string>;
  /** Messages of an instance in the log, in their order. */
  shipped(instance: string): Promise<string[]>;
  close(): Promise<void>;
}

export async function openObserved(): Promise<Observed> {
  const { url, drop } = await createTestDatabase();
  const database = openControlDatabase(url, { poolSize: 4 });
  await describeTables(database);
  const trial = await openTrial({ sandbox: 'none', limits: 'poll' });
  const sql = <Row>(text: string, values: unknown[] = []): Promise<Row[]> => database.query<Row>(named(text), values);
  const [project, id] = [mintId('prj'), mintId('app')];
  await sql(`insert into accounts (id, name) values ('acc_1', 'tests')`);
  await sql(
    `insert into projects (id, account_id, name, default_region, created_at, updated_at)
      values ($1, 'acc_1', 'tests', 'local', now(), now())`,
    [project],
  );
  await sql(
    `insert into applications (id, project_id, name, region, application_type, default_hostname, created_at,
      updated_at) values ($1, $2, 'observed', 'local', 's', 'observed.localhost', now(), now())`,
    [id, project],
  );
  await sql(
    `insert into processes (id, project_id, application_id, type, instances, created_at, updated_at)
      values ($1, $3, $4, 'web', 1, now(), now()), ($2, $3, $4, 'worker', 1, now(), now())`,
    [mintId('prc'), mintId('prc'), project, id],
  );
  const application = await deployed({ sql: sql as never }, id);
  return {
    ...{ url, database, trial, project, application, sql },
    instance: (columns) => instanceOf({ sql: sql as never }, application, 'web', columns),
    shipped: async (instance) =>
      (
        await sql<{ message: string }>('select message from log_lines where instance_id = $1 order by seq', [instance])
      ).map(({ message }) => message),
    async close() {
      await trial.close();
      await database.close();
      await drop();
    },
  };
}

interface ShipperProcess {
  /** kill -9, and waits for the end. */
  kill(): Promise<void>;
}

/** A shipper in a process of its own; resolves when it works. */
export async function startShipperProcess({ url, trial }: Observed): Promise<ShipperProcess> {
  const argument = JSON.stringify({ url, runtime: { ...trial.options, log: undefined } });
  const child = spawn(
    process.execPath,
    ['--require', path.join(__dirname, '../runner/typescript.js'), __filename, argument],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()));
  await new Promise<void>((resolve) => child.stdout.on('data', () => resolve()));
  return { kill: async () => void (child.kill('SIGKILL'), await ended) };
}

async function main({ url, runtime }: { url: string; runtime: LocalRuntimeOptions }): Promise<void> {
  const database = openControlDatabase(url, { poolSize: 2 });
  const budget = openLogBudget(1 << 20);
  startShipper({ database, runtime: await openLocalRuntime(runtime), log: createLog('warn'), budget });
  process.stdout.write('ready\n');
}

if (require.main === module) void main(JSON.parse(process.argv[2] as string) as Parameters<typeof main>[0]);
