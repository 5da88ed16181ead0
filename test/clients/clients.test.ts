/** @tier heavy @quarter 1 @covers jobs/databases/database/trust.ts */
// Clients of databases that nobody adapted: the address as it is injected, and the environment of a sandbox, must be
// enough to connect, encrypted and verified. npm run test:clients installs the clients of npm and Go; those of other
// languages are used where the host has them, and skipped by name where it has not.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { trustVariables, writeTrustFiles } from '../../jobs/databases/database/trust';
import { newCertificate } from '../support/databases/database_server';
import { hasEngine, openHall, type Hall } from '../support/databases/database_hall';

const programs = path.join(__dirname, 'programs');
const GO = 'npm run install:clients';
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

/** Of PostgreSQL in other languages: how they are run, and what shows that they are there. */
const others: Record<string, { command: [string, ...string[]]; probe: [string, ...string[]]; missing: string }> = {
  'lib/pq of Go': { command: ['go', 'run', '.', 'pq'], probe: ['go', 'list', '-deps', '.'], missing: GO },
  'pgx of Go': { command: ['go', 'run', '.', 'pgx'], probe: ['go', 'list', '-deps', '.'], missing: GO },
  'pg of Ruby': { command: ['ruby', 'pg.rb'], probe: ['ruby', '-rpg', '-e', ''], missing: 'apt-get install ruby-pg' },
  'PDO of PHP': {
    command: ['php', 'pdo.php'],
    probe: ['php', '-r', "exit(extension_loaded('pdo_pgsql') ? 0 : 1);"],
    missing: 'apt-get install php-cli php-pgsql',
  },
};

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

    for (const [name, client] of engine === 'postgresql' ? Object.entries(others) : []) {
      const isInstalled = runCommand(client.probe, process.env).status === 0;
      (isInstalled ? test : test.skip)(
        `${name}${isInstalled ? '' : ` (not installed: ${client.missing})`}`,
        async () => {
          const { HOME = '' } = process.env;
          expect(runCommand(client.command, { ...env, HOME })).toEqual({ stdout: 'encrypted', status: 0, stderr: '' });
          const another = await writeTrustFiles(path.join(directory, 'another'), newCertificate().certificate);
          const refusing = { ...env, HOME, ...trustVariables([{ engine }], another) };
          expect(runCommand(client.command, refusing)).not.toMatchObject({ stdout: 'encrypted' });
        },
        120_000,
      );
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
    ...trustVariables([{ engine }], files),
  };
}

function run(program: string, file: string, env: Record<string, string>) {
  return outcomeOf(program, [path.join(programs, file)], env, __dirname);
}

function runCommand([program, ...args]: [string, ...string[]], env: NodeJS.ProcessEnv) {
  return outcomeOf(program, args, env, path.join(programs, program === 'go' ? 'go' : ''));
}

function outcomeOf(program: string, args: string[], env: NodeJS.ProcessEnv, cwd: string) {
  const { stdout, stderr, status } = spawnSync(program, args, { encoding: 'utf8', env, timeout: 60_000, cwd });
  // What Node says of its own, e.g. of a package that is deprecated, is no failure of the client.
  return { stdout: (stdout ?? '').trim(), status, stderr: status === 0 ? '' : stderr };
}
