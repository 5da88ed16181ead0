/** @tier heavy @quarter 1 @covers jobs/databases/database/trust.ts */
// Clients of databases that nobody adapted: the address as it is injected, and the environment of a sandbox, must be
// enough to connect, encrypted and verified. npm run test:clients installs the clients of npm; those of Python are used
// where the host has them, and skipped by name where it has not.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { trustVariables, writeTrustFiles } from '../../jobs/databases/database/trust';
import { hasEngine, openHall, type Hall } from '../support/databases/database_hall';

const programs = path.join(__dirname, 'programs');
const python = process.env.CLIENTS_PYTHON ?? 'python3';

/** Programs by engine. A program prints `encrypted` where its connection is. */
const clients = {
  postgresql: {
    node: ['pg', 'knex', 'sequelize', 'typeorm', 'prisma'],
    python: {
      psycopg2: 'psycopg2',
      psycopg: 'psycopg',
      asyncpg: 'asyncpg',
      sqlalchemy: 'sqlalchemy, psycopg2',
      django: 'django, dj_database_url, psycopg2',
    },
  },
  redis: { node: ['redis', 'ioredis', 'bullmq'], python: { redis: 'redis', celery: 'celery' } },
} as const;

let hall: Hall;
let directory: string;

beforeAll(async () => {
  hall = await openHall();
  directory = mkdtempSync(path.join(tmpdir(), 'platform-trust-'));
}, 60_000);
afterAll(async () => {
  await hall?.close();
  rmSync(directory, { recursive: true, force: true });
}, 60_000);

for (const engine of ['postgresql', 'redis'] as const) {
  const describeHere = hasEngine(engine) || process.env.CI ? describe : describe.skip;
  describeHere(hasEngine(engine) ? engine : `${engine} (not installed)`, () => {
    let env: Record<string, string>;

    beforeAll(async () => {
      const { id } = await hall.create({ name: `stock-${engine}`, engine });
      env = await environmentOf(id, engine);
    }, 120_000);

    for (const name of clients[engine].node) {
      const isInstalled = existsSync(path.join(__dirname, 'node_modules'));
      (isInstalled ? test : test.skip)(
        `${name} of npm${isInstalled ? '' : ' (not installed: npm ci --prefix test/clients)'}`,
        () => {
          expect(run(process.execPath, `${name}.js`, env)).toEqual({ stdout: 'encrypted', status: 0, stderr: '' });
        },
      );
    }

    for (const [name, modules] of Object.entries(clients[engine].python)) {
      const isInstalled = spawnSync(python, ['-c', `import ${modules}`]).status === 0;
      (isInstalled ? test : test.skip)(`${name} of Python${isInstalled ? '' : ' (not installed)'}`, () => {
        expect(run(python, `${name}_py.py`, env)).toEqual({ stdout: 'encrypted', status: 0, stderr: '' });
      });
    }

    test('without the authority a client that verifies refuses the server', () => {
      const [first] = clients[engine].node;
      const { NODE_EXTRA_CA_CERTS: _, ...without } = env;
      expect(run(process.execPath, `${first}.js`, without)).toMatchObject({ stdout: '' });
    });
  });
}

/** What a sandbox has, see jobs/databases/database/trust.ts. */
async function environmentOf(id: string, engine: keyof typeof clients): Promise<Record<string, string>> {
  const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
  const address: string = body.endpoints[0].connection_string;
  const { text } = await hall.call('GET', '/databases/ca.pem');
  const files = await writeTrustFiles(directory, text);
  return {
    PATH: process.env.PATH ?? '',
    [engine === 'redis' ? 'REDIS_URL' : 'DATABASE_URL']: address,
    ...trustVariables([{ engine, pooled: false }], files),
  };
}

function run(program: string, file: string, env: Record<string, string>) {
  const { stdout, stderr, status } = spawnSync(program, [path.join(programs, file)], {
    encoding: 'utf8',
    env,
    timeout: 30_000,
    cwd: path.join(__dirname),
  });
  // What Node says of its own, e.g. of a package that is deprecated, is no failure of the client.
  return { stdout: stdout.trim(), status, stderr: status === 0 ? '' : stderr };
}
