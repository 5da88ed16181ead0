// An installation on several machines: a process of the API, and workers whose directories are their own.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createTestDatabase } from '../databases/database';
import { destroyUnits, makeApplication, type TestApplication, type Workplace } from '../deployments/deploy';
import { startGitServer, type GitFiles } from '../git/git_server';
import { waitFor } from '../wait_for';
import { call } from './bad_days_program';
import { freePort } from './free_port';
import { startProgram, type Program } from './program';

const TAKEN_WITHIN_MS = 60_000;

export interface Machines extends Workplace {
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  databaseUrl: string;
  /** Of the operator. */
  key(): string;
  secret: string;
  application(files: GitFiles, settings?: object): Promise<TestApplication>;
  /** A machine with empty directories, and a worker on it. */
  startWorker(settings?: Record<string, string>): Promise<WorkerOfMachine>;
  /** Process id of the worker that has the host; 0 while none has. */
  holder(): Promise<number>;
  /** Waits until this worker has the host, whose ingress is visited from now on. */
  held(worker: WorkerOfMachine): Promise<void>;
  close(): Promise<void>;
}

export interface WorkerOfMachine extends Program {
  directory: string;
  ingressPort: number;
  /** Where it issues tokens, with DISTRIBUTION_URL. */
  registryPort: number;
}

/** @param settings of all processes */
export async function startMachines(settings: Record<string, string> = {}): Promise<Machines> {
  const [database, git] = [await createTestDatabase(), await startGitServer()];
  const sql = new pg.Pool({ connectionString: database.url, max: 3 });
  const directories: string[] = [];
  const programs: Program[] = [];
  const newDirectory = (): string => {
    const directory = mkdtempSync(path.join(tmpdir(), 'machine-'));
    directories.push(directory);
    return directory;
  };
  const ofApi = newDirectory();
  const given: Record<string, string> = {
    ...{ DATABASE_URL: database.url, LOG_LEVEL: 'info', SHUTDOWN_GRACE_SECONDS: '5' },
    ...{ ALLOW_HTTP_GIT: '1', ALLOW_PRIVATE_ADDRESSES: '1' },
    ...{ RATE_LIMIT_READ: '100000', RATE_LIMIT_WRITE: '100000', RATE_LIMIT_DEPLOY: '100000' },
    ...settings,
  };
  const api = startProgram({ ...given, PLATFORM_DATA_DIR: ofApi, WORKER: 'separate' });
  programs.push(api);
  const base = await api.ready();
  const secret = readFileSync(path.join(ofApi, 'secret-key'), 'utf8').trim();
  const first = JSON.parse(readFileSync(path.join(ofApi, 'first-key.json'), 'utf8')) as {
    key: string;
    project_id: string;
  };
  const query = async <Row>(text: string, values?: unknown[]): Promise<Row[]> => (await sql.query(text, values)).rows;
  const machines: Machines = {
    git,
    platform: { config: { ingressPort: 0 } },
    databaseUrl: database.url,
    sql: query,
    key: () => first.key,
    secret,
    call: (method, place, options) => call(base, first, method, place, options),
    application: (files, wanted = {}) => makeApplication(machines, files, wanted),
    async startWorker(own = {}) {
      const directory = newDirectory();
      const [ingressPort, registryPort] = [await freePort(), await freePort()];
      const ports = {
        INGRESS_PORT: String(ingressPort),
        ...(given.DISTRIBUTION_URL && { REGISTRY_PORT: String(registryPort) }),
      };
      const places = { PLATFORM_DATA_DIR: directory, ...ports };
      const ofWorker = { ...given, ...places, PLATFORM_SECRET_KEY: secret, ...own };
      const program = startProgram(ofWorker, { entry: 'server/worker.ts' });
      programs.push(program);
      await program.ready();
      return { ...program, directory, ingressPort, registryPort };
    },
    async holder() {
      const [found] = await query<{ name: string }>(HOLDER);
      return Number(found?.name.split(' ').at(-1) ?? 0);
    },
    async held(worker) {
      await waitFor('the host', async () => (await machines.holder()) === worker.pid, TAKEN_WITHIN_MS);
      machines.platform.config.ingressPort = worker.ingressPort;
    },
    async close() {
      for (const { id } of await query<{ id: string }>('select id from applications where deleted_at is null'))
        await machines.call('DELETE', `/v2/applications/${id}`);
      const isClear = async (): Promise<boolean> => (await query('select 1 from applications')).length === 0;
      await waitFor('the end of all applications', isClear, TAKEN_WITHIN_MS).finally(async () => {
        for (const program of programs) program.signal('SIGKILL');
        await Promise.all(programs.map(({ ended }) => ended));
        for (const directory of directories) await destroyUnits(path.join(directory, 'runtime'));
        await sql.end();
        await git.close();
        await database.drop();
        for (const directory of directories) rmSync(directory, { recursive: true, force: true });
      });
    },
  };
  return machines;
}

const HOLDER = `select a.application_name as name from pg_stat_activity a join pg_locks l on l.pid = a.pid
  where l.locktype = 'advisory' and l.granted and a.application_name like 'platform host %'
    and a.datname = current_database()`;
