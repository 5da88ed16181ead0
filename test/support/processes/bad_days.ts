// What must be true after a bad day: nothing of it is left that nobody knows of. And doors that hold a build, a release
// command or a start where a test wants it.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { processesWith } from './processes';
import { waitFor } from '../wait_for';

/** The parts of a service that are looked at; it may be in another process. */
export interface Patient {
  runtimeDir: string;
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>;
}

/** Waits until nothing is orphaned. @throws Error with what is */
export async function nothingOrphaned(patient: Patient, withinMs = 60_000): Promise<void> {
  let found: string[] = [];
  await waitFor('nothing is orphaned', async () => (found = await orphansOf(patient)).length === 0, withinMs).catch(
    (error: Error) => {
      throw new Error(`${error.message}\n${found.join('\n')}`);
    },
  );
}

interface Known {
  /** Ids of instances, runs and deployments whose units may be there. */
  units: Set<string>;
  files: Set<string>;
  applications: Set<string>;
}

/** Units, processes, control groups, directories and rows that belong to nothing. One line each. */
async function orphansOf(patient: Patient): Promise<string[]> {
  // In this order: what is begun meanwhile is found with its row.
  const units = namesIn(path.join(patient.runtimeDir, 'units'));
  const processes = await processesOf(patient);
  const known = await whatIsKnown(patient);
  const owner = (unit: string): string => unit.replace(/^\.(new|trash)-/, '').split(/[.]|-[0-9a-f]{12}$/)[0] as string;
  return [
    ...units.filter((unit) => !known.units.has(owner(unit))).map((unit) => `unit ${unit}`),
    ...processes
      .filter(({ unit }) => !known.units.has(owner(unit)))
      .map(({ pid, unit, args }) => `process ${pid} of ${unit}: ${args}`),
    ...(await groupsOf(patient))
      .filter((group) => !known.units.has(owner(group)))
      .map((group) => `control group ${group}`),
    ...namesIn(path.join(patient.runtimeDir, 'releases'))
      .filter((id) => !known.files.has(id))
      .map((id) => `files ${id}`),
    ...['caches', 'mirrors'].flatMap((place) =>
      namesIn(path.join(patient.runtimeDir, place))
        .filter((id) => !known.applications.has(id))
        .map((id) => `${place} ${id}`),
    ),
    ...namesIn(path.join(patient.runtimeDir, 'git'))
      .filter((name) => name.startsWith('scratch-'))
      .map((name) => `scratch ${name}`),
    ...(await strayRows(patient)),
  ];
}

async function whatIsKnown({ sql }: Patient): Promise<Known> {
  const ids = async (text: string): Promise<Set<string>> =>
    new Set((await sql<{ id: string }>(text)).map(({ id }) => id));
  return {
    units: await ids(
      `select id from instances union select id from deployments where status in ('building', 'deploying')
        union select id from runs where finished_at is null or finished_at > now() - interval '90 seconds'`,
    ),
    files: await ids(
      `select coalesce(artifact_id, id) as id from deployments
        where artifact_kept or status in ('building', 'deploying', 'active')`,
    ),
    applications: await ids('select id from applications'),
  };
}

/** Rows that would wait for ever, or that stand for something that is not there. */
async function strayRows({ sql, runtimeDir }: Patient): Promise<string[]> {
  const rows = await sql<{ line: string }>(`
    select 'deployment ' || id || ' is ' || status || ' and nobody looks at it' as line from deployments
      where status in ('queued', 'building', 'deploying') and next_at is null
    union all select 'instance ' || i.id || ' of a ' || d.status || ' deployment' from instances i
      join deployments d on d.id = i.deployment_id where d.status in ('failed', 'canceled')
    union all select 'instance ' || i.id || ' of no application' from instances i
      where not exists (select 1 from applications a where a.id = i.application_id)
    union all select 'instance ' || id || ' has a port and no unit' from instances
      where port is not null and handle is null and status = 'running'
    union all select 'release ' || r.id || ' of nothing' from releases r
      where not exists (select 1 from deployments d where d.id = r.deployment_id)`);
  const running = await sql<{ id: string }>(`select id from instances where status = 'running'`);
  const lost = running
    .filter(({ id }) => !existsSync(path.join(runtimeDir, 'units', id)))
    .map(({ id }) => `instance ${id} runs, but has no unit`);
  return [...rows.map(({ line }) => line), ...lost];
}

interface Found {
  pid: number;
  unit: string;
  args: string;
}

/** Shims and sandboxes name the run directory in their arguments, what runs in them has our variables. */
async function processesOf({ runtimeDir, sql }: Patient): Promise<Found[]> {
  const applications = new Set((await sql<{ id: string }>(EVER)).map(({ id }) => id));
  const units = path.join(runtimeDir, 'units/');
  return processesWith('').flatMap(({ pid, args }) => {
    const named = args.split(units)[1]?.split(/[/ ]/)[0];
    const unit = named ?? unitOf(readText(`/proc/${pid}/environ`), applications);
    return unit === null ? [] : [{ pid, unit, args: args.slice(0, 160) }];
  });
}

const EVER = `select id from applications union select resource_id from activity where resource_id like 'app\\_%'`;

function unitOf(environment: string, applications: ReadonlySet<string>): string | null {
  const variable = (name: string): string | null =>
    new RegExp(`(?:^|\\0)${name}=([^\\0]*)`).exec(environment)?.[1] ?? null;
  if (!applications.has(variable('SVC_APPLICATION_ID') ?? '')) return null;
  return variable('SVC_INSTANCE_ID') ?? variable('SVC_RUN_ID') ?? variable('SVC_DEPLOYMENT_ID');
}

/** Of the units of this platform, as its log and its deployments know them. */
async function groupsOf({ sql }: Patient): Promise<string[]> {
  const ours = new Set(
    (
      await sql<{ id: string }>(
        `select resource_id as id from activity union select distinct instance_id from log_lines
          where instance_id is not null`,
      )
    ).map(({ id }) => id),
  );
  const all = ['/sys/fs/cgroup', ...namesIn('/sys/fs/cgroup').map((name) => `/sys/fs/cgroup/${name}`)].flatMap(
    (place) => namesIn(`${place}/platform`),
  );
  return [...new Set(all)].filter((name) => ours.has(name.split('.')[0] as string));
}

export interface Door {
  /** A shell command that waits at the door, with a program of Node.js; it ends well once the door is open. */
  command: string;
  /** JavaScript that gives a promise of the same. */
  script: string;
  /** How many have come to it. */
  waiting(): number;
  open(): void;
  close(): Promise<void>;
}

/** Lets through nobody until it is opened. */
export async function makeDoor(): Promise<Door> {
  const held: http.ServerResponse[] = [];
  let isOpen = false;
  let count = 0;
  const server = http.createServer((_request, response) => {
    count += 1;
    if (isOpen) response.end('open');
    else held.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const script =
    `new Promise((resolve, reject) => require('http').get('http://127.0.0.1:${port}', (answer) => ` +
    "answer.resume().on('end', resolve)).on('error', reject))";
  const open = (): void => {
    isOpen = true;
    for (const response of held.splice(0)) response.end('open');
  };
  return {
    script,
    command: `node -e "${script}"`,
    waiting: () => count,
    open,
    async close() {
      open();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
