import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hostFacts } from '../../../drivers/host';

let home: string;

beforeAll(async () => void (home = await mkdtemp(path.join(os.tmpdir(), 'host-'))));
afterAll(() => rm(home, { recursive: true }));

// A host of its own: a search path with programs that we wrote.
async function hostWith(
  name: string,
  programs: Record<string, string>,
): Promise<{ searchPath: string; postgresqlRoot: string }> {
  const bin = path.join(home, name);
  await mkdir(bin, { recursive: true });
  for (const [program, script] of Object.entries(programs)) {
    await writeFile(path.join(bin, program), `#!/bin/sh\n${script}\n`);
    await chmod(path.join(bin, program), 0o755);
  }
  return { searchPath: bin, postgresqlRoot: path.join(home, 'none') };
}

test('this machine: memory, disk, processors and the runtime we run on', async () => {
  const facts = await hostFacts({ directory: os.tmpdir() });
  expect(facts.cpus).toBeGreaterThan(0);
  expect(facts.memory_total_bytes).toBeLessThanOrEqual(os.totalmem());
  expect(facts.memory_available_bytes).toBeGreaterThan(0);
  expect(facts.memory_available_bytes).toBeLessThanOrEqual(facts.memory_total_bytes);
  expect(facts.disk_free_bytes).toBeGreaterThan(0);
  expect(facts.disk_free_bytes).toBeLessThanOrEqual(facts.disk_total_bytes);
  expect(facts.programs.node?.version).toMatch(/^\d+\.\d+\.\d+$/);
});

test('the embedded PostgreSQL is found, with the tools that it has and no others', async () => {
  const { postgresql } = await hostFacts(await hostWith('empty', {}));
  expect(postgresql).toEqual([
    expect.objectContaining({ source: 'embedded', series: '18', tools: ['initdb', 'pg_ctl', 'postgres'] }),
  ]);
});

test('engines are known by what they say, not by the name of their file', async () => {
  const facts = await hostFacts(
    await hostWith('engines', {
      'redis-server': 'echo "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"',
      'valkey-server': 'echo "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64"',
      mariadbd: 'echo "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64"',
    }),
  );
  expect(facts.redis).toEqual([]);
  expect(facts.valkey).toEqual([expect.objectContaining({ version: '8.0.1', series: '8.0' })]);
  expect(facts.mariadb).toEqual([expect.objectContaining({ version: '10.11.19', series: '10.11' })]);
});

test('what listens before databases is found with its version', async () => {
  const { programs } = await hostFacts(
    await hostWith('listeners', {
      pgbouncer: 'echo "PgBouncer 1.18.0"',
      haproxy: '[ "$1" = -v ] && echo "HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/"',
    }),
  );
  expect([programs.pgbouncer?.version, programs.haproxy?.version]).toEqual(['1.18.0', '2.6.12']);
});

test('an installed PostgreSQL comes with its tools', async () => {
  const bin = path.join('postgresql', '16', 'bin');
  await hostWith(bin, { postgres: 'echo "postgres (PostgreSQL) 16.4 (Debian 16.4-1)"', pg_dump: 'exit 0' });
  const { postgresql } = await hostFacts({
    searchPath: path.join(home, 'empty'),
    postgresqlRoot: path.join(home, 'postgresql'),
  });
  expect(postgresql).toContainEqual({
    version: '16.4',
    series: '16',
    path: path.join(home, bin, 'postgres'),
    source: 'system',
    tools: ['postgres', 'pg_dump'],
    extensions: [],
  });
});

test('a builder counts only when its engine answers', async () => {
  const facts = await hostFacts(
    await hostWith('builders', {
      docker: 'echo "Cannot connect to the Docker daemon" >&2; exit 1',
      podman: 'echo 4.3.1',
    }),
  );
  expect(facts.oci_builders).toEqual(['podman']);
});

test('a program that hangs or fails is not there, and holds nobody up; a slow one is there', async () => {
  const begin = Date.now();
  const facts = await hostFacts(
    await hostWith('hanging', {
      git: 'exec sleep 30',
      go: 'exit 3',
      python3: 'sleep 3; echo Python 3.11.2',
      docker: 'exec sleep 30',
    }),
  );
  expect(Date.now() - begin).toBeLessThan(20_000);
  expect(Object.keys(facts.programs)).toEqual(['python3']);
  expect(facts.oci_builders).toEqual([]);
});

test('a directory that is not there has no room', async () => {
  expect(await hostFacts({ directory: path.join(home, 'nowhere') })).toMatchObject({
    disk_total_bytes: 0,
    disk_free_bytes: 0,
  });
});

test('old facts serve while programs are asked again', async () => {
  const [flag, times] = ['go-on', 'asked-again'].map((name) => path.join(home, name)) as [string, string];
  const host = await hostWith('again', { git: 'echo git version 2.39.5' });
  const version = async (): Promise<string | undefined> => (await hostFacts(host)).programs.git?.version;
  expect(await version()).toBe('2.39.5');
  const slow = `echo asked >> ${times}; until [ -e ${flag} ]; do sleep 0.05; done; echo git version 2.47.0`;
  await hostWith('again', { git: slow });
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 61_000);
  for (let turn = 0; turn < 3; turn += 1) expect(await version()).toBe('2.39.5');
  await writeFile(flag, '');
  while ((await version()) === '2.39.5') await sleep(20);
  now.mockRestore();
  expect([await version(), await readFile(times, 'utf8')]).toEqual(['2.47.0', 'asked\n']);
});

test('a program whose file stays as it is, is asked again after ten minutes', async () => {
  const [times, version] = ['shim-times', 'shim-version'].map((name) => path.join(home, name)) as [string, string];
  await writeFile(version, '3.11.2');
  const host = await hostWith('shim', {
    python3: `echo asked >> ${times}; echo Python $(cat ${version})`,
    git: `echo asked >> ${times}; exit 1`,
  });
  const python = async (): Promise<string | undefined> => (await hostFacts(host)).programs.python3?.version;
  const timesRun = async (): Promise<number> => (await readFile(times, 'utf8')).split('\n').length - 1;
  expect([await python(), await timesRun()]).toEqual(['3.11.2', 2]);
  await writeFile(version, '3.13.0');
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 61_000);
  expect(await python()).toBe('3.11.2');
  await sleep(500);
  expect([await python(), await timesRun()]).toEqual(['3.11.2', 2]);
  now.mockReturnValue(Date.now() + 600_000);
  while ((await python()) === '3.11.2') await sleep(20);
  now.mockRestore();
  expect([await python(), await timesRun()]).toEqual(['3.13.0', 4]);
});

test('a program that was killed is asked again with the next look', async () => {
  const flag = path.join(home, 'no-more-kills');
  const host = await hostWith('killed', { git: `[ -e ${flag} ] || kill -KILL $$; echo git version 2.39.5` });
  const version = async (): Promise<string | undefined> => (await hostFacts(host)).programs.git?.version;
  expect(await version()).toBeUndefined();
  await writeFile(flag, '');
  const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now() + 61_000);
  const until = performance.now() + 5_000;
  while ((await version()) === undefined && performance.now() < until) await sleep(20);
  now.mockRestore();
  expect(await version()).toBe('2.39.5');
});

test('programs are asked once, whatever directory is looked at', async () => {
  const host = await hostWith('asked', { git: `echo asked >> ${home}/times; echo git version 2.39.5` });
  const facts = await Promise.all([home, os.tmpdir()].map((directory) => hostFacts({ ...host, directory })));
  expect(facts.map(({ programs }) => programs.git?.version)).toEqual(['2.39.5', '2.39.5']);
  expect(await readFile(path.join(home, 'times'), 'utf8')).toBe('asked\n');
});

test('a program of an npm package has the version of the package; what only lies beside one does not', async () => {
  const { searchPath } = await hostWith('packaged/bin', { npm: 'echo 1.1.1', yarn: 'echo 1.22.22' });
  await writeFile(path.join(searchPath, '../package.json'), JSON.stringify({ name: 'npm', version: '11.19.1' }));
  const { programs } = await hostFacts({ searchPath, postgresqlRoot: home });
  expect([programs.npm?.version, programs.yarn?.version]).toEqual(['11.19.1', '1.22.22']);
});
