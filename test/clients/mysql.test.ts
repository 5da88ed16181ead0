/** @tier heavy @quarter 1 @covers jobs/databases/database models/databases/database drivers/database/mariadb */
// Clients of MariaDB that nobody adapted: each connects by the address as it is injected, then with TLS, verified, as
// docs/DATABASES.md says for it, by the file that a variable of the sandbox names; and refuses a server of another
// authority. npm run install:clients installs those of npm and Go; those of other languages are used where the host has
// them, and skipped by name where it has not.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { trustVariables, writeTrustFiles } from '../../jobs/databases/database/trust';
import { newCertificate } from '../support/databases/database_server';
import { hasEngine, openHall, type Hall } from '../support/databases/database_hall';
import { fileNeeds } from '../support/runner/programs';

fileNeeds('openssl');

const programs = path.join(__dirname, 'mysql');
const python = process.env.CLIENTS_PYTHON ?? 'python3';
const javaLibraries = path.join(programs, 'java/lib');

interface Client {
  command: string[];
  /** Connections, the last with TLS, verified. Before it some clients take TLS where a server offers it. */
  connections?: number;
  isInstalled: () => boolean;
  /** How to install it. */
  missing: string;
  directory?: string;
}

const node = (name: string): Client => ({
  command: [process.execPath, `${name}.js`],
  isInstalled: () => existsSync(path.join(__dirname, 'node_modules')),
  missing: 'npm run install:clients',
});
const pythonClient = (name: string, modules: string): Client => ({
  command: [python, `${name}_py.py`],
  isInstalled: () => succeeds(python, '-c', `import ${modules}`),
  missing: `pip install ${modules}`,
});
const php = (name: string, extension: string): Client => ({
  command: ['php', `${name}.php`],
  isInstalled: () => succeeds('php', '-r', `exit(extension_loaded('${extension}') ? 0 : 1);`),
  missing: 'apt-get install php-cli php-mysql',
});
const ruby = (name: string, libraries: string[]): Client => ({
  command: ['ruby', `${name}.rb`],
  isInstalled: () => succeeds('ruby', ...libraries.map((one) => `-r${one}`), '-e', ''),
  missing: 'apt-get install ruby-mysql2 ruby-sequel',
});

const clients: Record<string, Client> = {
  mysql2: node('mysql2'),
  mariadb: node('mariadb'),
  Knex: node('knex'),
  Sequelize: node('sequelize'),
  TypeORM: node('typeorm'),
  'the driver adapter of Prisma': node('prisma'),
  'SQLAlchemy with PyMySQL': pythonClient('pymysql', 'sqlalchemy, pymysql'),
  'SQLAlchemy with mysqlclient': pythonClient('mysqlclient', 'sqlalchemy, MySQLdb'),
  Django: pythonClient('django', 'django, dj_database_url, MySQLdb'),
  'PDO of PHP': php('pdo', 'pdo_mysql'),
  'mysqli of PHP': php('mysqli', 'mysqli'),
  'mysql2 of Ruby': ruby('mysql2', ['mysql2']),
  'Sequel of Ruby': ruby('sequel', ['sequel', 'mysql2']),
  'go-sql-driver': {
    command: ['go', 'run', '.'],
    isInstalled: () => succeeds('go', 'list', '-deps', '.'),
    missing: 'npm run install:clients',
    directory: 'go',
  },
  'Connector/J of MySQL and of MariaDB': {
    command: ['java', '-cp', `${javaLibraries}/*`, 'Client.java'],
    connections: 3,
    isInstalled: () => existsSync(javaLibraries) && succeeds('java', '-version'),
    missing: 'mvn -f test/clients/mysql/java dependency:copy-dependencies -DoutputDirectory=lib',
    directory: 'java',
  },
};

const describeHere = hasEngine('mariadb') || process.env.CI ? describe : describe.skip;
describeHere(hasEngine('mariadb') ? 'clients of MariaDB' : 'clients of MariaDB (not installed)', () => {
  let hall: Hall;
  let directory: string;
  let env: Record<string, string>;
  let stranger: Record<string, string>;

  beforeAll(async () => {
    hall = await openHall();
    directory = mkdtempSync(path.join(tmpdir(), 'platform-trust-'));
    const { id } = await hall.create({ name: 'stock-mariadb', engine: 'mariadb' });
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    const { text } = await hall.call('GET', '/databases/ca.pem');
    env = await environment(body.endpoints[0].connection_string, text, 'ours');
    stranger = await environment(body.endpoints[0].connection_string, newCertificate().certificate, 'another');
  }, 180_000);
  afterAll(async () => {
    await hall?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  /** What a sandbox has, see jobs/databases/database/trust.ts. */
  async function environment(address: string, certificate: string, name: string): Promise<Record<string, string>> {
    const files = await writeTrustFiles(path.join(directory, name), certificate);
    const variables = trustVariables([{ engine: 'mariadb' }], files);
    const { PATH = '', HOME = '' } = process.env;
    return { PATH, HOME, DATABASE_URL: address, ...variables };
  }

  for (const [name, client] of Object.entries(clients)) {
    const isInstalled = client.isInstalled();
    const testHere = isInstalled ? test : test.skip;
    testHere(
      `${name}${isInstalled ? '' : ` (not installed: ${client.missing})`}`,
      () => {
        const { connections = 2 } = client;
        const asItIs = Array(connections - 1).fill(expect.stringMatching(/^(plain|encrypted)$/));
        expect(run(client, env)).toEqual({ made: [...asItIs, 'encrypted'], status: 0, stderr: '' });
        const refusing = run(client, stranger);
        expect(refusing.made).toEqual(asItIs);
        expect(refusing.status).not.toBe(0);
      },
      120_000,
    );
  }
});

function run({ command: [program = '', ...args], directory = '' }: Client, env: Record<string, string>) {
  const { stdout, stderr, status } = spawnSync(program, args, {
    encoding: 'utf8',
    env,
    timeout: 60_000,
    cwd: path.join(programs, directory),
  });
  // What a program says beside its answer, e.g. of a package that is deprecated, is no failure of the client.
  const made = stdout.split('\n').filter((line) => line === 'plain' || line === 'encrypted');
  return { made, status, stderr: status === 0 ? '' : stderr };
}

function succeeds(program: string, ...args: string[]): boolean {
  const cwd = program === 'go' ? path.join(programs, 'go') : programs;
  return spawnSync(program, args, { cwd, timeout: 60_000 }).status === 0;
}
